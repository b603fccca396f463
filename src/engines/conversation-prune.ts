/**
 * conversation-prune: chooses which old messages to drop so that a conversation fits a token target while its cached
 * prefix stays as it is. Pure: no schema, no clock, no I/O; it never edits, summarises or reorders a message.
 */
import { canonicalJson, sha256, toHex } from '../provenance/canonical.ts';
import type { Encoding } from '../tokenizer/encoding.ts';
import { tokenizerVersions } from './estimator.ts';

/** Raise it whenever the same request could give other bytes. */
export const CONVERSATION_PRUNE_VERSION = '1.0.0';

export const DEFAULT_TOKENIZER = 'o200k_base';

/** Default of the request field `keepRecent`. */
export const DEFAULT_KEEP_RECENT_MESSAGES = 4;

/** `notes` holds 20 entries: 19 of its own and one that counts the rest. */
const MAX_OWN_NOTES = 19;

const LIMITS: readonly string[] = [
  'Counts cover message content only: roles, separators, tool definitions and whatever else a provider adds are not in them. A count supplied by the caller is taken as it is.',
  'Whether the prefix really is cached was not looked at, nor any minimum cacheable size or cache lifetime (TTL) of a provider.',
  'Content was counted, not read: what the kept messages still need from the dropped ones was not looked at, nor whether a provider accepts the order of roles.',
];

export type MessageKind = 'text' | 'tool_call' | 'tool_result';

export interface PruneMessage {
  readonly id?: string;
  readonly role: string;
  /** Default `text`. */
  readonly kind?: MessageKind;
  /** An empty one names nothing and counts as absent. */
  readonly toolCallId?: string;
  readonly content?: string;
  /** The caller's count, in tokens; it wins over `content`. */
  readonly tokens?: number;
  readonly pinned?: boolean;
  readonly droppable?: boolean;
}

export interface PruneRequest {
  readonly messages: readonly PruneMessage[];
  /** Index of the last message of the cached prefix; -1 when nothing is cached. */
  readonly cacheBreakpoint: number;
  readonly targetTokens: number;
  /** In messages; default 4. */
  readonly keepRecent?: number;
  /** Default `oldest-first`. */
  readonly strategy?: 'oldest-first' | 'largest-first';
  /** Default `o200k_base`. */
  readonly tokenizer?: string;
}

// The answer's parts are aliases, not interfaces: only an alias fits a schema of open objects.

/** One violated rule with its evidence. */
export type Witness = {
  ruleId: 'breakpoint-in-range' | 'pair-unique' | 'pair-order' | 'pair-complete' | 'target-met';
  detail: string;
  /** RFC 6901 pointer into the request. */
  path: string;
  index?: number;
  expected: string;
  actual: string | number;
};

export type DroppedMessage = {
  index: number;
  id?: string;
  role: string;
  kind: MessageKind;
  tokens: number;
  reason: 'stale-tool-pair' | 'droppable';
  /** Index of the other half of the pair. */
  pairedWith?: number;
};

/** Token totals and `targetMet` are absent where they could not be decided: `unsupported` and `unknown`. */
export type PruneResult = {
  status: 'pass' | 'fail' | 'unknown' | 'unsupported';
  keep: number[];
  dropped: DroppedMessage[];
  tokensBefore?: number;
  tokensAfter?: number;
  targetMet?: boolean;
  prefix: { messages: number; tokens?: number; sha256: string };
  notes: string[];
  witnesses: Witness[];
  /** `engine`, `tokenizer` (`none` when no content had to be counted) and then its `tokenizerTableDigest`. */
  versions: Record<string, string>;
  limits: string[];
  deterministic: true;
};

/** True when some message has content but no count of the caller's: only then is a tokenizer needed. */
export function needsTokenizer(messages: readonly PruneMessage[]): boolean {
  return messages.some(({ tokens, content }) => tokens === undefined && content !== undefined);
}

/**
 * Chooses what to drop. Linear in the messages (n log n for `largest-first`); each content is counted at most once.
 *
 * @param request within the bounds of the operation's input schema; what is absent takes the contract's default.
 * @param encoding the one that `request.tokenizer` names; `undefined` when there is none by that name or none is needed.
 */
export async function conversationPrune(request: PruneRequest, encoding: Encoding | undefined): Promise<PruneResult> {
  const { messages } = request;
  const pairing = pairToolMessages(messages);
  return choose(request, messages, countTokens(messages, encoding), {
    faults: pairing.faults,
    openCalls: pairing.openCalls,
    unitsOf: (items) => findUnits(request, items, pairing),
  });
}

/** What may be dropped of a conversation, whatever form it has. */
export interface Droppable {
  readonly faults: readonly Witness[];
  /** Indices of messages with a call that has no result. */
  readonly openCalls: readonly number[];
  /** Oldest first. */
  readonly unitsOf: (items: readonly Item[]) => readonly Unit[];
}

/** The choice itself, for messages as they were supplied and what they count. */
export async function choose(
  { cacheBreakpoint, targetTokens, strategy }: Pick<PruneRequest, 'cacheBreakpoint' | 'targetTokens' | 'strategy'>,
  messages: readonly unknown[],
  counts: Counts,
  { faults, openCalls, unitsOf }: Droppable,
): Promise<PruneResult> {
  const prefix = messages.slice(0, cacheBreakpoint + 1);
  const prefixSha256 = toHex(await sha256(canonicalJson(prefix)));
  const witnesses = [...checkBreakpoint(cacheBreakpoint, messages.length), ...faults];
  const openCallNotes = openCalls.map((index) => `Message ${index} is a tool call without a result; it is kept.`);

  if (counts.status !== 'known')
    return {
      status: counts.status,
      keep: [...messages.keys()],
      dropped: [],
      prefix: { messages: prefix.length, sha256: prefixSha256 },
      notes: foldNotes([...counts.notes, ...openCallNotes]),
      witnesses,
      ...evidence(undefined),
    };

  const { items } = counts;
  const tokensBefore = sumTokens(items);
  const units = inDropOrder(unitsOf(items), strategy);
  const dropped = takeUntil(targetTokens, tokensBefore, units)
    .flatMap(describeUnit)
    .toSorted((a, b) => a.index - b.index);
  const droppedIndices = new Set(dropped.map(({ index }) => index));
  const tokensAfter = tokensBefore - sumTokens(dropped);
  const targetMet = tokensAfter <= targetTokens;
  if (!targetMet) witnesses.push(targetMissed(targetTokens, tokensAfter));
  return {
    status: witnesses.length === 0 ? 'pass' : 'fail',
    keep: [...messages.keys()].filter((index) => !droppedIndices.has(index)),
    dropped,
    tokensBefore,
    tokensAfter,
    targetMet,
    prefix: { messages: prefix.length, tokens: sumTokens(items.slice(0, prefix.length)), sha256: prefixSha256 },
    notes: foldNotes(openCallNotes),
    witnesses,
    ...evidence(counts.used),
  };
}

function evidence(used: Encoding | undefined): Pick<PruneResult, 'versions' | 'limits' | 'deterministic'> {
  const versions = { engine: `conversation-prune/${CONVERSATION_PRUNE_VERSION}`, ...tokenizerVersions(used) };
  return { versions, limits: [...LIMITS], deterministic: true };
}

// Pairing of calls and results

interface Pairing {
  /** From the index of a call to the index of its result. */
  readonly resultOf: ReadonlyMap<number, number>;
  readonly openCalls: readonly number[];
  readonly faultyIds: ReadonlySet<string>;
  /** In the order of the messages. */
  readonly faults: readonly PairFault[];
}

type PairFault = Witness & { index: number };

interface ToolMessage {
  readonly index: number;
  readonly kind: 'tool_call' | 'tool_result';
}

function pairToolMessages(messages: readonly PruneMessage[]): Pairing {
  const calls: number[] = [];
  const usesOfId = new Map<string, ToolMessage[]>();
  const faults: PairFault[] = [];
  for (const [index, message] of messages.entries()) {
    const kind = kindOf(message);
    if (kind === 'text') continue;
    if (kind === 'tool_call') calls.push(index);
    const id = message.toolCallId;
    if (!id) {
      if (kind === 'tool_result') faults.push(resultWithoutId(index));
      continue;
    }
    const uses = usesOfId.get(id);
    if (uses) uses.push({ index, kind });
    else usesOfId.set(id, [{ index, kind }]);
  }

  const resultOf = new Map<number, number>();
  const faultyIds = new Set<string>();
  for (const [id, uses] of usesOfId) {
    const paired = pairUses(uses);
    for (const [call, result] of paired.pairs) resultOf.set(call, result);
    if (paired.faults.length > 0) faultyIds.add(id);
    faults.push(...paired.faults);
  }
  return {
    resultOf,
    openCalls: calls.filter((call) => !resultOf.has(call)),
    faultyIds,
    faults: faults.toSorted((a, b) => a.index - b.index),
  };
}

/** Pairs the messages of one id, per occurrence: a result belongs to the nearest earlier call that is still open. */
function pairUses(uses: readonly ToolMessage[]): { pairs: [call: number, result: number][]; faults: PairFault[] } {
  const pairs: [number, number][] = [];
  const faults: PairFault[] = [];
  const open: number[] = [];
  const laterCall = uses.find(({ kind }) => kind === 'tool_call');
  for (const { index, kind } of uses) {
    const call = open.at(-1);
    const answered = pairs.at(-1);
    if (kind === 'tool_call') {
      if (call !== undefined) faults.push(calledWhileOpen(index, call));
      open.push(index);
    } else if (call !== undefined) {
      open.pop();
      pairs.push([call, index]);
    } else if (answered) faults.push(answeredTwice(index, ...answered));
    else if (laterCall) faults.push(resultBeforeCall(index, laterCall.index));
    else faults.push(resultWithoutCall(index));
  }
  return { pairs, faults };
}

// Counting

/** A message and what it counts. */
export interface Item {
  readonly index: number;
  readonly message: PruneMessage;
  readonly tokens: number;
}

export type Counts =
  | { readonly status: 'known'; readonly items: readonly Item[]; readonly used: Encoding | undefined }
  | { readonly status: 'unsupported' | 'unknown'; readonly notes: readonly string[] };

function countTokens(messages: readonly PruneMessage[], encoding: Encoding | undefined): Counts {
  const used = needsTokenizer(messages) ? encoding : undefined;
  const blank = messages.flatMap(({ tokens, content }, index) =>
    tokens === undefined && content === undefined ? [index] : [],
  );
  const uncounted: number[] = [];
  const items: Item[] = [];
  for (const [index, message] of messages.entries()) {
    const { tokens, content } = message;
    if (tokens !== undefined) items.push({ index, message, tokens });
    else if (content === undefined) continue;
    else if (!used) uncounted.push(index);
    // Without a total nothing is worth counting.
    else if (blank.length === 0) items.push({ index, message, tokens: used.count(content) });
  }
  if (uncounted.length === 0 && blank.length === 0) return { status: 'known', items, used };
  return {
    status: uncounted.length > 0 ? 'unsupported' : 'unknown',
    notes: [
      ...listing(
        'The tokenizer asked for is not offered here, and content waits to be counted, at messages',
        uncounted,
      ),
      ...listing('Neither tokens nor content is given, so the total is unknown, at messages', blank),
    ],
  };
}

const listing = (what: string, indices: readonly number[]): string[] =>
  indices.length > 0 ? [`${what} ${indices.join(', ')}.`] : [];

const sumTokens = (counted: readonly { readonly tokens: number }[]): number =>
  counted.reduce((total, { tokens }) => total + tokens, 0);

// Choosing

/** What is dropped together or not at all. */
export type Unit = readonly [first: Item, ...others: Item[]];

/** The units that may be dropped, oldest first. A pair stands where its call stands. */
function findUnits(request: PruneRequest, items: readonly Item[], { resultOf, faultyIds }: Pairing): readonly Unit[] {
  const recentFrom = items.length - (request.keepRecent ?? DEFAULT_KEEP_RECENT_MESSAGES);
  const mayDrop = ({ index, message }: Item): boolean =>
    index > request.cacheBreakpoint &&
    index < recentFrom &&
    message.pinned !== true &&
    !faultyIds.has(message.toolCallId ?? '') &&
    (kindOf(message) === 'text' ? message.droppable === true : message.droppable !== false);

  return items.filter(mayDrop).flatMap((item): Unit[] => {
    if (kindOf(item.message) === 'text') return [[item]];
    const result = items[resultOf.get(item.index) ?? -1];
    return result && mayDrop(result) ? [[item, result]] : [];
  });
}

function inDropOrder(oldestFirst: readonly Unit[], strategy: PruneRequest['strategy']): readonly Unit[] {
  if (strategy !== 'largest-first') return oldestFirst;
  // Sorting is stable, so equal units stay oldest first.
  return oldestFirst.toSorted((a, b) => sumTokens(b) - sumTokens(a));
}

function takeUntil(targetTokens: number, tokensBefore: number, units: readonly Unit[]): readonly Unit[] {
  let total = tokensBefore;
  let taken = 0;
  for (const unit of units) {
    if (total <= targetTokens) break;
    total -= sumTokens(unit);
    taken += 1;
  }
  return units.slice(0, taken);
}

function describeUnit(unit: Unit): DroppedMessage[] {
  const [first, second] = unit;
  if (unit.every(({ message }) => kindOf(message) === 'text'))
    return unit.map((item) => ({ ...describeItem(item), reason: 'droppable' }));
  return unit.map((item) => {
    const other = item === first ? second : first;
    return { ...describeItem(item), reason: 'stale-tool-pair', ...(other && { pairedWith: other.index }) };
  });
}

function describeItem({ index, message, tokens }: Item): Omit<DroppedMessage, 'reason' | 'pairedWith'> {
  const id = message.id === undefined ? {} : { id: message.id };
  return { index, ...id, role: message.role, kind: kindOf(message), tokens };
}

const kindOf = (message: PruneMessage): MessageKind => message.kind ?? 'text';

// Evidence

function foldNotes(notes: readonly string[]): string[] {
  const more = notes.length - MAX_OWN_NOTES;
  return more > 0 ? [...notes.slice(0, MAX_OWN_NOTES), `${more} more tool calls are without a result.`] : [...notes];
}

function checkBreakpoint(cacheBreakpoint: number, messageCount: number): Witness[] {
  if (cacheBreakpoint < messageCount) return [];
  return [
    {
      ruleId: 'breakpoint-in-range',
      detail: 'The cached prefix ends beyond the last message, so every message counts as cached and none is dropped.',
      path: '/cacheBreakpoint',
      expected: `at most ${messageCount - 1}`,
      actual: cacheBreakpoint,
    },
  ];
}

function targetMissed(targetTokens: number, tokensAfter: number): Witness {
  return {
    ruleId: 'target-met',
    detail: 'Everything that may be dropped was dropped, and the total is still over the target.',
    path: '/targetTokens',
    expected: `a total of at most ${targetTokens}`,
    actual: tokensAfter,
  };
}

function calledWhileOpen(index: number, openCall: number): PairFault {
  return {
    ruleId: 'pair-unique',
    detail: 'A tool call uses an id whose earlier call has no result yet, so their results cannot be told apart.',
    ...at(index),
    expected: `a result for the call at ${openCall} before its id is used again`,
    actual: 'called again while open',
  };
}

function answeredTwice(index: number, call: number, result: number): PairFault {
  return {
    ruleId: 'pair-unique',
    detail: 'A tool result answers a call that already has one.',
    ...at(index),
    expected: `one result for the call at ${call}`,
    actual: `a second result; the first is at ${result}`,
  };
}

function resultBeforeCall(index: number, call: number): PairFault {
  return {
    ruleId: 'pair-order',
    detail: 'A tool result stands before the call of its id.',
    ...at(index),
    expected: 'a call of this id earlier in the conversation',
    actual: `its first call is at ${call}`,
  };
}

function resultWithoutCall(index: number): PairFault {
  return {
    ruleId: 'pair-complete',
    detail: 'A tool result has no call of its id anywhere in the conversation.',
    ...at(index),
    expected: 'a call of this id earlier in the conversation',
    actual: 'no call of this id',
  };
}

function resultWithoutId(index: number): PairFault {
  return {
    ruleId: 'pair-complete',
    detail: 'A tool result has no toolCallId, so it belongs to no call.',
    ...at(index),
    expected: 'a toolCallId that names an earlier call',
    actual: 'no toolCallId',
  };
}

const at = (index: number): { path: string; index: number } => ({ path: `/messages/${index}`, index });
