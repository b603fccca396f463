/**
 * The Anthropic Messages API: `system`, `tools` and `messages` as POST /v1/messages takes them. Refuses roles and kinds of block that the
 * API's types do not have, and content that is neither text nor a list. No I/O; field names are held to the types of @anthropic-ai/sdk.
 */
import type { BetaContentBlockParam, BetaSystemMessageParam } from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type {
  Base64ImageSource,
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  Message,
  MessageParam,
  SearchResultBlockParam,
  TextBlockParam,
  Tool,
  ToolResultBlockParam,
  ToolUseBlockParam,
} from '@anthropic-ai/sdk/resources/messages/messages';
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { JsonPointer, Result } from '../../problem.ts';
import type { AgentFunction, ContentBlock, FunctionResultBlock } from '../message.ts';
import { unmapped, type Entry, type FormatFault, type MessageFormat, type Part } from './format.ts';
import { idOf, isRenamed } from './renamed.ts';

export const anthropicMessages: MessageFormat = {
  id: 'anthropic-messages',
  title: 'Anthropic Messages',
  rules: { results: 'head-of-next-user', userFirst: true, systemAfterUser: true, joinsAssistant: false },
  read,
  write,
  holdResults: (parts) => ({ role: 'user', content: parts.map(render) }),
  sayAsUser: (content) => ({ role: 'user', content }),
  readSystem,
  readTools,
  addInstruction: ({ messages, system }, text) => ({ messages, system: withText(system, text) }),
  faults,
  neighbourFaults,
};

/** Fields of a block of the provider's as they come: each may be absent, or anything. */
type Fields<T> = { readonly [K in keyof T]?: unknown };
type Role = MessageParam['role'];
type AnyBlock = ContentBlockParam | BetaContentBlockParam;
type InResult = Exclude<NonNullable<ToolResultBlockParam['content']>, string>[number];
type Readers<T extends { readonly type: string }> = {
  readonly [K in T['type']]: (native: Fields<Extract<T, { type: K }>>, path: JsonPointer) => Result<ContentBlock>;
};

// Reading

const ROLES = ['user', 'assistant', 'system'] as const satisfies readonly Role[];

const mapped = (value: ContentBlock): Result<ContentBlock> => ({ ok: true, value });
const asText = (text: string): Result<ContentBlock> => mapped({ type: 'text', text });
const asJson = (native: object): Result<ContentBlock> => asText(JSON.stringify(native));
const string = (value: unknown): string => (typeof value === 'string' ? value : '');
const lines = (...values: readonly unknown[]): string => values.filter((value) => string(value) !== '').join('\n');

const readText = ({ text }: Fields<TextBlockParam>, path: JsonPointer): Result<ContentBlock> =>
  typeof text === 'string' ? asText(text) : unmapped(`${path}/text`, 'the text of a text block has to be a string');

/** What the list of a result may hold. */
const RESULT_BLOCKS: Readers<InResult> = {
  text: readText,
  image: readImage,
  document: readDocument,
  search_result: readSearchResult,
  tool_reference: ({ tool_name }) => asText(string(tool_name)),
  browser_state: asJson,
};

/** What a message may hold. What a tool of the provider's own says is whole within the assistant's message, so it is text to us. */
const BLOCKS: Readers<AnyBlock> = {
  text: readText,
  image: readImage,
  document: readDocument,
  search_result: readSearchResult,
  thinking: ({ thinking, signature }) =>
    mapped({ type: 'thinking', text: string(thinking), ...(typeof signature === 'string' && { signature }) }),
  redacted_thinking: ({ data }) => mapped({ type: 'redacted_thinking', data: string(data) }),
  tool_use: ({ id, name, input }) =>
    mapped({ type: 'function_call', id: string(id), function_id: string(name), arguments: input }),
  tool_result: readResult,
  container_upload: ({ file_id }) => mapped(file(string(file_id), 'application/octet-stream', string(file_id))),
  compaction: ({ content }) => asText(string(content)),
  server_tool_use: asJson,
  web_search_tool_result: asJson,
  web_fetch_tool_result: asJson,
  advisor_tool_result: asJson,
  code_execution_tool_result: asJson,
  bash_code_execution_tool_result: asJson,
  text_editor_code_execution_tool_result: asJson,
  tool_search_tool_result: asJson,
  mcp_tool_use: asJson,
  mcp_tool_result: asJson,
  mcp_tool_listing: asJson,
  tool_addition: asJson,
  tool_removal: asJson,
  fallback: asJson,
};

function read(native: JsonObject, path: JsonPointer): Result<Entry> {
  const role = ROLES.find((name) => name === native['role']);
  if (role === undefined) return unmapped(`${path}/role`, 'the role has to be user, assistant or system');
  // The beta's types let a system message go without content, where it only sets options
  const content = role === 'system' ? (native['content'] ?? []) : native['content'];
  const at = `${path}/content`;
  if (typeof content === 'string') {
    return {
      ok: true,
      value: { role, path, native, parts: [{ block: { type: 'text', text: content }, native: content, path: at }] },
    };
  }
  const blocks = readList(content, IN_MESSAGE, at);
  if (!blocks.ok) return blocks;
  const parts = blocks.value.map(([block, value], index): Part => ({ block, native: value, path: `${at}/${index}` }));
  return { ok: true, value: { role, parts, path, native } };
}

type Reader = (native: JsonObject, path: JsonPointer) => Result<ContentBlock>;
const IN_MESSAGE = new Map<unknown, Reader>(Object.entries(BLOCKS));
const IN_RESULT = new Map<unknown, Reader>(Object.entries(RESULT_BLOCKS));

/** The blocks of a list with what each was read from. */
function readList(
  list: unknown,
  readers: ReadonlyMap<unknown, Reader>,
  path: JsonPointer,
): Result<readonly (readonly [ContentBlock, JsonObject])[]> {
  if (!Array.isArray(list)) return unmapped(path, 'content has to be text or a list of blocks');
  const blocks: (readonly [ContentBlock, JsonObject])[] = [];
  for (const [index, native] of list.entries()) {
    const at = `${path}/${index}`;
    if (!isJsonObject(native)) return unmapped(at, 'a block has to be an object');
    const reader = readers.get(native['type']);
    if (!reader) return unmapped(`${at}/type`, 'the API has no such kind of block here');
    const block = reader(native, at);
    if (!block.ok) return block;
    blocks.push([block.value, native]);
  }
  return { ok: true, value: blocks };
}

function readImage({ source }: Fields<ImageBlockParam>): Result<ContentBlock> {
  const { type, data, media_type, url, file_id }: Fields<Base64ImageSource> & { url?: unknown; file_id?: unknown } =
    isJsonObject(source) ? source : {};
  if (type === 'base64') return mapped({ type: 'image', data: string(data), mime: string(media_type) });
  return mapped({ type: 'image', data: string(url ?? file_id), mime: ANY_IMAGE });
}

const ANY_IMAGE = 'image/*';

/** A document of text is text, with the title and context that the model is shown. */
function readDocument({ source, title, context }: Fields<DocumentBlockParam>): Result<ContentBlock> {
  const { type, data, media_type, content, url, file_id }: JsonObject = isJsonObject(source) ? source : {};
  if (type === 'text') return asText(lines(title, context, data));
  if (type === 'content') {
    return asText(
      lines(title, context, typeof content === 'string' ? content : (texts(content) ?? JSON.stringify(content))),
    );
  }
  const bytes = Math.floor((string(data).length * 3) / 4);
  return mapped(file(string(url ?? file_id), string(media_type) || 'application/pdf', string(title), bytes));
}

function readSearchResult({ title, source, content }: Fields<SearchResultBlockParam>): Result<ContentBlock> {
  return asText(lines(title, source, texts(content) ?? JSON.stringify(content)));
}

/** The texts of a list of nothing but text blocks. */
function texts(list: unknown): string | undefined {
  const all: unknown[] = Array.isArray(list) ? list.map((item) => isJsonObject(item) && item['text']) : [undefined];
  return all.every((text) => typeof text === 'string') ? all.join('\n') : undefined;
}

function readResult(
  { tool_use_id, content, is_error }: Fields<ToolResultBlockParam>,
  path: JsonPointer,
): Result<ContentBlock> {
  const blocks = typeof content === 'string' ? undefined : readList(content ?? [], IN_RESULT, `${path}/content`);
  if (blocks && !blocks.ok) return blocks;
  return mapped({
    type: 'function_result',
    function_call_id: string(tool_use_id),
    content: blocks ? blocks.value.map(([block]) => block) : [{ type: 'text', text: string(content) }],
    ...(typeof is_error === 'boolean' && { is_error }),
  });
}

const file = (attachment_id: string, mime: string, name: string, size = 0): ContentBlock => ({
  type: 'file',
  attachment_id,
  mime,
  name,
  size,
});

// Writing

function write(entry: Entry, parts: readonly Part[]): JsonObject {
  const same = parts.length === entry.parts.length && parts.every((part, at) => isAsSupplied(part, entry.parts[at]));
  if (same) return entry.native;
  const [only] = parts;
  const isText = parts.length === 1 && typeof only?.native === 'string' && only.block.type === 'text';
  return { ...entry.native, content: isText ? only.block.text : parts.map(render) };
}

const isAsSupplied = (part: Part, supplied: Part | undefined): boolean =>
  !part.edited && part.native !== undefined && part.native === supplied?.native;

/** The block of a part: the supplied one where nobody edited it, else its fields under what the part says now. */
function render({ block, native, edited }: Part): JsonObject {
  const supplied = isJsonObject(native) ? native : undefined;
  if (supplied && !edited) return supplied;
  const renamed = supplied && renamedBlock(supplied, block);
  if (renamed) return renamed;
  const written = block.type === 'function_result' ? toolResult(block, supplied) : newBlock(block);
  if (written['type'] === supplied?.['type']) return { ...supplied, ...written };
  const cache_control = supplied?.['cache_control'];
  return cache_control === undefined ? written : { ...written, cache_control };
}

/** The block under the new id of its call, if nothing else about it is new. */
function renamedBlock(supplied: JsonObject, block: ContentBlock): JsonObject | undefined {
  const before = IN_MESSAGE.get(supplied['type'])?.(supplied, '');
  if (!before?.ok || !isRenamed(before.value, block)) return undefined;
  return { ...supplied, [block.type === 'function_result' ? 'tool_use_id' : 'id']: idOf(block) };
}

function toolResult(result: FunctionResultBlock, supplied: Fields<ToolResultBlockParam> | undefined): JsonObject {
  const [first] = result.content;
  const isText = first?.type === 'text' && result.content.length === 1 && !Array.isArray(supplied?.content);
  const isAbsent = result.content.length === 0 && (supplied?.content ?? null) === null;
  return {
    type: 'tool_result',
    tool_use_id: result.function_call_id,
    ...(!isAbsent && { content: isText ? first.text : resultBlocks(result.content, supplied?.content) }),
    ...(typeof result.is_error === 'boolean' && { is_error: result.is_error }),
  } satisfies Fields<ToolResultBlockParam>;
}

/** Blocks within a result have no native form beside them: what still says what a supplied one said is the first such one that is left. */
function resultBlocks(blocks: readonly ContentBlock[], supplied: unknown): readonly JsonObject[] {
  const list = readList(supplied, IN_RESULT, '');
  const natives = list.ok ? list.value : [];
  const known = natives.map(([block, native]) => [JSON.stringify(block), native] as const);
  return blocks.map((block, at) => {
    const same = known.findIndex(([said]) => said === JSON.stringify(block));
    const [kept] = same < 0 ? [] : known.splice(same, 1);
    if (kept) return kept[1];
    const replaced = blocks.length === natives.length ? natives[at]?.[1] : undefined;
    return render({ block, path: '', ...(replaced && { native: replaced, edited: true }) });
  });
}

function newBlock(block: Exclude<ContentBlock, FunctionResultBlock>): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text } satisfies TextBlockParam;
    case 'image': {
      const source =
        block.mime === ANY_IMAGE
          ? { type: 'url', url: block.data }
          : { type: 'base64', media_type: block.mime, data: block.data };
      return { type: 'image', source } satisfies Fields<ImageBlockParam>;
    }
    case 'file': {
      const source = { type: 'file', file_id: block.attachment_id } as const;
      return { type: 'document', source, title: block.name } satisfies DocumentBlockParam;
    }
    case 'thinking':
      return { type: 'thinking', thinking: block.text, signature: block.signature ?? '' } satisfies ContentBlockParam;
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block.data } satisfies ContentBlockParam;
    case 'function_call':
      return {
        type: 'tool_use',
        id: block.id,
        name: block.function_id,
        input: block.arguments ?? {},
      } satisfies ToolUseBlockParam;
  }
}

// Beside the array

function readSystem(system: unknown, path: JsonPointer): Result<readonly string[]> {
  if (system === undefined || system === null) return { ok: true, value: [] };
  if (typeof system === 'string') return { ok: true, value: [system] };
  const blocks = Array.isArray(system) ? system : undefined;
  if (!blocks) return unmapped(path, 'system has to be text or a list of text blocks');
  const bad = blocks.findIndex(
    (block) => !isJsonObject(block) || block['type'] !== 'text' || typeof block['text'] !== 'string',
  );
  if (bad >= 0) return unmapped(`${path}/${bad}`, 'system may hold nothing but text blocks');
  return { ok: true, value: blocks.map((block: Fields<TextBlockParam>) => string(block.text)) };
}

function withText(system: unknown, text: string): unknown {
  if (Array.isArray(system))
    return [...(system as readonly unknown[]), { type: 'text', text } satisfies TextBlockParam];
  return typeof system === 'string' && system !== '' ? `${system}\n\n${text}` : text;
}

function readTools(tools: unknown, path: JsonPointer): Result<readonly AgentFunction[]> {
  if (tools === undefined || tools === null) return { ok: true, value: [] };
  if (!Array.isArray(tools)) return unmapped(path, 'tools have to be a list');
  const functions: AgentFunction[] = [];
  for (const [index, tool] of tools.entries()) {
    if (!isJsonObject(tool)) return unmapped(`${path}/${index}`, 'a tool has to be an object');
    const { type, name, description, input_schema }: Fields<Tool> = tool;
    if (typeof type === 'string' && type !== 'custom')
      functions.push({ name: type, description: '', parameters: tool });
    else if (typeof name !== 'string') return unmapped(`${path}/${index}/name`, 'a tool has to have a name');
    else functions.push({ name, description: string(description), parameters: input_schema });
  }
  return { ok: true, value: functions };
}

// What the API refuses

/** github.com/HKUDS/nanobot/pull/4356: ids of calls and results. */
const ID = /^[a-zA-Z0-9_-]+$/;
/** github.com/openclaw/openclaw/issues/13134 on the `name` of a tool_use; longer than what `tools` may hold (128). */
const CALL_NAME_MAX_CHARS = 200;
/** The type of a base64 source; platform.claude.com/docs/en/build-with-claude/vision lists the same. */
const IMAGE_TYPES: readonly unknown[] = [
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
] satisfies readonly Base64ImageSource['media_type'][];

function faults(entry: Entry): readonly FormatFault[] {
  const found: FormatFault[] = [];
  if (entry.role !== 'assistant' && isEmpty(entry) && !isDirective(entry)) found.push(emptyMessage(entry));
  for (const field of ANSWER_FIELDS) {
    if (!(field in entry.native)) continue;
    const detail = 'a message has no such field; an answer of the API has';
    found.push({ path: `${entry.path}/${field}`, rule: 'bad-field', detail });
  }
  const ids = new Set<unknown>();
  for (const part of entry.parts) {
    const block = render(part);
    const refuse = (rule: string, detail: string, field = ''): void =>
      void found.push({ path: part.path + field, rule, detail });
    blockFaults(block, entry.role, refuse, isEmpty(entry));
    if (block['type'] !== 'tool_use' || string(block['id']) === '') continue;
    if (ids.has(block['id'])) refuse('duplicate-id', DUPLICATE, '/id');
    ids.add(block['id']);
  }
  return entry.role === 'assistant' ? [...found, ...thinkingFaults(entry)] : found;
}

/** What an answer has, by the type Message, and a message that is sent has not, by its own. */
const ANSWER_FIELDS = [
  'id',
  'type',
  'model',
  'stop_reason',
  'stop_sequence',
  'usage',
] as const satisfies readonly (keyof Message)[];

type Refuse = (rule: string, detail: string, field?: string) => void;

function blockFaults(block: JsonObject, role: Entry['role'], refuse: Refuse, isAllThereIs: boolean): void {
  const { type, id, name, input, tool_use_id, thinking, signature, source }: JsonObject = block;
  // github.com/anthropics/claude-code/issues/23440; an empty text that is all of a message is an empty message
  if (type === 'text' && string(block['text']).trim() === '' && !isAllThereIs) {
    refuse('empty-block', 'the text of a block may not be empty or white space');
  }
  if (type === 'tool_use') {
    idFaults(id, '/id', refuse);
    if (typeof name !== 'string' || name === '' || name.length > CALL_NAME_MAX_CHARS) {
      refuse('bad-name', `a call names its tool in 1 to ${CALL_NAME_MAX_CHARS} characters`, '/name');
    }
    // github.com/anthropics/anthropic-sdk-typescript/issues/648
    if (!isJsonObject(input)) refuse('bad-arguments', 'the input of a call has to be an object', '/input');
  }
  if (type === 'tool_result') {
    idFaults(tool_use_id, '/tool_use_id', refuse);
    errorFaults(block, refuse);
  }
  // The type of the block: signature is required
  if (type === 'thinking' && typeof signature !== 'string')
    refuse('bad-field', 'thinking goes back with its signature', '/signature');
  // github.com/caozhiyuan/copilot-api/issues/54; with a signature it may be empty: github.com/pipecat-ai/pipecat/pull/5183
  else if (type === 'thinking' && signature === '' && string(thinking) === '') {
    refuse('bad-field', 'thinking that says nothing has at least a signature', '/thinking');
  }
  if (
    type === 'image' &&
    isJsonObject(source) &&
    source['type'] === 'base64' &&
    !IMAGE_TYPES.includes(source['media_type'])
  ) {
    refuse('bad-field', 'an image has to be JPEG, PNG, GIF or WebP', '/source/media_type');
  }
  if (!standsIn(type, role)) refuse('wrong-role', 'this kind of block stands in messages of another role');
  // Required by the types of these blocks
  if ((type === 'image' || type === 'document') && !isJsonObject(source)) {
    refuse('bad-field', 'an image or a document has a source', '/source');
  }
  // Their types have no such field
  if ((type === 'thinking' || type === 'redacted_thinking') && isJsonObject(block['cache_control'])) {
    refuse('bad-field', 'thinking cannot be a cache breakpoint', '/cache_control');
  }
  for (const field of STREAM_FIELDS) {
    if (field in block) refuse('bad-field', 'a block has no such field; a stream leaves it behind', `/${field}`);
  }
}

/** What the events of a stream have and no block: "Extra inputs are not permitted", github.com/langchain-ai/langchain/issues/31208 */
const STREAM_FIELDS = ['index', 'partial_json'] as const;

/** github.com/vellum-ai/vellum-assistant/pull/18387 */
function errorFaults({ is_error, content }: Fields<ToolResultBlockParam>, refuse: Refuse): void {
  if (is_error !== true || !Array.isArray(content)) return;
  for (const [index, block] of content.entries()) {
    if (isJsonObject(block) && block['type'] === 'text') continue;
    refuse('bad-block', 'a result that reports an error holds nothing but text', `/content/${index}`);
  }
}

/** The type SystemMessageParam and the beta's. */
const IN_SYSTEM: readonly unknown[] = ['text', 'tool_addition', 'tool_removal'] satisfies readonly AnyBlock['type'][];

function standsIn(type: unknown, role: Entry['role']): boolean {
  // github.com/tghamm/Anthropic.SDK/issues/128 says it of results; of calls the API says the like
  if (type === 'tool_result') return role === 'user';
  if (type === 'tool_use') return role === 'assistant';
  // github.com/SEMOSS/Semoss/issues/2323
  if (type === 'image') return role === 'user';
  return role !== 'system' || IN_SYSTEM.includes(type);
}

function idFaults(id: unknown, field: string, refuse: Refuse): void {
  if (id === undefined || id === null || id === '') refuse('missing-id', 'the id is missing', field);
  else if (typeof id !== 'string' || !ID.test(id)) refuse('bad-id', 'an id holds letters, digits, _ and - only', field);
}

const DUPLICATE = 'the ids of calls have to be unique';
const isThinking = ({ block }: Part): boolean => block.type === 'thinking' || block.type === 'redacted_thinking';
const isServerTool = ({ native }: Part): boolean =>
  isJsonObject(native) && /_tool_(?:use|result)$/.test(string(native['type']));

/**
 * Where thinking stands among other blocks is not looked at. Without interleaved thinking it has to be first
 * (github.com/anthropics/claude-code/issues/20705), with it the model's own order is the right one
 * (github.com/UKGovernmentBEIS/inspect_ai/pull/3092), and which of them is on stands beside the array.
 */
function thinkingFaults({ parts, path }: Entry): readonly FormatFault[] {
  const last = parts.at(-1);
  if (!last) return [];
  // github.com/tailcallhq/forgecode/issues/2107
  if (parts.every(isThinking)) return [{ path, rule: 'empty-message', detail: 'a message may not be thinking alone' }];
  return isThinking(last)
    ? [{ path: last.path, rule: 'bad-block', detail: 'a message may not end with thinking' }]
    : [];
}

const isEmpty = ({ parts }: Entry): boolean => parts.length === 0 || (parts.length === 1 && parts[0]?.native === '');

/** A system message that only sets options. The type BetaSystemMessageParam: one with neither content nor options is refused. */
function isDirective({ role, parts, native }: Entry): boolean {
  const { output_config }: Fields<BetaSystemMessageParam> = native;
  const isSet = isJsonObject(output_config) && Object.values(output_config).some((value) => value !== null);
  return role === 'system' && parts.length === 0 && isSet;
}

const emptyMessage = ({ path }: Entry): FormatFault => ({
  path,
  rule: 'empty-message',
  detail: 'a message has to say something',
});

function neighbourFaults(entries: readonly Entry[]): readonly FormatFault[] {
  const found: FormatFault[] = [];
  const ids = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    const calls = entry.parts.filter(({ block }) => block.type === 'function_call' && block.id !== '');
    // github.com/anthropics/claude-code/issues/28515; within one message `faults` tells
    for (const call of calls)
      if (ids.has(idOf(call.block))) found.push({ path: `${call.path}/id`, rule: 'duplicate-id', detail: DUPLICATE });
    for (const call of calls) ids.add(idOf(call.block));
    // github.com/anthropics/claude-code/issues/6774: all but a final assistant message
    if (entry.role === 'assistant' && index < entries.length - 1 && isEmpty(entry)) found.push(emptyMessage(entry));
  }
  found.push(...systemFaults(entries), ...cacheFaults(entries), ...serverResultFaults(entries));
  // github.com/langchain-ai/langchain/issues/35071
  const final = entries.at(-1);
  const end = final?.role === 'assistant' && !isEmpty(final) ? final.parts.at(-1) : undefined;
  if (end?.block.type === 'text' && /\s$/.test(end.block.text) && end.block.text.trim() !== '') {
    found.push({ path: end.path, rule: 'bad-block', detail: 'a final assistant message may not end with white space' });
  }
  return found;
}

/**
 * "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result", and it "must precede an
 * 'assistant' message or end the array": github.com/anthropics/claude-code/issues/73821 and
 * platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages. Several in a row are taken for one. "The directive-only
 * form is accepted at any position", as quoted in
 * github.com/diegosouzapw/OmniRoute/pull/10457.
 */
function systemFaults(entries: readonly Entry[]): readonly FormatFault[] {
  const found: FormatFault[] = [];
  const next: (Entry | undefined)[] = [];
  for (const entry of entries.toReversed()) next.push(entry.role === 'system' ? next.at(-1) : entry);
  let before: Entry | undefined;
  for (const [index, entry] of entries.entries()) {
    if (entry.role !== 'system') {
      before = entry;
      continue;
    }
    const after = next[entries.length - 1 - index];
    if (isDirective(entry) || (mayPrecedeSystem(before) && (after?.role ?? 'assistant') === 'assistant')) continue;
    const detail = "a system message stands after a user's message, and before an assistant's or at the end";
    found.push({ path: entry.path, rule: 'wrong-role', detail });
  }
  return found;
}

function mayPrecedeSystem(before: Entry | undefined): boolean {
  const end = before?.parts.at(-1);
  return before?.role === 'user' || (before?.role === 'assistant' && end !== undefined && isServerTool(end));
}

/** github.com/tghamm/Anthropic.SDK/issues/50. Those of `system` and `tools` count as well, and are not seen here. */
const CACHE_BREAKPOINTS_MAX = 4;

function cacheFaults(entries: readonly Entry[]): readonly FormatFault[] {
  const marks = entries.flatMap(({ parts }) => parts.flatMap(({ native, path }) => cacheMarks(native, path)));
  const detail = `a request has at most ${CACHE_BREAKPOINTS_MAX} cache breakpoints`;
  return marks.slice(CACHE_BREAKPOINTS_MAX).map((path) => ({ path, rule: 'too-many-breakpoints', detail }));
}

/** The breakpoints of a block and of those that it holds. */
function cacheMarks(block: unknown, path: JsonPointer): readonly JsonPointer[] {
  if (!isJsonObject(block)) return [];
  const { type, cache_control, content } = block;
  const held: readonly unknown[] = type === 'tool_result' && Array.isArray(content) ? content : [];
  const within = held.flatMap((inner, index) => cacheMarks(inner, `${path}/content/${index}`));
  return isJsonObject(cache_control) ? [...within, `${path}/cache_control`] : within;
}

/** "Each `…_tool_result` block must have a corresponding `server_tool_use` block before it": github.com/anthropics/claude-code/issues/62577 */
function serverResultFaults(entries: readonly Entry[]): readonly FormatFault[] {
  const found: FormatFault[] = [];
  const calls = new Set<unknown>();
  for (const { native, path } of entries.flatMap(({ parts }) => parts)) {
    if (!isJsonObject(native)) continue;
    const { type, id, tool_use_id } = native;
    if (type === 'server_tool_use' || type === 'mcp_tool_use') calls.add(id);
    if (!string(type).endsWith('_tool_result') || calls.has(tool_use_id)) continue;
    found.push({ path, rule: 'orphan-server-result', detail: 'no call of a server tool before it has its id' });
  }
  return found;
}
