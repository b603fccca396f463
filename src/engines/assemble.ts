/**
 * assemble: the context of the next model call, made to fit: results capped if asked for, old results pruned, the older part
 * summarised, and as a last resort results reduced to references. What it answers fits, or it answers that nothing does.
 * Pure; see compact.
 */
import { canonicalJson, sha256, toHex } from '../provenance/canonical.ts';
import type { AgentFunction, AgentMessage } from '../transcript/message.ts';
import { type Reserve, type ResolvedModel, usableTokens } from './budget.ts';
import { capResults } from './cap.ts';
import {
  type CompactionTools,
  priorSummary,
  SUMMARY_MIN_TOKENS,
  summarizeHead,
  summaryBudget,
  type SummaryOptions,
} from './compact.ts';
import { type Breakdown, byRole, type ModelInput } from './count.ts';
import { createMeter, sum } from './meter.ts';
import { pruneResults } from './prune.ts';
import { reduceResults, resize } from './reduce.ts';
import { keptOf, selectTail, tailBudget } from './tail.ts';

/** Raise it whenever the same request could give other bytes. */
export const ASSEMBLE_VERSION = '1.2.0';

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
  /** Of the request's messages: the user's, out of what was summarised, that stands before the tail as it would begin otherwise. */
  opening_message_index?: number;
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
  | ({ readonly kind: 'overflow' } & Overflow)
  /** It would fit only after a compaction that somebody else is making. */
  | { readonly kind: 'busy' };

/** In tokens. */
export interface Overflow {
  readonly token_count: number;
  readonly usable: number;
  /** Of the count: system prompt, tools and what else the caller sets aside. */
  readonly fixed_tokens: number;
  /** Of the count: the cached prefix, where there is one. */
  readonly prefix_tokens?: number;
}

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
  readonly summarised?: {
    readonly summary: string;
    readonly tokens_before: number;
    /** Where the tail begins, and which message was put before it. */
    readonly start: number;
    readonly opening: number | undefined;
    /** The messages of the draft as they were sent. */
    readonly originals: readonly AgentMessage[];
  };
}

/** What a compaction may leave, in tokens. */
interface Plan {
  readonly tailTokens: number;
  /** Undefined: as the options say, or by default. */
  readonly summaryTokens?: number;
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
  const fits = (draft: Draft): boolean => total(draft) <= usable;
  const withMessages = async (draft: Draft, messages: readonly AgentMessage[]): Promise<Draft> => {
    return { ...draft, messages, sizes: await resize(draft, messages, estimator, meter) };
  };

  let draft: Draft = { messages: originals, sizes: originalSizes, ...promptWith(priorSummary(options)) };
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
    draft = await withMessages(draft, capped.messages);
  }

  if (!fits(draft) && (options.allow_prune ?? true)) {
    const rules = { ...config, protected_functions: new Set(options.protected_functions), from };
    const pruned = await pruneResults(draft, rules, estimator, meter);
    applied.pruned = pruned.pruned_parts > 0;
    applied.pruned_tokens = pruned.pruned_tokens;
    draft = await withMessages(draft, pruned.messages);
  }

  /** Undefined where somebody else compacts; the same draft where there is nothing to gain. */
  const compacted = async (before: Draft, { tailTokens, summaryTokens }: Plan): Promise<Draft | undefined> => {
    const { messages, sizes } = before;
    const bounds = {
      turns: options.tail_turns ?? config.tail_turns,
      budget: tailTokens,
      userFirst: options.user_first,
      openingCounts: true,
    };
    const { start = 0, opening } = selectTail(messages, sizes, bounds);
    const tail = { start, opening };
    // Of the messages as they were sent: what pruning took away is what a summary is for.
    const head = originals.slice(0, start);
    const asked = { ...options, ...(summaryTokens !== undefined && { summary_tokens: summaryTokens }) };
    const summarize = () => summarizeHead(head, sum(originalSizes.slice(0, start)), asked, tools);
    const made = summarizer.deterministic || start === 0 ? await summarize() : await withLease(summarize);
    if (made?.status !== 'ok') return made && before;
    const { summary, tokens_before } = made;
    const summarised = { summary, tokens_before, start, opening, originals: keptOf(originals, tail) };
    const after = { messages: keptOf(messages, tail), sizes: keptOf(sizes, tail), ...promptWith(summary), summarised };
    return total(after) < total(before) ? after : before;
  };

  const reduced = async (before: Draft): Promise<Draft> => {
    if (fits(before)) return before;
    const reducible = { ...before, originals: before.summarised?.originals ?? originals, from };
    return { ...before, ...(await reduceResults(reducible, total(before) - usable, estimator, meter)) };
  };

  /** The tail as it should be; and where that leaves too much, as much of it as there is room for. */
  const plans = (): Plan[] => {
    const usual: Plan = { tailTokens: tailBudget(usable) };
    // A model's summary takes too long to be made again.
    if (!summarizer.deterministic) return [usual];
    const taken = total({ messages: [], sizes: [], ...promptWith('') });
    const besides = (summaryTokens: number): Plan => ({
      tailTokens: Math.max(0, usable - taken - summaryTokens),
      summaryTokens,
    });
    const budget = summaryBudget(sum(originalSizes), options);
    return [usual, besides(budget), ...(options.summary_tokens ? [] : [besides(SUMMARY_MIN_TOKENS)])];
  };

  if (!fits(draft)) {
    const prefixIsCached = breakpoint !== undefined && breakpoint >= 0;
    const mayCompact = (options.allow_compaction ?? true) && !prefixIsCached;
    const before = draft;
    let freed = 0;
    for (const plan of mayCompact ? plans() : [undefined]) {
      const after = plan ? await compacted(before, plan) : before;
      if (!after) return { kind: 'busy' };
      const attempt = await reduced(after);
      if (total(attempt) < total(draft)) {
        draft = attempt;
        freed = total(after) - total(attempt);
      }
      if (fits(attempt)) break;
    }
    applied.pruned ||= freed > 0;
    applied.pruned_tokens += freed;
  }
  const token_count = total(draft);
  if (token_count > usable) {
    const { promptTokens } = promptWith(undefined);
    const fixed_tokens = promptTokens + tools_tokens + request_overhead_tokens;
    const { prefix } = applied;
    return { kind: 'overflow', token_count, usable, fixed_tokens, ...(prefix && { prefix_tokens: prefix.tokens }) };
  }

  const { summarised } = draft;
  if (summarised) {
    applied.compacted = true;
    applied.summary = summarised.summary;
    applied.tail_start_index = view[summarised.start]?.index ?? 0;
    const opening = summarised.opening === undefined ? undefined : view[summarised.opening];
    if (opening) applied.opening_message_index = opening.index;
    applied.tokens_before = summarised.tokens_before;
    applied.summarized_head_tokens = summarised.tokens_before;
  }
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

/** SHA-256 of the RFC 8785 JSON, in hex. */
export async function digestOf(messages: readonly unknown[]): Promise<string> {
  return toHex(await sha256(canonicalJson(messages)));
}
