/**
 * The `input` of OpenAI's Responses: one item read into parts, written back, and what the API refuses of it. Every item but a message has
 * one part. An item of a type that the package does not know is refused.
 */
import type {
  CustomTool,
  FunctionTool,
  ResponseCustomToolCall,
  ResponseFunctionShellCallOutputContent,
  ResponseFunctionToolCall,
  ResponseInputFile,
  ResponseInputImage,
  ResponseInputItem,
  ResponseInputText,
  ResponseOutputMessage,
  ResponseOutputRefusal,
  ResponseOutputText,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses';
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { JsonPointer, Result } from '../../problem.ts';
import type { AgentFunction, ContentBlock, FunctionCallBlock } from '../message.ts';
import { resultText } from '../walk.ts';
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
  sameValue,
  stringOf,
  textBlock,
  urlOf,
  withFields,
  writeContent,
  writeResultContent,
  type Fault,
  type Loose,
} from './shared-openai.ts';

export const openaiResponses: MessageFormat = {
  id: 'openai-responses',
  title: 'OpenAI Responses',
  rules: { results: 'anywhere-after', userFirst: false, joinsAssistant: true },
  read,
  write,
  holdResults(parts) {
    const [part, ...more] = parts;
    if (!part || more.length > 0) throw new RangeError('an output item holds exactly one result');
    return writeOutput(part);
  },
  readSystem(system, path) {
    if (system === undefined || system === null) return ok([]);
    return typeof system === 'string' ? ok([system]) : unmapped(path, 'instructions are a text');
  },
  readTools: (tools, path) => readToolList(tools, path, readTool),
  addInstruction(request, text) {
    const { system } = request;
    return { ...request, system: typeof system === 'string' && system !== '' ? `${system}\n\n${text}` : text };
  },
  faults,
  neighbourFaults,
};

type Item = ResponseInputItem;
type ItemType = NonNullable<Item['type']>;
type ItemOf<T extends ItemType> = Extract<Item, { type: T }>;

/**
 * Every type of item that the package knows. A call and an output are paired by an id; whole is what the API did by itself, or what
 * only it can read; an instruction is the developer's.
 */
const ITEMS = {
  message: 'message',
  reasoning: 'reasoning',
  function_call: 'call',
  function_call_output: 'output',
  custom_tool_call: 'call',
  custom_tool_call_output: 'output',
  local_shell_call: 'call',
  local_shell_call_output: 'output',
  shell_call: 'call',
  shell_call_output: 'output',
  apply_patch_call: 'call',
  apply_patch_call_output: 'output',
  computer_call: 'call',
  computer_call_output: 'output',
  tool_search_call: 'call',
  tool_search_output: 'output',
  program: 'call',
  program_output: 'output',
  mcp_approval_request: 'call',
  mcp_approval_response: 'output',
  mcp_call: 'whole',
  mcp_list_tools: 'whole',
  web_search_call: 'whole',
  file_search_call: 'whole',
  code_interpreter_call: 'whole',
  image_generation_call: 'whole',
  item_reference: 'whole',
  compaction: 'whole',
  compaction_trigger: 'whole',
  additional_tools: 'instruction',
} as const satisfies Readonly<Record<ItemType, 'message' | 'reasoning' | 'call' | 'output' | 'whole' | 'instruction'>>;

type OutputType = { [T in ItemType]: (typeof ITEMS)[T] extends 'output' ? T : never }[ItemType];

/** How an output says what came of the call, in the field of that name. */
interface Output<Field> {
  readonly field: Field;
  readonly read: (value: unknown, path: JsonPointer) => Result<readonly ContentBlock[]>;
  readonly write: (value: unknown, blocks: readonly ContentBlock[]) => unknown;
  /** It has no place for another text: what was supplied stays, and a new one is the least that the API takes. */
  readonly isFixed?: true;
}

const asText = {
  read: (value: unknown) =>
    ok(typeof value === 'string' ? [textBlock(value)] : isNothing(value) ? [] : [jsonBlock(value)]),
  write: (_: unknown, blocks: readonly ContentBlock[]) => resultText(blocks),
};
const asContent = {
  read(value: unknown, path: JsonPointer): Result<readonly ContentBlock[]> {
    if (isJsonObject(value)) return ok([jsonBlock(value)]);
    const parts = readContent(value, path, readBlock);
    return parts.ok ? ok(parts.value.map(({ block }) => block)) : parts;
  },
  write: (value: unknown, blocks: readonly ContentBlock[]) => writeResultContent(value, blocks, readBlock, writeInput),
};
const isNothing = (value: unknown): value is undefined | null => value === undefined || value === null;

/** A white pixel, since the output of a computer call has to be a picture. */
const BLANK_IMAGE_URL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==';

const OUTPUTS: { readonly [T in OutputType]: Output<keyof ItemOf<T> & string> } = {
  function_call_output: { field: 'output', ...asContent },
  custom_tool_call_output: { field: 'output', ...asContent },
  local_shell_call_output: { field: 'output', ...asText },
  apply_patch_call_output: { field: 'output', ...asText },
  program_output: { field: 'result', ...asText },
  shell_call_output: {
    field: 'output',
    read: (value) => ok(chunksOf(value).map((chunk) => textBlock(chunkText(chunk)))),
    write(value, blocks) {
      const chunks = chunksOf(value);
      if (chunks.length > 0 && chunks.length === blocks.length) {
        return chunks.map((chunk, at) => {
          const said = resultText(blocks.slice(at, at + 1));
          return said === chunkText(chunk) ? chunk : { ...chunk, stdout: said, stderr: '' };
        });
      }
      const last = chunks.at(-1);
      const chunk: ResponseFunctionShellCallOutputContent = {
        outcome: { type: 'exit', exit_code: 0 },
        stdout: resultText(blocks),
        stderr: '',
      };
      return [{ ...chunk, ...(isJsonObject(last?.outcome) && { outcome: last.outcome }) }];
    },
  },
  computer_call_output: {
    field: 'output',
    read: (value) => ok(isJsonObject(value) ? [imageOf(stringOf(value.image_url ?? value.file_id))] : []),
    write: () => ({ type: 'computer_screenshot', image_url: BLANK_IMAGE_URL }),
    isFixed: true,
  },
  tool_search_output: {
    field: 'tools',
    read: (value) => ok([jsonBlock(value ?? [])]),
    write: () => [],
    isFixed: true,
  },
  mcp_approval_response: {
    field: 'reason',
    read: asText.read,
    write: (_, blocks) => resultText(blocks),
    // The reason of an answer that stays would be another one
    isFixed: true,
  },
};

type Chunk = Loose<ResponseFunctionShellCallOutputContent>;
const chunksOf = (value: unknown): readonly Chunk[] => (Array.isArray(value) ? value.filter(isJsonObject) : []);
const chunkText = ({ stdout, stderr }: Chunk): string => `${stringOf(stdout)}${stringOf(stderr)}`;

const ROLES = {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  developer: 'system',
} as const satisfies Record<Extract<Item, { role: unknown; content: unknown }>['role'], Entry['role']>;

const isKey = <T extends object>(table: T, key: unknown): key is keyof T =>
  typeof key === 'string' && Object.hasOwn(table, key);

/** A message may lack its type, and a reference to an item as well. */
function typeOf(native: JsonObject): ItemType | undefined {
  const { type, role, id }: Loose<ResponseOutputMessage> = native;
  if (!isNothing(type)) return isKey(ITEMS, type) ? type : undefined;
  return role !== undefined ? 'message' : id !== undefined ? 'item_reference' : undefined;
}

/** The field that pairs a call and its output. What the API searched for by itself has no such id. */
function idFieldOf(type: ItemType, native: JsonObject): 'call_id' | 'id' | 'approval_request_id' | undefined {
  if (type === 'mcp_approval_request') return 'id';
  if (type === 'mcp_approval_response') return 'approval_request_id';
  if (type === 'tool_search_call' || type === 'tool_search_output') {
    return isNothing(native.call_id) ? undefined : 'call_id';
  }
  // The package has `id` here, the API wants `call_id`: https://github.com/openai/openai-agents-python/pull/1855
  return type === 'local_shell_call_output' && native.call_id === undefined ? 'id' : 'call_id';
}

function read(native: JsonObject, path: JsonPointer): Result<Entry> {
  const type = typeOf(native);
  if (!type) return unmapped(`${path}/type`, 'no item of this type is known');
  if (type === 'message') return readMessage(native, path);
  const idField = idFieldOf(type, native);
  const id = idField === undefined ? undefined : stringOf(native[idField]);
  const entry = (role: Entry['role'], block: ContentBlock): Result<Entry> =>
    ok({ role, path, native, parts: [{ block, native, path }] });

  switch (ITEMS[type]) {
    case 'reasoning':
      return entry('assistant', { type: 'thinking', text: thoughtsOf(native) });
    case 'call':
      if (id === undefined) break;
      return entry('assistant', { type: 'function_call', id, ...calledBy(type, native) });
    case 'output': {
      if (id === undefined || !isKey(OUTPUTS, type)) break;
      const output = OUTPUTS[type];
      const content = output.read(native[output.field], `${path}/${output.field}`);
      if (!content.ok) return content;
      const block: ContentBlock = { type: 'function_result', function_call_id: id, content: content.value };
      const part: Part = { block, native, path, ...(output.isFixed && { isFixed: true }) };
      return ok({ role: 'results', path, native, parts: [part] });
    }
    case 'instruction':
      return entry('system', jsonBlock(native));
    case 'whole': {
      const { result }: Loose<ResponseInputItem.ImageGenerationCall> = native;
      if (type === 'image_generation_call' && typeof result === 'string') {
        return entry('assistant', { type: 'image', data: result, mime: 'image/png' });
      }
      if (type === 'item_reference') {
        return ok({
          role: 'assistant',
          path,
          native,
          parts: [{ block: jsonBlock(native), native, path }],
          isReference: true,
        });
      }
    }
  }
  return entry('assistant', jsonBlock(native));
}

function readMessage(native: JsonObject, path: JsonPointer): Result<Entry> {
  const { role, content }: Loose<ResponseOutputMessage> = native;
  if (!isKey(ROLES, role)) return unmapped(`${path}/role`, 'the role is one of user, assistant, system and developer');
  const parts = readContent(content, `${path}/content`, readBlock);
  return parts.ok ? ok({ role: ROLES[role], path, native, parts: parts.value }) : parts;
}

type BlockType = Exclude<Extract<Item, { role: unknown; content: unknown }>['content'], string>[number]['type'];

function readBlock(native: JsonObject, path: JsonPointer): Result<ContentBlock> {
  switch (native.type as BlockType) {
    case 'input_text':
    case 'output_text': {
      const { text }: Loose<ResponseInputText | ResponseOutputText> = native;
      return typeof text === 'string' ? ok(textBlock(text)) : unmapped(`${path}/text`, 'text is a string');
    }
    case 'refusal': {
      const { refusal }: Loose<ResponseOutputRefusal> = native;
      return typeof refusal === 'string' ? ok(textBlock(refusal)) : unmapped(`${path}/refusal`, 'refusal is a string');
    }
    case 'input_image': {
      const { image_url, file_id }: Loose<ResponseInputImage> = native;
      const url = image_url ?? file_id;
      return typeof url === 'string' ? ok(imageOf(url)) : unmapped(path, 'an image has image_url or file_id');
    }
    case 'input_file': {
      const { file_id, file_url, file_data, filename }: Loose<ResponseInputFile> = native;
      return ok(fileOf({ id: file_id ?? file_url, name: filename, data: file_data }));
    }
    default:
      return ok(jsonBlock(native));
  }
}

/** The name and arguments of a call; a tool of the API's own is named by its type and has what it does for arguments. */
function calledBy(type: ItemType, native: JsonObject): { function_id: string; arguments: unknown } {
  const { name, arguments: given }: Loose<ResponseFunctionToolCall> = native;
  const { input }: Loose<ResponseCustomToolCall> = native;
  if (type === 'function_call' || type === 'mcp_approval_request') {
    return { function_id: stringOf(name), arguments: typeof given === 'string' ? parseArguments(given) : given };
  }
  if (type === 'custom_tool_call') return { function_id: stringOf(name), arguments: input };
  const { type: _type, id: _id, call_id: _callId, status: _status, ...does } = native;
  return { function_id: type, arguments: does };
}

/** Summary and, where the provider shows it, the reasoning itself. */
function thoughtsOf(native: JsonObject): string {
  const { summary, content }: Loose<ResponseReasoningItem> = native;
  return [summary, content]
    .flatMap((list) => (Array.isArray(list) ? list.filter(isJsonObject) : []))
    .map(({ text }: Loose<ResponseReasoningItem.Summary | ResponseReasoningItem.Content>) => stringOf(text))
    .join('\n\n');
}

function write(entry: Entry, parts: readonly Part[]): JsonObject {
  const { native } = entry;
  const type = typeOf(native);
  if (type === 'message') {
    const { content }: Loose<ResponseOutputMessage> = native;
    const nothing = entry.parts.length === 0 ? content : '';
    const writeBlock = entry.role === 'assistant' ? writeAssistant : writeInput;
    return withFields(native, { content: writeContent(content, parts, writeBlock, nothing) });
  }
  const [part, ...more] = parts;
  if (more.length > 0) throw new RangeError('an item that is no message holds one part');
  if (!part?.edited) return native;
  const { block } = part;
  switch (block.type) {
    case 'function_result':
      return writeOutput(part);
    case 'function_call':
      return type ? writeCall(type, native, block) : native;
    case 'thinking': {
      const summary: ResponseReasoningItem.Summary[] = [{ type: 'summary_text', text: block.text }];
      return withFields(native, { summary, content: undefined });
    }
    case 'text':
    case 'image':
    case 'file':
    case 'redacted_thinking':
      // An item that the API made by itself cannot say anything else
      return native;
  }
}

/** The item under the new id of its call, if nothing else about it is new. */
function renamedItem(type: ItemType, native: JsonObject, block: ContentBlock): JsonObject | undefined {
  const before = read(native, '');
  const [part] = before.ok ? before.value.parts : [];
  return part && isRenamed(part.block, block) ? { ...native, ...pairedBy(type, native, idOf(block)) } : undefined;
}

/** What is not the id of a call that the API made up itself stays: only functions and custom tools are called by name. */
function writeCall(type: ItemType, native: JsonObject, block: FunctionCallBlock): JsonObject {
  const { id, function_id, arguments: given } = block;
  const renamed = renamedItem(type, native, block);
  if (renamed) return renamed;
  const { arguments: before }: Loose<ResponseFunctionToolCall> = native;
  const paired = pairedBy(type, native, id);
  if (type === 'function_call') {
    const fields = { name: function_id, arguments: argumentsText(given, before) };
    return { ...native, ...paired, ...(fields satisfies Partial<ResponseFunctionToolCall>) };
  }
  if (type === 'custom_tool_call') {
    const fields = { name: function_id, input: inputText(given) };
    return { ...native, ...paired, ...(fields satisfies Partial<ResponseCustomToolCall>) };
  }
  return { ...native, ...paired };
}

function writeOutput({ block, native, edited, answers }: Part): JsonObject {
  if (block.type !== 'function_result') throw new TypeError('only results are output items');
  if (isJsonObject(native)) {
    const type = typeOf(native);
    if (!edited || !isKey(OUTPUTS, type)) return native;
    const paired = pairedBy(type, native, block.function_call_id);
    const { field, isFixed } = OUTPUTS[type];
    if (isFixed) return { ...native, ...paired };
    const renamed = renamedItem(type, native, block);
    if (renamed) return renamed;
    return withFields(native, { ...paired, [field]: outputOf(type, native[field], block.content) });
  }
  const type = outputFor(answers);
  const { field, write: say } = OUTPUTS[type];
  const paired = pairedBy(type, NEW_ITEM, block.function_call_id);
  return { type, ...paired, [field]: say(undefined, block.content), ...REQUIRED[type] };
}

const pairedBy = (type: ItemType, native: JsonObject, id: string): JsonObject => ({
  [idFieldOf(type, native) ?? 'call_id']: id,
});

/** As the ids of new items are written. */
const NEW_ITEM: JsonObject = { call_id: '' };

/** What a new output needs beside its result, which is that the call came to nothing. */
const REQUIRED: { readonly [T in OutputType]?: JsonObject } = {
  apply_patch_call_output: { status: 'failed' } satisfies Partial<ItemOf<'apply_patch_call_output'>>,
  mcp_approval_response: { approve: false } satisfies Partial<ItemOf<'mcp_approval_response'>>,
  program_output: { status: 'incomplete' } satisfies Partial<ItemOf<'program_output'>>,
};

/** The output that answers this kind of call. */
function outputFor(call: Part | undefined): OutputType {
  const type = isJsonObject(call?.native) ? typeOf(call.native) : undefined;
  if (type === 'mcp_approval_request') return 'mcp_approval_response';
  const output = type === 'tool_search_call' ? 'tool_search_output' : `${type}_output`;
  return isKey(OUTPUTS, output) ? output : 'function_call_output';
}

/** What an output says with these blocks; it stays as it is where only the id of its call is another. */
function outputOf(type: OutputType, value: unknown, blocks: readonly ContentBlock[]): unknown {
  const before = OUTPUTS[type].read(value, '');
  const stays = (typeof value === 'string' || Array.isArray(value)) && before.ok && sameValue(before.value, blocks);
  return stays ? value : OUTPUTS[type].write(value, blocks);
}

function writeInput(block: ContentBlock, native?: unknown): JsonObject {
  const before = isJsonObject(native) ? native : {};
  switch (block.type) {
    case 'text':
    case 'thinking':
      return {
        ...(before.type === 'input_text' && before),
        ...({ type: 'input_text', text: block.text } satisfies ResponseInputText),
      };
    case 'image': {
      const image: ResponseInputImage = { type: 'input_image', detail: 'auto', image_url: urlOf(block) };
      return { ...image, ...before, ...(isJsonObject(native) && { image_url: image.image_url }) };
    }
    case 'file':
      return isJsonObject(native)
        ? native
        : ({ type: 'input_file', file_id: block.attachment_id } satisfies ResponseInputFile);
    case 'redacted_thinking':
    case 'function_call':
    case 'function_result':
      return { type: 'input_text', text: JSON.stringify(block) } satisfies ResponseInputText;
  }
}

/** An assistant's blocks are texts and refusals: https://github.com/jeremychone/rust-genai/pull/119 */
function writeAssistant(block: ContentBlock, native?: unknown): JsonObject {
  const before = isJsonObject(native) ? native : {};
  const text = block.type === 'text' || block.type === 'thinking' ? block.text : JSON.stringify(block);
  if (before.type === 'refusal') return { ...before, refusal: text } satisfies Loose<ResponseOutputRefusal>;
  const made: ResponseOutputText = { type: 'output_text', text, annotations: [] };
  return { ...made, ...(before.type === 'output_text' && before), text };
}

function readTool(native: JsonObject & { readonly type: string }, path: JsonPointer): Result<AgentFunction> {
  const { name, description, parameters }: Loose<FunctionTool> = native;
  const { format }: Loose<CustomTool> = native;
  if (native.type === 'function') return namedTool({ name, description, parameters }, path);
  if (native.type === 'custom') return namedTool({ name, description, parameters: format }, path);
  return ok({ name: native.type, description: '', parameters: native });
}

/** https://github.com/decolua/9router/issues/393 of calls, https://github.com/can1357/oh-my-pi/issues/284 of items */
const ID_MAX_CHARS = 64;
/** https://github.com/anomalyco/opencode/issues/25065 */
const ITEM_ID = /^[a-zA-Z0-9_-]+$/;
/** Chat Completions has the same letters; a longer name than its 64 is sent here: https://github.com/diegosouzapw/OmniRoute/pull/4317 */
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;

/** What the id of an item begins with, where an answer of the API said so. */
const ID_PREFIXES: { readonly [T in ItemType]?: string } = {
  // https://github.com/openai/codex/issues/33176
  message: 'msg',
  // https://github.com/Wei-Shaw/sub2api/issues/3785 and, of outputs, https://github.com/Wei-Shaw/sub2api/issues/954
  function_call: 'fc',
  function_call_output: 'fc',
  // https://github.com/Alishahryar1/free-claude-code/issues/1826
  custom_tool_call: 'ctc',
  // https://github.com/jlcodes99/cockpit-tools/issues/2090
  reasoning: 'rs',
};

/** The blocks of each role's messages, by the types of the package but for the assistant's (see `writeAssistant`). */
const INPUT_BLOCKS = ['input_text', 'input_image', 'input_file'] as const satisfies readonly BlockType[];
const OUTPUT_BLOCKS = ['output_text', 'refusal'] as const satisfies readonly BlockType[];

function faults({ native, path, role }: Entry): readonly FormatFault[] {
  const type = typeOf(native);
  if (!type) return [];
  return faultsAt(path, (fault) => {
    const paired = ITEMS[type] === 'call' || ITEMS[type] === 'output' ? idFieldOf(type, native) : undefined;
    // Required by the types of the package
    if (paired) findBadId(native[paired], paired, ID_MAX_CHARS, fault);
    if (paired !== 'id') findBadItemId(type, native, fault);
    if (type === 'message') {
      const { content }: Loose<ResponseOutputMessage> = native;
      // Required by the types of the package
      if (isNothing(content)) fault('content', 'empty-message', 'a message has a content');
      const allowed = role === 'assistant' ? OUTPUT_BLOCKS : INPUT_BLOCKS;
      if (Array.isArray(content)) findBadBlocks(content, 'content', allowed, fault);
    }
    if (type === 'reasoning') findBadReasoning(native, fault);
    if (type === 'function_call' || type === 'custom_tool_call') findBadCall(type, native, fault);
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      const { output }: Loose<ItemOf<typeof type>> = native;
      if (Array.isArray(output)) findBadBlocks(output, 'output', INPUT_BLOCKS, fault);
      // By the types of the package
      else if (typeof output !== 'string') fault('output', 'bad-field', 'an output is a text or a list of blocks');
    }
    // By the types of the package
    if (type === 'computer_call_output' && !isJsonObject(native.output)) {
      fault('output', 'bad-field', 'the output of a computer call is a screenshot');
    }
    if (type === 'image_generation_call' && isNothing(native.id)) {
      fault('id', 'missing-id', 'a generated image has the id of its item');
    }
  });
}

function findBadItemId(type: ItemType, { id }: Loose<ResponseReasoningItem>, fault: Fault): void {
  if (isNothing(id)) return;
  const first = ID_PREFIXES[type] ?? '';
  const good = typeof id === 'string' && id.length <= ID_MAX_CHARS && ITEM_ID.test(id) && id.startsWith(first);
  const rule = `the id of an item has at most ${ID_MAX_CHARS} letters, digits, underscores and dashes`;
  if (!good) fault('id', 'bad-field', first === '' ? rule : `${rule}, and begins with ${first}`);
}

function findBadReasoning(native: JsonObject, fault: Fault): void {
  const { id, summary, encrypted_content }: Loose<ResponseReasoningItem> = native;
  // "Missing required parameter": https://github.com/AAswordman/Operit/issues/797
  if (!Array.isArray(summary)) fault('summary', 'bad-field', 'reasoning has a list of summaries, which may be empty');
  // Without an id the API can only know reasoning by its encrypted content: https://github.com/0xPlaygrounds/rig/issues/677 and
  // https://github.com/NousResearch/hermes-agent/issues/10788
  if (isNothing(id) && typeof encrypted_content !== 'string') {
    fault('id', 'missing-id', 'reasoning has an id or encrypted content');
  }
}

function findBadCall(type: 'function_call' | 'custom_tool_call', native: JsonObject, fault: Fault): void {
  const { name, arguments: text }: Loose<ResponseFunctionToolCall> = native;
  const { input }: Loose<ResponseCustomToolCall> = native;
  if (type === 'function_call' ? !NAME.test(stringOf(name)) : stringOf(name) === '') {
    fault('name', 'bad-name', 'a name has 1 to 128 letters, digits, underscores and dashes');
  }
  // By the types of the package. Arguments that are no JSON are the model's own, and taken.
  const [field, given] = type === 'function_call' ? ['arguments', text] : ['input', input];
  if (typeof given !== 'string') fault(field, 'bad-arguments', 'what a tool is given is a text');
}

function neighbourFaults(entries: readonly Entry[]): readonly FormatFault[] {
  const found: FormatFault[] = [];
  const ids = new Set<string>();
  for (const [index, { native, path }] of entries.entries()) {
    const type = typeOf(native);
    const next = entries[index + 1];
    // https://github.com/openai/openai-node/issues/1791 and .../1567. Reasoning may follow reasoning:
    // https://github.com/UKGovernmentBEIS/inspect_ai/pull/2781
    if (type === 'reasoning' && next?.role !== 'assistant') {
      found.push({ path, rule: 'lone-reasoning', detail: 'reasoning is followed by the item that it led to' });
    }
    // By the type of the package
    if (type === 'compaction_trigger' && next) {
      found.push({ path, rule: 'bad-order', detail: 'a compaction trigger is the last item' });
    }
    // https://github.com/earendil-works/pi/issues/5151
    const { id }: Loose<ResponseReasoningItem> = native;
    const isPairing = type !== undefined && idFieldOf(type, native) === 'id';
    if (typeof id !== 'string' || id === '' || type === 'item_reference') continue;
    if (isPairing && ITEMS[type] === 'output') continue;
    // Where the id pairs a call it is the call's; any other one is but the item's
    const rule = isPairing ? 'duplicate-id' : 'duplicate-item-id';
    if (ids.has(id)) found.push({ path: `${path}/id`, rule, detail: 'two items have this id' });
    ids.add(id);
  }
  return found;
}
