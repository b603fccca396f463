import type { BetaContentBlockParam } from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type {
  ContentBlockParam,
  MessageCreateParamsNonStreaming,
  MessageParam,
} from '@anthropic-ai/sdk/resources/messages/messages';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../../json.ts';
import { canonicalJson } from '../../provenance/canonical.ts';
import type { ContentBlock } from '../message.ts';
import { anthropicMessages as format } from './anthropic-messages.ts';
import type { Entry, Part } from './format.ts';

type Block = ContentBlockParam | BetaContentBlockParam;
type Message = { readonly role: MessageParam['role']; readonly content: string | readonly Block[] };

const json = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

function entry(message: Message | MessageParam, path = '/messages/0'): Entry {
  const read = format.read(json(message), path);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return read.value;
}

const blocks = (message: Message): readonly ContentBlock[] => entry(message).parts.map(({ block }) => block);
const rules = (message: Message): readonly string[] =>
  format.faults(entry(message)).map(({ rule, path }) => `${rule} ${path}`);
const neighbours = (...messages: readonly Message[]): readonly string[] =>
  (format.neighbourFaults?.(messages.map((message, at) => entry(message, `/messages/${at}`))) ?? []).map(
    ({ rule, path }) => `${rule} ${path}`,
  );
const edit = (part: Part, block: ContentBlock): Part => ({ ...part, block, edited: true });

const cache_control = { type: 'ephemeral' } as const;

/** One of every kind that the API knows, and what it is to us. */
const EVERY: { readonly [K in Block['type']]: readonly [Extract<Block, { type: K }>, ContentBlock | 'json'] } = {
  text: [
    { type: 'text', text: 'hi', cache_control },
    { type: 'text', text: 'hi' },
  ],
  image: [
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' }, cache_control },
    { type: 'image', data: 'AAAA', mime: 'image/png' },
  ],
  document: [
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAAAAAA' }, title: 'a.pdf' },
    { type: 'file', attachment_id: '', mime: 'application/pdf', name: 'a.pdf', size: 6 },
  ],
  search_result: [
    { type: 'search_result', source: 'https://e.example', title: 'E', content: [{ type: 'text', text: 'found' }] },
    { type: 'text', text: 'E\nhttps://e.example\nfound' },
  ],
  thinking: [
    { type: 'thinking', thinking: 'hm', signature: 'sig' },
    { type: 'thinking', text: 'hm', signature: 'sig' },
  ],
  redacted_thinking: [
    { type: 'redacted_thinking', data: 'xx' },
    { type: 'redacted_thinking', data: 'xx' },
  ],
  tool_use: [
    { type: 'tool_use', id: 'toolu_1', name: 'ls', input: { path: '.' }, caller: { type: 'direct' }, cache_control },
    { type: 'function_call', id: 'toolu_1', function_id: 'ls', arguments: { path: '.' } },
  ],
  tool_result: [
    { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a\nb', is_error: true, cache_control },
    { type: 'function_result', function_call_id: 'toolu_1', content: [{ type: 'text', text: 'a\nb' }], is_error: true },
  ],
  container_upload: [
    { type: 'container_upload', file_id: 'file_1' },
    { type: 'file', attachment_id: 'file_1', mime: 'application/octet-stream', name: 'file_1', size: 0 },
  ],
  compaction: [
    { type: 'compaction', content: 'so far' },
    { type: 'text', text: 'so far' },
  ],
  server_tool_use: [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } }, 'json'],
  web_search_tool_result: [
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', encrypted_content: 'x', title: 't', url: 'https://e.example' }],
    },
    'json',
  ],
  web_fetch_tool_result: [
    {
      type: 'web_fetch_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: { type: 'web_fetch_tool_result_error', error_code: 'url_too_long' },
    },
    'json',
  ],
  advisor_tool_result: [
    {
      type: 'advisor_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: { type: 'advisor_redacted_result', encrypted_content: 'x' },
    },
    'json',
  ],
  code_execution_tool_result: [
    {
      type: 'code_execution_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: { type: 'code_execution_result', content: [], return_code: 0, stderr: '', stdout: '1' },
    },
    'json',
  ],
  bash_code_execution_tool_result: [
    {
      type: 'bash_code_execution_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: { type: 'bash_code_execution_result', content: [], return_code: 0, stderr: '', stdout: '1' },
    },
    'json',
  ],
  text_editor_code_execution_tool_result: [
    {
      type: 'text_editor_code_execution_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: { type: 'text_editor_code_execution_create_result', is_file_update: true },
    },
    'json',
  ],
  tool_search_tool_result: [
    {
      type: 'tool_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: {
        type: 'tool_search_tool_search_result',
        tool_references: [{ type: 'tool_reference', tool_name: 'ls' }],
      },
    },
    'json',
  ],
  mcp_tool_use: [{ type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'n', server_name: 's', input: {} }, 'json'],
  mcp_tool_result: [{ type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', content: 'r' }, 'json'],
  mcp_tool_listing: [{ type: 'mcp_tool_listing', mcp_server_name: 's', tools: [] }, 'json'],
  tool_addition: [{ type: 'tool_addition', tool: { type: 'tool_reference', name: 'ls' } }, 'json'],
  tool_removal: [{ type: 'tool_removal', tool: { type: 'tool_reference', name: 'ls' } }, 'json'],
  fallback: [{ type: 'fallback', from: { model: 'a' }, to: { model: 'b' } }, 'json'],
};

const natives: readonly Block[] = Object.values(EVERY).map(([native]) => native);
const withAll: Message = { role: 'assistant', content: natives };

describe('read', () => {
  it.each(Object.entries(EVERY))('maps %s', (_, [native, expected]) => {
    const block = blocks({ role: 'assistant', content: [native] })[0];
    expect(block).toEqual(expected === 'json' ? { type: 'text', text: JSON.stringify(native) } : expected);
  });

  it('maps the other sources of images and documents', () => {
    const content: readonly Block[] = [
      { type: 'image', source: { type: 'url', url: 'https://e.example/a.png' } },
      { type: 'image', source: { type: 'file', file_id: 'file_1' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'body' }, title: 'T', context: 'C' },
      { type: 'document', source: { type: 'content', content: 'body' } },
      {
        type: 'document',
        source: {
          type: 'content',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      },
      { type: 'document', source: { type: 'url', url: 'https://e.example/a.pdf' } },
    ];
    expect(blocks({ role: 'user', content })).toEqual([
      { type: 'image', data: 'https://e.example/a.png', mime: 'image/*' },
      { type: 'image', data: 'file_1', mime: 'image/*' },
      { type: 'text', text: 'T\nC\nbody' },
      { type: 'text', text: 'body' },
      { type: 'text', text: 'a\nb' },
      { type: 'file', attachment_id: 'https://e.example/a.pdf', mime: 'application/pdf', name: '', size: 0 },
    ]);
  });

  it('maps what a result may hold', () => {
    const content: readonly Block[] = [
      {
        type: 'tool_result',
        tool_use_id: 't',
        content: [
          EVERY.text[0],
          EVERY.image[0],
          { type: 'tool_reference', tool_name: 'ls' },
          { type: 'browser_state', tabs: [] },
        ],
      },
      { type: 'tool_result', tool_use_id: 'u' },
    ];
    expect(blocks({ role: 'user', content })).toEqual([
      {
        type: 'function_result',
        function_call_id: 't',
        content: [
          { type: 'text', text: 'hi' },
          { type: 'image', data: 'AAAA', mime: 'image/png' },
          { type: 'text', text: 'ls' },
          { type: 'text', text: '{"type":"browser_state","tabs":[]}' },
        ],
      },
      { type: 'function_result', function_call_id: 'u', content: [] },
    ]);
  });

  it('takes a whole text as one part, and gives paths', () => {
    expect(entry({ role: 'user', content: 'hi' }).parts).toEqual([
      { block: { type: 'text', text: 'hi' }, native: 'hi', path: '/messages/0/content' },
    ]);
    expect(entry(withAll).parts[2]?.path).toBe('/messages/0/content/2');
    expect(entry({ role: 'system', content: 'be brief' }).role).toBe('system');
  });

  it.each([
    [{ role: 'tool', content: 'x' }, '/messages/0/role'],
    [{ content: 'x' }, '/messages/0/role'],
    [{ role: 'user', content: 5 }, '/messages/0/content'],
    [{ role: 'user' }, '/messages/0/content'],
    [{ role: 'user', content: ['x'] }, '/messages/0/content/0'],
    [{ role: 'user', content: [{ text: 'x' }] }, '/messages/0/content/0/type'],
    [{ role: 'user', content: [{ type: 'constructor' }] }, '/messages/0/content/0/type'],
    [{ role: 'user', content: [{ type: 'text', text: null }] }, '/messages/0/content/0/text'],
    [
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 5 }] },
      '/messages/0/content/0/content',
    ],
    [
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'thinking' }] }] },
      '/messages/0/content/0/content/0/type',
    ],
  ])('refuses %j', (native, path) => {
    const read = format.read(native, '/messages/0');
    expect(read).toMatchObject({ ok: false, problem: { code: 'invalid_request', path } });
  });
});

describe('write', () => {
  it.each([withAll, { role: 'user', content: 'hi' } as const, { role: 'system', content: [] } as const])(
    'gives back what nobody touched',
    (message) => {
      const read = entry({ ...message, extra: { of: 'the caller' } } as Message);
      expect(format.write(read, read.parts)).toBe(read.native);
      expect(format.write(read, [...read.parts])).toBe(read.native);
      const copied = format.write({ ...read, parts: [] }, read.parts);
      expect(canonicalJson(copied)).toBe(canonicalJson(read.native));
    },
  );

  it('leaves the rest the very values where a part goes', () => {
    const read = entry({
      role: 'assistant',
      content: [EVERY.text[0], EVERY.tool_use[0], { ...EVERY.tool_use[0], id: 'toolu_2' }],
    });
    const [text, first] = read.parts;
    const written = format.write(
      read,
      [text, first].filter((part) => part !== undefined),
    );
    const content = written['content'] as readonly unknown[];
    expect(content).toHaveLength(2);
    expect(content[0]).toBe(text?.native);
    expect(content[1]).toBe(first?.native);
  });

  it('keeps every other field of an edited result', () => {
    const read = entry({ role: 'user', content: [EVERY.tool_result[0]] });
    const parts = read.parts.map((part) =>
      edit(part, { type: 'function_result', function_call_id: 'toolu_1', content: [{ type: 'text', text: '[cut]' }] }),
    );
    expect(format.write(read, parts)).toEqual({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '[cut]', is_error: true, cache_control }],
    });
  });

  it('keeps the blocks of an edited result that say the same', () => {
    const native: Block = {
      type: 'tool_result',
      tool_use_id: 't',
      content: [EVERY.text[0], EVERY.image[0], { type: 'text', text: 'long', cache_control }],
    };
    const read = entry({ role: 'user', content: [native] });
    const [part] = read.parts;
    if (part?.block.type !== 'function_result') throw new Error('no result');
    const [text, image] = part.block.content;
    if (!text || !image) throw new Error('no content');
    const cut: ContentBlock = { type: 'text', text: 'l' };
    const all = format.write(read, [edit(part, { ...part.block, content: [text, image, cut] })]);
    expect(all['content']).toEqual([
      { ...native, content: [EVERY.text[0], EVERY.image[0], { type: 'text', text: 'l', cache_control }] },
    ]);
    const fewer = format.write(read, [edit(part, { ...part.block, content: [image, cut] })]);
    expect(fewer['content']).toEqual([{ ...native, content: [EVERY.image[0], { type: 'text', text: 'l' }] }]);
    const renamed = format.write(read, [edit(part, { ...part.block, function_call_id: 'u' })]);
    expect(renamed['content']).toEqual([{ ...native, tool_use_id: 'u' }]);
  });

  it('keeps blocks of a result that say the same in their order', () => {
    const marked = (ttl: '5m' | '1h'): Block => ({
      type: 'text',
      text: 'same',
      cache_control: { type: 'ephemeral', ttl },
    });
    const native = { type: 'tool_result', tool_use_id: 't', content: [marked('5m'), marked('1h'), EVERY.text[0]] };
    const read = entry({ role: 'user', content: [native as Block] });
    const [part] = read.parts;
    if (part?.block.type !== 'function_result') throw new Error('no result');
    const [same] = part.block.content;
    if (!same) throw new Error('no content');
    const cut: ContentBlock = { type: 'text', text: 'l' };
    const written = format.write(read, [edit(part, { ...part.block, content: [same, same, cut] })]);
    expect(written['content']).toEqual([
      { ...native, content: [marked('5m'), marked('1h'), { ...EVERY.text[0], text: 'l' }] },
    ]);
  });

  it.each<JsonObject>([
    { type: 'tool_use', id: '', name: 7 },
    { type: 'tool_use', id: 'a b', name: '', input: null, x: 1 },
    { type: 'tool_use', id: 5, name: 'ls', input: '{}' },
    { type: 'tool_result', tool_use_id: '' },
    { type: 'tool_result', tool_use_id: '', content: null, is_error: 'yes' },
    { type: 'tool_result', tool_use_id: '', content: [], x: 1 },
    { type: 'tool_result', tool_use_id: '', content: [{ type: 'text', text: 'a' }] },
  ])('changes nothing but an id in %j', (block) => {
    const read = format.read({ role: 'user', content: [block] }, '/messages/0');
    if (!read.ok) throw new Error(JSON.stringify(read.problem));
    const parts = read.value.parts.map((part) =>
      part.block.type === 'function_result'
        ? edit(part, { ...part.block, function_call_id: 'new' })
        : edit(part, { ...part.block, id: 'new' } as ContentBlock),
    );
    const content = [{ ...block, [block['type'] === 'tool_use' ? 'id' : 'tool_use_id']: 'new' }];
    expect(format.write(read.value, parts)).toEqual({ role: 'user', content });
    expect(format.holdResults(parts)).toEqual({ role: 'user', content });
  });

  it('renames what has no content, and empties what has some', () => {
    const read = entry({ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }, EVERY.tool_result[0]] });
    const parts = read.parts.map((part) => edit(part, { type: 'function_result', function_call_id: 'u', content: [] }));
    expect(format.write(read, parts)['content']).toEqual([
      { type: 'tool_result', tool_use_id: 'u' },
      { ...EVERY.tool_result[0], tool_use_id: 'u', content: [] },
    ]);
  });

  it('writes edited texts, calls and what became text', () => {
    const whole = entry({ role: 'user', content: 'long' });
    expect(
      format.write(
        whole,
        whole.parts.map((part) => edit(part, { type: 'text', text: 'l' })),
      ),
    ).toEqual({ role: 'user', content: 'l' });
    const read = entry({ role: 'assistant', content: [EVERY.tool_use[0], EVERY.image[0], EVERY.text[0]] });
    const said: readonly ContentBlock[] = [
      { type: 'function_call', id: 'toolu_9', function_id: 'ls', arguments: { path: '.' } },
      { type: 'text', text: '[image]' },
      { type: 'text', text: 'h' },
    ];
    const parts = read.parts.map((part, at) => edit(part, said[at] ?? part.block));
    expect(format.write(read, parts)['content']).toEqual([
      { ...EVERY.tool_use[0], id: 'toolu_9' },
      { type: 'text', text: '[image]', cache_control },
      { type: 'text', text: 'h', cache_control },
    ]);
  });

  it('makes new blocks', () => {
    const read = entry({ role: 'user', content: 'hi' });
    const made: readonly ContentBlock[] = [
      { type: 'text', text: 'new' },
      { type: 'image', data: 'AA==', mime: 'image/png' },
      { type: 'image', data: 'https://e.example/a.png', mime: 'image/*' },
      { type: 'file', attachment_id: 'file_1', mime: 'application/pdf', name: 'a.pdf', size: 1 },
      { type: 'thinking', text: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'function_call', id: 'c', function_id: 'ls' },
    ];
    const content: readonly Block[] = [
      { type: 'text', text: 'hi' },
      { type: 'text', text: 'new' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
      { type: 'image', source: { type: 'url', url: 'https://e.example/a.png' } },
      { type: 'document', source: { type: 'file', file_id: 'file_1' }, title: 'a.pdf' },
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'tool_use', id: 'c', name: 'ls', input: {} },
    ];
    const written = format.write(read, [...read.parts, ...made.map((block) => ({ block, path: '' }))]);
    expect(written).toEqual({ role: 'user', content });
  });

  it('holds results in a user message', () => {
    const stub: ContentBlock = {
      type: 'function_result',
      function_call_id: 'c',
      content: [{ type: 'text', text: 'aborted' }],
      is_error: true,
    };
    const message: MessageParam = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'c', content: 'aborted', is_error: true }, EVERY.tool_result[0]],
    };
    const supplied = entry({ role: 'user', content: [EVERY.tool_result[0]] }).parts;
    expect(format.holdResults([{ block: stub, path: '' }, ...supplied])).toEqual(message);
  });
});

describe('beside the array', () => {
  const block = { type: 'text', text: 'be brief', cache_control } as const;
  const systems: readonly (readonly [MessageCreateParamsNonStreaming['system'], readonly string[], unknown])[] = [
    [undefined, [], 'more'],
    ['', [''], 'more'],
    ['be brief', ['be brief'], 'be brief\n\nmore'],
    [[block], ['be brief'], [block, { type: 'text', text: 'more' }]],
  ];

  it.each(systems)('reads and extends system %j', (system, texts, extended) => {
    expect(format.readSystem(system, '/system')).toEqual({ ok: true, value: texts });
    const request = format.addInstruction({ messages: [], system }, 'more');
    expect(request.system).toEqual(extended);
    if (Array.isArray(request.system)) expect(request.system[0]).toBe(block);
  });

  it.each([
    [5, '/system'],
    [[block, { type: 'image' }], '/system/1'],
    [[{ type: 'text' }], '/system/0'],
  ])('refuses system %j', (system, path) => {
    expect(format.readSystem(system, '/system')).toMatchObject({ ok: false, problem: { path } });
  });

  it('reads tools', () => {
    const tools: MessageCreateParamsNonStreaming['tools'] = [
      { name: 'ls', description: 'list', input_schema: { type: 'object' } },
      { type: 'custom', name: 'cd', input_schema: { type: 'object' } },
      { type: 'web_search_20250305', name: 'web_search' },
    ];
    expect(format.readTools(tools, '/tools')).toEqual({
      ok: true,
      value: [
        { name: 'ls', description: 'list', parameters: { type: 'object' } },
        { name: 'cd', description: '', parameters: { type: 'object' } },
        { name: 'web_search_20250305', description: '', parameters: tools[2] },
      ],
    });
    expect(format.readTools(undefined, '/tools')).toEqual({ ok: true, value: [] });
    expect(format.readTools({}, '/tools')).toMatchObject({ ok: false, problem: { path: '/tools' } });
    expect(format.readTools([{ description: 'x' }], '/tools')).toMatchObject({
      ok: false,
      problem: { path: '/tools/0/name' },
    });
  });
});

describe('faults', () => {
  const text = { type: 'text', text: 'hi' } as const;
  const use = EVERY.tool_use[0];
  const thinking = EVERY.thinking[0];
  const path = '/messages/0';

  it('finds none in what the API takes', () => {
    const kinds: readonly Message[] = [
      { role: 'user', content: 'hi' },
      { role: 'user', content: [EVERY.tool_result[0], text, EVERY.image[0]] },
      { role: 'assistant', content: [thinking, text, use] },
      { role: 'assistant', content: [text, EVERY.server_tool_use[0], EVERY.web_search_tool_result[0], thinking, text] },
      { role: 'assistant', content: [EVERY.compaction[0], thinking, text] },
      { role: 'assistant', content: [text, thinking, use] },
      { role: 'assistant', content: '' },
    ];
    expect(kinds.flatMap(rules)).toEqual([]);
    expect(
      neighbours(
        { role: 'user', content: 'hi' },
        { role: 'system', content: 'brief' },
        { role: 'assistant', content: '' },
      ),
    ).toEqual([]);
  });

  it.each<readonly [Message, readonly string[]]>([
    [{ role: 'user', content: '' }, [`empty-message ${path}`]],
    [{ role: 'user', content: [] }, [`empty-message ${path}`]],
    [{ role: 'user', content: ' \n' }, [`empty-block ${path}/content`]],
    [{ role: 'user', content: [text, { type: 'text', text: '' }] }, [`empty-block ${path}/content/1`]],
    [{ role: 'assistant', content: [{ ...use, id: '' }] }, [`missing-id ${path}/content/0/id`]],
    [{ role: 'assistant', content: [{ ...use, id: 'edit:22' }] }, [`bad-id ${path}/content/0/id`]],
    [{ role: 'assistant', content: [use, use] }, [`duplicate-id ${path}/content/1/id`]],
    [{ role: 'assistant', content: [{ ...use, name: '' }] }, [`bad-name ${path}/content/0/name`]],
    [{ role: 'assistant', content: [{ ...use, name: 'x'.repeat(201) }] }, [`bad-name ${path}/content/0/name`]],
    [{ role: 'assistant', content: [{ ...use, input: '{}' }] }, [`bad-arguments ${path}/content/0/input`]],
    [{ role: 'assistant', content: [EVERY.image[0]] }, [`wrong-role ${path}/content/0`]],
    [
      {
        role: 'user',
        content: [{ ...EVERY.tool_result[0], content: [text, EVERY.image[0], EVERY.search_result[0]] }],
      },
      [`bad-block ${path}/content/0/content/1`, `bad-block ${path}/content/0/content/2`],
    ],
    [{ role: 'user', content: [{ ...EVERY.tool_result[0], is_error: false, content: [text, EVERY.image[0]] }] }, []],
    [
      { role: 'assistant', content: [{ ...thinking, thinking: '', signature: '' }, text] },
      [`bad-field ${path}/content/0/thinking`],
    ],
    [{ role: 'assistant', content: [{ ...thinking, thinking: '' }, text] }, []],
    [{ role: 'assistant', content: [{ ...thinking, signature: '' }, text] }, []],
    [{ role: 'assistant', content: [thinking] }, [`empty-message ${path}`]],
    [{ role: 'assistant', content: [thinking, text, thinking] }, [`bad-block ${path}/content/2`]],
    [{ role: 'assistant', content: [EVERY.tool_result[0]] }, [`wrong-role ${path}/content/0`]],
    [{ role: 'user', content: [use] }, [`wrong-role ${path}/content/0`]],
    [{ role: 'system', content: [text, EVERY.image[0]] }, [`wrong-role ${path}/content/1`]],
    [
      { role: 'assistant', content: [text, EVERY.server_tool_use[0], EVERY.web_search_tool_result[0], thinking] },
      [`bad-block ${path}/content/3`],
    ],
    [
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a b' }] },
      [`bad-id ${path}/content/0/tool_use_id`],
    ],
  ])('finds what the API refuses of %j', (message, expected) => {
    expect(rules(message)).toEqual(expected);
  });

  it('finds what the types do not let one write', () => {
    const of = (content: readonly JsonObject[]): readonly string[] => {
      const read = format.read({ role: 'assistant', content }, path);
      return read.ok ? format.faults(read.value).map((fault) => `${fault.rule} ${fault.path}`) : ['unmapped'];
    };
    expect(of([{ type: 'thinking', thinking: 'x' }, text])).toEqual([`bad-field ${path}/content/0/signature`]);
    expect(of([{ type: 'image', source: { type: 'base64', media_type: 'image/svg+xml', data: 'A' } }])).toContain(
      `bad-field ${path}/content/0/source/media_type`,
    );
    expect(of([{ type: 'document' }])).toEqual([`bad-field ${path}/content/0/source`]);
    expect(of([{ ...thinking, cache_control }, text])).toEqual([`bad-field ${path}/content/0/cache_control`]);
    expect(of([{ ...text, index: 0 }])).toEqual([`bad-field ${path}/content/0/index`]);
    expect(of([{ ...use, partial_json: '{' }])).toEqual([`bad-field ${path}/content/0/partial_json`]);
    expect(of([{ type: 'tool_use', id: 5 }])).toEqual([
      `bad-id ${path}/content/0/id`,
      `bad-name ${path}/content/0/name`,
      `bad-arguments ${path}/content/0/input`,
    ]);
  });

  it('finds what an answer has and a message has not', () => {
    const answer = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [text], stop_reason: null };
    const read = format.read({ ...answer, usage: {} }, path);
    expect(read.ok && format.faults(read.value).map((fault) => `${fault.rule} ${fault.path}`)).toEqual([
      `bad-field ${path}/id`,
      `bad-field ${path}/type`,
      `bad-field ${path}/model`,
      `bad-field ${path}/stop_reason`,
      `bad-field ${path}/usage`,
    ]);
  });

  it('finds what the API refuses of neighbours', () => {
    const user: Message = { role: 'user', content: 'hi' };
    const calls: Message = { role: 'assistant', content: [use] };
    expect(neighbours(user, calls, user, calls)).toEqual(['duplicate-id /messages/3/content/0/id']);
    expect(neighbours(user, { role: 'assistant', content: [] }, user)).toEqual(['empty-message /messages/1']);
    expect(neighbours(user, { role: 'assistant', content: 'so ' })).toEqual(['bad-block /messages/1/content']);
    expect(neighbours(user, { role: 'assistant', content: 'so ' }, user)).toEqual([]);
  });

  it('finds where a system message may not stand', () => {
    const user: Message = { role: 'user', content: 'hi' };
    const says: Message = { role: 'assistant', content: 'so' };
    const calls: Message = { role: 'assistant', content: [use] };
    const result: Message = { role: 'user', content: [EVERY.tool_result[0]] };
    const searched: Message = {
      role: 'assistant',
      content: [EVERY.server_tool_use[0], EVERY.web_search_tool_result[0]],
    };
    const system: Message = { role: 'system', content: 'brief' };
    const at = (...messages: readonly Message[]): readonly string[] =>
      neighbours(...messages).filter((found) => found.startsWith('wrong-role'));
    expect(at(user, system)).toEqual([]);
    expect(at(user, system, says, user)).toEqual([]);
    expect(at(user, system, system, says)).toEqual([]);
    expect(at(user, calls, result, system, says)).toEqual([]);
    expect(at(user, searched, system, says)).toEqual([]);
    expect(at(system, user)).toEqual(['wrong-role /messages/0']);
    expect(at(user, system, user)).toEqual(['wrong-role /messages/1']);
    expect(at(user, system, system, user)).toEqual(['wrong-role /messages/1', 'wrong-role /messages/2']);
    expect(at(user, says, system)).toEqual(['wrong-role /messages/2']);
    expect(at(user, calls, system, result)).toEqual(['wrong-role /messages/2']);
  });

  it('knows a system message that only sets options', () => {
    const read = (fields: JsonObject): Entry => {
      const each = format.read({ role: 'system', ...fields }, path);
      if (!each.ok) throw new Error(JSON.stringify(each.problem));
      return each.value;
    };
    const user = entry({ role: 'user', content: 'hi' });
    const found = (fields: JsonObject): readonly string[] =>
      [...format.faults(read(fields)), ...(format.neighbourFaults?.([read(fields), user]) ?? [])].map(
        ({ rule }) => rule,
      );
    expect(found({ output_config: { effort: 'low' } })).toEqual([]);
    expect(found({ content: [], output_config: { effort: 'low' } })).toEqual([]);
    expect(found({ content: 'brief', output_config: { effort: 'low' } })).toEqual(['wrong-role']);
    expect(found({ output_config: {} })).toEqual(['empty-message', 'wrong-role']);
    expect(found({ output_config: { effort: null } })).toEqual(['empty-message', 'wrong-role']);
    expect(found({})).toEqual(['empty-message', 'wrong-role']);
    expect(format.faults({ ...read({ output_config: { effort: 'low' } }), role: 'user' })).toHaveLength(1);
  });

  it('counts cache breakpoints, also those within results', () => {
    const marked = { ...text, cache_control };
    const four: Message = {
      role: 'user',
      content: [{ ...EVERY.tool_result[0], content: [marked, text] }, marked, marked, { ...text, cache_control: null }],
    };
    expect(neighbours(four)).toEqual([]);
    expect(neighbours(four, { role: 'user', content: [text, marked, marked] })).toEqual([
      'too-many-breakpoints /messages/1/content/1/cache_control',
      'too-many-breakpoints /messages/1/content/2/cache_control',
    ]);
  });

  it('finds results of a server tool that nobody called', () => {
    const user: Message = { role: 'user', content: 'hi' };
    const call: Message = { role: 'assistant', content: [EVERY.server_tool_use[0]] };
    const result: Message = { role: 'assistant', content: [EVERY.web_search_tool_result[0], text] };
    const orphans = (...messages: readonly Message[]): readonly string[] => neighbours(user, ...messages, user);
    expect(orphans(call, user, result)).toEqual([]);
    expect(orphans(result, call)).toEqual(['orphan-server-result /messages/1/content/0']);
    expect(orphans({ role: 'assistant', content: [EVERY.mcp_tool_use[0], EVERY.mcp_tool_result[0]] })).toEqual([]);
    expect(orphans({ role: 'assistant', content: [EVERY.mcp_tool_result[0]] })).toEqual([
      'orphan-server-result /messages/1/content/0',
    ]);
  });
});

const mutations = fc.record({
  block: fc.constantFrom(...natives.map(json)),
  field: fc.constantFrom(
    'type',
    'text',
    'id',
    'content',
    'source',
    'input',
    'tool_use_id',
    'signature',
    'data',
    'title',
  ),
  value: fc.jsonValue({ maxDepth: 3 }),
  role: fc.constantFrom('user', 'assistant', 'system', 'x'),
});

function holds(native: JsonObject): void {
  const read = format.read(native, '/messages/0');
  if (!read.ok) {
    expect(read.problem).toMatchObject({ code: 'invalid_request', path: expect.stringMatching(/^\/messages\/0/) });
    return;
  }
  expect(format.write(read.value, [...read.value.parts])).toBe(native);
  // Nothing is edited, so what is rendered anew is what was supplied
  const copy = format.write({ ...read.value, parts: [] }, read.value.parts);
  if (read.value.parts.length > 0) expect(canonicalJson(copy)).toBe(canonicalJson(native));
  const edited = read.value.parts.map((part) => ({ ...part, edited: true as const }));
  const again = format.read(format.write(read.value, edited), '/messages/0');
  expect(again.ok).toBe(true);
  format.faults(read.value);
  format.neighbourFaults?.([read.value]);
}

describe('anything else', () => {
  it('reads or refuses what is nearly a message', () => {
    fc.assert(
      fc.property(mutations, ({ block, field, value, role }) => {
        holds(json({ role, content: [{ ...block, [field]: value }] }));
      }),
      { numRuns: 500 },
    );
  });

  it('reads or refuses any object', () => {
    const message = fc.record({ role: fc.constantFrom('user', 'assistant', 'system'), content: fc.jsonValue() });
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
