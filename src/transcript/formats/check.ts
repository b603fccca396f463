/**
 * What a provider's API would refuse of a conversation: each element by itself, by the format's own rules, and here what all formats
 * have in common, the pairs of calls and results and the order of roles. Pure; it changes nothing.
 */
import type { JsonPointer } from '../../problem.ts';
import type { Entry, FormatFault, MessageFormat, Part } from './format.ts';
import { type CallPart, isCall, isResult, pairEntries } from './pairs.ts';

/** In the order of the array, an element's own faults before those of its place. */
export function checkEntries(format: MessageFormat, entries: readonly Entry[]): readonly FormatFault[] {
  const faults = [
    ...entries.flatMap((entry) => format.faults(entry)),
    ...(format.neighbourFaults?.(entries) ?? []),
    ...pairFaults(format, entries),
    ...firstFaults(format, entries),
  ];
  const order = new Map(entries.flatMap(({ path }, index) => [[path, index] as const]));
  const indexOf = ({ path }: FormatFault): number => order.get(elementOf(path)) ?? -1;
  return faults.toSorted((a, b) => indexOf(a) - indexOf(b));
}

/** The first two segments of a pointer, `/messages/3`. */
export const elementOf = (path: string): string => path.split('/', 3).join('/');

function firstFaults({ rules }: MessageFormat, entries: readonly Entry[]): FormatFault[] {
  const first = entries.find(({ role }) => role !== 'system');
  // Instructions alone are taken where nobody has to be first.
  if (!first && (rules.userFirst || entries.length === 0)) {
    return [{ path: '/messages', rule: 'empty-list', detail: 'there is no message beside instructions' }];
  }
  if (!first) return [];
  if (!rules.userFirst || first.role === 'user') return [];
  return [{ path: first.path, rule: 'user-first', detail: 'the first message has to be a user’s' }];
}

/**
 * Whether results may still follow a call once `entry` has come. Of a message that holds results at its head and then other things,
 * that is so until the first of those.
 */
export function closesWindow({ rules }: MessageFormat, { role }: Pick<Entry, 'role'>): boolean {
  switch (rules.results) {
    case 'next-messages':
      return role !== 'results';
    case 'head-of-next-user':
      return role !== 'user';
    case 'before-next-user':
      return role === 'user' || role === 'system';
    case 'anywhere-after':
      return false;
  }
}

function pairFaults(format: MessageFormat, entries: readonly Entry[]): FormatFault[] {
  const faults: FormatFault[] = [];
  const fault = ({ path }: Part, rule: string, detail: string): void => void faults.push({ path, rule, detail });
  /** The calls that wait for their results, by id, and the ids that have theirs. */
  const open = new Map<string, CallPart>();
  const answered = new Set<string>();
  const close = (): void => {
    for (const call of open.values()) fault(call, 'open-call', 'this call has no result where one has to stand');
    open.clear();
    answered.clear();
  };
  let isReferred = false;
  const atHead = format.rules.results === 'head-of-next-user';
  for (const entry of entries) {
    if (closesWindow(format, entry)) close();
    isReferred ||= entry.isReference ?? false;
    let head = true;
    for (const part of entry.parts) {
      if (isCall(part)) {
        const { id } = part.block;
        // Without an id there is nothing to pair by; the format itself says so.
        if (open.has(id)) fault(part, 'duplicate-id', 'another call of this id waits for its result');
        else if (id !== '') open.set(id, part);
        answered.delete(id);
      } else if (isResult(part)) {
        const id = part.block.function_call_id;
        if (atHead && !head)
          fault(part, 'result-after-other', 'results have to stand before everything else in a message');
        if (open.delete(id)) answered.add(id);
        else if (answered.has(id)) fault(part, 'duplicate-result', 'the call of this id has its result already');
        else if (!isReferred) {
          fault(part, 'orphan-result', 'there is no call of this id that could have its result here');
        }
      } else head = false;
    }
    if (atHead && entry.role === 'user') close();
  }
  const trailing = trailingCalls(format, entries);
  for (const call of open.values()) {
    if (!trailing.has(call)) fault(call, 'open-call', 'this call has no result');
  }
  return faults;
}

/** The calls that may still be at work: those of the last assistant's message, with nothing but results behind it. */
export function trailingCalls({ rules }: MessageFormat, entries: readonly Entry[]): ReadonlySet<Part> {
  const last = entries.findLastIndex(({ role }) => role !== 'results');
  const calls = new Set<Part>();
  for (let index = last; entries[index]?.role === 'assistant'; index--) {
    for (const part of entries[index]?.parts ?? []) if (isCall(part)) calls.add(part);
    if (!rules.joinsAssistant) break;
  }
  return calls;
}

/** Where the calls stand that may still be at work: no fault of a history, but to be answered before it goes to the provider again. */
export function openCalls(format: MessageFormat, entries: readonly Entry[]): readonly JsonPointer[] {
  const trailing = trailingCalls(format, entries);
  const { calls } = pairEntries(format.rules, entries);
  return calls.flatMap(({ part, results }) => (results.length === 0 && trailing.has(part) ? [part.path] : []));
}
