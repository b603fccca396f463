/**
 * What a provider's message format is to this house: a record that reads one native message into parts, writes it back with some
 * of them changed, and knows what its API refuses. Everything else about native conversations is written once, in conversation.ts,
 * pairs.ts and repair.ts, over these records.
 */
import type { JsonObject } from '../../json.ts';
import type { JsonPointer, Problem, Result } from '../../problem.ts';
import type { AgentFunction, ContentBlock } from '../message.ts';

/** One element of the provider's array, as it is to us. */
export interface Entry {
  /**
   * system: instructions wherever they stand, also a developer's. results: a message of the provider's that holds nothing but results of
   * calls (where they are blocks of a user's message, the role is user).
   */
  readonly role: 'system' | 'user' | 'assistant' | 'results';
  readonly parts: readonly Part[];
  /** Of the element within the request, e.g. `/messages/3`. */
  readonly path: JsonPointer;
  /** The very object that was supplied. */
  readonly native: JsonObject;
  /** It stands for something that the provider holds, a call perhaps, so a result after it may be of a call that is not seen here. */
  readonly isReference?: true;
}

/** One piece of an entry, in reading order. */
export interface Part {
  /**
   * What it is to the engines. Text that a model reads is a text block, also where the provider has another name for it; a kind of block
   * that has no counterpart is a text block with its JSON, so that it counts. Binary content that is no image is a file block.
   */
  readonly block: ContentBlock;
  /** The very value that was supplied (a block, an element of tool_calls, or a whole text); absent in a part that was made here. */
  readonly native?: unknown;
  /** Where it stands within the request. */
  readonly path: JsonPointer;
  /** Set where `block` says something else than `native`: then `write` has to render it. */
  readonly edited?: true;
  /** Of a result that can say nothing else, since its native form has no place for another text. The engines leave it alone. */
  readonly isFixed?: true;
  /** Of a result that was made here: the call that it answers, which tells a format what the result has to look like. */
  readonly answers?: Part;
}

/** Where the API wants the result of a call to stand. */
export type ResultPlacement =
  /** In messages of their own, straight after the message that calls. */
  | 'next-messages'
  /** At the head of the user's message that follows the message that calls. */
  | 'head-of-next-user'
  /** In messages of their own, after the call and before the next user's message. */
  | 'before-next-user'
  /** In an element of its own, anywhere after the call. */
  | 'anywhere-after';

export interface FormatRules {
  readonly results: ResultPlacement;
  /** The first element that is no instruction has to be a user's. */
  readonly userFirst: boolean;
  /** An instruction in the array stands after a user's message, and before an assistant's or at the end. */
  readonly systemAfterUser?: true;
  /** Neighbouring assistant elements are one message (as reasoning, text and calls of Responses are); they are kept or dropped together. */
  readonly joinsAssistant: boolean;
}

/** What an API refuses, and where. `rule` is stable, kebab-case. */
export interface FormatFault {
  readonly path: JsonPointer;
  readonly rule: string;
  /** For a person; it never repeats what the caller sent. */
  readonly detail: string;
}

/** What stands beside the array. Each value is the provider's own, as it was supplied. */
export interface Beside {
  readonly system?: unknown;
  readonly tools?: unknown;
}

export interface MessageFormat {
  /** What a request names it by, kebab-case. */
  readonly id: string;
  readonly title: string;
  readonly rules: FormatRules;
  /** `invalid_request` with the pointer of what cannot be mapped. Must not throw on any JSON object. */
  read(native: JsonObject, path: JsonPointer): Result<Entry>;
  /**
   * The native message of an entry whose parts are now these: some may be gone, new or edited. All fields and parts that nobody touched
   * are the very values that were supplied; an edited result keeps every other field of its native form.
   */
  write(entry: Entry, parts: readonly Part[]): JsonObject;
  /** A new element (or, for head-of-next-user, a new user's message) that holds these result parts and nothing else. */
  holdResults(parts: readonly Part[]): JsonObject;
  /** A user's message of this text, for formats that want one in some place. */
  sayAsUser?(text: string): JsonObject;
  /** The instructions beside the array as texts, `/system` being the path; an absent one has none. */
  readSystem(system: unknown, path: JsonPointer): Result<readonly string[]>;
  /** The tools beside the array; an absent value has none. A tool that is no function is one with its type for a name and its JSON for parameters. */
  readTools(tools: unknown, path: JsonPointer): Result<readonly AgentFunction[]>;
  /**
   * The request with `text` as last instruction: beside the array where the format has a place there, else as an element of the array
   * after the leading instructions.
   */
  addInstruction(
    request: { readonly messages: readonly JsonObject[]; readonly system?: unknown },
    text: string,
  ): { readonly messages: readonly JsonObject[]; readonly system?: unknown };
  /** What the API refuses of this entry by itself: ids, names, empty blocks, fields; not pairs, order or neighbours, which pairs.ts checks. */
  faults(entry: Entry): readonly FormatFault[];
  /** What the API refuses of neighbours, beyond what `rules` say; entries in order. */
  neighbourFaults?(entries: readonly Entry[]): readonly FormatFault[];
}

/** What a format answers where it cannot map a value; `detail` never repeats it. */
export function unmapped(path: JsonPointer, detail: string): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem: { code: 'invalid_request', path, detail } };
}
