/** Our assemble as the benches run it: to a budget, by one of its steps, and without waiting for anybody. */
import { type Applied, assemble, type AssembleOptions, type AssembleResult } from '../src/engines/assemble.ts';
import type { ResolvedModel } from '../src/engines/budget.ts';
import { type ContextConfig, DEFAULT_CONFIG } from '../src/engines/config.ts';
import type { Estimator } from '../src/engines/estimator.ts';
import { sum } from '../src/engines/meter.ts';
import { deterministicSummarizer } from '../src/engines/summary.ts';
import type { Summarizer } from '../src/engines/summarizer.ts';
import type { Conversation } from './conversations.ts';

/** What is to be sent to the model. */
export type Context = Pick<Conversation, 'system' | 'messages'>;

/** Of the messages and the system prompt. */
export function countContext(estimator: Estimator, { system, messages }: Context): number {
  const tokens = estimator.text(system) + sum(messages.map((message) => estimator.message(message)));
  return tokens > 0 ? tokens + estimator.replyPrimingTokens : 0;
}

/** The service waits a turn of the event loop here, for the sake of others; there are none. */
export const pause = async (): Promise<void> => {};

/** Makes a context of at most `budget` tokens, all of which the input may take; undefined where none fits. */
export async function assembleTo(
  { system, messages }: Context,
  budget: number,
  estimator: Estimator,
  options: AssembleOptions = {},
  config: ContextConfig = DEFAULT_CONFIG,
  summarizer: Summarizer = deterministicSummarizer,
): Promise<AssembleResult | undefined> {
  const limits = { context_window: budget, max_output_tokens: 0 };
  const model: ResolvedModel = { resolved: 'inline', limits };
  const request = {
    messages,
    model: { id: 'gpt-5', limits },
    system_prompt: system,
    options: { ...options, reserved_tokens: 0 },
  };
  const tools = { config, model, estimator, summarizer, pause };
  const assembled = await assemble(request, { ...tools, withLease: (work) => work() });
  return assembled.kind === 'fits' ? assembled.result : undefined;
}

/** One way in which the large conversation of the benches is made to fit. */
export interface Step {
  readonly name: string;
  /** The budget, as a share of the tokens. */
  readonly share: number;
  readonly options: AssembleOptions;
  readonly config?: ContextConfig;
  /** Instead of our own. */
  readonly summarizer?: Summarizer;
  readonly isWhatHappened: (applied: Applied) => boolean;
}

/** It is too short to be pruned by the defaults, which protect as much as half of it. */
const EAGER: ContextConfig = { ...DEFAULT_CONFIG, protect_recent_tokens: 5_000, min_free_tokens: 1_000 };

const GIVEN_SUMMARY = '## Goal\n- Find out why the checkout fails.\n'.repeat(40);

export const STEPS: readonly Step[] = [
  { name: 'it fits', share: 2, options: {}, isWhatHappened: ({ pruned, compacted }) => !pruned && !compacted },
  {
    name: 'old results pruned',
    share: 0.9,
    options: { allow_compaction: false },
    config: EAGER,
    isWhatHappened: ({ pruned, compacted }) => pruned && !compacted,
  },
  {
    name: 'results reduced to references',
    share: 0.65,
    options: { allow_prune: false, allow_compaction: false },
    isWhatHappened: ({ pruned }) => pruned,
  },
  {
    name: 'summarised, the summary being given',
    share: 0.3,
    options: { allow_prune: false },
    summarizer: { name: 'given', deterministic: true, summarize: async () => GIVEN_SUMMARY },
    isWhatHappened: ({ compacted }) => compacted,
  },
  {
    name: 'summarised',
    share: 0.3,
    options: { allow_prune: false },
    isWhatHappened: ({ compacted }) => compacted,
  },
  {
    name: 'pruned, then summarised',
    share: 0.3,
    options: {},
    config: EAGER,
    isWhatHappened: ({ pruned, compacted }) => pruned && compacted,
  },
];

/** Does that to a conversation of about `tokens` tokens. */
export async function take(
  { name, share, options, config, summarizer, isWhatHappened }: Step,
  context: Context,
  tokens: number,
  estimator: Estimator,
): Promise<void> {
  const result = await assembleTo(context, Math.floor(tokens * share), estimator, options, config, summarizer);
  if (!result || !isWhatHappened(result.applied)) throw new Error(`not what happened: ${name}`);
}
