/**
 * The `messages` of OpenAI's Chat Completions: one message read into parts, written back, and what the API refuses of it. The deprecated
 * `function` role and `function_call` are refused: they have no ids to pair by.
 */
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionContentPartImage,
  ChatCompletionContentPartInputAudio,
  ChatCompletionContentPartRefusal,
  ChatCompletionContentPartText,
  ChatCompletionMessageCustomToolCall,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionMessageParam,
  ChatCompletionMessageToolCall,
  ChatCompletionCustomTool,
  ChatCompletionFunctionTool,
  ChatCompletionToolMessageParam,
} from 'openai/resources/chat/completions';
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { JsonPointer, Result } from '../../problem.ts';
import type { AgentFunction, ContentBlock, FunctionCallBlock } from '../message.ts';
import { unmapped, type Entry, type FormatFault, type MessageFormat, type Part } from './format.ts';
import { idOf, isRenamed } from './renamed.ts';
import {
  argumentsText,
  faultsAt,
  fileOf,
  findBadBlocks,
  findBadId,
  imageOf,
  inputText,
  jsonBlock,
  namedTool,
  ok,
  parseArguments,
  readContent,
  readToolList,
  stringOf,
  textBlock,
  urlOf,
  withFields,
  writeContent,
  writeList,
  writeResultContent,
  type Fault,
  type Loose,
} from './shared-openai.ts';

export const openaiChat: MessageFormat = {
  id: 'openai-chat',
  title: 'OpenAI Chat Completions',
  rules: { results: 'next-messages', userFirst: false, joinsAssistant: false },
  read,
  write,
  holdResults(parts) {
    const [part, ...more] = parts;
    if (!part || more.length > 0) throw new RangeError('a tool message holds exactly one result');
    return writeResult(part);
  },
  readSystem: (system, path) =>
    system === undefined ? ok([]) : unmapped(path, 'this format has its instructions among the messages'),
  readTools: (tools, path) => readToolList(tools, path, readTool),
  addInstruction({ messages, ...beside }, text) {
    const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
    const at = first < 0 ? messages.length : first;
    // A request has either system or developer messages: https://platform.openai.com/docs/guides/reasoning
    const role = messages[at - 1]?.role === 'developer' ? 'developer' : 'system';
    const instruction = { role, content: text } satisfies ChatCompletionMessageParam;
    return { ...beside, messages: messages.toSpliced(at, 0, instruction) };
  },
  faults,
};

type Role = Exclude<ChatCompletionMessageParam['role'], 'function'>;
type Content<R extends Role> = NonNullable<Extract<ChatCompletionMessageParam, { role: R }>['content']>;
type BlockType = Extract<Content<Role>, readonly unknown[]>[number]['type'];

const ROLES = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'results',
} as const satisfies Record<Role, Entry['role']>;

/**
 * The blocks that each role may have, by the types of the package. Images outside a user's message are refused as well:
 * https://github.com/openai/openai-node/issues/1030 and https://github.com/OpenHands/OpenHands/issues/7700
 */
const BLOCKS: { readonly [R in Role]: readonly Extract<Content<R>, readonly unknown[]>[number]['type'][] } = {
  system: ['text'],
  developer: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text'],
};

const isRole = (role: unknown): role is Role => typeof role === 'string' && Object.hasOwn(ROLES, role);

function read(native: JsonObject, path: JsonPointer): Result<Entry> {
  const { role, content, refusal, tool_calls, function_call }: Loose<ChatCompletionAssistantMessageParam> = native;
  if (!isRole(role)) return unmapped(`${path}/role`, 'the role is one of system, developer, user, assistant and tool');
  const entry = { role: ROLES[role], path, native };
  if (role === 'tool') {
    const result = readResult(native, path);
    return result.ok ? ok({ ...entry, parts: [{ block: result.value, native, path }] }) : result;
  }
  const contents = readContent(content, `${path}/content`, readBlock);
  if (!contents.ok) return contents;
  if (role !== 'assistant') return ok({ ...entry, parts: contents.value });

  if (isJsonObject(function_call)) {
    return unmapped(`${path}/function_call`, 'function_call is deprecated and has no id; send tool_calls');
  }
  const calls = readCalls(tool_calls, `${path}/tool_calls`);
  if (!calls.ok) return calls;
  const refused =
    typeof refusal === 'string' ? [{ block: textBlock(refusal), native: refusal, path: `${path}/refusal` }] : [];
  return ok({ ...entry, parts: [...contents.value, ...refused, ...calls.value] });
}

function readResult(native: JsonObject, path: JsonPointer): Result<ContentBlock> {
  const { tool_call_id, content }: Loose<ChatCompletionToolMessageParam> = native;
  const contents = readContent(content, `${path}/content`, readBlock);
  if (!contents.ok) return contents;
  const blocks = contents.value.map(({ block }) => block);
  return ok({ type: 'function_result', function_call_id: stringOf(tool_call_id), content: blocks });
}

function readBlock(native: JsonObject, path: JsonPointer): Result<ContentBlock> {
  switch (native.type as BlockType) {
    case 'text': {
      const { text }: Loose<ChatCompletionContentPartText> = native;
      return typeof text === 'string' ? ok(textBlock(text)) : unmapped(`${path}/text`, 'text is a string');
    }
    case 'refusal': {
      const { refusal }: Loose<ChatCompletionContentPartRefusal> = native;
      return typeof refusal === 'string' ? ok(textBlock(refusal)) : unmapped(`${path}/refusal`, 'refusal is a string');
    }
    case 'image_url': {
      const { image_url }: Loose<ChatCompletionContentPartImage> = native;
      const { url }: Loose<ChatCompletionContentPartImage.ImageURL> = isJsonObject(image_url) ? image_url : {};
      return typeof url === 'string' ? ok(imageOf(url)) : unmapped(`${path}/image_url`, 'image_url has a url');
    }
    case 'input_audio': {
      const { input_audio }: Loose<ChatCompletionContentPartInputAudio> = native;
      if (!isJsonObject(input_audio)) return unmapped(`${path}/input_audio`, 'input_audio is an object');
      const { data, format }: Loose<ChatCompletionContentPartInputAudio.InputAudio> = input_audio;
      return ok(fileOf({ data, mime: typeof format === 'string' ? `audio/${format}` : 'audio/*' }));
    }
    case 'file': {
      const { file }: Loose<ChatCompletionContentPart.File> = native;
      if (!isJsonObject(file)) return unmapped(`${path}/file`, 'file is an object');
      const { file_id, file_data, filename }: Loose<ChatCompletionContentPart.File.File> = file;
      return ok(fileOf({ id: file_id, name: filename, data: file_data }));
    }
    default:
      return ok(jsonBlock(native));
  }
}

function readCalls(calls: unknown, path: JsonPointer): Result<readonly Part[]> {
  if (calls === undefined || calls === null) return ok([]);
  if (!Array.isArray(calls)) return unmapped(path, 'tool_calls are a list');
  const parts: Part[] = [];
  for (const [index, native] of calls.entries()) {
    const block = isJsonObject(native) ? readCall(native) : undefined;
    if (!block) return unmapped(`${path}/${index}`, 'a tool call has a function or a custom tool');
    parts.push({ block, native, path: `${path}/${index}` });
  }
  return ok(parts);
}

function readCall(native: JsonObject): FunctionCallBlock | undefined {
  const { id }: Loose<ChatCompletionMessageToolCall> = native;
  const called = calledBy(native);
  if (!called) return undefined;
  const block = { type: 'function_call', id: stringOf(id), function_id: stringOf(called.tool.name) } as const;
  if (called.type === 'custom') return { ...block, arguments: called.tool.input };
  const given = called.tool.arguments;
  return { ...block, arguments: typeof given === 'string' ? parseArguments(given) : given };
}

type Called =
  | { readonly type: 'function'; readonly tool: Loose<ChatCompletionMessageFunctionToolCall.Function> }
  | { readonly type: 'custom'; readonly tool: Loose<ChatCompletionMessageCustomToolCall.Custom> };

function calledBy(native: JsonObject): Called | undefined {
  const { function: called }: Loose<ChatCompletionMessageFunctionToolCall> = native;
  const { custom }: Loose<ChatCompletionMessageCustomToolCall> = native;
  if (isJsonObject(called)) return { type: 'function', tool: called };
  return isJsonObject(custom) ? { type: 'custom', tool: custom } : undefined;
}

function write(entry: Entry, parts: readonly Part[]): JsonObject {
  const { native, path } = entry;
  if (entry.role === 'results') {
    const [part, ...more] = parts;
    if (more.length > 0) throw new RangeError('a tool message holds one result');
    return part ? writeResult(part) : withFields(native, { content: '' });
  }
  if (entry.role !== 'assistant') {
    const nothing = entry.parts.length === 0 ? native.content : '';
    return withFields(native, { content: writeContent(native.content, parts, writeBlock, nothing) });
  }
  const { content, refusal, tool_calls, audio }: Loose<ChatCompletionAssistantMessageParam> = native;
  const calls = parts.filter(({ block }) => block.type === 'function_call');
  const refused = parts.find((part) => isRefusal(part, path));
  const contents = parts.filter(({ block }) => block.type !== 'function_call').filter((part) => part !== refused);
  const stays = calls.length > 0 || refused !== undefined || isJsonObject(audio) || entry.parts.length === 0;
  // Null is refused where there is nothing else: https://github.com/vercel/ai/pull/13744
  const nothing = !stays ? '' : typeof content === 'string' || Array.isArray(content) ? null : content;
  return withFields(native, {
    content: writeContent(content, contents, writeBlock, nothing),
    refusal: refused?.block.type === 'text' ? refused.block.text : typeof refusal === 'string' ? null : refusal,
    tool_calls:
      calls.length > 0 ? writeList(tool_calls, calls, writeCall) : isFilled(tool_calls) ? undefined : tool_calls,
  });
}

const isRefusal = (part: Part, path: JsonPointer): boolean =>
  typeof part.native === 'string' && part.path === `${path}/refusal`;
const isFilled = (list: unknown): boolean => Array.isArray(list) && list.length > 0;

function writeBlock(block: ContentBlock, native?: unknown): JsonObject {
  const before = isJsonObject(native) ? native : {};
  switch (block.type) {
    case 'text':
      return before.type === 'refusal'
        ? { ...before, ...({ type: 'refusal', refusal: block.text } satisfies ChatCompletionContentPartRefusal) }
        : writeText(block.text, before.type === 'text' ? before : {});
    case 'image': {
      const image_url = isJsonObject(before.image_url) ? before.image_url : {};
      const image = { type: 'image_url', image_url: { ...image_url, url: urlOf(block) } } as const;
      return { ...before, ...(image satisfies ChatCompletionContentPartImage) };
    }
    case 'file': {
      const file = { type: 'file', file: { file_id: block.attachment_id } } satisfies ChatCompletionContentPart.File;
      return isJsonObject(native) ? native : file;
    }
    case 'thinking':
      return writeText(block.text);
    case 'redacted_thinking':
    case 'function_call':
    case 'function_result':
      return writeText(JSON.stringify(block));
  }
}

const writeText = (text: string, before: JsonObject = {}): JsonObject => ({
  ...before,
  ...({ type: 'text', text } satisfies ChatCompletionContentPartText),
});

function writeCall(block: ContentBlock, native?: unknown): JsonObject {
  if (block.type !== 'function_call') throw new TypeError('only calls are tool calls');
  const { id, function_id: name } = block;
  const before = isJsonObject(native) ? native : {};
  const supplied = readCall(before);
  if (supplied && isRenamed(supplied, block)) return { ...before, id };
  const called = calledBy(before);
  if (called?.type === 'custom') {
    const custom = { ...called.tool, name, input: inputText(block.arguments) };
    return { ...before, ...({ id, type: 'custom', custom } satisfies ChatCompletionMessageCustomToolCall) };
  }
  const made = { ...called?.tool, name, arguments: argumentsText(block.arguments, called?.tool.arguments) };
  return { ...before, ...({ id, type: 'function', function: made } satisfies ChatCompletionMessageFunctionToolCall) };
}

function writeResult({ block, native, edited }: Part): JsonObject {
  if (block.type !== 'function_result') throw new TypeError('only results are tool messages');
  if (isJsonObject(native) && !edited) return native;
  const before: JsonObject = isJsonObject(native) ? native : {};
  const supplied = readResult(before, '');
  if (isJsonObject(native) && supplied.ok && isRenamed(supplied.value, block)) {
    return { ...native, tool_call_id: idOf(block) };
  }
  return {
    ...before,
    role: 'tool' satisfies ChatCompletionToolMessageParam['role'],
    tool_call_id: block.function_call_id,
    content: writeResultContent(before.content, block.content, readBlock, writeBlock),
  } satisfies Loose<ChatCompletionToolMessageParam>;
}

function readTool(native: JsonObject & { readonly type: string }, path: JsonPointer): Result<AgentFunction> {
  const { function: called }: Loose<ChatCompletionFunctionTool> = native;
  const { custom }: Loose<ChatCompletionCustomTool> = native;
  if (native.type === 'function' && isJsonObject(called)) return namedTool(called, `${path}/function`);
  if (native.type === 'custom' && isJsonObject(custom)) {
    const { name, description, format }: Loose<ChatCompletionCustomTool.Custom> = custom;
    return namedTool({ name, description, parameters: format }, `${path}/custom`);
  }
  return ok({ name: native.type, description: '', parameters: native });
}

/**
 * The API took 51 characters in 2026 (https://github.com/vercel/ai/pull/17233) and refused more than 64 before
 * (https://github.com/openclaw/openclaw/pull/875); a limit of 40 is an older one.
 */
const CALL_ID_MAX_CHARS = 64;
/** FunctionDefinition.name of the package; enforced in messages too: https://github.com/mcp-use/mcp-use/issues/90 */
const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function faults({ native, path }: Entry): readonly FormatFault[] {
  const { role, content, name }: Loose<ChatCompletionAssistantMessageParam> = native;
  if (!isRole(role)) return [];
  return faultsAt(path, (fault) => {
    if (Array.isArray(content)) {
      // The published OpenAPI document wants at least one, though the API was seen to take none:
      // https://github.com/openai/openai-python/issues/1812
      if (content.length === 0) fault('content', 'empty-list', 'a list of blocks has at least one');
      findBadBlocks(content, 'content', BLOCKS[role], fault);
      for (const [index, block] of content.entries()) {
        if (isJsonObject(block)) findBadData(block, `content/${index}`, fault);
      }
    } else if (typeof content !== 'string') {
      findNothing(role, native, fault);
    }
    if (role === 'tool') {
      const { tool_call_id }: Loose<ChatCompletionToolMessageParam> = native;
      findBadId(tool_call_id, 'tool_call_id', CALL_ID_MAX_CHARS, fault);
    }
    if (role === 'assistant') findBadCalls(native, fault);
    if (name !== undefined && name !== null && !NAME.test(stringOf(name))) {
      fault('name', 'bad-name', 'the name of a participant has no white space, and none of < > | / and \\');
    }
  });
}

/** https://github.com/langchain-ai/langchain/issues/35054 of 2026; before, https://github.com/microsoft/autogen/issues/4157, it was narrower */
const NAME = /^[^\s<|\\/>]+$/;

/** Of a block's data that is not there at all. */
function findBadData(block: JsonObject, at: string, fault: Fault): void {
  switch (block.type as BlockType) {
    case 'image_url': {
      const { url }: Loose<ChatCompletionContentPartImage.ImageURL> = objectOf(block.image_url);
      if (url === '') fault(`${at}/image_url/url`, 'bad-field', 'an image has a URL');
      return;
    }
    case 'input_audio': {
      // Required by the type of the package
      const { data, format }: Loose<ChatCompletionContentPartInputAudio.InputAudio> = objectOf(block.input_audio);
      if (stringOf(data) === '') fault(`${at}/input_audio/data`, 'bad-field', 'audio has data');
      if (stringOf(format) === '') fault(`${at}/input_audio/format`, 'bad-field', 'audio has a format');
      return;
    }
    case 'file': {
      // "Missing required parameter": https://github.com/openai/openai-agents-python/pull/1513
      const { file_id, file_data }: Loose<ChatCompletionContentPart.File.File> = objectOf(block.file);
      if (stringOf(file_id) === '' && stringOf(file_data) === '') {
        fault(`${at}/file`, 'bad-field', 'a file has file_id or file_data');
      }
      return;
    }
    case 'text':
    case 'refusal':
  }
}

const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

/** "expected a string, got null": https://github.com/vercel/ai/pull/13744, of tools https://github.com/run-llama/llama_index/issues/17555 */
function findNothing(role: Role, native: JsonObject, fault: Fault): void {
  const { tool_calls, audio, refusal }: Loose<ChatCompletionAssistantMessageParam> = native;
  const says = typeof refusal === 'string' || isJsonObject(audio) || Array.isArray(tool_calls);
  if (role === 'tool') fault('content', 'bad-field', 'a tool message has a content');
  else if (role !== 'assistant' || !says) fault('content', 'empty-message', 'a message has a content');
}

function findBadCalls(native: JsonObject, fault: Fault): void {
  const { tool_calls }: Loose<ChatCompletionAssistantMessageParam> = native;
  if (tool_calls === undefined) return;
  if (!Array.isArray(tool_calls)) {
    // By the type of the package, which has no null here
    fault('tool_calls', 'bad-field', 'tool_calls are a list or absent');
    return;
  }
  // https://github.com/openai/openai-node/pull/1341
  if (tool_calls.length === 0) fault('tool_calls', 'empty-list', 'tool_calls have at least one call, or are absent');
  const ids = new Set<string>();
  for (const [index, call] of tool_calls.entries()) {
    if (!isJsonObject(call)) continue;
    const at = `tool_calls/${index}`;
    const { id }: Loose<ChatCompletionMessageToolCall> = call;
    findBadId(id, `${at}/id`, CALL_ID_MAX_CHARS, fault);
    // https://github.com/openclaw/openclaw/pull/47136
    if (ids.has(stringOf(id))) fault(`${at}/id`, 'duplicate-id', 'two calls have this id');
    if (stringOf(id) !== '') ids.add(stringOf(id));
    findBadCall(call, at, fault);
  }
}

function findBadCall(call: JsonObject, at: string, fault: Fault): void {
  const called = calledBy(call);
  if (!called) return;
  const { type } = called;
  // By the type of the package
  if (call.type !== type) fault(`${at}/type`, 'bad-field', 'the type says what is called, a function or a custom tool');
  const name = stringOf(called.tool.name);
  // Empty: https://github.com/continuedev/continue/issues/11645
  if (type === 'function' ? !FUNCTION_NAME.test(name) : name === '') {
    fault(`${at}/${type}/name`, 'bad-name', 'a name has 1 to 64 letters, digits, underscores and dashes');
  }
  // By the types of the package. Arguments that are no JSON are taken: the API says of its own answers that they may be such ones.
  // Compatible servers refuse them: https://github.com/agno-agi/agno/issues/8343
  const [field, given] = called.type === 'custom' ? ['input', called.tool.input] : ['arguments', called.tool.arguments];
  if (typeof given !== 'string') fault(`${at}/${type}/${field}`, 'bad-arguments', 'what a tool is given is a text');
}
