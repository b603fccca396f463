/**
 * Requests that hold a provider's own messages: what they may have beside an operation's own fields, how the engines get them,
 * and how what the engines say is told in the provider's terms.
 */
import { z } from 'zod';
import { findOverlongText, MAX_ENCODED_TEXT_BYTES, type TextsToCount } from '../engines/overlong.ts';
import { isJsonObject } from '../json.ts';
import type { Result } from '../problem.ts';
import { SPLIT_SURROGATES } from '../request-json.ts';
import {
  type Conversation,
  elementsOf,
  isSupplied,
  lastEntryAt,
  readConversation,
  readEntries,
} from '../transcript/formats/conversation.ts';
import type { MessageFormat } from '../transcript/formats/format.ts';
import { FORMATS } from '../transcript/formats/list.ts';
import { type Repair, repairEntries } from '../transcript/formats/repair.ts';
import type { AgentFunction, AgentMessage } from '../transcript/message.ts';
import { optional } from './transcript-schema.ts';
import { addTooLarge } from './validate.ts';

const FORMAT_IDS = FORMATS.map(({ id }) => id);

/** Of a request whose messages are no provider's. */
export const neutralFormat = z.literal('agent-messages').optional().describe('The default.');

/** Of a request in a provider's format. What stands in the array is for its format to read; see `addUnreadable`. */
export const nativeFields = {
  format: z
    .enum(FORMAT_IDS)
    .describe(`Whose messages they are: ${FORMATS.map(({ id, title }) => `${id}, ${title}`).join('; ')}.`),
  messages: z
    .array(z.unknown())
    .describe('The provider’s own array, oldest first. What nothing was done to comes back as it is.'),
  system: z.unknown().exactOptional().describe('What the provider takes as instructions beside the array.'),
  tools: z.unknown().exactOptional().describe('The provider’s own tools.'),
  repair: optional(z.boolean()).describe(
    'Mend what the provider would refuse of calls, results, ids, empty messages and split surrogates, and say so in repairs. False by default.',
  ),
  [SPLIT_SURROGATES]: z
    .array(z.string())
    .exactOptional()
    .describe(
      'With repair: pointers of texts in which U+FFFD stands for half a surrogate pair. Filled in here if you leave it out.',
    ),
};

export interface NativeInput {
  readonly format: string;
  readonly messages: readonly unknown[];
  readonly system?: unknown;
  readonly tools?: unknown;
  readonly repair?: boolean | null;
  readonly split_surrogates?: readonly string[];
}

/** Whether it is a provider's format that a request names. */
export function isNative<Request extends { readonly format?: string | undefined }>(
  request: Request,
): request is Extract<Request, { readonly format: string }> {
  return FORMATS.some(({ id }) => id === request.format);
}

/** A provider's request as the engines take it. */
export interface NativeRead {
  readonly conversation: Conversation;
  /** Undefined where none were asked for. */
  readonly repairs: readonly Repair[] | undefined;
  /** What stands beside the array, as it was supplied. */
  readonly system: unknown;
}

/** Of a name that the schema has taken. */
export function formatOf(id: string): MessageFormat {
  const format = FORMATS.find((each) => each.id === id);
  if (!format) throw new Error('the schema has let an unknown format pass');
  return format;
}

/**
 * The last reading of a request, by its first message: a schema looks at a request several times, and then it is run. Its list is
 * another each time, its messages are the same.
 */
const readings = new WeakMap<object, { readonly request: NativeInput; readonly read: Result<NativeRead> }>();

/** `invalid_request` with the pointer of the first thing that cannot be mapped. */
export function readNative(request: NativeInput): Result<NativeRead> {
  const [first] = request.messages;
  const last = isJsonObject(first) ? readings.get(first) : undefined;
  if (last && isSame(last.request, request)) return last.read;
  const read = readAnew(request);
  if (isJsonObject(first)) readings.set(first, { request, read });
  return read;
}

const isSame = (a: NativeInput, b: NativeInput): boolean =>
  (['format', 'system', 'tools', 'repair'] as const).every((field) => a[field] === b[field]) &&
  String(a.split_surrogates) === String(b.split_surrogates) &&
  a.messages.length === b.messages.length &&
  a.messages.every((message, index) => message === b.messages[index]);

function readAnew({
  format: id,
  messages,
  system,
  tools,
  repair,
  split_surrogates: split = [],
}: NativeInput): Result<NativeRead> {
  const format = formatOf(id);
  const beside = { ...(system !== undefined && { system }), ...(tools !== undefined && { tools }) };
  if (repair !== true) return asRead(readConversation(format, { messages, ...beside }), undefined, system);
  const entries = readEntries(format, messages);
  if (!entries.ok) return entries;
  const repaired = repairEntries(format, entries.value);
  if (!repaired.ok) return repaired;
  const { origins } = repaired.value;
  const replaced = split.map((path) => ({ path, fault: 'split-surrogate', action: 'replaced by U+FFFD' }));
  const repairs = [...replaced, ...repaired.value.repairs];
  const mended = { messages: repaired.value.messages, ...beside };
  return asRead(readConversation(format, mended, { origins, supplied: messages.length }), repairs, system);
}

const asRead = (
  read: Result<Conversation>,
  repairs: readonly Repair[] | undefined,
  system: unknown,
): Result<NativeRead> => (read.ok ? { ok: true, value: { conversation: read.value, repairs, system } } : read);

/** The same, for a request that the schema has taken. */
export function takeNative(request: NativeInput): NativeRead {
  const read = readNative(request);
  if (!read.ok) throw new Error('the schema has let pass what cannot be read');
  return read.value;
}

/** What the engines take. */
export interface NeutralInput {
  readonly messages: readonly AgentMessage[];
  readonly system_prompt?: string | null;
  readonly tools?: readonly AgentFunction[] | null;
}

const neutralOf = ({ conversation: { messages, system, tools } }: NativeRead): NeutralInput => ({
  messages,
  system_prompt: system ?? null,
  tools,
});

/** A request in either form, as the engines take it. */
export function takeEither(
  request: (NeutralInput & { readonly format?: 'agent-messages' | undefined }) | NativeInput,
): { readonly neutral: NeutralInput; readonly native: NativeRead | undefined } {
  if (!isNative(request)) return { neutral: request, native: undefined };
  const native = takeNative(request);
  return { neutral: neutralOf(native), native };
}

/** In a schema's own check: what cannot be read, and which text is too long to be encoded. */
export function addUnreadable(
  request: NativeInput & Pick<TextsToCount, 'model' | 'options'>,
  context: z.RefinementCtx,
): void {
  const unmended = (request.split_surrogates ?? []).findIndex(
    (pointer) => request.repair !== true || !isReplaced(request, segmentsOf(pointer)),
  );
  if (unmended >= 0) {
    context.addIssue({ code: 'custom', path: [SPLIT_SURROGATES, unmended], message: NOT_REPLACED });
    return;
  }
  const read = readNative(request);
  if (!read.ok) {
    const [path, detail] =
      'path' in read.problem && 'detail' in read.problem ? [read.problem.path, read.problem.detail] : ['', ''];
    context.addIssue({ code: 'custom', path: segmentsOf(path), message: detail });
    return;
  }
  const neutral = neutralOf(read.value);
  const { model, options } = request;
  const path = findOverlongText({ ...neutral, ...(model && { model }), ...(options && { options }) });
  if (!path) return;
  const [field, index] = path;
  const message = field === 'messages' ? neutral.messages[Number(index)] : undefined;
  addTooLarge(
    context,
    message ? ['messages', ...elementsOf(message).slice(0, 1)] : field === 'system_prompt' ? ['system'] : path,
    MAX_ENCODED_TEXT_BYTES,
  );
}

const NOT_REPLACED = 'with repair, expected the pointer of a text in which U+FFFD stands';

function isReplaced(request: unknown, path: readonly string[]): boolean {
  let here = request;
  for (const key of path)
    here = here instanceof Object && Object.hasOwn(here, key) ? Reflect.get(here, key) : undefined;
  return typeof here === 'string' && here.includes('\ufffd');
}

/** Of an RFC 6901 pointer. */
const segmentsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));

/** Where a message of the engines' stands in the caller's array; of one that was made here, where the next one does. */
export function elementIndex({ conversation }: NativeRead, index: number): number {
  const { messages, origins, supplied } = conversation;
  const [entry = origins.length] = elementsOf(messages[index] ?? NOWHERE);
  return origins.slice(entry).find(isSupplied) ?? supplied;
}

const NOWHERE: AgentMessage = { role: 'user', content: [], timestamp: 0 };

/** The last of the engines' messages that begins at or before this element of the caller's array, -1 where none does. */
export function messageIndex({ conversation }: NativeRead, element: number): number {
  const last = lastEntryAt(conversation, element);
  return conversation.messages.findLastIndex((message) => (elementsOf(message)[0] ?? 0) <= last);
}

/** Options as the engines take them: a breakpoint is of the provider's array, and where the provider wants a user first, so do we. */
export function optionsFor<
  Options extends { readonly user_first?: boolean | null; readonly cache_breakpoint?: number | null },
>(native: NativeRead | undefined, options: Options | null): Options | null {
  if (!native) return options;
  const { cache_breakpoint: element, user_first } = options ?? {};
  return {
    ...(options as Options),
    user_first: user_first ?? native.conversation.format.rules.userFirst,
    ...(typeof element === 'number' && { cache_breakpoint: messageIndex(native, element) }),
  };
}

/** For an answer's `repairs`, where they were asked for. */
export const reportOf = (native: NativeRead | undefined): { repairs?: readonly Repair[] } =>
  native?.repairs ? { repairs: native.repairs } : {};

export const repairsOutput = z
  .array(z.looseObject({ path: z.string(), fault: z.string(), action: z.string() }))
  .optional()
  .describe('With repair: what was wrong, by JSON pointer into your request, and what was done.');

export const nativeMessages = z.array(z.record(z.string(), z.unknown()));
