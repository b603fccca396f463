/**
 * conversation-prune for a provider's own messages: kinds, ids and units are read off them, and what is kept is as legal as what
 * was supplied. Pure; it drops whole messages and edits none.
 */
import { checkEntries } from '../transcript/formats/check.ts';
import { type Conversation, isSupplied, lastEntryAt, messageOf } from '../transcript/formats/conversation.ts';
import type { JsonObject } from '../json.ts';
import type { Entry } from '../transcript/formats/format.ts';
import { isCall, isResult, pairEntries } from '../transcript/formats/pairs.ts';
import type { Encoding } from '../tokenizer/encoding.ts';
import {
  choose,
  type Counts,
  DEFAULT_KEEP_RECENT_MESSAGES,
  type Item,
  type MessageKind,
  type PruneRequest,
  type PruneResult,
  type Unit,
  type Witness,
} from './conversation-prune.ts';
import { tokenizer } from './estimator.ts';

export interface NativePruneRequest extends Omit<PruneRequest, 'messages'> {
  /** Indices of messages that are never dropped. */
  readonly pinned?: readonly number[];
  /** Indices of messages that may be dropped although they are no calls and results; instructions stay all the same. */
  readonly droppable?: readonly number[];
}

/**
 * As `conversationPrune`; each message counts what `count` says of it. Indices are those of the caller's array, also where the
 * messages were mended: what was made in that has none.
 */
export async function pruneNative(
  request: NativePruneRequest,
  conversation: Conversation,
  encoding: Encoding | undefined,
): Promise<{ readonly result: PruneResult; readonly messages: readonly JsonObject[] }> {
  const { entries, origins } = conversation;
  const cacheBreakpoint = lastEntryAt(conversation, request.cacheBreakpoint);
  const chosen = await chooseUnits({ ...request, cacheBreakpoint }, conversation, encoding);
  const kept = new Set(chosen.keep);
  const messages = entries.filter((_, index) => kept.has(index)).map(({ native }) => native);
  const toOrigin = (index: number): number => origins[index] ?? index;
  const result = {
    ...chosen,
    keep: chosen.keep
      .map(toOrigin)
      .filter(isSupplied)
      .toSorted((a, b) => a - b),
    dropped: chosen.dropped
      .map((each) => ({
        ...each,
        index: toOrigin(each.index),
        ...(each.pairedWith !== undefined && { pairedWith: toOrigin(each.pairedWith) }),
      }))
      .filter(({ index }) => isSupplied(index)),
  };
  return { result, messages };
}

function chooseUnits(
  request: NativePruneRequest,
  conversation: Conversation,
  encoding: Encoding | undefined,
): Promise<PruneResult> {
  const { entries } = conversation;
  const { units, openCalls, faults } = findUnits(request, conversation);
  return choose(
    request,
    entries.map(({ native }) => native),
    countEntries(entries, encoding),
    {
      faults,
      openCalls,
      unitsOf: (items) =>
        units.flatMap((indices) => {
          const [first, ...others] = indices.flatMap((index) => items[index] ?? []);
          return first ? [[first, ...others] satisfies Unit] : [];
        }),
    },
  );
}

function countEntries(entries: readonly Entry[], encoding: Encoding | undefined): Counts {
  if (!encoding) return { status: 'unsupported', notes: ['The tokenizer asked for is not offered here.'] };
  const estimator = tokenizer(encoding);
  const items = entries.map((entry, index): Item => {
    const { role } = entry.native;
    const message = { role: typeof role === 'string' ? role : entry.role, kind: kindOf(entry) };
    return { index, message, tokens: estimator.message(messageOf(entry)) };
  });
  return { status: 'known', items, used: encoding };
}

function kindOf({ parts }: Entry): MessageKind {
  if (parts.some(isCall)) return 'tool_call';
  return parts.some(isResult) ? 'tool_result' : 'text';
}

interface Units {
  /** Indices, ascending; the units by their first. */
  readonly units: readonly (readonly number[])[];
  readonly openCalls: readonly number[];
  readonly faults: readonly Witness[];
}

/**
 * A message with calls, all messages with their results, and what the format keeps with them, are one unit. It may be dropped if
 * each of its calls has its one result, and nothing else would be lost with it that the caller did not give up.
 */
function findUnits(request: NativePruneRequest, { format, entries, origins }: Conversation): Units {
  const { calls, orphans } = pairEntries(format.rules, entries);
  const indexOf = new Map(entries.map((entry, index) => [entry, index]));
  const groups = createGroups(entries.length);
  const answered = new Set<Entry>();
  const open = new Set<number>();
  for (const { entry, results } of calls) {
    const index = indexOf.get(entry) ?? 0;
    if (results.length === 0) open.add(index);
    for (const result of results) {
      answered.add(result.entry);
      groups.join(index, indexOf.get(result.entry) ?? index);
    }
  }
  let thinkingAt: number | undefined;
  for (const [index, entry] of entries.entries()) {
    const before = entries[index - 1];
    if (isOwnWord(entry)) thinkingAt = undefined;
    // Where thinking is an element of its own, any call after it may be one that it is required for.
    if (format.rules.joinsAssistant && entry.parts.some(isThinking)) thinkingAt = index;
    else if (thinkingAt !== undefined && entry.role === 'assistant') groups.join(thinkingAt, index);
    const isSameMessage = format.rules.joinsAssistant && entry.role === 'assistant' && before?.role === 'assistant';
    // Such as an approval, which belongs to the call before it.
    const isNoAnswer = entry.role === 'results' && !answered.has(entry);
    if (before && (isSameMessage || isNoAnswer)) groups.join(index - 1, index);
  }

  const faults = pairWitnesses(format, entries, new Set(orphans.map(({ part }) => part.path)));
  const faulty = new Set(faults.map(({ index }) => index));
  const listed = (indices: readonly number[] = []): ReadonlySet<number> => {
    const named = new Set(indices);
    return new Set([...entries.keys()].filter((index) => named.has(origins[index] ?? index)));
  };
  const pinned = listed(request.pinned);
  const givenUp = listed(request.droppable);
  const recentFrom = entries.length - (request.keepRecent ?? DEFAULT_KEEP_RECENT_MESSAGES);
  const [firstUser, lastUser] = [entries.findIndex(isOwnWord), entries.findLastIndex(isOwnWord)];
  const lastWord = entries.findLastIndex(({ role }) => role !== 'system');
  // An instruction in the array has its place between these two.
  const besideSystem = (index: number): boolean =>
    format.rules.systemAfterUser === true && [index - 1, index + 1].some((other) => entries[other]?.role === 'system');
  const thinking = entries.slice(lastUser + 1).some(({ parts }) => parts.some(isThinking));
  const mustStay = (index: number): boolean =>
    index <= request.cacheBreakpoint ||
    index >= recentFrom ||
    pinned.has(index) ||
    faulty.has(index) ||
    open.has(index) ||
    entries[index]?.role === 'system' ||
    // One user's message at least, and where the first has to be a user's, that one.
    index === lastUser ||
    (index === firstUser && format.rules.userFirst) ||
    // The newest turn's thinking is bound to all that follows it.
    (thinking && index > lastUser && !givenUp.has(index)) ||
    index === lastWord ||
    besideSystem(index);

  const withCalls = new Set(calls.map(({ entry }) => groups.of(indexOf.get(entry) ?? 0)));
  const units = groups.all().filter((indices) => {
    const isTool = withCalls.has(groups.of(indices[0] ?? 0));
    return indices.every((index) => {
      const entry = entries[index];
      const losesNothing = isTool && entry !== undefined && !isOwnWord(entry);
      return !mustStay(index) && (losesNothing || givenUp.has(index));
    });
  });
  return { units, openCalls: Array.from(open, (index) => origins[index] ?? index), faults };
}

/** Something that the user says, and no result. */
const isOwnWord = ({ role, parts }: Entry): boolean => role === 'user' && !(parts.length > 0 && parts.every(isResult));

const isThinking = ({ block }: { readonly block: { readonly type: string } }): boolean =>
  block.type === 'thinking' || block.type === 'redacted_thinking';

/** Disjoint sets of indices. */
function createGroups(length: number): {
  of(index: number): number;
  join(a: number, b: number): void;
  all(): readonly (readonly number[])[];
} {
  const parents = Array.from({ length }, (_, index) => index);
  const of = (index: number): number => {
    let root = index;
    for (let parent = parents[root] ?? root; parent !== root; parent = parents[root] ?? root) root = parent;
    parents[index] = root;
    return root;
  };
  return {
    of,
    join: (a, b) => {
      const [low, high] = [Math.min(of(a), of(b)), Math.max(of(a), of(b))];
      parents[high] = low;
    },
    all: () => {
      const groups = new Map<number, number[]>();
      for (const index of parents.keys()) {
        const group = groups.get(of(index));
        if (group) group.push(index);
        else groups.set(of(index), [index]);
      }
      return [...groups.values()];
    },
  };
}

/** What is wrong with pairs, under the names of the contract; whatever else an API would refuse is not looked at here. */
function pairWitnesses(
  format: Conversation['format'],
  entries: readonly Entry[],
  orphans: ReadonlySet<string>,
): (Witness & { index: number })[] {
  const indexOf = new Map(entries.flatMap(({ parts }, index) => parts.map(({ path }) => [path, index] as const)));
  return checkEntries(format, entries).flatMap(({ path, rule, detail }) => {
    const ruleId = rule === 'orphan-result' && !orphans.has(path) ? 'pair-order' : RULE_IDS[rule];
    const index = indexOf.get(path);
    if (ruleId === undefined || index === undefined) return [];
    const expected = 'one result for each call, where the format wants it';
    return [{ ruleId, detail: `${detail[0]?.toUpperCase()}${detail.slice(1)}.`, path, index, expected, actual: rule }];
  });
}

const RULE_IDS: Readonly<Record<string, Witness['ruleId']>> = {
  'duplicate-id': 'pair-unique',
  'duplicate-result': 'pair-unique',
  'orphan-result': 'pair-complete',
  'result-after-other': 'pair-order',
};
