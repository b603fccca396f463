/** Which result of a provider's conversation answers which call. Pure; it judges nothing. */
import type { FunctionCallBlock, FunctionResultBlock } from '../message.ts';
import type { Entry, Part } from './format.ts';

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
  /** Results of no call. */
  readonly orphans: readonly Located<ResultPart, E>[];
}

/**
 * Per occurrence, as ids come again in later turns: a result answers the calls of its id in the newest entry that has any, in their
 * order; one that comes too early, the next call of its id that has none. Whatever has no id is of one id.
 */
export function pairEntries<E extends Pick<Entry, 'parts'>>(entries: readonly E[]): Pairs<E> {
  type Result = Located<ResultPart, E>;
  type OpenCall = Located<CallPart, E> & { readonly results: Result[] };
  const calls: OpenCall[] = [];
  const newest = new Map<string, OpenCall[]>();
  const early: Result[] = [];
  for (const entry of entries) {
    for (const part of entry.parts) {
      if (isCall(part)) {
        const call: OpenCall = { entry, part, results: [] };
        const others = newest.get(part.block.id);
        if (others?.[0]?.entry === entry) others.push(call);
        else newest.set(part.block.id, [call]);
        calls.push(call);
      } else if (isResult(part)) {
        const group = newest.get(part.block.function_call_id);
        const call = group?.find(({ results }) => results.length === 0) ?? group?.at(-1);
        if (call) call.results.push({ entry, part });
        else early.push({ entry, part });
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
