/** Conversations for the engines bench, as a model would see them: real ones, those of the fault vectors, and made ones. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentMessage, ContentBlock, UserMessage } from '../src/transcript/message.ts';
import { ORDINARY, type Source } from './texts.ts';

export interface Conversation {
  readonly name: string;
  readonly system: string;
  /** Without custom ones, oldest first. */
  readonly messages: readonly AgentMessage[];
}

const TEST = join(import.meta.dirname, '../../test');
const readJson = (path: string): unknown => JSON.parse(readFileSync(join(TEST, path), 'utf8'));

/** Of those that come without one. */
const SYSTEM =
  'You are an agent that works with tools. Say what you found, briefly, and never guess what a tool can tell.';

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const user = (...content: ContentBlock[]): UserMessage => ({ role: 'user', content, timestamp: 0 });
const assistant = (...content: ContentBlock[]): AgentMessage => ({
  role: 'assistant',
  content,
  timestamp: 0,
  model: 'm',
  provider: 'p',
  stop_reason: content.some(({ type }) => type === 'function_call') ? 'function_call' : 'end',
});
const call = (id: string, args: unknown = {}): ContentBlock => ({
  type: 'function_call',
  id,
  function_id: 'shell::run',
  arguments: args,
});
const result = (id: string, said: string): AgentMessage => ({
  role: 'function_result',
  content: [text(said)],
  timestamp: 0,
  function_call_id: id,
  function_id: 'shell::run',
});
const inlineResult = (id: string, said: string): ContentBlock => ({
  type: 'function_result',
  function_call_id: id,
  content: [text(said)],
});

export function realConversations(): Conversation[] {
  const files = readdirSync(join(TEST, 'transcripts')).filter((file) => file.endsWith('.json'));
  return files.toSorted().map((file) => {
    const transcript = readJson(`transcripts/${file}`) as { system_prompt?: string; messages: AgentMessage[] };
    return {
      name: file.replace('.json', ''),
      system: transcript.system_prompt ?? SYSTEM,
      messages: transcript.messages.filter(({ role }) => role !== 'custom'),
    };
  });
}

// The fault vectors

interface NeutralPart {
  readonly kind?: 'text' | 'tool_call' | 'tool_result' | 'image';
  readonly toolCallId?: string;
  readonly content?: string;
  readonly mime?: string;
  readonly data?: string;
}
interface NeutralMessage extends Omit<NeutralPart, 'content'> {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content?: string | readonly NeutralPart[];
  /** How long its content is meant to be. */
  readonly tokens?: number;
}

/** A fault that is shorter comes after ordinary turns, so that there is something to cut. */
const ALONE_FROM_CHARS = 2_000;

export function faultyConversations(): Conversation[] {
  const { inputs } = readJson('vectors/fault-inputs.json') as {
    inputs: Record<string, readonly NeutralMessage[] | { readonly messages: readonly NeutralMessage[] }>;
  };
  return Object.entries(inputs).map(([name, input]) => {
    const neutral = 'messages' in input ? input.messages : input;
    const messages = neutral.filter(({ role }) => role !== 'system').map(fromNeutral);
    const isShort = JSON.stringify(messages).length < ALONE_FROM_CHARS;
    return { name, system: SYSTEM, messages: isShort ? [...ordinaryTurns(), ...messages] : messages };
  });
}

function fromNeutral({ role, content, tokens = 0, ...rest }: NeutralMessage): AgentMessage {
  const parts = typeof content === 'object' ? content : [{ ...rest, content: filled(content ?? '', tokens) }];
  if (role === 'tool') return result(parts[0]?.toolCallId ?? '', parts[0]?.content ?? '');
  const blocks = parts.map((part): ContentBlock => {
    const said = expanded(part.content ?? '');
    if (part.kind === 'tool_call') return call(part.toolCallId ?? '');
    if (part.kind === 'tool_result') return inlineResult(part.toolCallId ?? '', said);
    if (part.kind === 'image') return { type: 'image', data: expanded(part.data ?? ''), mime: part.mime ?? '' };
    return text(said);
  });
  return role === 'assistant' ? assistant(...blocks) : user(...blocks);
}

/** `<400000 x A>` is so many times that letter. */
const expanded = (said: string): string =>
  said.replace(/^<(\d+) x (.)>$/, (_, count: string, letter: string) => letter.repeat(Number(count)));

/** A word with a space before it is one token. */
const filled = (said: string, tokens: number): string => (tokens < 50 ? said : `${said}${' word'.repeat(tokens)}`);

function ordinaryTurns(): AgentMessage[] {
  const source = ORDINARY['TypeScript source']!();
  return Array.from({ length: 4 }, (_, turn) => [
    user(text(`Look at file ${turn}, please, and tell me what it exports.`)),
    assistant(call(`before_${turn}`, { command: `cat src/file-${turn}.ts` })),
    result(`before_${turn}`, source(1_200)),
    assistant(text(`File ${turn} exports one function and one type.`)),
  ]).flat();
}

// Made ones

interface Shape {
  /** Of messages, about. */
  readonly length: number;
  /** How often the assistant calls before it answers the user. */
  readonly rounds: number;
  /** Calls of one round. */
  readonly parallel?: number;
  /** Results as blocks of one user message. */
  readonly inline?: boolean;
}

/** In characters; some 1,300 on average, as many results of an agent are short and a few are most of the text. */
const RESULT_CHARS = [150, 400, 3_600, 1_050] as const;

export function madeConversation(name: string, { length, rounds, parallel = 1, inline = false }: Shape): Conversation {
  const open = (kind: string): Source => ORDINARY[kind]!();
  const [prose, code, json] = [open('English prose'), open('TypeScript source'), open('JSON')];
  const messages: AgentMessage[] = [];
  let calls = 0;
  while (messages.length < length) {
    messages.push(user(text(prose(300))));
    for (let round = 0; round < rounds && messages.length < length; round += 1) {
      const ids = Array.from({ length: parallel }, () => `call_${(calls += 1)}`);
      messages.push(assistant(text(prose(200)), ...ids.map((id) => call(id, { command: code(80) }))));
      const said = ids.map((id, index) => {
        const chars = RESULT_CHARS[(calls + index) % RESULT_CHARS.length] ?? 0;
        return { id, text: index % 2 === 0 ? code(chars) : json(chars) };
      });
      if (inline) messages.push(user(...said.map((each) => inlineResult(each.id, each.text))));
      else messages.push(...said.map((each) => result(each.id, each.text)));
    }
    messages.push(assistant(text(prose(400))));
  }
  return { name, system: SYSTEM, messages };
}

/** The bench's measure of a large call: 500 messages, 400,000 characters. */
export const large = (): Conversation => madeConversation('agent, 500 messages', { length: 500, rounds: 9 });

export function madeConversations(): Conversation[] {
  const huge = madeConversation('huge last result', { length: 40, rounds: 9 });
  return [
    large(),
    madeConversation('one user message, 100 rounds', { length: 200, rounds: 100 }),
    madeConversation('three calls at once, inline', { length: 300, rounds: 9, parallel: 3, inline: true }),
    madeConversation('chat without tools', { length: 300, rounds: 0 }),
    {
      ...huge,
      messages: [
        ...huge.messages,
        user(text('Now read the log.')),
        assistant(call('log')),
        result('log', ORDINARY['JSON']!()(200_000)),
      ],
    },
  ];
}
