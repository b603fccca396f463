/**
 * assemble: the context of the next model call, made to fit: results capped if asked for, old results pruned, the older part
 * summarised, and as a last resort results reduced to references. What it answers fits, or it answers that nothing does.
 * Pure; see compact.
 */
import { canonicalJson, sha256, toHex } from '../provenance/canonical.ts';
import type { AgentFunction, AgentMessage } from '../transcript/message.ts';
import { type Reserve, type ResolvedModel, usableTokens } from './budget.ts';
import { capResults } from './cap.ts';
import { type CompactionTools, priorSummary, summarizeHead, type SummaryOptions } from './compact.ts';
import { type Breakdown, byRole, type ModelInput } from './count.ts';
import { createMeter, sum } from './meter.ts';
import { pruneResults } from './prune.ts';
import { reduceResults, resize } from './reduce.ts';
import { selectTail, tailBudget } from './tail.ts';

/** Raise it whenever the same request could give other bytes. */
export const ASSEMBLE_VERSION = '1.0.0';

/** Null is absent everywhere. */
export interface AssembleRequest {
  /** Oldest first. */
  readonly messages: readonly AgentMessage[];
  readonly model: ModelInput;
  readonly system_prompt?: string | null;
  readonly tools?: readonly AgentFunction[] | null;
  readonly options?: AssembleOptions | null;
}

export interface AssembleOptions extends SummaryOptions, Reserve {
  readonly allow_prune?: boolean | null;
  readonly allow_compaction?: boolean | null;
  readonly protected_functions?: readonly string[] | null;
  /** What the provider's request takes beside prompt, messages and tools. */
  readonly request_overhead_tokens?: number | null;
  /** No single result says more. */
  readonly max_result_tokens?: number | null;
  /** Index of the last message of a cached prefix, which then stays byte for byte; -1 when nothing is cached. */
  readonly cache_breakpoint?: number | null;
}

export type Applied = {
  initial_token_count: number;
  pruned: boolean;
  pruned_tokens: number;
  compacted: boolean;
  capped_parts?: number;
  capped_tokens?: number;
  summary?: string;
  /** Of the request's messages. */
  tail_start_index?: number;
  tokens_before?: number;
  /** The same as tokens_before, by a clearer name. */
  summarized_head_tokens?: number;
  /** The model-facing messages up to the cache breakpoint. */
  prefix?: { messages: number; tokens: number; sha256: string };
};

export type AssembleResult = {
  system_prompt: string;
  messages: readonly AgentMessage[];
  token_count: number;
  usable: number;
  effective_max_output_tokens: number;
  model_resolved: ResolvedModel['resolved'];
  applied: Applied;
  breakdown: Breakdown;
};

export type Assembled =
  | { readonly kind: 'fits'; readonly result: AssembleResult }
  | { readonly kind: 'overflow'; readonly token_count: number; readonly usable: number }
  /** It would fit only after a compaction that somebody else is making. */
  | { readonly kind: 'busy' };

export interface AssembleTools extends CompactionTools {
  /** Runs what nobody else may do for this conversation at the same time; undefined where somebody does. */
  readonly withLease: <T>(work: () => Promise<T>) => Promise<T | undefined>;
}

/** Where the work stands: the model's view of the messages, what each of them counts, and the prompt before them. */
interface Draft {
  readonly messages: readonly AgentMessage[];
  readonly sizes: readonly number[];
  readonly prompt: string;
  readonly promptTokens: number;
}

export async function assemble(request: AssembleRequest, tools: AssembleTools): Promise<Assembled> {
  const { config, model, estimator, summarizer, withLease, pause } = tools;
  const options = request.options ?? {};
  const usable = usableTokens(model, config, options);
  const meter = createMeter(pause);
  const view = request.messages.flatMap((message, index) => (message.role === 'custom' ? [] : [{ message, index }]));
  const originals = view.map(({ message }) => message);
  const originalSizes = await meter.each(originals, (message) => estimator.message(message));
  const tools_tokens = sum(await meter.each(request.tools ?? [], (tool) => estimator.tool(tool)));
  const request_overhead_tokens = options.request_overhead_tokens ?? 0;

  const promptWith = (summary: string | undefined): Pick<Draft, 'prompt' | 'promptTokens'> => {
    const prompt = renderPrompt(request.system_prompt ?? '', summary);
    return { prompt, promptTokens: estimator.text(prompt) };
  };
  const primingOf = (counted: number): number => (counted > 0 ? estimator.replyPrimingTokens : 0);
  const unprimed = ({ sizes, promptTokens }: Draft): number =>
    sum(sizes) + promptTokens + tools_tokens + request_overhead_tokens;
  const total = (draft: Draft): number => unprimed(draft) + primingOf(unprimed(draft));

  let draft: Draft = { messages: originals, sizes: originalSizes, ...promptWith(priorSummary(options)) };
  const exceeds = (): boolean => total(draft) > usable;
  const replaceMessages = async (messages: readonly AgentMessage[]): Promise<void> => {
    draft = { ...draft, messages, sizes: await resize(draft, messages, estimator, meter) };
  };
  const applied: Applied = { initial_token_count: total(draft), pruned: false, pruned_tokens: 0, compacted: false };

  const breakpoint = options.cache_breakpoint ?? undefined;
  /** The first message that may be touched. */
  const from = breakpoint === undefined ? 0 : view.filter(({ index }) => index <= breakpoint).length;
  if (breakpoint !== undefined) {
    const tokens = sum(originalSizes.slice(0, from));
    applied.prefix = { messages: from, tokens, sha256: await digestOf(originals.slice(0, from)) };
  }

  const cap = options.max_result_tokens ?? undefined;
  if (cap !== undefined) {
    const capped = await capResults(draft, from, cap, estimator, meter);
    applied.capped_parts = capped.capped_parts;
    applied.capped_tokens = capped.capped_tokens;
    await replaceMessages(capped.messages);
  }

  if (exceeds() && (options.allow_prune ?? true)) {
    const rules = { ...config, protected_functions: new Set(options.protected_functions), from };
    const pruned = await pruneResults(draft, rules, estimator, meter);
    applied.pruned = pruned.pruned_parts > 0;
    applied.pruned_tokens = pruned.pruned_tokens;
    await replaceMessages(pruned.messages);
  }

  /** How many messages the summary stands for. */
  let summarised = 0;
  let busy = false;
  const prefixIsCached = breakpoint !== undefined && breakpoint >= 0;
  if (exceeds() && (options.allow_compaction ?? true) && !prefixIsCached) {
    const tailTurns = options.tail_turns ?? config.tail_turns;
    const start = selectTail(draft.messages, draft.sizes, tailTurns, tailBudget(usable)) ?? 0;
    // Of the messages as they were sent: what pruning took away is what a summary is for.
    const head = originals.slice(0, start);
    const summarize = () => summarizeHead(head, sum(originalSizes.slice(0, start)), options, tools);
    const made = summarizer.deterministic ? await summarize() : await withLease(summarize);
    busy = made === undefined;
    if (made?.status === 'ok') {
      const { summary, tokens_before } = made;
      const { messages, sizes } = draft;
      const compacted = { messages: messages.slice(start), sizes: sizes.slice(start), ...promptWith(summary) };
      if (total(compacted) < total(draft)) {
        draft = compacted;
        summarised = start;
        applied.compacted = true;
        applied.summary = summary;
        applied.tail_start_index = view[start]?.index ?? 0;
        applied.tokens_before = tokens_before;
        applied.summarized_head_tokens = tokens_before;
      }
    }
  }

  if (exceeds()) {
    if (busy) return { kind: 'busy' };
    const before = total(draft);
    const reducible = { ...draft, originals: originals.slice(summarised), from };
    draft = { ...draft, ...(await reduceResults(reducible, before - usable, estimator, meter)) };
    const freed = before - total(draft);
    applied.pruned ||= freed > 0;
    applied.pruned_tokens += freed;
  }
  const token_count = total(draft);
  if (token_count > usable) return { kind: 'overflow', token_count, usable };

  return {
    kind: 'fits',
    result: {
      system_prompt: draft.prompt,
      messages: draft.messages,
      token_count,
      usable,
      effective_max_output_tokens: model.limits.max_output_tokens,
      model_resolved: model.resolved,
      applied,
      breakdown: {
        system_prompt_tokens: draft.promptTokens,
        tools_tokens,
        reply_priming_tokens: primingOf(unprimed(draft)),
        request_overhead_tokens,
        by_role: byRole(draft.messages, draft.sizes),
        estimator: estimator.name,
      },
    },
  };
}

function renderPrompt(base: string, summary: string | undefined): string {
  const section = summary === undefined ? [] : [`# Conversation summary\n\n${summary}`];
  return [base.trimEnd(), ...section].filter(Boolean).join('\n\n');
}

async function digestOf(messages: readonly AgentMessage[]): Promise<string> {
  return toHex(await sha256(canonicalJson(messages)));
}
