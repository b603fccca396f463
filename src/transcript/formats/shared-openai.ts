/**
 * What Chat Completions and Responses share: contents that are a text or a list of typed blocks, arguments as JSON text, images as
 * URLs, and lists of which nobody touched an element. Pure; it judges nothing that an API would refuse.
 */
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { JsonPointer, Result } from '../../problem.ts';
import type { AgentFunction, ContentBlock, FileBlock, ImageBlock, TextBlock } from '../message.ts';
import { resultText } from '../walk.ts';
import { unmapped, type FormatFault, type Part } from './format.ts';

/** The fields of a provider's type before anybody looked at their values. */
export type Loose<T> = T extends unknown ? { readonly [K in keyof T]?: unknown } : never;

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });
export const textBlock = (text: string): TextBlock => ({ type: 'text', text });
/** For what has no counterpart: it counts by its JSON. */
export const jsonBlock = (value: unknown): TextBlock => textBlock(JSON.stringify(value));

export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export type ReadBlock = (block: JsonObject, path: JsonPointer) => Result<ContentBlock>;
/** The block in the provider's form, over the one that it was, if any. */
export type WriteBlock = (block: ContentBlock, native?: unknown) => JsonObject;

/** The parts of a content: of a text one, of null or nothing none. */
export function readContent(content: unknown, path: JsonPointer, readBlock: ReadBlock): Result<readonly Part[]> {
  if (content === undefined || content === null) return ok([]);
  if (typeof content === 'string') return ok([{ block: textBlock(content), native: content, path }]);
  if (!Array.isArray(content)) return unmapped(path, 'content is a text or a list of blocks');
  const parts: Part[] = [];
  for (const [index, native] of content.entries()) {
    const at = `${path}/${index}`;
    if (!isJsonObject(native) || typeof native.type !== 'string')
      return unmapped(at, 'a block is an object with a type');
    const block = readBlock(native, at);
    if (!block.ok) return block;
    parts.push({ block: block.value, native, path: at });
  }
  return ok(parts);
}

/** The content of these parts: a text where it was none or a text and still is one; `nothing` where all its parts are gone. */
export function writeContent(native: unknown, parts: readonly Part[], write: WriteBlock, nothing: unknown): unknown {
  const [first, ...more] = parts;
  if (!first) return Array.isArray(native) && native.length === 0 ? native : nothing;
  if (!Array.isArray(native) && more.length === 0 && first.block.type === 'text' && !isJsonObject(first.native)) {
    return first.block.text;
  }
  return writeList(native, parts, write);
}

/** The list of these parts: the very list that was supplied where nothing changed. */
export function writeList(native: unknown, parts: readonly Part[], write: WriteBlock): readonly unknown[] {
  const list = parts.map((part) =>
    isJsonObject(part.native) && !part.edited ? part.native : write(part.block, part.native),
  );
  const same = Array.isArray(native) && native.length === list.length && list.every((item, at) => item === native[at]);
  return same ? native : list;
}

/** A result's content with these blocks; a block that was there before keeps its native form. */
export function writeResultContent(
  native: unknown,
  blocks: readonly ContentBlock[],
  readBlock: ReadBlock,
  write: WriteBlock,
): unknown {
  if (blocks.length === 0 || (!Array.isArray(native) && blocks.every(({ type }) => type === 'text'))) {
    return resultText(blocks);
  }
  const read = Array.isArray(native) ? readContent(native, '', readBlock) : ok([]);
  const known = read.ok ? [...read.value] : [];
  return blocks.map((block) => {
    const at = known.findIndex((part) => sameValue(part.block, block));
    return at < 0 ? write(block) : known.splice(at, 1)[0]?.native;
  });
}

/** The object with these fields, an undefined one left out; the very object where each is the value that it has. */
export function withFields(native: JsonObject, fields: JsonObject): JsonObject {
  const changed = Object.entries(fields).filter(([name, value]) => native[name] !== value);
  if (changed.length === 0) return native;
  const merged = { ...native, ...Object.fromEntries(changed) };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}

/** Where two values made by the same code are the same JSON. */
export const sameValue = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** As deep as a request may be nested itself. */
const MAX_DEPTH_LEVELS = 64;

/** The value of arguments that are a JSON text; the text itself where it is none, or one that could not be passed on exactly. */
export function parseArguments(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isExact(value, MAX_DEPTH_LEVELS) ? value : text;
  } catch {
    return text;
  }
}

function isExact(value: unknown, levels: number): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.entries(value).every(([key, item]) => key.isWellFormed() && isExact(item, levels - 1));
}

/** The arguments as JSON text: the text that they had where they still say the same. A call without arguments has no names. */
export function argumentsText(value: unknown, before: unknown): string {
  if (typeof before === 'string' && sameValue(parseArguments(before), value)) return before;
  return JSON.stringify(value ?? {});
}

/** The input of a custom tool, which is any text. */
export const inputText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''));

const DATA_URL = /^data:([^;,]*);base64,/i;

/** A `data:` URL as base64 and media type (RFC 2397); of any other URL, or an upload's id, the media type is not known. */
export function imageOf(url: string): ImageBlock {
  const [head, mime] = DATA_URL.exec(url) ?? [];
  return head === undefined
    ? { type: 'image', data: url, mime: ANY_IMAGE }
    : { type: 'image', data: url.slice(head.length), mime: mime || ANY_IMAGE };
}

export const urlOf = ({ data, mime }: ImageBlock): string =>
  mime === ANY_IMAGE ? data : `data:${mime};base64,${data}`;

const ANY_IMAGE = 'image/*';

/** A file by what is known of it; its size is that of the base64 beside it. */
export function fileOf(fields: { id?: unknown; name?: unknown; data?: unknown; mime?: string }): FileBlock {
  const data = stringOf(fields.data);
  const [head = '', mime = ''] = DATA_URL.exec(data) ?? [];
  return {
    type: 'file',
    attachment_id: stringOf(fields.id),
    mime: fields.mime ?? (mime || 'application/octet-stream'),
    name: stringOf(fields.name),
    size: Math.floor(((data.length - head.length) * 3) / 4),
  };
}

/** The tools beside the array, each read by `readTool` out of the object that it is. */
export function readToolList(
  tools: unknown,
  path: JsonPointer,
  readTool: (tool: JsonObject & { readonly type: string }, path: JsonPointer) => Result<AgentFunction>,
): Result<readonly AgentFunction[]> {
  if (tools === undefined || tools === null) return ok([]);
  if (!Array.isArray(tools)) return unmapped(path, 'tools are a list');
  const functions: AgentFunction[] = [];
  for (const [index, tool] of tools.entries()) {
    const at = `${path}/${index}`;
    if (!isJsonObject(tool) || typeof tool.type !== 'string') return unmapped(at, 'a tool is an object with a type');
    const read = readTool({ ...tool, type: tool.type }, at);
    if (!read.ok) return read;
    functions.push(read.value);
  }
  return ok(functions);
}

/** A tool that is called by its name. */
export function namedTool(
  { name, description, parameters }: { name?: unknown; description?: unknown; parameters?: unknown },
  path: JsonPointer,
): Result<AgentFunction> {
  if (typeof name !== 'string') return unmapped(`${path}/name`, 'a tool has a name');
  const described = { name, description: stringOf(description) };
  return ok(parameters === undefined ? described : { ...described, parameters });
}

/** Notes a fault at a place below the element. */
export type Fault = (at: string, rule: string, detail: string) => void;

/** What `find` notes of the element at this path. */
export function faultsAt(path: JsonPointer, find: (fault: Fault) => void): readonly FormatFault[] {
  const found: FormatFault[] = [];
  find((at, rule, detail) => found.push({ path: `${path}/${at}`, rule, detail }));
  return found;
}

export function findBadBlocks(list: readonly unknown[], at: string, allowed: readonly unknown[], fault: Fault): void {
  for (const [index, block] of list.entries()) {
    if (isJsonObject(block) && allowed.includes(block.type)) continue;
    fault(`${at}/${index}`, 'bad-block', `only blocks of type ${allowed.join(', ')} are taken here`);
  }
}

export function findBadId(id: unknown, at: string, maxChars: number, fault: Fault): void {
  if (stringOf(id) === '') fault(at, 'missing-id', 'the id of a call is a text that is not empty');
  else if (stringOf(id).length > maxChars) fault(at, 'bad-id', `the id of a call has at most ${maxChars} characters`);
}
