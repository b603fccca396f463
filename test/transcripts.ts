/** Conversations for tests: real ones, and any that the wire shapes allow. */
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import type { AgentFunction, AgentMessage, ContentBlock } from '../src/transcript/message.ts';

export interface Transcript {
  /** Whence it was taken, at which commit, under which licence. */
  readonly source: { readonly repo: string; readonly path: string; readonly commit: string; readonly licence: string };
  readonly system_prompt?: string;
  readonly messages: AgentMessage[];
}

export const TRANSCRIPTS = [
  '01-pi-large-session',
  '02-claude-code-todo-app',
  '02-claude-code-todo-app-sub1',
  '02-claude-code-todo-app-sub2',
  '02-claude-code-todo-app-sub3',
  '02-claude-code-todo-app-sub4',
  '02-claude-code-todo-app-sub5',
  '04-claude-code-small',
  '09-cline-session-messages',
  '10-toolbench-g3-dfs',
  '11-toolbench-g1',
  '13-swe-agent-function-calling',
  '16-swe-agent-pydicom',
  '18-tau-bench-retail-fewshot-d30',
  '18-tau-bench-retail-fewshot-d34',
  '18-tau-bench-retail-fewshot-d43',
  '18-tau-bench-retail-fewshot-d54',
  '18-tau-bench-retail-fewshot-d64',
  '25-anthropic-parallel-tool-calls',
  '26-responses-base64-images',
  '27-responses-compaction-chain',
] as const;

export function readTranscript(name: (typeof TRANSCRIPTS)[number]): Transcript {
  // From the root, where tests and builds are run from.
  return JSON.parse(readFileSync(`test/transcripts/${name}.json`, 'utf8')) as Transcript;
}

const text = fc.oneof(
  fc.lorem({ maxCount: 12 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('', ' ', '\n', '"quoted" \\ and \u0001', '<|endoftext|>', '日本語のテキスト', '👩🏽‍🚀', 'a'.repeat(60)),
);
const id = fc.constantFrom('', 'call_1', 'call_2', 'shell::run', '__proto__');
const json = fc.jsonValue({ maxDepth: 3 });
/** Fields that nobody knows; they are kept. */
const more = fc.dictionary(fc.constantFrom('note', 'cache_control', 'x'), json, { maxKeys: 2 });
const perhaps = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value);

/** A record whose unlisted keys may be absent, with unknown fields in it. */
const open = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }, required: (keyof T)[]) =>
  fc.tuple(more, fc.record(fields, { requiredKeys: required })).map(([extra, known]) => ({ ...extra, ...known }));

const { blocks } = fc.letrec<{ blocks: ContentBlock[]; block: ContentBlock }>((tie) => ({
  block: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    open({ type: fc.constant('text'), text }, ['type', 'text']),
    open({ type: fc.constant('image'), data: text, mime: fc.constant('image/png') }, ['type', 'data', 'mime']),
    open({ type: fc.constant('thinking'), text, signature: perhaps(text) }, ['type', 'text']),
    open({ type: fc.constant('redacted_thinking'), data: text }, ['type', 'data']),
    open({ type: fc.constant('file'), attachment_id: id, mime: text, name: text, size: fc.nat() }, [
      'type',
      'attachment_id',
      'mime',
      'name',
      'size',
    ]),
    open({ type: fc.constant('function_call'), id, function_id: id, arguments: json }, ['type', 'id', 'function_id']),
    open(
      {
        type: fc.constant('function_result'),
        function_call_id: id,
        content: tie('blocks'),
        is_error: perhaps(fc.boolean()),
      },
      ['type', 'function_call_id', 'content'],
    ),
  ) as fc.Arbitrary<ContentBlock>,
  blocks: fc.array(tie('block'), { maxLength: 4 }),
}));

const timestamp = fc.integer();
const details = fc.oneof(json, fc.record({ status: fc.constantFrom('denied', 'ok'), reason: json }));

export const anyMessage = fc.oneof(
  open({ role: fc.constant('user'), content: blocks, timestamp }, ['role', 'content', 'timestamp']),
  open(
    {
      role: fc.constant('assistant'),
      content: blocks,
      timestamp,
      model: id,
      provider: id,
      stop_reason: fc.constantFrom('end', 'function_call'),
      usage: perhaps(
        fc.record({ input: perhaps(fc.nat()), cost_usd: perhaps(fc.double({ noNaN: true, min: 0, max: 9 })) }),
      ),
      warnings: perhaps(fc.array(text, { maxLength: 2 })),
    },
    ['role', 'content', 'timestamp', 'model', 'provider', 'stop_reason'],
  ),
  open(
    {
      role: fc.constant('function_result'),
      content: blocks,
      timestamp,
      function_call_id: id,
      function_id: id,
      details,
      is_error: fc.boolean(),
    },
    ['role', 'content', 'timestamp', 'function_call_id', 'function_id'],
  ),
  open({ role: fc.constant('custom'), content: blocks, timestamp, custom_type: id, display: perhaps(text), details }, [
    'role',
    'content',
    'timestamp',
    'custom_type',
  ]),
) as fc.Arbitrary<AgentMessage>;

export const anyTool = open({ name: id, description: text, parameters: json, label: perhaps(text) }, [
  'name',
  'description',
]) as fc.Arbitrary<AgentFunction>;

/** The same JSON with the keys of every message and block turned around; what is opaque inside them stays as it is. */
export function withKeysReversed(message: AgentMessage): AgentMessage {
  const reversed = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).toReversed();
    return Object.fromEntries(
      entries.map(([key, field]) => [key, key === 'content' && Array.isArray(field) ? field.map(reversed) : field]),
    );
  };
  return reversed(message) as AgentMessage;
}
