/**
 * The ModelMessages of the AI SDK (npm `ai` 7), as JSON: binary data is base64 text or a URL. Refuses roles and kinds of part that the
 * package's types do not have. No I/O; field names are held to the package's types, what a message may be to its modelMessageSchema.
 */
import type { AssistantContent, ModelMessage, SystemModelMessage, ToolContent, ToolResultPart, UserContent } from 'ai';
import { isJsonObject, type JsonObject } from '../../json.ts';
import { jsonPointer, type JsonPointer, type Result } from '../../problem.ts';
import type { AgentFunction, ContentBlock, FunctionCallBlock, FunctionResultBlock } from '../message.ts';
import { unmapped, type Entry, type FormatFault, type MessageFormat, type Part } from './format.ts';
import { idOf, isRenamed } from './renamed.ts';

export const aiSdk: MessageFormat = {
  id: 'ai-sdk',
  title: 'AI SDK',
  // convertToLanguageModelPrompt of the package: MissingToolResultsError at the next message that is neither assistant's nor tool's
  rules: { results: 'before-next-user', userFirst: false, joinsAssistant: false },
  read,
  write,
  holdResults: (parts) => ({ role: 'tool', content: parts.map(render) }),
  readSystem,
  readTools,
  addInstruction: ({ messages, system }, text) => ({ messages, system: withText(system, text) }),
  faults,
};

/** Fields of a part of the package's as they come: each may be absent, or anything. */
type Fields<T> = { readonly [K in keyof T]?: unknown };
type PartsOf<Content> = Exclude<Content, string> extends (infer P)[] ? P : never;
type AnyPart = PartsOf<UserContent> | PartsOf<AssistantContent> | PartsOf<ToolContent>;
type Of<K extends AnyPart['type']> = Extract<AnyPart, { type: K }>;
type Output = ToolResultPart['output'];
type OutputItem = Extract<Output, { type: 'content' }>['value'][number];
type Role = ModelMessage['role'];

// Reading

const ROLES: { readonly [R in Role]: Entry['role'] } = {
  system: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'results',
};
const isRole = (role: unknown): role is Role => typeof role === 'string' && Object.hasOwn(ROLES, role);

const string = (value: unknown): string => (typeof value === 'string' ? value : '');
const asText = (text: unknown): ContentBlock => ({ type: 'text', text: string(text) });
const asJson = (native: unknown): ContentBlock => asText(JSON.stringify(native));

/**
 * Approvals answer a request by its approvalId, of which only the request knows the call. So a request is a call to us and a response its
 * result, under ids that no tool call has: they pair up, and stay or go together.
 */
const APPROVAL = 'tool-approval:';

const PARTS: { readonly [K in AnyPart['type']]: (native: Fields<Of<K>>) => ContentBlock } = {
  text: ({ text }) => asText(text),
  image: ({ image, mediaType }) => ({ type: 'image', data: dataOf(image), mime: string(mediaType) || 'image/*' }),
  file: ({ data, mediaType, filename }) => readFile(data, mediaType, filename),
  reasoning: ({ text }) => ({ type: 'thinking', text: string(text) }),
  'reasoning-file': ({ data, mediaType }) => readFile(data, mediaType),
  custom: asJson,
  // The provider's own calls are whole within the assistant's message
  'tool-call': (native) =>
    native.providerExecuted === true
      ? asJson(native)
      : call(string(native.toolCallId), string(native.toolName), native.input),
  'tool-result': ({ toolCallId, output }) => result(string(toolCallId), readOutput(output), isErrorOutput(output)),
  'tool-approval-request': ({ approvalId, toolCallId, reason }) =>
    call(APPROVAL + string(approvalId), 'tool-approval', { toolCallId, reason }),
  'tool-approval-response': ({ approvalId, approved, reason }) =>
    result(APPROVAL + string(approvalId), typeof reason === 'string' ? [asText(reason)] : [], approved === false),
};
const isKind = (type: unknown): type is AnyPart['type'] => typeof type === 'string' && Object.hasOwn(PARTS, type);

const call = (id: string, function_id: string, input: unknown): ContentBlock => ({
  type: 'function_call',
  id,
  function_id,
  arguments: input,
});

const result = (function_call_id: string, content: readonly ContentBlock[], isError: boolean): ContentBlock => ({
  type: 'function_result',
  function_call_id,
  content,
  ...(isError && { is_error: true }),
});

function read(native: JsonObject, path: JsonPointer): Result<Entry> {
  const { role, content }: JsonObject = native;
  if (!isRole(role)) return unmapped(`${path}/role`, 'the role has to be system, user, assistant or tool');
  const at = `${path}/content`;
  if (typeof content === 'string' && role !== 'tool') {
    const parts = [{ block: asText(content), native: content, path: at }];
    return { ok: true, value: { role: ROLES[role], parts, path, native } };
  }
  if (role === 'system') return unmapped(at, 'the content of a system message has to be text');
  if (!Array.isArray(content)) {
    return unmapped(
      at,
      role === 'tool' ? 'content has to be a list of parts' : 'content has to be text or a list of parts',
    );
  }
  const parts: Part[] = [];
  for (const [index, item] of content.entries()) {
    const itemAt = `${at}/${index}`;
    if (!isJsonObject(item)) return unmapped(itemAt, 'a part has to be an object');
    const type = item['type'];
    if (!isKind(type)) return unmapped(`${itemAt}/type`, 'the package has no such kind of part');
    if ((type === 'text' || type === 'reasoning') && typeof item['text'] !== 'string') {
      return unmapped(`${itemAt}/text`, 'the text of a part has to be a string');
    }
    // In the assistant's message only the provider's own results stand
    const block = role === 'assistant' && type === 'tool-result' ? asJson(item) : PARTS[type](item);
    // An answer has no place for a text: its reason would be another one
    const isFixed = type === 'tool-approval-response';
    parts.push({ block, native: item, path: itemAt, ...(isFixed && { isFixed }) });
  }
  const entry = { role: ROLES[role], parts, path, native };
  return { ok: true, value: awaitsProvider(parts) ? { ...entry, isReference: true } : entry };
}

/**
 * Whether the provider has yet to answer a call of its own: then the message stands for what the provider holds. Such a result comes in a
 * later message, also in a tool's, where convertToLanguageModelPrompt takes it and asks for no call.
 */
function awaitsProvider(parts: readonly Part[]): boolean {
  const natives = parts.flatMap(({ native }) => (isJsonObject(native) ? [native] : []));
  const answered = new Set(natives.flatMap(({ type, toolCallId }) => (type === 'tool-result' ? [toolCallId] : [])));
  return natives.some((part) => isProvidersCall(part) && !answered.has(part['toolCallId']));
}

const isProvidersCall = ({ type, providerExecuted }: JsonObject): boolean =>
  type === 'tool-call' && providerExecuted === true;

/** Base64, a URL, or what else names the data: tagged, bare, or by the provider's name. */
function dataOf(data: unknown): string {
  if (!isJsonObject(data)) return string(data);
  const { type, reference } = data;
  const named = type === 'reference' && isJsonObject(reference) ? reference : data;
  return string(named['data'] ?? named['url'] ?? Object.values(named).find((value) => typeof value === 'string'));
}

const URL_SCHEME = /^(?!data:)[a-z][a-z0-9+.-]*:/i;

function readFile(data: unknown, mediaType: unknown, filename?: unknown): ContentBlock {
  if (isJsonObject(data) && data['type'] === 'text') return asText(data['text']);
  const mime = string(mediaType);
  const content = dataOf(data);
  if (/^image(?:\/|$)/.test(mime)) return { type: 'image', data: content, mime };
  const isInline =
    !URL_SCHEME.test(content) && (typeof data === 'string' || (isJsonObject(data) && data['type'] === 'data'));
  const [attachment_id, size] = isInline ? ['', Math.floor((content.length * 3) / 4)] : [content, 0];
  return { type: 'file', attachment_id, mime, name: string(filename), size };
}

function isErrorOutput(output: unknown): boolean {
  const type = isJsonObject(output) ? output['type'] : undefined;
  return type === 'error-text' || type === 'error-json' || type === 'execution-denied';
}

function readOutput(output: unknown): readonly ContentBlock[] {
  const { type, value, reason }: JsonObject = isJsonObject(output) ? output : {};
  if (type === 'execution-denied') return [asText(reason)];
  if (type === 'content' && Array.isArray(value)) return value.map(readItem);
  return [typeof value === 'string' ? asText(value) : asJson(value ?? null)];
}

function readItem(item: unknown): ContentBlock {
  const { type, text, data, url, fileId, providerReference, mediaType, filename }: JsonObject = isJsonObject(item)
    ? item
    : {};
  switch (type as OutputItem['type'] | undefined) {
    case 'text':
      return asText(text);
    case 'file':
    case 'file-data':
    case 'file-url':
      return readFile(data ?? url, mediaType, filename);
    case 'file-id':
    case 'file-reference':
      return { type: 'file', attachment_id: dataOf(fileId ?? providerReference), mime: '', name: '', size: 0 };
    case 'image-data':
    case 'image-url':
    case 'image-file-id':
    case 'image-file-reference':
      return {
        type: 'image',
        data: dataOf(data ?? url ?? fileId ?? providerReference),
        mime: string(mediaType) || 'image/*',
      };
    case 'custom':
    case undefined:
      return asJson(item);
  }
  return asJson(item);
}

// Writing

function write(entry: Entry, parts: readonly Part[]): JsonObject {
  const same = parts.length === entry.parts.length && parts.every((part, at) => isAsSupplied(part, entry.parts[at]));
  if (same) return entry.native;
  const [only] = parts;
  const isText = parts.length === 1 && typeof only?.native === 'string' && only.block.type === 'text';
  if (isText) return { ...entry.native, content: only.block.text };
  // A system message is nothing but text
  if (entry.role === 'system') return { ...entry.native, content: parts.map(textOf).join('\n\n') };
  const asked = askedCalls(entry, parts);
  return {
    ...entry.native,
    content: parts.map((part) => {
      const toolCallId = asked.get(part.native);
      return toolCallId === undefined ? render(part) : { ...render(part), toolCallId };
    }),
  };
}

/** The calls that requests for approval ask for under a new id: of one id, the nth request asks for the nth call, or the last. */
function askedCalls({ parts }: Entry, written: readonly Part[]): ReadonlyMap<unknown, string> {
  const renamed = new Map<unknown, string>();
  for (const { native, block, edited } of written) {
    if (edited && block.type === 'function_call') renamed.set(native, block.id);
  }
  const calls = new Map<unknown, unknown[]>();
  const asked = new Map<unknown, string>();
  for (const { native } of parts) {
    if (isJsonObject(native) && native['type'] === 'tool-call') {
      const group = calls.get(native['toolCallId']);
      if (group) group.push(native);
      else calls.set(native['toolCallId'], [native]);
    }
  }
  for (const { native } of parts) {
    if (!isJsonObject(native) || native['type'] !== 'tool-approval-request') continue;
    const group = calls.get(native['toolCallId']) ?? [];
    const id = renamed.get(group.length > 1 ? group.shift() : group[0]);
    if (id !== undefined) asked.set(native, id);
  }
  return asked;
}

const textOf = ({ block }: Part): string => (block.type === 'text' ? block.text : '');

const isAsSupplied = (part: Part, supplied: Part | undefined): boolean =>
  !part.edited && part.native !== undefined && part.native === supplied?.native;

/** The part itself where nobody edited it, else its fields under what it says now. */
function render({ block, native, edited, answers }: Part): JsonObject {
  const supplied = isJsonObject(native) ? native : undefined;
  if (supplied && !edited) return supplied;
  if (supplied && isRenamedPart(supplied, block)) return { ...supplied, ...pairedBy(supplied['type'], idOf(block)) };
  const called = answers?.block.type === 'function_call' ? { toolName: answers.block.function_id } : {};
  const written = newPart(block, supplied ?? called, isApproval(supplied ?? answers?.native, block));
  const providerOptions = supplied?.['providerOptions'];
  if (written['type'] === supplied?.['type']) return { ...supplied, ...written };
  return providerOptions === undefined ? written : { ...written, providerOptions };
}

/** Whether its id is all that is new; an answer to a request for approval has nothing else that could be. */
function isRenamedPart(supplied: JsonObject, block: ContentBlock): boolean {
  const { type } = supplied;
  if (type === 'tool-approval-response') return block.type === 'function_result';
  return isKind(type) && isRenamed(PARTS[type](supplied), block);
}

const pairedBy = (type: unknown, id: string): JsonObject =>
  string(type).startsWith('tool-approval') ? { approvalId: approvalIdOf(id) } : { toolCallId: id };

/** A new id may lack the prefix. */
const approvalIdOf = (id: string): string => (id.startsWith(APPROVAL) ? id.slice(APPROVAL.length) : id);

/** By what it was made of or answers; where that is not known by its id. */
function isApproval(native: unknown, block: ContentBlock): boolean {
  if (!isJsonObject(native)) return idOf(block).startsWith(APPROVAL);
  return string(native['type']).startsWith('tool-approval');
}

function newPart(block: ContentBlock, supplied: JsonObject, isAnApproval: boolean): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text } satisfies Of<'text'>;
    case 'image':
      return { type: 'file', data: block.data, mediaType: block.mime } satisfies Of<'file'>;
    case 'file':
      return {
        type: 'file',
        data: block.attachment_id,
        mediaType: block.mime,
        filename: block.name,
      } satisfies Of<'file'>;
    case 'thinking':
      return { type: 'reasoning', text: block.text } satisfies Of<'reasoning'>;
    case 'redacted_thinking':
      return { type: 'reasoning', text: '' } satisfies Of<'reasoning'>;
    case 'function_call':
      return isAnApproval ? approvalRequest(block, supplied) : toolCall(block);
    case 'function_result':
      return isAnApproval ? approvalResponse(block) : toolResult(block, supplied);
  }
}

const toolCall = ({ id, function_id, arguments: input = {} }: FunctionCallBlock): JsonObject =>
  ({ type: 'tool-call', toolCallId: id, toolName: function_id, input }) satisfies Of<'tool-call'>;

const approvalRequest = ({ id, arguments: of }: FunctionCallBlock, supplied: JsonObject): JsonObject =>
  ({
    type: 'tool-approval-request',
    approvalId: approvalIdOf(id),
    toolCallId: string(supplied['toolCallId'] ?? (isJsonObject(of) ? of['toolCallId'] : undefined)),
  }) satisfies Of<'tool-approval-request'>;

/** An answer that is made here is no. */
function approvalResponse({ function_call_id, content }: FunctionResultBlock): JsonObject {
  const reason = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  return {
    type: 'tool-approval-response',
    approvalId: approvalIdOf(function_call_id),
    approved: false,
    ...(reason !== '' && { reason }),
  } satisfies Of<'tool-approval-response'>;
}

function toolResult(block: FunctionResultBlock, supplied: Fields<ToolResultPart>): JsonObject {
  return {
    type: 'tool-result',
    toolCallId: block.function_call_id,
    toolName: string(supplied.toolName) || UNKNOWN_TOOL,
    output: saysTheSame(block, supplied.output)
      ? supplied.output
      : { ...(isJsonObject(supplied.output) && supplied.output), ...newOutput(block, supplied.output) },
  } satisfies Fields<ToolResultPart>;
}

const saysTheSame = ({ content, is_error }: FunctionResultBlock, supplied: unknown): boolean =>
  supplied !== undefined &&
  (is_error ?? isErrorOutput(supplied)) === isErrorOutput(supplied) &&
  JSON.stringify(content) === JSON.stringify(readOutput(supplied));

/** A result that is made here does not say which function was called. */
const UNKNOWN_TOOL = 'unknown';

function newOutput({ content, is_error }: FunctionResultBlock, supplied: unknown): JsonObject {
  const { type, value }: JsonObject = isJsonObject(supplied) ? supplied : {};
  const isError = is_error ?? isErrorOutput(supplied);
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const isText = texts.length === content.length && (texts.length < 2 || isError);
  if (isText && isError && type === 'execution-denied') return { type, reason: texts.join('\n') } satisfies Output;
  if (isText) return { type: isError ? 'error-text' : 'text', value: texts.join('\n') } satisfies Output;
  const supplieds: readonly unknown[] = Array.isArray(value) ? value : [];
  // Items have no native form beside them: what still says what a supplied one said is the first such one that is left
  const known = supplieds.map((item) => [JSON.stringify(readItem(item)), item] as const);
  const items = content.map((block) => {
    const at = known.findIndex(([said]) => said === JSON.stringify(block));
    return at < 0 ? newItem(block) : known.splice(at, 1)[0]?.[1];
  });
  return { type: 'content', value: items } satisfies Fields<Output>;
}

function newItem(block: ContentBlock): JsonObject {
  if (block.type === 'text') return { type: 'text', text: block.text } satisfies OutputItem;
  if (block.type !== 'image') return { type: 'text', text: JSON.stringify(block) } satisfies OutputItem;
  if (URL_SCHEME.test(block.data)) return { type: 'image-url', url: block.data } satisfies OutputItem;
  return { type: 'file', data: { type: 'data', data: block.data }, mediaType: block.mime } satisfies OutputItem;
}

// Beside the array

/** `system` (or `instructions`) of generateText: a text, a system message, or a list of these. */
function readSystem(system: unknown, path: JsonPointer): Result<readonly string[]> {
  if (system === undefined || system === null) return { ok: true, value: [] };
  if (typeof system === 'string') return { ok: true, value: [system] };
  const messages: readonly unknown[] = Array.isArray(system) ? system : [system];
  const texts: string[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content }: Fields<SystemModelMessage> = isJsonObject(message) ? message : {};
    if (role !== 'system' || typeof content !== 'string') {
      return unmapped(
        Array.isArray(system) ? `${path}/${index}` : path,
        'system has to be text or system messages of text',
      );
    }
    texts.push(content);
  }
  return { ok: true, value: texts };
}

function withText(system: unknown, text: string): unknown {
  const message = { role: 'system', content: text } satisfies SystemModelMessage;
  if (Array.isArray(system)) return [...(system as readonly unknown[]), message];
  if (isJsonObject(system)) return [system, message];
  return typeof system === 'string' && system !== '' ? `${system}\n\n${text}` : text;
}

/** A ToolSet as JSON, or a list of tools that say their names. A schema made with `jsonSchema` is JSON under `jsonSchema`. */
function readTools(tools: unknown, path: JsonPointer): Result<readonly AgentFunction[]> {
  if (tools === undefined || tools === null) return { ok: true, value: [] };
  if (!Array.isArray(tools) && !isJsonObject(tools)) return unmapped(path, 'tools have to be an object or a list');
  const named: readonly (readonly [unknown, unknown])[] = Array.isArray(tools)
    ? tools.map((tool: unknown) => [isJsonObject(tool) ? tool['name'] : undefined, tool])
    : Object.entries(tools);
  const functions: AgentFunction[] = [];
  for (const [index, [name, tool]] of named.entries()) {
    const at = path + jsonPointer([Array.isArray(tools) ? index : string(name)]);
    if (!isJsonObject(tool)) return unmapped(at, 'a tool has to be an object');
    const { type, description, inputSchema } = tool;
    if (type === 'provider') functions.push({ name: type, description: '', parameters: tool });
    else if (typeof name !== 'string') return unmapped(`${at}/name`, 'a tool in a list has to have a name');
    else functions.push({ name, description: string(description), parameters: schemaOf(inputSchema) });
  }
  return { ok: true, value: functions };
}

const schemaOf = (schema: unknown): unknown => (isJsonObject(schema) ? (schema['jsonSchema'] ?? schema) : schema);

// What the package's modelMessageSchema (src/prompt/message.ts and content-part.ts) refuses, save that a URL is a text in JSON; and, which
// it takes, ids and names that are empty. Where results have to stand is what convertToLanguageModelPrompt refuses. What a provider's own
// package refuses after it is not known here.

type Check = (value: unknown) => boolean;
const isString: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => value === undefined || typeof value === 'boolean';
const isOptionalString: Check = (value) => value === undefined || typeof value === 'string';
const isReference: Check = (value) => isJsonObject(value) && Object.values(value).every(isString);
const isOptions: Check = (value) =>
  value === undefined || (isJsonObject(value) && Object.values(value).every(isJsonObject));
const isTagged: Check = (value) => {
  const { type, data, url, reference, text }: JsonObject = isJsonObject(value) ? value : {};
  if (type === 'reference') return isReference(reference);
  return (
    (type === 'data' && isString(data)) || (type === 'url' && isString(url)) || (type === 'text' && isString(text))
  );
};
const isInline: Check = (value) => isString(value) || isReference(value);

const FIELDS: { readonly [K in AnyPart['type']]: { readonly [F in keyof Of<K>]?: Check } } = {
  text: { text: isString, providerOptions: isOptions },
  image: { image: isInline, mediaType: isOptionalString, providerOptions: isOptions },
  file: {
    data: (value) => isInline(value) || isTagged(value),
    filename: isOptionalString,
    mediaType: isString,
    providerOptions: isOptions,
  },
  reasoning: { text: isString, providerOptions: isOptions },
  'reasoning-file': {
    data: (value) =>
      isString(value) || (isTagged(value) && isJsonObject(value) && /^(?:data|url)$/.test(string(value['type']))),
    mediaType: isString,
    providerOptions: isOptions,
  },
  custom: { kind: isString, providerOptions: isOptions },
  'tool-call': { toolCallId: isString, toolName: isString, providerExecuted: isFlag, providerOptions: isOptions },
  'tool-result': { toolCallId: isString, toolName: isString, output: isOutput, providerOptions: isOptions },
  'tool-approval-request': {
    approvalId: isString,
    toolCallId: isString,
    reason: isOptionalString,
    isAutomatic: isFlag,
    signature: isOptionalString,
  },
  'tool-approval-response': {
    approvalId: isString,
    approved: (value) => typeof value === 'boolean',
    reason: isOptionalString,
  },
};

const ITEM_FIELDS: {
  readonly [K in OutputItem['type']]: { readonly [F in keyof Extract<OutputItem, { type: K }>]?: Check };
} = {
  text: { text: isString },
  file: { data: isTagged, mediaType: isString, filename: isOptionalString },
  'file-data': { data: isString, mediaType: isString, filename: isOptionalString },
  'file-url': { url: isString, mediaType: isOptionalString },
  'file-id': { fileId: isInline },
  'file-reference': { providerReference: isReference },
  'image-data': { data: isString, mediaType: isString },
  'image-url': { url: isString },
  'image-file-id': { fileId: isInline },
  'image-file-reference': { providerReference: isReference },
  custom: {},
};

function isItem(item: unknown): boolean {
  if (!isJsonObject(item) || !isOptions(item['providerOptions'])) return false;
  const checks = Object.entries(ITEM_FIELDS).find(([type]) => type === item['type'])?.[1];
  return checks !== undefined && failing(item, checks).length === 0;
}

function isOutput(output: unknown): boolean {
  if (!isJsonObject(output)) return false;
  const { type, value, reason, providerOptions } = output;
  // The schema looks at these everywhere but beside a list
  if (type !== 'content' && !isOptions(providerOptions)) return false;
  switch (type as Output['type']) {
    case 'text':
    case 'error-text':
      return isString(value);
    case 'json':
    case 'error-json':
      return value !== undefined;
    case 'execution-denied':
      return isOptionalString(reason);
    case 'content':
      return Array.isArray(value) && value.every(isItem);
  }
  return false;
}

const failing = (native: JsonObject, checks: { readonly [field: string]: Check }): readonly string[] =>
  Object.entries(checks).flatMap(([field, holds]) => (holds(native[field]) ? [] : [field]));

const IN_ROLE: { readonly [role: string]: readonly string[] } = {
  user: ['text', 'image', 'file'] satisfies PartsOf<UserContent>['type'][],
  assistant: [
    'text',
    'custom',
    'file',
    'reasoning',
    'reasoning-file',
    'tool-call',
    'tool-result',
    'tool-approval-request',
  ] satisfies PartsOf<AssistantContent>['type'][],
  tool: ['tool-result', 'tool-approval-response'] satisfies PartsOf<ToolContent>['type'][],
};

function faults({ native, parts, path }: Entry): readonly FormatFault[] {
  const found: FormatFault[] = [];
  if (!isOptions(native['providerOptions'])) found.push(badField(undefined, path, 'providerOptions'));
  for (const part of parts) {
    if (typeof part.native === 'string') continue;
    const item = render(part);
    const type = item['type'];
    if (!isKind(type)) continue;
    if (!IN_ROLE[string(native['role'])]?.includes(type)) {
      found.push({
        path: part.path,
        rule: 'wrong-role',
        detail: 'this kind of part stands in messages of another role',
      });
    }
    for (const field of failing(item, FIELDS[type])) found.push(badField(type, part.path, field, item[field]));
    // The schema takes these, but nothing can be paired by them
    for (const field of ['toolCallId', 'approvalId', 'toolName']) {
      if (item[field] === '') found.push(badField(type, part.path, field, ''));
    }
  }
  return found;
}

function badField(type: AnyPart['type'] | undefined, path: JsonPointer, field: string, value?: unknown): FormatFault {
  const at = `${path}/${field}`;
  if (field === 'toolName')
    return { path: at, rule: 'bad-name', detail: 'the name of a tool has to be a text that is not empty' };
  // It has an id of its own; this is that of the call that it asks for
  if (type === 'tool-approval-request' && field === 'toolCallId') {
    return { path: at, rule: 'bad-field', detail: 'a request asks for a call by an id that is not empty' };
  }
  if (!field.endsWith('Id')) return { path: at, rule: 'bad-field', detail: 'the package takes no such value here' };
  const isMissing = value === undefined || value === null || value === '';
  return { path: at, rule: isMissing ? 'missing-id' : 'bad-id', detail: 'an id has to be a text that is not empty' };
}
