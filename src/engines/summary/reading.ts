/**
 * One pass over a head: what was asked, said, called and answered, and how often and where each fact stands. It keeps texts as
 * they are and judges nothing; `thinking` is not read.
 */
import type { AgentMessage, ContentBlock } from '../../transcript/message.ts';
import { deniedDetails, resultText } from '../../transcript/walk.ts';
import { eachFact, type SeenRuns } from './facts.ts';

export interface Said {
  readonly role: 'user' | 'assistant';
  /** Of the message in the head. */
  readonly index: number;
  readonly text: string;
  /** An assistant's text before calls tells of a step, one without calls ends its turn. */
  readonly callsAfter: boolean;
}

export interface Call {
  readonly index: number;
  readonly name: string;
  readonly arguments: unknown;
  /** The name of the file that it is about, without folders. */
  readonly file: string | undefined;
  /** What came back, if anything did. */
  result?: { readonly text: string; readonly failed: boolean };
}

/** Where a fact was seen. Results tell much that nobody takes up; what people and calls name comes again. */
export interface Sightings {
  inUser: number;
  inAssistant: number;
  inCalls: number;
  inResults: number;
  lastIndex: number;
  /** The name of the call that it was the whole of an argument of; of several the one that said most. */
  verb?: string;
  verbChars: number;
  /** The file that a call or its result was about, where the fact stood in one: the last of them. */
  file?: string;
}

export interface Reading {
  readonly messages: number;
  readonly said: readonly Said[];
  readonly calls: readonly Call[];
  readonly facts: ReadonlyMap<string, Sightings>;
  /** `[image image/png]`, `[file report.pdf]`, and how often. */
  readonly attachments: ReadonlyMap<string, number>;
}

/** So many characters are read between two pauses; some 10 ms. */
const CHARS_PER_PAUSE = 131_072;
/** Beyond it old facts that came only once are forgotten, so that memory and the time to rank them stay bounded. */
const MAX_FACTS = 16_384;

type Source = 'inUser' | 'inAssistant' | 'inCalls' | 'inResults';

export async function read(head: readonly AgentMessage[], pause: () => Promise<void>): Promise<Reading> {
  const said: Said[] = [];
  const calls: Call[] = [];
  const open = new Map<string, Call[]>();
  const attachments = new Map<string, number>();
  let facts = new Map<string, Sightings>();
  let unpaused = 0;
  const runs: SeenRuns = new Map();

  async function scan(text: string, source: Source, index: number, file?: string): Promise<void> {
    for (let from = 0; from < text.length;) {
      const to = chunkEnd(text, from);
      eachFact(text, (fact) => sight(facts, fact, source, index, file), from, to, runs);
      unpaused += to - from;
      from = to;
      if (unpaused >= CHARS_PER_PAUSE) {
        unpaused = 0;
        if (facts.size > 2 * MAX_FACTS) facts = withoutOldest(facts);
        await pause();
      }
    }
  }

  function attach(block: ContentBlock): void {
    const name =
      block.type === 'image' ? `[image ${block.mime}]` : block.type === 'file' ? `[file ${block.name}]` : undefined;
    if (name !== undefined) attachments.set(name, (attachments.get(name) ?? 0) + 1);
  }

  async function readResult(id: string, content: readonly ContentBlock[], isError: boolean, index: number) {
    const text = resultText(content);
    const call = open.get(id)?.pop();
    if (call) call.result = { text, failed: isError };
    await scan(text, 'inResults', index, call?.file);
    for (const block of content) {
      attach(block);
      if (block.type === 'function_result')
        await readResult(block.function_call_id, block.content, block.is_error === true, index);
    }
  }

  for (const [index, message] of head.entries()) {
    unpaused += CHARS_PER_MESSAGE;
    if (message.role === 'custom') continue;
    if (message.role === 'function_result') {
      const denied = deniedDetails(message) !== undefined;
      await readResult(message.function_call_id, message.content, message.is_error === true || denied, index);
      continue;
    }
    const { role } = message;
    const callsAfter = message.content.some(({ type }) => type === 'function_call');
    for (const block of message.content) {
      if (block.type === 'text') {
        if (block.text !== '') said.push({ role, index, text: block.text, callsAfter });
        await scan(block.text, role === 'user' ? 'inUser' : 'inAssistant', index);
      } else if (block.type === 'function_call') {
        const values = leaves(block.arguments);
        const call: Call = { index, name: block.function_id, arguments: block.arguments, file: fileOf(values) };
        calls.push(call);
        const sameId = open.get(block.id);
        if (sameId) sameId.push(call);
        else open.set(block.id, [call]);
        const chars = values.reduce((total, value) => total + value.length, 0);
        for (const value of values) {
          await scan(value, 'inCalls', index, call.file);
          const seen = facts.get(value);
          if (seen && chars > seen.verbChars) Object.assign(seen, { verb: call.name, verbChars: chars });
        }
      } else if (block.type === 'function_result')
        await readResult(block.function_call_id, block.content, block.is_error === true, index);
      else attach(block);
    }
  }
  if (facts.size > MAX_FACTS) facts = withoutOldest(facts);
  return { messages: head.length, said, calls, facts, attachments };
}

/** What a message costs beside its characters. */
const CHARS_PER_MESSAGE = 64;

/** Some way on, after a gap if there is one near: what has none is no fact. */
function chunkEnd(text: string, from: number): number {
  const far = from + CHARS_PER_PAUSE;
  if (far >= text.length) return text.length;
  for (let at = far; at < Math.min(far + 1_024, text.length); at++) if (text.charCodeAt(at) <= 32) return at;
  return far;
}

/** A path from a root or into folders, and the name at its end. */
const PATH = /^[~.\w@-]{0,60}\/[\w.@/[\]()-]{0,300}?([\w.@[\]()-]{1,60})$/;

/** The first argument that is nothing but a path. */
function fileOf(values: readonly string[]): string | undefined {
  const path = values.find((value) => value.length <= MAX_PATH_CHARS && PATH.test(value));
  return path === undefined ? undefined : PATH.exec(path)?.[1];
}
const MAX_PATH_CHARS = 300;

function sight(facts: Map<string, Sightings>, fact: string, source: Source, index: number, file?: string): void {
  const seen = facts.get(fact);
  if (seen) {
    seen[source]++;
    seen.lastIndex = index;
    if (file !== undefined) seen.file = file;
    return;
  }
  const first: Sightings = { inUser: 0, inAssistant: 0, inCalls: 0, inResults: 0, lastIndex: index, verbChars: -1 };
  first[source] = 1;
  if (file !== undefined) first.file = file;
  facts.set(fact, first);
}

function withoutOldest(facts: ReadonlyMap<string, Sightings>): Map<string, Sightings> {
  const all = [...facts];
  const recent = all.length - MAX_FACTS / 2;
  const kept = all.filter(
    ([, { inUser, inAssistant, inCalls, inResults }], at) =>
      at >= recent || inUser + inAssistant + inCalls + inResults > 1,
  );
  return new Map(kept.slice(-MAX_FACTS));
}

/** The strings and numbers in a JSON value, in the order supplied. */
export function leaves(value: unknown, found: string[] = []): string[] {
  if (typeof value === 'string') found.push(value);
  else if (typeof value === 'number') found.push(String(value));
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) leaves(inner, found);
  return found;
}
