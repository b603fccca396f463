/**
 * A provider's conversation as the engines take it, and back. What no engine touched comes back as the very object that was
 * supplied. Pure; it checks and repairs nothing.
 */
import { isJsonObject, type JsonObject } from '../../json.ts';
import { jsonPointer, type Result } from '../../problem.ts';
import type { AgentFunction, AgentMessage, ContentBlock, FunctionResultBlock } from '../message.ts';
import { FIXED } from '../results.ts';
import { unmapped, type Beside, type Entry, type MessageFormat, type Part } from './format.ts';

/** The provider's array and what stands beside it. */
export interface NativeRequest extends Beside {
  readonly messages: readonly unknown[];
}

export interface Conversation {
  readonly format: MessageFormat;
  readonly entries: readonly Entry[];
  /** What the engines work on. Of instructions there is none: those are in `system`, wherever they stood. */
  readonly messages: readonly AgentMessage[];
  /** All instructions, those beside the array first; undefined where there are none. */
  readonly system: string | undefined;
  readonly tools: readonly AgentFunction[];
  /** Where each element stood in the caller's array, -1 of one that was made here. */
  readonly origins: readonly number[];
  /** The length of the caller's array. */
  readonly supplied: number;
}

/**
 * `invalid_request` with the pointer of the first thing that cannot be mapped.
 *
 * @param from where messages that were mended come from, whose places are no longer those of the caller's array.
 */
export function readConversation(
  format: MessageFormat,
  request: NativeRequest,
  from: Pick<Conversation, 'origins' | 'supplied'> = {
    origins: [...request.messages.keys()],
    supplied: request.messages.length,
  },
): Result<Conversation> {
  const beside = format.readSystem(request.system, '/system');
  if (!beside.ok) return beside;
  const tools = format.readTools(request.tools, '/tools');
  if (!tools.ok) return tools;
  const read = readEntries(format, request.messages, from.origins);
  if (!read.ok) return read;
  const entries = read.value;
  const inside = entries.filter(({ role }) => role === 'system').flatMap(({ parts }) => parts.map(textOf));
  const system = [...beside.value, ...inside].filter(Boolean).join('\n\n');
  const messages = toAgentMessages(entries, format);
  return { ok: true, value: { format, entries, messages, system: system || undefined, tools: tools.value, ...from } };
}

export const isSupplied = (index: number): boolean => index >= 0;

/** The last entry that stood at or before this index in the caller's array; as far beyond the end as the index is. */
export function lastEntryAt({ entries, origins, supplied }: Conversation, index: number): number {
  if (index >= supplied) return entries.length + index - supplied;
  return origins.findLastIndex((origin) => isSupplied(origin) && origin <= index);
}

export function readEntries(
  format: MessageFormat,
  messages: readonly unknown[],
  origins?: readonly number[],
): Result<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const [index, native] of messages.entries()) {
    const origin = origins?.[index] ?? index;
    const path = jsonPointer(['messages', origin < 0 ? '-' : origin]);
    if (!isJsonObject(native)) return unmapped(path, 'expected an object');
    const entry = format.read(native, path);
    if (!entry.ok) return entry;
    entries.push(entry.value);
  }
  return { ok: true, value: entries };
}

/**
 * The provider's array for what an engine made of `conversation.messages`: the elements of the messages that are still there, with
 * the results that were replaced, and every instruction. Elements stay in their order; an instruction that has to stand after a
 * user's message which is gone stands beside the array.
 */
export function writeRequest(
  { format, entries }: Conversation,
  messages: readonly AgentMessage[],
  system: unknown,
): { readonly messages: readonly JsonObject[]; readonly system?: unknown } {
  const kept = new Set<number>();
  const edits = new Map<Part, ContentBlock>();
  for (const message of messages) {
    for (const place of sourceOf(message)) kept.add(place.entry);
    const blocks = message.role === 'function_result' ? [message] : message.content;
    for (const changed of blocks) {
      const [place] = sourceOf(changed);
      const part = place && entries[place.entry]?.parts[place.part];
      if (!part || part.block.type !== 'function_result' || !('content' in changed)) continue;
      if (part.block.content !== changed.content) edits.set(part, { ...part.block, content: changed.content });
    }
  }
  const homeless: string[] = [];
  let isHome = true;
  const left = entries.flatMap((entry, index) => {
    if (entry.role !== 'system') isHome = kept.has(index) || !format.rules.systemAfterUser;
    else if (!isHome) homeless.push(...entry.parts.map(textOf));
    if (entry.role === 'system' ? !isHome : !kept.has(index)) return [];
    if (!entry.parts.some((part) => edits.has(part))) return [entry.native];
    const parts = entry.parts.map((part): Part => {
      const block = edits.get(part);
      return block ? { ...part, block, edited: true } : part;
    });
    return [format.write(entry, parts)];
  });
  const said = { messages: left, ...(system !== undefined && { system }) };
  const text = homeless.filter(Boolean).join('\n\n');
  return text === '' ? said : format.addInstruction(said, text);
}

/**
 * Which elements of the provider's array a message comes from. Kept under a symbol: copies that an engine makes carry it along,
 * and neither JSON nor a digest sees it.
 */
const SOURCE = Symbol('source');

interface Place {
  readonly entry: number;
  readonly part: number;
}

interface Sourced {
  readonly [SOURCE]?: readonly Place[];
}

const sourceOf = (value: object): readonly Place[] => (value as Sourced)[SOURCE] ?? [];

/** The elements that a message comes from, as indices of the array. */
export const elementsOf = (message: AgentMessage): readonly number[] => [
  ...new Set(sourceOf(message).map(({ entry }) => entry)),
];

function toAgentMessages(entries: readonly Entry[], { rules }: MessageFormat): AgentMessage[] {
  const messages: (AgentMessage & Sourced)[] = [];
  const names = new Map<string, string>();
  let open: { content: ContentBlock[]; places: Place[] } | undefined;
  for (const [index, { role, parts }] of entries.entries()) {
    const places = parts.map((_, part) => ({ entry: index, part }));
    const blocks = parts.map(({ block }, part): ContentBlock & Sourced => ({
      ...block,
      [SOURCE]: [{ entry: index, part }],
    }));
    for (const block of blocks) if (block.type === 'function_call') names.set(block.id, block.function_id);
    // Also an element without parts has to be found again.
    const source = places.length > 0 ? places : [{ entry: index, part: -1 }];
    switch (role) {
      case 'system':
        continue;
      case 'user':
        messages.push({ role, content: blocks, timestamp: 0, [SOURCE]: source });
        break;
      case 'assistant':
        if (open && rules.joinsAssistant) {
          open.content.push(...blocks);
          open.places.push(...source);
          continue;
        }
        open = { content: blocks, places: [...source] };
        messages.push({ ...ASSISTANT, content: open.content, [SOURCE]: open.places });
        continue;
      case 'results':
        messages.push(...parts.map((each, part) => toResult(each, { entry: index, part }, names)));
    }
    open = undefined;
  }
  return messages;
}

const ASSISTANT = { role: 'assistant', timestamp: 0, model: '', provider: '', stop_reason: 'end' } as const;

/** A part beside the results in a message of results (an approval, say) is a result of no call: it stays with its neighbours. */
function toResult({ block, isFixed }: Part, place: Place, names: ReadonlyMap<string, string>): AgentMessage & Sourced {
  const result: FunctionResultBlock =
    block.type === 'function_result' ? block : { type: 'function_result', function_call_id: '', content: [block] };
  const { function_call_id, content, is_error } = result;
  return {
    role: 'function_result',
    function_call_id,
    function_id: names.get(function_call_id) ?? '',
    content,
    timestamp: 0,
    ...(is_error !== undefined && { is_error }),
    [SOURCE]: [place],
    ...(isFixed && { [FIXED]: true }),
  };
}

/** One element alone as a message, for counting. */
export const messageOf = ({ parts }: Entry): AgentMessage => ({
  role: 'user',
  content: parts.map(({ block }) => block),
  timestamp: 0,
});

const textOf = ({ block }: Part): string => (block.type === 'text' ? block.text : '');
