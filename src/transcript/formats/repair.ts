/**
 * Mends the faults of a provider's conversation that can be mended, and says what it did: nothing goes without a line in the report.
 * An array without such faults comes back as it is. Pure.
 */
import type { JsonObject } from '../../json.ts';
import type { JsonPointer } from '../../problem.ts';
import { resultText } from '../walk.ts';
import { checkEntries, elementOf, trailingCalls } from './check.ts';
import type { Entry, FormatFault, MessageFormat, Part } from './format.ts';
import { type Call, type CallPart, isCall, isResult, type Located, pairEntries, type ResultPart } from './pairs.ts';

export interface Repair {
  /** Of what was wrong, in the request as it was supplied. */
  readonly path: JsonPointer;
  /** The rule of the check. */
  readonly fault: string;
  readonly action: string;
}

export interface Repaired {
  readonly messages: readonly JsonObject[];
  /** In the order of the array. */
  readonly repairs: readonly Repair[];
}

/** What stands for a result that never came. */
export const MISSING_RESULT_TEXT = '[no result: the call was not completed]';

export function repairEntries(format: MessageFormat, entries: readonly Entry[]): Repaired {
  const faults = faultsByPlace(checkEntries(format, entries), entries);
  if (faults.size === 0) return { messages: entries.map(({ native }) => native), repairs: [] };
  const drafts: Draft[] = entries.map((entry) => ({ entry, parts: [...entry.parts], native: entry.native }));
  const repairs: Repair[] = [];
  const note: Note = ({ path }, fault, action) => void repairs.push({ path, fault, action });

  dropEmptyLists(drafts, faults, note);
  dropEmptyBlocks(drafts, faults, note);
  dropEmptyMessages(drafts, faults, note);
  const { calls, orphans } = pairEntries(drafts);
  for (const { entry: draft, part } of orphans) {
    remove(draft, part);
    note(part, 'orphan-result', 'removed, as no call has its id');
  }
  const named = nameCalls(
    calls.map((call) => withOneResult(call, note)),
    faults,
    note,
  );
  placeResults(format, drafts, named, note);
  addMissingResults(format, drafts, named, note);
  const messages = drafts.flatMap((draft) => write(format, draft));
  const at = new Map(entries.map(({ path }, index) => [path, index]));
  const indexOf = ({ path }: Repair): number => at.get(elementOf(path)) ?? -1;
  return { messages, repairs: repairs.toSorted((a, b) => indexOf(a) - indexOf(b)) };
}

type Note = (where: { readonly path: JsonPointer }, fault: string, action: string) => void;
/** The rules that are broken at a part, or in it, by its path; at an element or one of its fields, where no part is, by the exact path. */
type Faults = ReadonlyMap<JsonPointer, ReadonlySet<string>>;

function faultsByPlace(faults: readonly FormatFault[], entries: readonly Entry[]): Faults {
  const parts = new Set(entries.flatMap((entry) => entry.parts.map(({ path }) => path)));
  const places = new Map<JsonPointer, Set<string>>();
  for (const { path, rule } of faults) {
    let place = path;
    while (place !== '' && !parts.has(place)) place = place.slice(0, place.lastIndexOf('/'));
    const at = place || path;
    places.set(at, (places.get(at) ?? new Set()).add(rule));
  }
  return places;
}

const isBroken = (faults: Faults, path: JsonPointer, rule: string): boolean => faults.get(path)?.has(rule) ?? false;

/** An element on its way; one that was made here has no place in the request. */
interface Draft {
  readonly entry: Entry;
  parts: Part[];
  native: JsonObject;
}

const remove = (draft: Draft, part: Part): void => {
  draft.parts = draft.parts.filter((other) => other !== part);
};
const replace = (draft: Draft, part: Part, by: Part): void => {
  draft.parts = draft.parts.map((other) => (other === part ? by : other));
};

/** Whether everything in it was removed. */
const isEmptied = ({ entry, parts }: Draft): boolean => parts.length === 0 && entry.parts.length > 0;

function write(format: MessageFormat, draft: Draft): readonly JsonObject[] {
  const { entry, parts, native } = draft;
  if (isEmptied(draft)) return [];
  const same = parts.length === entry.parts.length && parts.every((part, index) => part === entry.parts[index]);
  return [same ? native : format.write({ ...entry, native }, parts)];
}

/** A list that must not be empty may be absent: the field goes. */
function dropEmptyLists(drafts: readonly Draft[], faults: Faults, note: Note): void {
  for (const draft of drafts) {
    for (const field of Object.keys(draft.native)) {
      const path = `${draft.entry.path}/${field}`;
      if (!isBroken(faults, path, 'empty-list')) continue;
      const { [field]: _, ...rest } = draft.native;
      draft.native = rest;
      note({ path }, 'empty-list', 'the field was removed');
    }
  }
}

function dropEmptyBlocks(drafts: readonly Draft[], faults: Faults, note: Note): void {
  for (const draft of drafts) {
    for (const part of draft.parts) {
      if (!isBroken(faults, part.path, 'empty-block') || isCall(part) || isResult(part)) continue;
      remove(draft, part);
      note(part, 'empty-block', 'removed');
    }
  }
}

function dropEmptyMessages(drafts: Draft[], faults: Faults, note: Note): void {
  for (const [index, { entry }] of [...drafts.entries()].toReversed()) {
    if (!isBroken(faults, entry.path, 'empty-message')) continue;
    drafts.splice(index, 1);
    note(entry, 'empty-message', 'removed');
  }
}

/** A call, and the result that it keeps. */
interface Mending extends Located<CallPart, Draft> {
  readonly result: Located<ResultPart, Draft> | undefined;
}

/** Of several results the one that says most, rather none that reports an error; the first of equals. */
function withOneResult({ entry, part, results }: Call<Draft>, note: Note): Mending {
  const worth = ({ part: { block } }: Located<ResultPart, Draft>): number =>
    block.is_error ? -1 : resultText(block.content).length;
  const [result, ...spare] = results.toSorted((a, b) => worth(b) - worth(a));
  for (const other of spare) {
    remove(other.entry, other.part);
    note(other.part, 'duplicate-result', 'removed; of the results of its call the one that says most was kept');
  }
  return { entry, part, result };
}

const RENAMED = ['missing-id', 'duplicate-id', 'bad-id'];

function nameCalls(calls: readonly Mending[], faults: Faults, note: Note): readonly Mending[] {
  const used = new Set(calls.map(({ part }) => part.block.id));
  let number = 0;
  const newId = (): string => {
    do number += 1;
    while (used.has(`call_${number}`));
    return `call_${number}`;
  };
  return calls.map((call) => {
    const nameless = call.part.block.id === '' ? 'missing-id' : undefined;
    const rule = nameless ?? RENAMED.find((each) => isBroken(faults, call.part.path, each));
    if (rule === undefined) return call;
    const id = newId();
    note(call.part, rule, `named ${id}, and its result with it`);
    const part: CallPart = { ...call.part, block: { ...call.part.block, id }, edited: true };
    replace(call.entry, call.part, part);
    if (!call.result) return { ...call, part };
    const { entry, part: old } = call.result;
    const answer: ResultPart = { ...old, block: { ...old.block, function_call_id: id }, edited: true };
    replace(entry, old, answer);
    return { ...call, part, result: { entry, part: answer } };
  });
}

/** Every result where the format wants it. */
function placeResults(format: MessageFormat, drafts: Draft[], calls: readonly Mending[], note: Note): void {
  for (const [caller, own] of byCaller(calls)) {
    const misplaced = own.flatMap(({ result }) =>
      result && !isInPlace(format, drafts, caller, result) ? [result] : [],
    );
    for (const { part } of misplaced) {
      note(part, 'misplaced-result', 'moved to where the results of its call belong');
    }
    const wanted = misplaced.map((result) => takeOut(format, drafts, result));
    if (wanted.length > 0) insert(format, drafts, caller, wanted);
  }
}

/** One for each call that has none, unless it may still be at work. */
function addMissingResults(format: MessageFormat, drafts: Draft[], calls: readonly Mending[], note: Note): void {
  const entries = drafts.filter((draft) => !isEmptied(draft)).map(({ entry, parts }) => ({ ...entry, parts }));
  const trailing = trailingCalls(format, entries);
  const unanswered = calls.filter(({ part, result }) => !result && !trailing.has(part));
  for (const [caller, own] of byCaller(unanswered)) {
    for (const { part } of own) note(part, 'open-call', 'a result was added that says that it was not completed');
    const wanted = own.map(({ part }) => holding(format, [missingResult(part)]));
    insert(format, drafts, caller, wanted);
  }
}

function byCaller(calls: readonly Mending[]): ReadonlyMap<Draft, readonly Mending[]> {
  const groups = new Map<Draft, Mending[]>();
  for (const call of calls) {
    const own = groups.get(call.entry);
    if (own) own.push(call);
    else groups.set(call.entry, [call]);
  }
  return groups;
}

/** An element that holds nothing else goes as a whole, with whatever fields it has. */
function takeOut(format: MessageFormat, drafts: Draft[], { entry: draft, part }: Located<ResultPart, Draft>): Draft {
  if (draft.entry.role === 'results' && draft.parts.length === 1) {
    drafts.splice(drafts.indexOf(draft), 1);
    return draft;
  }
  remove(draft, part);
  return holding(format, [part]);
}

function holding(format: MessageFormat, parts: readonly Part[]): Draft {
  const native = format.holdResults(parts);
  const role = format.rules.results === 'head-of-next-user' ? 'user' : 'results';
  return { entry: { role, parts, path: '', native }, parts: [...parts], native };
}

function isInPlace(
  { rules }: MessageFormat,
  drafts: readonly Draft[],
  caller: Draft,
  { entry: draft, part }: Located<ResultPart, Draft>,
): boolean {
  const [from, to] = [drafts.indexOf(caller), drafts.indexOf(draft)];
  if (to <= from) return false;
  if (rules.results === 'anywhere-after') return true;
  const between = drafts.slice(from + 1, to).filter((other) => !isEmptied(other));
  switch (rules.results) {
    case 'next-messages':
      return between.every(({ entry }) => entry.role === 'results');
    case 'head-of-next-user':
      return between.length === 0 && draft.parts.slice(0, draft.parts.indexOf(part)).every(isResult);
    case 'before-next-user':
      return between.every(({ entry }) => entry.role !== 'user' && entry.role !== 'system');
  }
}

/** Behind the results of the same calls that are in place already. */
function insert(format: MessageFormat, drafts: Draft[], caller: Draft, results: readonly Draft[]): void {
  let at = drafts.indexOf(caller) + 1;
  for (let next = drafts[at]; next && isEmptied(next); next = drafts[at]) at += 1;
  if (format.rules.results !== 'head-of-next-user') {
    while (drafts[at]?.entry.role === 'results') at += 1;
    drafts.splice(at, 0, ...results);
    return;
  }
  const parts = results.flatMap((result) => result.parts);
  const next = drafts[at];
  if (next?.entry.role !== 'user') drafts.splice(at, 0, holding(format, parts));
  else {
    const others = next.parts.findIndex((part) => !isResult(part));
    next.parts = next.parts.toSpliced(others < 0 ? next.parts.length : others, 0, ...parts);
  }
}

function missingResult(call: CallPart): Part {
  const { block, path } = call;
  return {
    path,
    answers: call,
    block: {
      type: 'function_result',
      function_call_id: block.id,
      content: [{ type: 'text', text: MISSING_RESULT_TEXT }],
      is_error: true,
    },
  };
}
