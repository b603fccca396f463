import * as fc from 'fast-check';
import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources/chat/completions';
import { describe, expect, it, test } from 'vitest';
import { isJsonObject, type JsonObject } from '../../json.ts';
import { canonicalJson } from '../../provenance/canonical.ts';
import type { ContentBlock } from '../message.ts';
import type { Entry, Part } from './format.ts';
import { openaiChat } from './openai-chat.ts';

const PATH = '/messages/3';

/** As a request has it: JSON, so that no test leans on the type of the package. */
const wire = (message: ChatCompletionMessageParam): JsonObject => ({ ...message });

function readEntry(message: JsonObject): Entry {
  const read = openaiChat.read(message, PATH);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return read.value;
}

const blocksOf = (message: JsonObject): readonly ContentBlock[] => readEntry(message).parts.map(({ block }) => block);
const rulesOf = (message: JsonObject): string[] =>
  openaiChat.faults(readEntry(message)).map(({ rule, path }) => `${rule} ${path}`);
const problemOf = (message: JsonObject): unknown => {
  const read = openaiChat.read(message, PATH);
  return read.ok ? undefined : read.problem;
};

const twoCalls: ChatCompletionMessageParam = {
  role: 'assistant',
  content: 'Both at once.',
  tool_calls: [
    { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{ "city": "Oslo" }' } },
    { id: 'call_b', type: 'custom', custom: { name: 'shell', input: 'ls -l' } },
  ],
};

const MESSAGES: Readonly<
  Record<string, { message: ChatCompletionMessageParam; role: Entry['role']; blocks: ContentBlock[] }>
> = {
  'a system text': {
    message: { role: 'system', content: 'Be brief.' },
    role: 'system',
    blocks: [{ type: 'text', text: 'Be brief.' }],
  },
  "a developer's parts": {
    message: { role: 'developer', name: 'ops', content: [{ type: 'text', text: 'Be brief.' }] },
    role: 'system',
    blocks: [{ type: 'text', text: 'Be brief.' }],
  },
  'a user with everything': {
    message: {
      role: 'user',
      content: [
        { type: 'text', text: 'Look:', prompt_cache_breakpoint: { mode: 'explicit' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0K', detail: 'low' } },
        { type: 'image_url', image_url: { url: 'https://example.com/a.jpg' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'file', file: { file_id: 'file_1' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAAAAAA' } },
      ],
    },
    role: 'user',
    blocks: [
      { type: 'text', text: 'Look:' },
      { type: 'image', data: 'iVBORw0K', mime: 'image/png' },
      { type: 'image', data: 'https://example.com/a.jpg', mime: 'image/*' },
      { type: 'file', attachment_id: '', mime: 'audio/wav', name: '', size: 3 },
      { type: 'file', attachment_id: 'file_1', mime: 'application/octet-stream', name: '', size: 0 },
      { type: 'file', attachment_id: '', mime: 'application/pdf', name: 'a.pdf', size: 6 },
    ],
  },
  'calls of both kinds': {
    message: twoCalls,
    role: 'assistant',
    blocks: [
      { type: 'text', text: 'Both at once.' },
      { type: 'function_call', id: 'call_a', function_id: 'weather', arguments: { city: 'Oslo' } },
      { type: 'function_call', id: 'call_b', function_id: 'shell', arguments: 'ls -l' },
    ],
  },
  'a refusal as part': {
    message: { role: 'assistant', content: [{ type: 'refusal', refusal: 'I cannot.' }] },
    role: 'assistant',
    blocks: [{ type: 'text', text: 'I cannot.' }],
  },
  'a refusal as field': {
    message: { role: 'assistant', content: null, refusal: 'I cannot.' },
    role: 'assistant',
    blocks: [{ type: 'text', text: 'I cannot.' }],
  },
  'an earlier audio answer': {
    message: { role: 'assistant', content: null, audio: { id: 'audio_1' }, function_call: null },
    role: 'assistant',
    blocks: [],
  },
  'a result as text': {
    message: { role: 'tool', tool_call_id: 'call_a', content: '4 degrees' },
    role: 'results',
    blocks: [{ type: 'function_result', function_call_id: 'call_a', content: [{ type: 'text', text: '4 degrees' }] }],
  },
  'a result as parts': {
    message: {
      role: 'tool',
      tool_call_id: 'call_a',
      content: [
        { type: 'text', text: '4' },
        { type: 'text', text: '°' },
      ],
    },
    role: 'results',
    blocks: [
      {
        type: 'function_result',
        function_call_id: 'call_a',
        content: [
          { type: 'text', text: '4' },
          { type: 'text', text: '°' },
        ],
      },
    ],
  },
};

describe('every kind of message', () => {
  test.each(Object.entries(MESSAGES))(
    '%s is read, written back as it was, and refused by no rule',
    (_, { message, role, blocks }) => {
      const native = wire(message);
      const before = canonicalJson(native);
      const entry = readEntry(native);
      expect(entry).toMatchObject({ role, path: PATH });
      expect(entry.native).toBe(native);
      expect(entry.parts.map(({ block }) => block)).toEqual(blocks);
      expect(entry.parts.every((part) => part.native !== undefined && part.path.startsWith(PATH))).toBe(true);
      expect(openaiChat.write(entry, [...entry.parts])).toBe(native);
      expect(canonicalJson(native)).toBe(before);
      expect(openaiChat.faults(entry)).toEqual([]);
    },
  );

  it('points at each part', () => {
    expect(readEntry(wire(twoCalls)).parts.map(({ path }) => path)).toEqual([
      '/messages/3/content',
      '/messages/3/tool_calls/0',
      '/messages/3/tool_calls/1',
    ]);
    const refusal = wire({ role: 'assistant', content: [{ type: 'text', text: 'a' }], refusal: 'b' });
    expect(readEntry(refusal).parts.map(({ path }) => path)).toEqual(['/messages/3/content/0', '/messages/3/refusal']);
  });

  it('keeps arguments that are no exact JSON as their text', () => {
    const argumentsOf = (text: string): unknown => {
      const call = { id: 'c', type: 'function', function: { name: 'f', arguments: text } } as const;
      const [block] = blocksOf(wire({ role: 'assistant', tool_calls: [call] }));
      return block?.type === 'function_call' ? block.arguments : undefined;
    };
    expect(argumentsOf('{"a":[1,"\\u00e9",null]}')).toEqual({ a: [1, 'é', null] });
    for (const text of [
      '',
      '{"a":',
      "{'a':1}",
      '{"id":9007199254740993}',
      '"\\ud800"',
      '['.repeat(99) + ']'.repeat(99),
    ]) {
      expect(argumentsOf(text)).toBe(text);
    }
  });

  it('counts a block that it does not know by its JSON, and says that the API refuses it', () => {
    const native = { role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://example.com' } }] };
    expect(blocksOf(native)).toEqual([{ type: 'text', text: JSON.stringify(native.content[0]) }]);
    expect(rulesOf(native)).toEqual(['bad-block /messages/3/content/0']);
  });
});

describe('write', () => {
  const entry = readEntry({ ...wire(twoCalls), name: 'planner' });
  const [text, first, second] = entry.parts;
  if (!text || !first || !second) throw new Error('the message has three parts');

  it('shrinks tool_calls, and the field goes with the last call', () => {
    expect(openaiChat.write(entry, [text, second])).toEqual({
      ...entry.native,
      tool_calls: [twoCalls.tool_calls?.[1]],
    });
    const silent = openaiChat.write(entry, [text]);
    expect(silent).toEqual({ role: 'assistant', content: 'Both at once.', name: 'planner' });
    expect(rulesOf(silent)).toEqual([]);
  });

  it('leaves content as the API takes it when its text is gone', () => {
    expect(openaiChat.write(entry, [first])).toMatchObject({ content: null, tool_calls: [{ id: 'call_a' }] });
    expect(openaiChat.write(entry, [])).toEqual({ role: 'assistant', content: '', name: 'planner' });
    const onlyCall = readEntry(wire({ ...twoCalls, content: null }));
    expect(openaiChat.write(onlyCall, [])).toEqual({ role: 'assistant', content: '' });
    const spoken = readEntry(wire({ ...twoCalls, content: null, audio: { id: 'audio_1' } }));
    expect(openaiChat.write(spoken, [])).toEqual({ role: 'assistant', content: null, audio: { id: 'audio_1' } });
    const user = readEntry(wire({ role: 'user', content: [{ type: 'text', text: 'a' }] }));
    expect(openaiChat.write(user, [])).toEqual({ role: 'user', content: '' });
  });

  it('renders what is edited and nothing else', () => {
    const block: ContentBlock = {
      type: 'function_call',
      id: 'new',
      function_id: 'weather',
      arguments: { city: 'Oslo' },
    };
    const renamed = openaiChat.write(entry, [text, { ...first, block, edited: true }, second]);
    const calls = twoCalls.tool_calls ?? [];
    expect(renamed.tool_calls).toEqual([{ ...calls[0], id: 'new' }, calls[1]]);
    expect(Array.isArray(renamed.tool_calls) && renamed.tool_calls[1]).toBe(calls[1]);

    const rewritten: Part = { ...first, block: { ...block, arguments: { city: 'Bergen' } }, edited: true };
    expect(openaiChat.write(entry, [text, rewritten]).tool_calls).toMatchObject([
      { function: { name: 'weather', arguments: '{"city":"Bergen"}' } },
    ]);
    const custom: Part = { ...second, block: { ...block, function_id: 'shell', arguments: 'pwd' }, edited: true };
    expect(openaiChat.write(entry, [text, custom]).tool_calls).toEqual([
      { id: 'new', type: 'custom', custom: { name: 'shell', input: 'pwd' } },
    ]);
    const said: Part = { ...text, block: { type: 'text', text: 'Edited.' }, edited: true };
    expect(openaiChat.write(entry, [said, first, second])).toEqual({ ...entry.native, content: 'Edited.' });
  });

  it('edits blocks and refusals in their own form', () => {
    const edited = (message: ChatCompletionMessageParam, block: ContentBlock): unknown => {
      const read = readEntry(wire(message));
      return openaiChat.write(
        read,
        read.parts.map((part) => ({ ...part, block, edited: true as const })),
      );
    };
    const x: ContentBlock = { type: 'text', text: 'x' };
    const cached = { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } } as const;
    expect(edited({ role: 'user', content: [cached] }, x)).toEqual({
      role: 'user',
      content: [{ ...cached, text: 'x' }],
    });
    expect(edited({ role: 'assistant', content: [{ type: 'refusal', refusal: 'a' }] }, x)).toEqual({
      role: 'assistant',
      content: [{ type: 'refusal', refusal: 'x' }],
    });
    expect(edited({ role: 'assistant', content: null, refusal: 'a' }, x)).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'x',
    });
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a', detail: 'low' } } as const;
    expect(edited({ role: 'user', content: [image] }, { type: 'image', data: 'AAAA', mime: 'image/png' })).toEqual({
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } }],
    });
    expect(edited({ role: 'user', content: [image] }, x)).toEqual({
      role: 'user',
      content: [{ type: 'text', text: 'x' }],
    });
  });

  it('drops a refusal without touching the rest', () => {
    const read = readEntry(wire({ role: 'assistant', content: 'a', refusal: 'b' }));
    expect(openaiChat.write(read, read.parts.slice(0, 1))).toEqual({ role: 'assistant', content: 'a', refusal: null });
  });

  it('takes new parts', () => {
    const made = (block: ContentBlock): Part => ({ block, path: PATH });
    const read = readEntry(wire({ role: 'user', content: 'Hello' }));
    const image: ContentBlock = { type: 'image', data: 'AAAA', mime: 'image/png' };
    expect(openaiChat.write(read, [...read.parts, made({ type: 'text', text: 'there' }), made(image)])).toEqual({
      role: 'user',
      content: [
        { type: 'text', text: 'Hello' },
        { type: 'text', text: 'there' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      ],
    });
    expect(openaiChat.write(read, [made({ type: 'text', text: 'Only this' })])).toEqual({
      role: 'user',
      content: 'Only this',
    });
    const call: ContentBlock = { type: 'function_call', id: 'c', function_id: 'f' };
    expect(openaiChat.write(readEntry({ role: 'assistant', content: 'a' }), [made(call)])).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    });
  });
});

describe('results', () => {
  const edit = (message: JsonObject, content: readonly ContentBlock[]): JsonObject => {
    const entry = readEntry(message);
    const [part] = entry.parts;
    if (part?.block.type !== 'function_result') throw new Error('this is a result');
    return openaiChat.write(entry, [{ ...part, block: { ...part.block, content }, edited: true }]);
  };
  const short: ContentBlock = { type: 'text', text: '[pruned]' };

  it('keep every other field when they are edited', () => {
    const native = { role: 'tool', tool_call_id: 'call_a', content: 'long', name: 'weather', cache: { ttl: 1 } };
    expect(edit(native, [short])).toEqual({ ...native, content: '[pruned]' });
    const cached = { type: 'text', text: 'kept', cache_control: { type: 'ephemeral' } };
    const list = { ...native, content: [{ type: 'text', text: 'long' }, cached] };
    expect(edit(list, [short, { type: 'text', text: 'kept' }])).toEqual({ ...native, content: [short, cached] });
    expect(edit(list, [])).toEqual({ ...native, content: '' });
    const twins = [{ type: 'text', text: 'kept' }, cached, { type: 'text', text: 'long' }];
    const same: ContentBlock = { type: 'text', text: 'kept' };
    expect(edit({ ...native, content: twins }, [same, same, short]).content).toEqual([twins[0], cached, short]);
  });

  it.each<JsonObject>([
    { role: 'tool', content: null },
    { role: 'tool', tool_call_id: 7, content: [] },
    { role: 'tool', tool_call_id: '', content: [{ type: 'text', text: 'a', x: 1 }], name: 7 },
    { role: 'assistant', content: [], tool_calls: [{ id: '', function: { name: 7, arguments: { a: 1 } } }] },
    { role: 'assistant', content: null, tool_calls: [{ type: 'function', function: {} }] },
    { role: 'assistant', content: '', tool_calls: [{ id: null, type: 'x', function: { arguments: null } }] },
    { role: 'assistant', tool_calls: [{ id: '', custom: { name: '', input: 5 }, index: 0 }] },
  ])('and calls change nothing but an id in %j', (native) => {
    const entry = readEntry(native);
    const parts = entry.parts.flatMap((part): Part[] => {
      if (part.block.type === 'function_result')
        return [{ ...part, block: { ...part.block, function_call_id: 'new' }, edited: true }];
      return part.block.type === 'function_call'
        ? [{ ...part, block: { ...part.block, id: 'new' }, edited: true }]
        : [part];
    });
    const { tool_calls } = native as { tool_calls?: readonly JsonObject[] };
    expect(openaiChat.write(entry, parts)).toEqual({
      ...native,
      ...(tool_calls ? { tool_calls: tool_calls.map((call) => ({ ...call, id: 'new' })) } : { tool_call_id: 'new' }),
    });
  });

  it('are held in messages of their own', () => {
    const native = wire({ role: 'tool', tool_call_id: 'call_a', content: 'x' });
    const [part] = readEntry(native).parts;
    if (!part) throw new Error('a result has a part');
    expect(openaiChat.holdResults([part])).toBe(native);
    const block: ContentBlock = { type: 'function_result', function_call_id: 'call_z', content: [short] };
    expect(openaiChat.holdResults([{ block, path: PATH }])).toEqual(
      wire({ role: 'tool', tool_call_id: 'call_z', content: '[pruned]' }),
    );
    expect(() => openaiChat.holdResults([part, part])).toThrow(RangeError);
  });
});

describe('what cannot be mapped', () => {
  test.each<[string, JsonObject, string]>([
    ['no role', { content: 'a' }, '/role'],
    ['a role of another API', { role: 'model', content: 'a' }, '/role'],
    ['a name of Object.prototype as role', { role: 'constructor', content: 'a' }, '/role'],
    ['the deprecated role', { role: 'function', name: 'f', content: 'a' }, '/role'],
    [
      'the deprecated call',
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } },
      '/function_call',
    ],
    ['a number as content', { role: 'user', content: 1 }, '/content'],
    ['an object as content', { role: 'user', content: { type: 'text', text: 'a' } }, '/content'],
    ['a text as block', { role: 'user', content: [{ type: 'text', text: 'a' }, 'b'] }, '/content/1'],
    ['a block without type', { role: 'user', content: [{ text: 'a' }] }, '/content/0'],
    ['a text block without text', { role: 'user', content: [{ type: 'text' }] }, '/content/0/text'],
    ['an image without URL', { role: 'user', content: [{ type: 'image_url', image_url: {} }] }, '/content/0/image_url'],
    ['calls that are no list', { role: 'assistant', tool_calls: {} }, '/tool_calls'],
    ['a call of nothing', { role: 'assistant', tool_calls: [{ id: 'c', type: 'function' }] }, '/tool_calls/0'],
    ['no call', { role: 'assistant', tool_calls: [null] }, '/tool_calls/0'],
  ])('%s is refused with its pointer', (_, message, pointer) => {
    expect(problemOf(message)).toMatchObject({ code: 'invalid_request', path: `${PATH}${pointer}` });
  });
});

describe('what the API refuses', () => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const calling = (...tool_calls: unknown[]): JsonObject => ({ role: 'assistant', content: null, tool_calls });
  test.each<[string, JsonObject, string[]]>([
    ['an empty list of calls', calling(), ['empty-list /messages/3/tool_calls']],
    ['null for calls', { role: 'assistant', content: 'a', tool_calls: null }, ['bad-field /messages/3/tool_calls']],
    ['an assistant that says nothing', { role: 'assistant', content: null }, ['empty-message /messages/3/content']],
    ['a user without content', { role: 'user' }, ['empty-message /messages/3/content']],
    ['a result of null', { role: 'tool', tool_call_id: 'c', content: null }, ['bad-field /messages/3/content']],
    ['a result of no call', { role: 'tool', content: 'a' }, ['missing-id /messages/3/tool_call_id']],
    ['an empty list of blocks', { role: 'user', content: [] }, ['empty-list /messages/3/content']],
    ['a call without id', calling({ ...call, id: undefined }), ['missing-id /messages/3/tool_calls/0/id']],
    ['an empty id', calling({ ...call, id: '' }), ['missing-id /messages/3/tool_calls/0/id']],
    ['65 characters of id', calling({ ...call, id: 'c'.repeat(65) }), ['bad-id /messages/3/tool_calls/0/id']],
    ['64 characters of id', calling({ ...call, id: 'c'.repeat(64) }), []],
    ['one id twice', calling(call, call), ['duplicate-id /messages/3/tool_calls/1/id']],
    [
      'a name with a dot',
      calling({ ...call, function: { name: 'a.b', arguments: '' } }),
      ['bad-name /messages/3/tool_calls/0/function/name'],
    ],
    [
      'a name of 65',
      calling({ ...call, function: { name: 'a'.repeat(65), arguments: '' } }),
      ['bad-name /messages/3/tool_calls/0/function/name'],
    ],
    [
      'arguments as object',
      calling({ ...call, function: { name: 'a', arguments: {} } }),
      ['bad-arguments /messages/3/tool_calls/0/function/arguments'],
    ],
    ['a call without type', calling({ ...call, type: undefined }), ['bad-field /messages/3/tool_calls/0/type']],
    [
      'a custom call of nothing',
      calling({ id: 'c', type: 'custom', custom: {} }),
      ['bad-name /messages/3/tool_calls/0/custom/name', 'bad-arguments /messages/3/tool_calls/0/custom/input'],
    ],
    [
      'an image in a system message',
      { role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://a' } }] },
      ['bad-block /messages/3/content/0'],
    ],
    [
      'an image in a result',
      { role: 'tool', tool_call_id: 'c', content: [{ type: 'image_url', image_url: { url: 'https://a' } }] },
      ['bad-block /messages/3/content/0'],
    ],
    ['a name with a space', { role: 'user', name: 'Ann B', content: 'a' }, ['bad-name /messages/3/name']],
    ['a name that is no text', { role: 'assistant', name: 7, content: 'a' }, ['bad-name /messages/3/name']],
    ['an empty name', { role: 'system', name: '', content: 'a' }, ['bad-name /messages/3/name']],
    ['a name with a slash', { role: 'user', name: 'a/b', content: 'a' }, ['bad-name /messages/3/name']],
    ['a name', { role: 'user', name: 'Zoë_b-1', content: 'a' }, []],
    ['null for a name', { role: 'user', name: null, content: 'a' }, []],
    [
      'a file of nothing',
      { role: 'user', content: [{ type: 'file', file: {} }] },
      ['bad-field /messages/3/content/0/file'],
    ],
    [
      'audio of nothing',
      { role: 'user', content: [{ type: 'input_audio', input_audio: {} }] },
      ['bad-field /messages/3/content/0/input_audio/data', 'bad-field /messages/3/content/0/input_audio/format'],
    ],
    [
      'an image without a URL',
      { role: 'user', content: [{ type: 'image_url', image_url: { url: '' } }] },
      ['bad-field /messages/3/content/0/image_url/url'],
    ],
    [
      'a refusal by a user',
      { role: 'user', content: [{ type: 'refusal', refusal: 'a' }] },
      ['bad-block /messages/3/content/0'],
    ],
  ])('%s', (_, message, rules) => {
    expect(rulesOf(message)).toEqual(rules);
  });

  it('never repeats what was sent', () => {
    const secret = calling({ id: 'S3CRET'.repeat(20), type: 'S3CRET', function: { name: 'S3CRET!', arguments: 1 } });
    expect(JSON.stringify(openaiChat.faults(readEntry(secret)))).not.toContain('S3CRET');
    expect(JSON.stringify(problemOf({ role: 'S3CRET', content: 'S3CRET' }))).not.toContain('S3CRET');
  });

  it('is mended for arguments by an edit that says the same', () => {
    const entry = readEntry(calling({ ...call, function: { name: 'f', arguments: { a: 1 } } }));
    const mended = openaiChat.write(
      entry,
      entry.parts.map((part) => ({ ...part, edited: true as const })),
    );
    expect(mended).toEqual(calling({ ...call, function: { name: 'f', arguments: '{"a":1}' } }));
    expect(rulesOf(mended)).toEqual([]);
  });
});

describe('beside the messages', () => {
  it('stand no instructions', () => {
    expect(openaiChat.readSystem(undefined, '/system')).toEqual({ ok: true, value: [] });
    expect(openaiChat.readSystem('Be brief.', '/system')).toMatchObject({ ok: false, problem: { path: '/system' } });
  });

  it('an instruction is added after the leading ones, in their role', () => {
    const user = wire({ role: 'user', content: 'a' });
    const developer = wire({ role: 'developer', content: 'b' });
    const added = (...messages: JsonObject[]): readonly JsonObject[] =>
      openaiChat.addInstruction({ messages }, 'x').messages;
    expect(added(user)).toEqual([{ role: 'system', content: 'x' }, user]);
    expect(added(developer, user, developer)).toEqual([
      developer,
      { role: 'developer', content: 'x' },
      user,
      developer,
    ]);
    expect(added()).toEqual([{ role: 'system', content: 'x' }]);
    expect(added(developer)).toEqual([developer, { role: 'developer', content: 'x' }]);
  });

  it('stand the tools', () => {
    const parameters = { type: 'object', properties: {} };
    const tools: ChatCompletionTool[] = [
      { type: 'function', function: { name: 'weather', description: 'Tells it.', parameters, strict: true } },
      { type: 'function', function: { name: 'now' } },
      { type: 'custom', custom: { name: 'shell', format: { type: 'text' } } },
    ];
    expect(openaiChat.readTools(tools, '/tools')).toEqual({
      ok: true,
      value: [
        { name: 'weather', description: 'Tells it.', parameters },
        { name: 'now', description: '' },
        { name: 'shell', description: '', parameters: { type: 'text' } },
      ],
    });
    const search = { type: 'web_search', filters: {} };
    expect(openaiChat.readTools([search], '/tools')).toEqual({
      ok: true,
      value: [{ name: 'web_search', description: '', parameters: search }],
    });
    expect(openaiChat.readTools(undefined, '/tools')).toEqual({ ok: true, value: [] });
    expect(openaiChat.readTools({}, '/tools')).toMatchObject({ problem: { path: '/tools' } });
    expect(openaiChat.readTools([{ name: 'a' }], '/tools')).toMatchObject({ problem: { path: '/tools/0' } });
    expect(openaiChat.readTools([{ type: 'function', function: {} }], '/tools')).toMatchObject({
      problem: { path: '/tools/0/function/name' },
    });
  });
});

/** A message with one value anywhere in it replaced. */
const mutants = fc
  .tuple(fc.constantFrom(...Object.values(MESSAGES)), fc.infiniteStream(fc.nat(5)), fc.jsonValue({ maxDepth: 3 }))
  .map(([{ message }, steps, value]) => mutate(wire(message), steps, value));

function mutate(target: JsonObject, steps: Iterator<number>, value: unknown): JsonObject {
  const keys = Object.keys(target);
  const key = keys[Number(steps.next().value) % keys.length];
  if (key === undefined) return target;
  return { ...target, [key]: mutateValue(target[key], steps, value) };
}

function mutateValue(old: unknown, steps: Iterator<number>, value: unknown): unknown {
  if (Number(steps.next().value) === 0) return value;
  if (isJsonObject(old)) return mutate(old, steps, value);
  if (!Array.isArray(old)) return value;
  const at = Number(steps.next().value) % old.length;
  return old.map((item: unknown, index) => (index === at ? mutateValue(item, steps, value) : item));
}

const objects = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })),
  fc.record(
    {
      role: fc.constantFrom('system', 'user', 'assistant', 'tool', 'function', '__proto__'),
      content: fc.jsonValue({ maxDepth: 4 }),
      tool_calls: fc.jsonValue({ maxDepth: 4 }),
      refusal: fc.jsonValue({ maxDepth: 1 }),
    },
    { requiredKeys: [] },
  ),
  mutants,
);

describe('any JSON object', () => {
  it('is read or refused, judged without a throw, and written back as it was', () => {
    fc.assert(
      fc.property(objects, (native) => {
        const before = canonicalJson(native);
        const read = openaiChat.read(native, PATH);
        if (read.ok) {
          openaiChat.faults(read.value);
          expect(openaiChat.write(read.value, [...read.value.parts])).toBe(native);
        } else {
          expect(read.problem).toMatchObject({ code: 'invalid_request', path: expect.stringContaining(PATH) });
        }
        expect(canonicalJson(native)).toBe(before);
      }),
      { numRuns: 1000 },
    );
  });

  it('is readable again, with the parts that are left, after any of them were dropped', () => {
    fc.assert(
      fc.property(mutants, fc.infiniteStream(fc.boolean()), (native, keep) => {
        const read = openaiChat.read(native, PATH);
        if (!read.ok || read.value.role === 'results') return;
        const left = read.value.parts.filter(() => keep.next().value);
        const again = readEntry(openaiChat.write(read.value, left));
        const blocks = left.map(({ block }) => block);
        // A message that lost everything says nothing, in a text
        const empty = blocks.length === 0 && again.parts.length === 1 ? [{ type: 'text', text: '' }] : blocks;
        expect(again.parts.map(({ block }) => block)).toEqual(empty);
      }),
      { numRuns: 500 },
    );
  });
});
