import {
  generateText,
  jsonSchema,
  modelMessageSchema,
  tool,
  type AssistantContent,
  type ModelMessage,
  type SystemModelMessage,
  type ToolContent,
  type ToolResultPart,
  type UserContent,
} from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../../json.ts';
import { canonicalJson } from '../../provenance/canonical.ts';
import type { ContentBlock } from '../message.ts';
import { aiSdk as format } from './ai-sdk.ts';
import type { Entry, Part } from './format.ts';

type PartsOf<Content> = Exclude<Content, string> extends (infer P)[] ? P : never;

const json = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

function entryOf(native: JsonObject, path = '/messages/0'): Entry {
  const read = format.read(native, path);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return read.value;
}
const entry = (message: ModelMessage): Entry => entryOf(json(message));
const blocks = (message: ModelMessage): readonly ContentBlock[] => entry(message).parts.map(({ block }) => block);
const edit = (part: Part, block: ContentBlock): Part => ({ ...part, block, edited: true });

const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };
const url = new URL('https://e.example/a.pdf');

const USER: readonly (readonly [PartsOf<UserContent>, ContentBlock])[] = [
  [
    { type: 'text', text: 'hi', providerOptions },
    { type: 'text', text: 'hi' },
  ],
  [
    { type: 'image', image: 'AAAA' },
    { type: 'image', data: 'AAAA', mime: 'image/*' },
  ],
  [
    { type: 'image', image: url, mediaType: 'image/png' },
    { type: 'image', data: url.href, mime: 'image/png' },
  ],
  [
    { type: 'image', image: { openai: 'file-1' } },
    { type: 'image', data: 'file-1', mime: 'image/*' },
  ],
  [
    { type: 'file', data: 'AAAA', mediaType: 'image/png' },
    { type: 'image', data: 'AAAA', mime: 'image/png' },
  ],
  [
    { type: 'file', data: { type: 'data', data: 'AAAAAAAA' }, mediaType: 'application/pdf', filename: 'a.pdf' },
    { type: 'file', attachment_id: '', mime: 'application/pdf', name: 'a.pdf', size: 6 },
  ],
  [
    { type: 'file', data: { type: 'url', url }, mediaType: 'application/pdf' },
    { type: 'file', attachment_id: url.href, mime: 'application/pdf', name: '', size: 0 },
  ],
  [
    { type: 'file', data: url, mediaType: 'application/pdf' },
    { type: 'file', attachment_id: url.href, mime: 'application/pdf', name: '', size: 0 },
  ],
  [
    { type: 'file', data: { type: 'reference', reference: { openai: 'file-1' } }, mediaType: 'application/pdf' },
    { type: 'file', attachment_id: 'file-1', mime: 'application/pdf', name: '', size: 0 },
  ],
  [
    { type: 'file', data: { type: 'text', text: 'body' }, mediaType: 'text/plain' },
    { type: 'text', text: 'body' },
  ],
];

const search = {
  type: 'tool-call',
  toolCallId: 's',
  toolName: 'web',
  input: { q: 'x' },
  providerExecuted: true,
} as const;
const found = { type: 'tool-result', toolCallId: 's', toolName: 'web', output: { type: 'json', value: [1] } } as const;
const ls = { type: 'tool-call', toolCallId: 'c', toolName: 'ls', input: { path: '.' }, providerOptions } as const;
const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c', signature: 'x' } as const;
const response = { type: 'tool-approval-response', approvalId: 'a', approved: true } as const;

const ASSISTANT: readonly (readonly [PartsOf<AssistantContent>, ContentBlock])[] = [
  [
    { type: 'text', text: 'so' },
    { type: 'text', text: 'so' },
  ],
  [
    { type: 'reasoning', text: 'hm', providerOptions },
    { type: 'thinking', text: 'hm' },
  ],
  [
    { type: 'reasoning-file', data: { type: 'data', data: 'AAAA' }, mediaType: 'image/png' },
    { type: 'image', data: 'AAAA', mime: 'image/png' },
  ],
  [
    { type: 'reasoning-file', data: url, mediaType: 'application/pdf' },
    { type: 'file', attachment_id: url.href, mime: 'application/pdf', name: '', size: 0 },
  ],
  [
    { type: 'file', data: 'AAAA', mediaType: 'image/png' },
    { type: 'image', data: 'AAAA', mime: 'image/png' },
  ],
  [
    { type: 'custom', kind: 'openai.compaction', providerOptions },
    { type: 'text', text: JSON.stringify({ type: 'custom', kind: 'openai.compaction', providerOptions }) },
  ],
  [ls, { type: 'function_call', id: 'c', function_id: 'ls', arguments: { path: '.' } }],
  [search, { type: 'text', text: JSON.stringify(search) }],
  [found, { type: 'text', text: JSON.stringify(found) }],
  [
    request,
    { type: 'function_call', id: 'tool-approval:a', function_id: 'tool-approval', arguments: { toolCallId: 'c' } },
  ],
];

const image = { type: 'image', data: 'AAAA', mime: 'image/png' } as const;
const OUTPUTS: readonly (readonly [ToolResultPart['output'], readonly ContentBlock[], boolean])[] = [
  [{ type: 'text', value: 'a\nb', providerOptions }, [{ type: 'text', text: 'a\nb' }], false],
  [{ type: 'json', value: { a: [1, null] } }, [{ type: 'text', text: '{"a":[1,null]}' }], false],
  [{ type: 'error-text', value: 'no' }, [{ type: 'text', text: 'no' }], true],
  [{ type: 'error-json', value: { code: 1 } }, [{ type: 'text', text: '{"code":1}' }], true],
  [{ type: 'execution-denied', reason: 'never' }, [{ type: 'text', text: 'never' }], true],
  [
    {
      type: 'content',
      value: [
        { type: 'text', text: 'see', providerOptions },
        { type: 'file', data: { type: 'data', data: 'AAAA' }, mediaType: 'image/png' },
        { type: 'file', data: { type: 'url', url }, mediaType: 'application/pdf' },
        { type: 'file-data', data: 'AAAA', mediaType: 'application/pdf', filename: 'b.pdf' },
        { type: 'file-url', url: url.href, mediaType: 'application/pdf' },
        { type: 'file-id', fileId: 'file-1' },
        { type: 'file-reference', providerReference: { openai: 'file-1' } },
        { type: 'image-data', data: 'AAAA', mediaType: 'image/png' },
        { type: 'image-url', url: url.href },
        { type: 'image-file-id', fileId: { openai: 'file-1' } },
        { type: 'image-file-reference', providerReference: { openai: 'file-1' } },
        { type: 'custom', providerOptions },
      ],
    },
    [
      { type: 'text', text: 'see' },
      image,
      { type: 'file', attachment_id: url.href, mime: 'application/pdf', name: '', size: 0 },
      { type: 'file', attachment_id: '', mime: 'application/pdf', name: 'b.pdf', size: 3 },
      { type: 'file', attachment_id: url.href, mime: 'application/pdf', name: '', size: 0 },
      { type: 'file', attachment_id: 'file-1', mime: '', name: '', size: 0 },
      { type: 'file', attachment_id: 'file-1', mime: '', name: '', size: 0 },
      image,
      { type: 'image', data: url.href, mime: 'image/*' },
      { type: 'image', data: 'file-1', mime: 'image/*' },
      { type: 'image', data: 'file-1', mime: 'image/*' },
      { type: 'text', text: JSON.stringify({ type: 'custom', providerOptions }) },
    ],
    false,
  ],
];

const result = (output: ToolResultPart['output']): ToolResultPart => ({
  type: 'tool-result',
  toolCallId: 'c',
  toolName: 'ls',
  output,
  providerOptions,
});

const MESSAGES: readonly ModelMessage[] = [
  { role: 'system', content: 'be brief', providerOptions },
  { role: 'user', content: 'hi', providerOptions },
  { role: 'assistant', content: 'so' },
  { role: 'user', content: USER.map(([part]) => part) },
  { role: 'assistant', content: ASSISTANT.map(([part]) => part), providerOptions },
  { role: 'tool', content: [...OUTPUTS.map(([output]) => result(output)), response], providerOptions },
];

describe('read', () => {
  it.each(USER)('maps %j of a user', (part, block) => {
    expect(blocks({ role: 'user', content: [part] })).toEqual([block]);
  });

  it.each(ASSISTANT)('maps %j of an assistant', (part, block) => {
    expect(blocks({ role: 'assistant', content: [part] })).toEqual([block]);
  });

  it.each(OUTPUTS)('maps output %j', (output, content, isError) => {
    expect(blocks({ role: 'tool', content: [result(output)] })).toEqual([
      { type: 'function_result', function_call_id: 'c', content, ...(isError && { is_error: true }) },
    ]);
  });

  it('pairs an approval with its request', () => {
    const content: ToolContent = [response, { ...response, approvalId: 'b', approved: false, reason: 'no' }];
    expect(blocks({ role: 'tool', content })).toEqual([
      { type: 'function_result', function_call_id: 'tool-approval:a', content: [] },
      {
        type: 'function_result',
        function_call_id: 'tool-approval:b',
        content: [{ type: 'text', text: 'no' }],
        is_error: true,
      },
    ]);
  });

  it('tells an answer as one that can say nothing else', () => {
    const { parts } = entry({ role: 'tool', content: [response, result({ type: 'text', value: 'x' })] });
    expect(parts.map(({ isFixed }) => isFixed)).toEqual([true, undefined]);
    const deaf = parts.map((part) =>
      part.block.type === 'function_result'
        ? edit(part, { ...part.block, content: [{ type: 'text', text: '[cut]' }] })
        : part,
    );
    expect(format.holdResults(deaf)['content']).toEqual([response, result({ type: 'text', value: '[cut]' })]);
  });

  it('tells a message whose provider has yet to answer', async () => {
    const waits = (content: readonly JsonObject[]): unknown => entryOf({ role: 'assistant', content }).isReference;
    expect(waits([search])).toBe(true);
    expect(waits([search, { ...found, toolCallId: 'other' }])).toBe(true);
    expect(waits([search, json(found)])).toBeUndefined();
    expect(waits([ls])).toBeUndefined();
    // What the package takes then
    const messages: ModelMessage[] = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [search] },
      { role: 'tool', content: [found] },
    ];
    const model = new MockLanguageModelV4({
      doGenerate: {
        content: [{ type: 'text', text: 'so' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: 1, text: 1, reasoning: undefined },
        },
        warnings: [],
      },
    });
    await generateText({ model, messages });
    expect(model.doGenerateCalls[0]?.prompt).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ toolCallId: 's', providerExecuted: true }] },
      { role: 'tool', content: [{ toolCallId: 's' }] },
    ]);
  });

  it('tells roles and paths', () => {
    expect(MESSAGES.map((message) => entry(message).role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
      'assistant',
      'results',
    ]);
    expect(entry({ role: 'user', content: 'hi' }).parts[0]?.path).toBe('/messages/0/content');
    expect(entry({ role: 'tool', content: [response] }).parts[0]?.path).toBe('/messages/0/content/0');
  });

  it.each([
    [{ role: 'developer', content: 'x' }, '/messages/0/role'],
    [{ role: 'toString', content: 'x' }, '/messages/0/role'],
    [{ role: 'system', content: [] }, '/messages/0/content'],
    [{ role: 'tool', content: 'x' }, '/messages/0/content'],
    [{ role: 'user' }, '/messages/0/content'],
    [{ role: 'user', content: [null] }, '/messages/0/content/0'],
    [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }, '/messages/0/content/0/type'],
    [{ role: 'assistant', content: [{ type: 'reasoning' }] }, '/messages/0/content/0/text'],
  ])('refuses %j, as the schema does', (native, path) => {
    expect(format.read(native, '/messages/0')).toMatchObject({ ok: false, problem: { code: 'invalid_request', path } });
    expect(schemaTakes(native)).toBe(false);
  });
});

describe('write', () => {
  it.each(MESSAGES)('gives back what nobody touched of %j', (message) => {
    const read = entryOf({ ...json(message), extra: { of: 'the caller' } });
    expect(format.write(read, read.parts)).toBe(read.native);
    expect(format.write(read, [...read.parts])).toBe(read.native);
    expect(canonicalJson(format.write({ ...read, parts: [] }, read.parts))).toBe(canonicalJson(read.native));
  });

  it('leaves the rest the very values where a part goes', () => {
    const read = entry({
      role: 'assistant',
      content: [{ type: 'text', text: 'so' }, ls, { ...ls, toolCallId: 'd' }],
      providerOptions,
    });
    const kept = read.parts.slice(0, 2);
    const written = format.write(read, kept);
    expect(written).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'so' }, ls], providerOptions });
    expect((written['content'] as readonly unknown[])[1]).toBe(kept[1]?.native);
  });

  it.each<readonly [ToolResultPart['output'], ToolResultPart['output']]>([
    [
      { type: 'json', value: { a: 1 }, providerOptions },
      { type: 'text', value: '[cut]', providerOptions },
    ],
    [
      { type: 'error-json', value: { a: 1 } },
      { type: 'error-text', value: '[cut]' },
    ],
    [
      { type: 'execution-denied', reason: 'long' },
      { type: 'execution-denied', reason: '[cut]' },
    ],
    [
      {
        type: 'content',
        value: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { type: 'text', value: '[cut]' },
    ],
  ])('writes an edited %j as %j', (before, after) => {
    const read = entry({ role: 'tool', content: [result(before)], providerOptions });
    const parts = read.parts.map((part) =>
      part.block.type === 'function_result'
        ? edit(part, { ...part.block, content: [{ type: 'text', text: '[cut]' }] })
        : part,
    );
    expect(format.write(read, parts)).toEqual({ role: 'tool', content: [result(after)], providerOptions });
  });

  it('keeps the items of an edited output that say the same', () => {
    const file = {
      type: 'file',
      data: { type: 'data', data: 'AAAA' },
      mediaType: 'image/png',
      providerOptions,
    } as const;
    const read = entry({
      role: 'tool',
      content: [result({ type: 'content', value: [{ type: 'text', text: 'long' }, file] })],
    });
    const [part] = read.parts;
    if (part?.block.type !== 'function_result') throw new Error('no result');
    const written = format.write(read, [edit(part, { ...part.block, content: [{ type: 'text', text: 'l' }, image] })]);
    expect(written['content']).toEqual([result({ type: 'content', value: [{ type: 'text', text: 'l' }, file] })]);
  });

  it('renames results, calls and approvals without touching what they say', () => {
    const results = entry({ role: 'tool', content: [...OUTPUTS.map(([output]) => result(output)), response] });
    const renamed = results.parts.map((part) =>
      part.block.type === 'function_result'
        ? edit(part, { ...part.block, function_call_id: part.block.function_call_id + '2' })
        : part,
    );
    expect(format.write(results, renamed)['content']).toEqual(
      json([
        ...OUTPUTS.map(([output]) => ({ ...result(output), toolCallId: 'c2' })),
        { ...response, approvalId: 'a2' },
      ]),
    );
    const calls = entry({ role: 'assistant', content: [ls, request] });
    const again = calls.parts.map((part) =>
      part.block.type === 'function_call' ? edit(part, { ...part.block, id: part.block.id + '2' }) : part,
    );
    expect(format.write(calls, again)['content']).toEqual([
      { ...ls, toolCallId: 'c2' },
      { ...request, approvalId: 'a2', toolCallId: 'c2' },
    ]);
  });

  const renamed = (native: JsonObject, ids: readonly (string | undefined)[]): unknown => {
    const read = entryOf(native);
    const parts = read.parts.map((part, at) => {
      const id = ids[at];
      if (id === undefined) return part;
      if (part.block.type === 'function_call') return edit(part, { ...part.block, id });
      if (part.block.type === 'function_result') return edit(part, { ...part.block, function_call_id: id });
      throw new Error('no id');
    });
    const written = format.write(read, parts)['content'];
    if (read.role === 'results') expect(format.holdResults(parts)['content']).toEqual(written);
    return written;
  };

  it('gives an approval a new id in its own form', () => {
    const nameless = { ...request, approvalId: '', reason: 'sure?', isAutomatic: true };
    expect(renamed({ role: 'assistant', content: [ls, nameless] }, [undefined, 'call_1'])).toEqual([
      ls,
      { ...nameless, approvalId: 'call_1' },
    ]);
    const answer = { ...response, approvalId: '', reason: 'why not', providerExecuted: true };
    expect(renamed({ role: 'tool', content: [answer] }, ['call_1'])).toEqual([{ ...answer, approvalId: 'call_1' }]);
    // And a call whose id looks like an approval's stays a call
    const odd = { ...ls, toolCallId: 'tool-approval:x' };
    expect(renamed({ role: 'assistant', content: [odd] }, ['tool-approval:y'])).toEqual([
      { ...odd, toolCallId: 'tool-approval:y' },
    ]);
  });

  it('lets requests for approval follow their calls', () => {
    const ask = (approvalId: string, toolCallId: string): JsonObject => ({ ...request, approvalId, toolCallId });
    const content = [ls, { ...ls, input: 2 }, { ...ls, toolCallId: 'd' }, ask('a', 'c'), ask('b', 'c'), ask('e', 'd')];
    const native = { role: 'assistant', content };
    expect(renamed(native, [undefined, 'call_1', undefined, undefined, 'x'])).toEqual([
      ls,
      { ...ls, input: 2, toolCallId: 'call_1' },
      content[2],
      ask('a', 'c'),
      ask('x', 'call_1'),
      ask('e', 'd'),
    ]);
    expect(renamed(native, ['call_1', 'call_2', 'call_3'])).toEqual([
      { ...ls, toolCallId: 'call_1' },
      { ...ls, input: 2, toolCallId: 'call_2' },
      { ...ls, toolCallId: 'call_3' },
      ask('a', 'call_1'),
      ask('b', 'call_2'),
      ask('e', 'call_3'),
    ]);
    // One call, asked for twice
    expect(renamed({ role: 'assistant', content: [ls, ask('a', 'c'), ask('b', 'c')] }, ['call_1'])).toEqual([
      { ...ls, toolCallId: 'call_1' },
      ask('a', 'call_1'),
      ask('b', 'call_1'),
    ]);
  });

  it.each<readonly [string, JsonObject]>([
    ['assistant', { type: 'tool-call', toolCallId: '', toolName: 7 }],
    ['assistant', { type: 'tool-call', toolCallId: '', toolName: '', input: null, x: 1 }],
    ['tool', { type: 'tool-result', toolCallId: '' }],
    ['tool', { type: 'tool-result', toolCallId: '', toolName: '', output: 'text', x: 1 }],
  ])('changes nothing but an id in the %s part %j', (role, part) => {
    expect(renamed({ role, content: [part] }, ['call_1'])).toEqual([{ ...part, toolCallId: 'call_1' }]);
  });

  it('keeps items that say the same in their order', () => {
    const item = (cached: number): JsonObject => ({ type: 'text', text: 'same', providerOptions: { x: { cached } } });
    const read = entryOf({
      role: 'tool',
      content: [{ ...found, output: { type: 'content', value: [item(1), item(2), item(3)] } }],
    });
    const [part] = read.parts;
    if (part?.block.type !== 'function_result') throw new Error('no result');
    const [same] = part.block.content;
    if (!same) throw new Error('no content');
    const written = format.write(read, [
      edit(part, { ...part.block, content: [same, same, { type: 'text', text: '[cut]' }] }),
    ]);
    expect(written['content']).toEqual([
      { ...found, output: { type: 'content', value: [item(1), item(2), { type: 'text', text: '[cut]' }] } },
    ]);
  });

  it('edits whole texts', () => {
    for (const role of ['system', 'user', 'assistant'] as const) {
      const read = entry({ role, content: 'long', providerOptions });
      const parts = read.parts.map((part) => edit(part, { type: 'text', text: 'l' }));
      expect(format.write(read, parts)).toEqual({ role, content: 'l', providerOptions });
    }
    const system = entry({ role: 'system', content: 'a' });
    expect(format.write(system, [...system.parts, { block: { type: 'text', text: 'b' }, path: '' }])).toEqual({
      role: 'system',
      content: 'a\n\nb',
    });
  });

  it('makes new parts that the schema takes', () => {
    const made: readonly ContentBlock[] = [
      { type: 'text', text: 'new' },
      image,
      { type: 'file', attachment_id: url.href, mime: 'application/pdf', name: 'a.pdf', size: 1 },
      { type: 'thinking', text: 'hm' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'function_call', id: 'n', function_id: 'ls' },
    ];
    const read = entry({ role: 'assistant', content: 'so' });
    const written = format.write(read, [...read.parts, ...made.map((block) => ({ block, path: '' }))]);
    const content: AssistantContent = [
      { type: 'text', text: 'so' },
      { type: 'text', text: 'new' },
      { type: 'file', data: 'AAAA', mediaType: 'image/png' },
      { type: 'file', data: url.href, mediaType: 'application/pdf', filename: 'a.pdf' },
      { type: 'reasoning', text: 'hm' },
      { type: 'reasoning', text: '' },
      { type: 'tool-call', toolCallId: 'n', toolName: 'ls', input: {} },
    ];
    expect(written).toEqual({ role: 'assistant', content });
    expect(schemaTakes(written)).toBe(true);
  });

  it('holds results in a tool message that the schema takes', () => {
    const stub = (id: string): Part => ({
      block: {
        type: 'function_result',
        function_call_id: id,
        content: [{ type: 'text', text: 'aborted' }],
        is_error: true,
      },
      path: '',
    });
    const supplied = entry({ role: 'tool', content: [result({ type: 'text', value: 'x' })] }).parts;
    const held = format.holdResults([...supplied, stub('c'), stub('tool-approval:a')]);
    const asking = entry({ role: 'assistant', content: [request] }).parts[0];
    const answer = format.holdResults([{ ...stub('call_1'), ...(asking && { answers: asking }) }]);
    expect(answer['content']).toEqual([
      { type: 'tool-approval-response', approvalId: 'call_1', approved: false, reason: 'aborted' },
    ]);
    expect(held).toEqual({
      role: 'tool',
      content: [
        result({ type: 'text', value: 'x' }),
        { type: 'tool-result', toolCallId: 'c', toolName: 'unknown', output: { type: 'error-text', value: 'aborted' } },
        { type: 'tool-approval-response', approvalId: 'a', approved: false, reason: 'aborted' },
      ],
    });
    expect(schemaTakes(held)).toBe(true);
  });
});

describe('beside the array', () => {
  const message: SystemModelMessage = { role: 'system', content: 'be brief', providerOptions };
  const more: SystemModelMessage = { role: 'system', content: 'more' };
  it.each<readonly [unknown, readonly string[], unknown]>([
    [undefined, [], 'more'],
    ['be brief', ['be brief'], 'be brief\n\nmore'],
    [message, ['be brief'], [message, more]],
    [[message], ['be brief'], [message, more]],
  ])('reads and extends system %j', (system, texts, extended) => {
    expect(format.readSystem(system, '/system')).toEqual({ ok: true, value: texts });
    const messages = [{ role: 'user', content: 'hi' }];
    const longer = format.addInstruction({ messages, system }, 'more');
    expect(longer).toEqual({ messages, system: extended });
    if (Array.isArray(longer.system)) expect(longer.system[0]).toBe(message);
  });

  it.each([
    [5, '/system'],
    [{ role: 'user', content: 'x' }, '/system'],
    [[message, { role: 'system', content: [] }], '/system/1'],
  ])('refuses system %j', (system, path) => {
    expect(format.readSystem(system, '/system')).toMatchObject({ ok: false, problem: { path } });
  });

  it('reads a ToolSet as JSON, or a list', () => {
    const schema = { type: 'object', properties: {} } as const;
    const web = { type: 'provider', id: 'openai.web_search', args: {} };
    const set = json({
      ls: tool({ description: 'list', inputSchema: jsonSchema(schema) }),
      cd: { inputSchema: schema },
      web,
    });
    const functions = [
      { name: 'ls', description: 'list', parameters: schema },
      { name: 'cd', description: '', parameters: schema },
      { name: 'provider', description: '', parameters: web },
    ];
    expect(format.readTools(set, '/tools')).toEqual({ ok: true, value: functions });
    const list = [{ type: 'function', name: 'ls', description: 'list', inputSchema: schema }];
    expect(format.readTools(list, '/tools')).toEqual({ ok: true, value: functions.slice(0, 1) });
    expect(format.readTools(undefined, '/tools')).toEqual({ ok: true, value: [] });
    expect(format.readTools('x', '/tools')).toMatchObject({ ok: false, problem: { path: '/tools' } });
    expect(format.readTools({ 'a/b': 5 }, '/tools')).toMatchObject({ ok: false, problem: { path: '/tools/a~1b' } });
    expect(format.readTools([{}], '/tools')).toMatchObject({ ok: false, problem: { path: '/tools/0/name' } });
  });
});

/** In JSON a URL is a text: the schema gets what it was before. */
function revive(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(revive);
  if (!isJsonObject(value)) return value;
  const isUrl = value['type'] === 'url' && typeof value['url'] === 'string';
  return isUrl
    ? { ...value, url }
    : Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(item)]));
}

const schemaTakes = (native: JsonObject): boolean => modelMessageSchema.safeParse(revive(native)).success;

const faults = (native: JsonObject): readonly string[] =>
  format.faults(entryOf(native)).map(({ rule, path }) => `${rule} ${path}`);

describe('faults', () => {
  it.each(MESSAGES)('finds none in %j', (message) => {
    expect(modelMessageSchema.safeParse(message).success).toBe(true);
    expect(faults(json(message))).toEqual([]);
  });

  it.each<readonly [JsonObject, readonly string[]]>([
    [{ role: 'user', content: 'hi', providerOptions: 'x' }, ['bad-field /messages/0/providerOptions']],
    [
      { role: 'assistant', content: [{ ...ls, toolCallId: undefined }] },
      ['missing-id /messages/0/content/0/toolCallId'],
    ],
    [{ role: 'assistant', content: [{ ...ls, toolCallId: 5 }] }, ['bad-id /messages/0/content/0/toolCallId']],
    [{ role: 'assistant', content: [{ ...ls, toolName: null }] }, ['bad-name /messages/0/content/0/toolName']],
    [{ role: 'user', content: [ls] }, ['wrong-role /messages/0/content/0']],
    [{ role: 'tool', content: [{ type: 'text', text: 'x' }] }, ['wrong-role /messages/0/content/0']],
    [{ role: 'tool', content: [{ ...found, output: 'plain' }] }, ['bad-field /messages/0/content/0/output']],
    [
      { role: 'tool', content: [{ ...found, output: { type: 'content', value: [{ type: 'x' }] } }] },
      ['bad-field /messages/0/content/0/output'],
    ],
    [{ role: 'tool', content: [{ ...response, approved: 'yes' }] }, ['bad-field /messages/0/content/0/approved']],
    [{ role: 'user', content: [{ type: 'file', data: 'AAAA' }] }, ['bad-field /messages/0/content/0/mediaType']],
  ])('finds what the schema refuses of %j', (native, expected) => {
    expect(schemaTakes(native)).toBe(false);
    expect(faults(native)).toEqual(expected);
  });

  it('finds empty ids and names, which the schema takes', () => {
    expect(faults({ role: 'assistant', content: [{ ...ls, toolCallId: '', toolName: '' }] })).toEqual([
      'missing-id /messages/0/content/0/toolCallId',
      'bad-name /messages/0/content/0/toolName',
    ]);
    expect(faults({ role: 'assistant', content: [{ ...request, approvalId: '' }] })).toEqual([
      'missing-id /messages/0/content/0/approvalId',
    ]);
    // Another id would not mend it
    expect(faults({ role: 'assistant', content: [{ ...request, toolCallId: '' }] })).toEqual([
      'bad-field /messages/0/content/0/toolCallId',
    ]);
  });
});

function holds(native: JsonObject): void {
  const read = format.read(native, '/messages/0');
  if (!read.ok) {
    expect(read.problem).toMatchObject({ code: 'invalid_request', path: expect.stringMatching(/^\/messages\/0/) });
    expect(schemaTakes(native)).toBe(false);
    return;
  }
  expect(format.write(read.value, [...read.value.parts])).toBe(native);
  const copy = format.write({ ...read.value, parts: [] }, read.value.parts);
  expect(canonicalJson(copy)).toBe(canonicalJson(native));
  const edited = read.value.parts.map((part) => ({ ...part, edited: true as const }));
  expect(format.read(format.write(read.value, edited), '/messages/0').ok).toBe(true);
  const faulty = format
    .faults(read.value)
    .filter(({ detail }) => !detail.endsWith('that is not empty') || !takesEmpty(native));
  expect(faulty.length === 0).toBe(schemaTakes(native));
}

/** Whether an id or a name is empty, which only we refuse. */
const takesEmpty = (native: JsonObject): boolean =>
  /"(?:toolCallId|approvalId|toolName)":""/.test(JSON.stringify(native));

const FIELD = fc.constantFrom(
  'type',
  'text',
  'image',
  'data',
  'mediaType',
  'filename',
  'toolCallId',
  'toolName',
  'approvalId',
  'approved',
  'reason',
  'output',
  'providerOptions',
  'providerExecuted',
  'kind',
);
const samples = MESSAGES.flatMap(({ content }) =>
  typeof content === 'string' ? [] : content.map((part) => json(part)),
);
const items = OUTPUTS.flatMap(([output]) => (output.type === 'content' ? output.value.map((item) => json(item)) : []));
const anything = fc.oneof(
  fc.constant(undefined),
  fc.jsonValue({ maxDepth: 3 }),
  fc.dictionary(fc.string(), fc.string()),
);

describe('anything else', () => {
  it('agrees with the schema about what is nearly a message', () => {
    const message = fc.record({
      role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'x'),
      part: fc.constantFrom(...samples),
      field: FIELD,
      value: anything,
    });
    fc.assert(
      fc.property(message, ({ role, part, field, value }) => {
        holds(json({ role, content: [{ ...part, [field]: value }] }));
      }),
      { numRuns: 1000 },
    );
  });

  it('agrees with the schema about what is nearly an output', () => {
    const field = fc.constantFrom(
      'type',
      'text',
      'data',
      'url',
      'fileId',
      'providerReference',
      'mediaType',
      'filename',
      'providerOptions',
    );
    const item = fc.record({ item: fc.constantFrom(...items), field, value: anything });
    const output = fc.record({
      output: fc.constantFrom(...OUTPUTS.map(([of]) => json(of))),
      field: fc.constantFrom('type', 'value', 'reason', 'providerOptions'),
      value: anything,
    });
    fc.assert(
      fc.property(
        fc.oneof(
          item.map((of) => ({ type: 'content', value: [{ ...of.item, [of.field]: of.value }] })),
          output.map((of) => ({ ...of.output, [of.field]: of.value })),
        ),
        (of) => {
          holds(json({ role: 'tool', content: [{ ...found, output: of }] }));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('agrees with the schema about any object', () => {
    const message = fc.record({
      role: fc.constantFrom('user', 'assistant', 'system', 'tool'),
      content: fc.jsonValue(),
      providerOptions: anything,
    });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), message), (value) => {
        if (isJsonObject(value)) holds(json(value));
        format.readSystem(value, '/system');
        format.readTools(value, '/tools');
        format.addInstruction({ messages: [], system: value }, 'x');
      }),
    );
  });
});
