/**
 * compact: puts the older part of a conversation into a summary and says where the part begins that stays as it is. Pure;
 * the summariser is an argument, and whether somebody else compacts the same conversation is the caller's to know.
 */
import type { AgentMessage } from '../transcript/message.ts';
import { type ResolvedModel, usableTokens } from './budget.ts';
import type { ContextConfig } from './config.ts';
import type { ModelInput } from './count.ts';
import type { Estimator, EstimatorChoice } from './estimator.ts';
import { createMeter, sum } from './meter.ts';
import type { Summarizer } from './summarizer.ts';
import { keptOf, selectTail, tailBudget } from './tail.ts';

/** Raise it whenever the same request could give other bytes. */
export const COMPACT_VERSION = '1.1.0';

/** Null is absent everywhere. */
export interface CompactRequest {
  /** Oldest first. */
  readonly messages: readonly AgentMessage[];
  readonly model: ModelInput;
  readonly options?: CompactOptions | null;
}

export interface SummaryOptions {
  readonly previous_summary?: string | null;
  readonly summary_tokens?: number | null;
  readonly tail_turns?: number | null;
  /** Who compacts under the same key waits for the other. */
  readonly lease_key?: string | null;
  readonly estimator?: EstimatorChoice | null;
  /** Whether what stays has to begin with a user's message, as some providers want. */
  readonly user_first?: boolean | null;
}

export interface CompactOptions extends SummaryOptions {
  /** Instead of the share of the usable tokens. */
  readonly preserve_recent_tokens?: number | null;
}

export type CompactResult =
  | {
      status: 'ok';
      summary: string;
      /** Of the request's messages; null where all of them were summarised. */
      tail_start_index: number | null;
      /** Of the request's messages: the user's, out of what was summarised, that stands before the tail as it would begin otherwise. */
      opening_message_index?: number;
      /** Of what was summarised. */
      tokens_before: number;
      /** Of the summary and what stays. */
      tokens_after: number;
      used_prior_summary: boolean;
    }
  /** empty: there was nothing to summarise, or no summary that is smaller. overflow: the summariser failed. */
  | { status: 'empty' | 'overflow' };

/** What the engines of compact and assemble are given beside the request. */
export interface CompactionTools {
  readonly config: ContextConfig;
  readonly model: ResolvedModel;
  readonly estimator: Estimator;
  readonly summarizer: Summarizer;
  readonly pause: () => Promise<void>;
}

export async function compact({ messages, options }: CompactRequest, tools: CompactionTools): Promise<CompactResult> {
  const { config, model, estimator, pause } = tools;
  const view = messages.flatMap((message, index) => (message.role === 'custom' ? [] : [{ message, index }]));
  const seen = view.map(({ message }) => message);
  const sizes = await createMeter(pause).each(seen, (message) => estimator.message(message));
  const budget = options?.preserve_recent_tokens ?? tailBudget(usableTokens(model, config));
  const turns = options?.tail_turns ?? config.tail_turns;
  const tail = selectTail(seen, sizes, { turns, budget, userFirst: options?.user_first });
  const { start, opening } = tail;
  const summarised = await summarizeHead(seen.slice(0, start), sum(sizes.slice(0, start)), options, tools);
  if (summarised.status !== 'ok') return summarised;
  const { summary, summary_tokens, tokens_before } = summarised;
  return {
    status: 'ok',
    summary,
    tail_start_index: start === undefined ? null : (view[start]?.index ?? null),
    ...(opening !== undefined && { opening_message_index: view[opening]?.index ?? 0 }),
    tokens_before,
    tokens_after: summary_tokens + sum(keptOf(sizes, tail)),
    used_prior_summary: priorSummary(options) !== undefined,
  };
}

export type SummarisedHead =
  | {
      readonly status: 'ok';
      readonly summary: string;
      readonly summary_tokens: number;
      readonly tokens_before: number;
    }
  | { readonly status: 'empty' | 'overflow' };

const SUMMARY_SHARE_OF_HEAD = 1 / 10;
const SUMMARY_DEFAULT_MIN_TOKENS = 256;
const SUMMARY_DEFAULT_MAX_TOKENS = 2_048;
/** Eight headings and a few words. */
export const SUMMARY_MIN_TOKENS = 128;

/** The summary of a head of so many tokens, if there is one and it is smaller than the head. */
export async function summarizeHead(
  head: readonly AgentMessage[],
  tokens_before: number,
  options: SummaryOptions | null | undefined,
  { estimator, summarizer, pause }: CompactionTools,
): Promise<SummarisedHead> {
  if (head.length === 0) return { status: 'empty' };
  const share = Math.floor(tokens_before * SUMMARY_SHARE_OF_HEAD);
  const budgetTokens =
    options?.summary_tokens ?? Math.min(SUMMARY_DEFAULT_MAX_TOKENS, Math.max(SUMMARY_DEFAULT_MIN_TOKENS, share));
  const previousSummary = priorSummary(options);
  const summary = await summarizer.summarize({ head, previousSummary, budgetTokens, estimator, pause });
  if (summary === undefined) return { status: 'overflow' };
  const summary_tokens = estimator.text(summary);
  if (summary === '' || summary_tokens >= tokens_before) return { status: 'empty' };
  return { status: 'ok', summary, summary_tokens, tokens_before };
}

/** What a summary of a head of so many tokens may take. */
export function summaryBudget(headTokens: number, options: SummaryOptions | null | undefined): number {
  const share = Math.floor(headTokens * SUMMARY_SHARE_OF_HEAD);
  const byDefault = Math.min(SUMMARY_DEFAULT_MAX_TOKENS, Math.max(SUMMARY_DEFAULT_MIN_TOKENS, share));
  return options?.summary_tokens ?? byDefault;
}

/** An empty one counts as none. */
export function priorSummary(options: SummaryOptions | null | undefined): string | undefined {
  return options?.previous_summary?.trim() ? options.previous_summary : undefined;
}
