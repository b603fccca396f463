/** Which result of a provider's conversation answers which call. Pure; it judges nothing. */
import type { FunctionCallBlock, FunctionResultBlock } from '../message.ts';
import type { Entry, FormatRules, Part } from './format.ts';

export type CallPart = Part & { readonly block: FunctionCallBlock };
export type ResultPart = Part & { readonly block: FunctionResultBlock };
export const isCall = (part: Part): part is CallPart => part.block.type === 'function_call';
export const isResult = (part: Part): part is ResultPart => part.block.type === 'function_result';

/** A part, and the entry that it stands in. */
export interface Located<P extends Part, E> {
  readonly entry: E;
  readonly part: P;
}

export interface Call<E> extends Located<CallPart, E> {
  /** In transcript order; more than one is a fault, none an open call. */
  readonly results: readonly Located<ResultPart, E>[];
}

export interface Pairs<E> {
  readonly calls: readonly Call<E>[];
  /** Results of no call; where the call may be one that the provider holds, they are not among them. */
  readonly orphans: readonly Located<ResultPart, E>[];
}

/**
 * Per occurrence, as ids come again in later turns: a result answers the calls of its id in the newest message that has any, in their
 * order; one that comes too early, the next call of its id that has none. Whatever has no id is of one id. Linear.
 */
export function pairEntries<E extends Pick<Entry, 'role' | 'parts' | 'isReference'>>(
  { joinsAssistant }: Pick<FormatRules, 'joinsAssistant'>,
  entries: readonly E[],
): Pairs<E> {
  type Result = Located<ResultPart, E>;
  type OpenCall = Located<CallPart, E> & { readonly results: Result[] };
  /** Calls of one id in one message; those before `next` have a result. */
  type Group = { readonly message: number; readonly calls: OpenCall[]; next: number };
  const calls: OpenCall[] = [];
  const newest = new Map<string, Group>();
  const early: Result[] = [];
  let message = 0;
  let isReferred = false;
  for (const [index, entry] of entries.entries()) {
    const continues = joinsAssistant && entry.role === 'assistant' && entries[index - 1]?.role === 'assistant';
    if (!continues) message += 1;
    isReferred ||= entry.isReference ?? false;
    for (const part of entry.parts) {
      if (isCall(part)) {
        const call: OpenCall = { entry, part, results: [] };
        const group = newest.get(part.block.id);
        if (group?.message === message) group.calls.push(call);
        else newest.set(part.block.id, { message, calls: [call], next: 0 });
        calls.push(call);
      } else if (isResult(part)) {
        const group = newest.get(part.block.function_call_id);
        if (group) (group.calls[group.next++] ?? group.calls.at(-1))?.results.push({ entry, part });
        else if (!isReferred) early.push({ entry, part });
      }
    }
  }
  const unanswered = new Map<string, OpenCall[]>();
  for (const call of calls.toReversed()) {
    if (call.results.length > 0) continue;
    const waiting = unanswered.get(call.part.block.id);
    if (waiting) waiting.push(call);
    else unanswered.set(call.part.block.id, [call]);
  }
  const orphans = early.filter((result) => {
    const call = unanswered.get(result.part.block.function_call_id)?.pop();
    call?.results.push(result);
    return !call;
  });
  return { calls, orphans };
}
