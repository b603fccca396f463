/**
 * Mends the faults of a provider's conversation that can be mended, and says what it did: nothing goes without a line in the report.
 * An array without such faults comes back as it is. Pure, and linear in what it is given.
 */
import type { JsonObject } from '../../json.ts';
import type { JsonPointer, Result } from '../../problem.ts';
import { resultText } from '../walk.ts';
import { checkEntries, closesWindow, elementOf, trailingCalls } from './check.ts';
import { readEntries } from './conversation.ts';
import { type Entry, type FormatFault, type MessageFormat, type Part, unmapped } from './format.ts';
import { type Call, type CallPart, isCall, isResult, type Located, pairEntries, type ResultPart } from './pairs.ts';

export interface Repair {
  /** Of what was wrong, in the request as it was supplied; of what only an earlier repair has brought to light, the message. */
  readonly path: JsonPointer;
  /** The rule of the check. */
  readonly fault: string;
  readonly action: string;
}

export interface Repaired {
  readonly messages: readonly JsonObject[];
  /** Where each of them stood in the array as it was supplied, -1 of one that was made here. */
  readonly origins: readonly number[];
  /** In the order of the array. */
  readonly repairs: readonly Repair[];
}

/** What stands for a result that never came. */
export const MISSING_RESULT_TEXT = '[no result: the call was not completed]';
/** What stands for a user's message where one has to be. */
export const MISSING_USER_TEXT = '[what came before is missing]';

/** What one repair brings to light another mends; three such passes are the most that is known to be of use. */
const MAX_PASSES = 4;

/** `invalid_request` where nothing but instructions would be left. */
export function repairEntries(format: MessageFormat, entries: readonly Entry[]): Result<Repaired> {
  let whole: Repaired = { messages: entries.map(({ native }) => native), origins: [...entries.keys()], repairs: [] };
  let current = entries;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const { origins } = whole;
    const once = repairOnce(format, current);
    if (once.repairs.length === 0) break;
    const toOrigin = (index: number): number => origins[index] ?? -1;
    const inRequest = (repair: Repair): Repair =>
      pass === 0 ? repair : { ...repair, path: elementPath(toOrigin(indexOf(repair.path))) };
    whole = {
      messages: once.messages,
      origins: once.origins.map(toOrigin),
      repairs: [...whole.repairs, ...once.repairs.map(inRequest)],
    };
    const read = readEntries(format, once.messages);
    if (!read.ok) return read;
    current = read.value;
  }
  if (whole.repairs.length > 0 && current.every(({ role }) => role === 'system')) {
    return unmapped('/messages', 'no message is left once those that cannot be mended are gone');
  }
  return {
    ok: true,
    value: { ...whole, repairs: whole.repairs.toSorted((a, b) => indexOf(a.path) - indexOf(b.path)) },
  };
}

const elementPath = (index: number): JsonPointer => (index < 0 ? '/messages' : `/messages/${index}`);
/** Of the element that a pointer leads into; -1 of the whole array. */
const indexOf = (path: JsonPointer): number => Number(path.split('/', 3)[2] ?? -1);

function repairOnce(format: MessageFormat, entries: readonly Entry[]): Repaired {
  const faults = faultsByPlace(checkEntries(format, entries), entries);
  const repairs: Repair[] = [];
  const note: Note = ({ path }, fault, action) => void repairs.push({ path, fault, action });
  const drafts = faults.size === 0 ? [] : clean(entries, faults, note);
  const paired = pairEntries(format.rules, drafts);
  const adopted = adopt(format, drafts, paired, note);
  const removed = new Set<Part>();
  for (const { part } of paired.orphans) {
    if (adopted.has(part)) continue;
    removed.add(part);
    note(part, 'orphan-result', 'removed, as no call has its id');
  }
  const adoptedBy = new Map(Array.from(adopted.values(), ({ call, result }) => [call, [result]]));
  const calls = nameCalls(
    paired.calls.map((call) => withOneResult({ ...call, results: adoptedBy.get(call) ?? call.results }, removed, note)),
    faults,
    note,
  );
  const { messages, origins } = layOut({ format, drafts, calls, removed, faults, note });
  if (repairs.length === 0) {
    return { messages: entries.map(({ native }) => native), origins: [...entries.keys()], repairs };
  }
  return { messages, origins, repairs };
}

type Note = (where: { readonly path: JsonPointer }, fault: string, action: string) => void;
/** The rules that are broken at a part, or in it, by its path; at an element or one of its fields, where no part is, by the exact path. */
type Faults = ReadonlyMap<JsonPointer, ReadonlySet<string>>;

function faultsByPlace(faults: readonly FormatFault[], entries: readonly Entry[]): Faults {
  const parts = new Set(entries.flatMap((entry) => entry.parts.map(({ path }) => path)));
  const places = new Map<JsonPointer, Set<string>>();
  const add = (path: JsonPointer, rule: string): void =>
    void places.set(path, (places.get(path) ?? new Set()).add(rule));
  for (const { path, rule } of faults) {
    if (rule === 'empty-message') add(elementOf(path), rule);
    // Of the element's own, though the element may be all that a part is.
    else if (rule === ITEM_ID_TAKEN || rule === 'empty-list') add(path, rule);
    else {
      let place = path;
      while (place !== '' && !parts.has(place)) place = place.slice(0, place.lastIndexOf('/'));
      add(place || path, rule);
    }
  }
  return places;
}

const ITEM_ID_TAKEN = 'duplicate-item-id';

const isBroken = (faults: Faults, path: JsonPointer, rule: string): boolean => faults.get(path)?.has(rule) ?? false;

/** An element without what is empty in it. */
interface Draft extends Entry {
  readonly source: Entry;
  readonly index: number;
}

function clean(entries: readonly Entry[], faults: Faults, note: Note): readonly Draft[] {
  const drafts: Draft[] = [];
  for (const [index, entry] of entries.entries()) {
    if (isBroken(faults, entry.path, 'empty-message')) {
      note(entry, 'empty-message', 'removed');
      continue;
    }
    const parts = entry.parts.filter((part) => {
      const isEmpty = isBroken(faults, part.path, 'empty-block') && !isCall(part) && !isResult(part);
      if (isEmpty) note(part, 'empty-block', 'removed');
      return !isEmpty;
    });
    if (parts.length === 0 && entry.parts.length > 0) continue;
    drafts.push({ ...entry, native: withSoundFields(entry, faults, note), parts, source: entry, index });
  }
  return drafts;
}

/** A list that must not be empty may be absent, or where it is all that a result says, empty text; an id that is taken becomes another. */
function withSoundFields({ native, path, role }: Entry, faults: Faults, note: Note): JsonObject {
  let sound = native;
  for (const [field, value] of Object.entries(native)) {
    const at = { path: `${path}/${field}` };
    if (isBroken(faults, at.path, 'empty-list') && role === 'results') {
      sound = { ...sound, [field]: '' };
      note(at, 'empty-list', 'made an empty text');
    } else if (isBroken(faults, at.path, 'empty-list')) {
      const { [field]: _, ...rest } = sound;
      sound = rest;
      note(at, 'empty-list', 'the field was removed');
    } else if (isBroken(faults, at.path, ITEM_ID_TAKEN)) {
      const id = `${String(value)}_${indexOf(path)}`;
      sound = { ...sound, [field]: id };
      note(at, ITEM_ID_TAKEN, `named ${id}`);
    }
  }
  return sound;
}

interface Adoption {
  readonly call: Call<Draft>;
  readonly result: Located<ResultPart, Draft>;
}

/** Where just one call waits and just one result of no call stands where the call's result belongs, they are a pair. */
function adopt(
  format: MessageFormat,
  drafts: readonly Draft[],
  { calls, orphans }: ReturnType<typeof pairEntries<Draft>>,
  note: Note,
): ReadonlyMap<Part, Adoption> {
  const pairs = new Map<Part, Adoption>();
  if (orphans.length === 0) return pairs;
  const waitingAt = new Map<Part, Call<Draft>>(
    calls.flatMap((call) => (call.results.length > 0 ? [] : [[call.part, call]])),
  );
  const strays = new Map(orphans.map((orphan) => [orphan.part as Part, orphan]));
  let waiting: Call<Draft>[] = [];
  let found: Located<ResultPart, Draft>[] = [];
  const close = (): void => {
    const [[call, ...otherCalls], [result, ...otherResults]] = [waiting, found];
    if (call && result && otherCalls.length + otherResults.length === 0) {
      pairs.set(result.part, { call, result });
      note(result.part, 'orphan-result', 'given the id of the only call that waited here');
    }
    [waiting, found] = [[], []];
  };
  for (const draft of drafts) {
    if (closesWindow(format, draft) || draft.role === 'assistant') {
      // Calls of one message wait together.
      if (!(format.rules.joinsAssistant && draft.role === 'assistant' && found.length === 0)) close();
    }
    for (const part of draft.parts) {
      const call = waitingAt.get(part);
      const stray = strays.get(part);
      if (call) waiting.push(call);
      else if (stray) found.push(stray);
    }
    if (format.rules.results === 'head-of-next-user' && draft.role === 'user') close();
  }
  close();
  return pairs;
}

/** A call, and the result that it keeps. */
interface Mending extends Located<CallPart, Draft> {
  readonly result: Located<ResultPart, Draft> | undefined;
  /** As they are written, where a new id was needed. */
  readonly named: CallPart;
  readonly answer: ResultPart | undefined;
}

/** Of several results the one that says most, rather none that reports an error; the first of equals. */
function withOneResult(
  { entry, part, results }: Call<Draft>,
  removed: Set<Part>,
  note: Note,
): Omit<Mending, 'named' | 'answer'> {
  const worths = results.map(({ part: { block } }) => (block.is_error ? -1 : resultText(block.content).length));
  const best = worths.reduce((most, worth, index) => (worth > (worths[most] ?? 0) ? index : most), 0);
  const result = results[best];
  const spare = results.filter((other) => other !== result);
  for (const other of spare) {
    removed.add(other.part);
    note(other.part, 'duplicate-result', 'removed; of the results of its call the one that says most was kept');
  }
  return { entry, part, result };
}

const RENAMED = ['missing-id', 'duplicate-id', 'bad-id'];

function nameCalls(
  calls: readonly Omit<Mending, 'named' | 'answer'>[],
  faults: Faults,
  note: Note,
): readonly Mending[] {
  // Of an id that is read with words before it, what stands after them may not come again either.
  const used = new Set(
    calls.flatMap(({ part: { block } }) => [block.id, block.id.slice(block.id.lastIndexOf(':') + 1)]),
  );
  let number = 0;
  const newId = (): string => {
    do number += 1;
    while (used.has(`call_${number}`));
    return `call_${number}`;
  };
  return calls.map((call) => {
    const { part, result } = call;
    const nameless = part.block.id === '' ? 'missing-id' : undefined;
    const rule = nameless ?? RENAMED.find((each) => isBroken(faults, part.path, each));
    const id = rule === undefined ? part.block.id : newId();
    if (rule !== undefined) note(part, rule, `named ${id}, and its result with it`);
    const named: CallPart = rule === undefined ? part : { ...part, block: { ...part.block, id }, edited: true };
    const old = result?.part;
    const answer: ResultPart | undefined =
      old && old.block.function_call_id !== id
        ? { ...old, block: { ...old.block, function_call_id: id }, edited: true }
        : old;
    return { ...call, named, answer };
  });
}

interface Layout {
  readonly format: MessageFormat;
  readonly drafts: readonly Draft[];
  readonly calls: readonly Mending[];
  readonly removed: ReadonlySet<Part>;
  readonly faults: Faults;
  readonly note: Note;
}

/** Elements with the results of their calls where the format wants them. */
function layOut({ format, drafts, calls, removed, faults, note }: Layout): Omit<Repaired, 'repairs'> {
  const { results, joinsAssistant } = format.rules;
  const atHead = results === 'head-of-next-user';
  const live = drafts.filter(({ parts }) => parts.length === 0 || parts.some((part) => !removed.has(part)));
  const moved = new Set<Part>();
  const isInPlace = placesOf(format, live, removed);
  for (const call of calls) {
    if (!call.result || isInPlace(call.entry, call.result)) continue;
    moved.add(call.result.part);
    note(call.result.part, 'misplaced-result', 'moved to where the results of its call belong');
  }
  const staysIn = ({ parts }: Draft): readonly Part[] => parts.filter((part) => !removed.has(part) && !moved.has(part));
  const staying = live.filter((draft) => draft.parts.length === 0 || staysIn(draft).length > 0);
  const trailing = trailingCalls(format, staying);
  const written = new Map<Part, Part>();
  const wanted = new Map<Draft, Placed[]>();
  for (const { entry, part, named, result, answer } of calls) {
    written.set(part, named);
    if (result && answer) written.set(result.part, answer);
    const isMissing = !result && !trailing.has(part);
    if (isMissing) note(part, 'open-call', 'a result was added that says that it was not completed');
    const placed = isMissing
      ? { part: missingResult(named) }
      : result && answer && moved.has(result.part)
        ? { part: answer, from: result.entry }
        : undefined;
    const others = wanted.get(entry);
    if (placed && others) others.push(placed);
    else if (placed) wanted.set(entry, [placed]);
  }

  const messages: JsonObject[] = [];
  const origins: number[] = [];
  const emit = (native: JsonObject, origin = -1): void => {
    messages.push(native);
    origins.push(origin);
  };
  let pending: Placed[] = [];
  const flush = (): void => {
    if (atHead && pending.length > 0) emit(format.holdResults(pending.map(({ part }) => part)));
    if (!atHead) {
      for (const { part, from } of pending) {
        // An element that holds nothing else goes as a whole, with whatever fields it has.
        const isWhole = from?.role === 'results' && from.parts.length === 1;
        if (isWhole) emit(write(format, from, [part]), from.index);
        else emit(format.holdResults([part]));
      }
    }
    pending = [];
  };
  let before: Draft | undefined;
  for (const draft of staying) {
    let parts = staysIn(draft).map((part) => written.get(part) ?? part);
    const continues = joinsAssistant && draft.role === 'assistant' && before?.role === 'assistant';
    if (atHead && draft.role === 'user' && pending.length > 0) {
      const others = parts.findIndex((part) => !isResult(part));
      parts = parts.toSpliced(others < 0 ? parts.length : others, 0, ...pending.map(({ part }) => part));
      pending = [];
    } else if (draft.role !== 'results' && !continues) flush();
    const wantsUser = ['user-first', 'wrong-role'].find((rule) => isBroken(faults, draft.path, rule));
    if (wantsUser !== undefined && format.sayAsUser && draft.role !== 'user' && before?.role !== 'user') {
      emit(format.sayAsUser(MISSING_USER_TEXT));
      note(draft, wantsUser, 'a user’s message was put before it');
    }
    emit(write(format, draft, parts), draft.index);
    for (const placed of wanted.get(draft) ?? []) pending.push(placed);
    before = draft;
  }
  flush();
  return { messages, origins };
}

interface Placed {
  readonly part: Part;
  /** Undefined of a result that was made here. */
  readonly from?: Draft;
}

function write(format: MessageFormat, { source, native }: Draft, parts: readonly Part[]): JsonObject {
  const isSame = parts.length === source.parts.length && parts.every((part, index) => part === source.parts[index]);
  return isSame ? native : format.write({ ...source, native }, parts);
}

/** Whether the result of a call in this element stands where the format wants it. */
function placesOf(
  { rules }: MessageFormat,
  drafts: readonly Draft[],
  removed: ReadonlySet<Part>,
): (caller: Draft, result: Located<ResultPart, Draft>) => boolean {
  const placeOf = new Map(drafts.map((draft, place) => [draft, place]));
  const atHead = new Set<Part>();
  /** By place: the newest element before it that is no result, and the newest that is a user's or an instruction. */
  const owners: number[] = [];
  const barriers: number[] = [];
  let [owner, barrier] = [-1, -1];
  for (const [place, { role, parts }] of drafts.entries()) {
    owners.push(owner);
    barriers.push(barrier);
    if (role !== 'results') owner = place;
    if (role === 'user' || role === 'system') barrier = place;
    for (const part of parts) {
      if (removed.has(part)) continue;
      if (!isResult(part)) break;
      atHead.add(part);
    }
  }
  return (caller, { entry, part }) => {
    const [from, to] = [placeOf.get(caller) ?? 0, placeOf.get(entry) ?? 0];
    if (to <= from) return false;
    switch (rules.results) {
      case 'next-messages':
        return owners[to] === from;
      case 'head-of-next-user':
        return to === from + 1 && atHead.has(part);
      case 'before-next-user':
        return (barriers[to] ?? -1) <= from;
      case 'anywhere-after':
        return true;
    }
  };
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
