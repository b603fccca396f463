import * as fc from 'fast-check';
import type { ResponseInputItem, Tool } from 'openai/resources/responses/responses';
import { describe, expect, it, test } from 'vitest';
import { isJsonObject, type JsonObject } from '../../json.ts';
import { canonicalJson } from '../../provenance/canonical.ts';
import type { ContentBlock } from '../message.ts';
import type { Entry, Part } from './format.ts';
import { openaiResponses } from './openai-responses.ts';

const PATH = '/messages/3';

const wire = (item: ResponseInputItem): JsonObject => ({ ...item });

function readEntry(item: JsonObject, path = PATH): Entry {
  const read = openaiResponses.read(item, path);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return read.value;
}

const rulesOf = (item: JsonObject): string[] =>
  openaiResponses.faults(readEntry(item)).map(({ rule, path }) => `${rule} ${path}`);
const neighbourRulesOf = (...items: JsonObject[]): string[] => {
  const entries = items.map((item, index) => readEntry(item, `/messages/${index}`));
  return (openaiResponses.neighbourFaults?.(entries) ?? []).map(({ rule, path }) => `${rule} ${path}`);
};
const problemOf = (item: JsonObject): unknown => {
  const read = openaiResponses.read(item, PATH);
  return read.ok ? undefined : read.problem;
};
const result = (function_call_id: string, ...content: ContentBlock[]): ContentBlock => ({
  type: 'function_result',
  function_call_id,
  content,
});
const text = (said: string): ContentBlock => ({ type: 'text', text: said });
const image: ContentBlock = { type: 'image', data: 'iVBORw0K', mime: 'image/png' };

interface Vector {
  readonly item: ResponseInputItem;
  readonly role: Entry['role'];
  /** Absent where the block is the item's JSON. */
  readonly blocks?: readonly ContentBlock[];
}

/** By type, a number after it where there are several. */
const VECTORS: Readonly<Record<string, Vector>> = {
  'message 1': { item: { role: 'user', content: 'Hello' }, role: 'user', blocks: [text('Hello')] },
  'message 2': {
    item: {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Look', prompt_cache_breakpoint: { mode: 'explicit' } },
        { type: 'input_image', detail: 'low', image_url: 'data:image/png;base64,iVBORw0K' },
        { type: 'input_image', detail: 'auto', file_id: 'file_1' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
        { type: 'input_file', file_url: 'https://example.com/a.pdf' },
      ],
    },
    role: 'user',
    blocks: [
      text('Look'),
      image,
      { type: 'image', data: 'file_1', mime: 'image/*' },
      { type: 'file', attachment_id: '', mime: 'application/pdf', name: 'a.pdf', size: 3 },
      { type: 'file', attachment_id: 'https://example.com/a.pdf', mime: 'application/octet-stream', name: '', size: 0 },
    ],
  },
  'message 3': { item: { role: 'developer', content: 'Be brief.' }, role: 'system', blocks: [text('Be brief.')] },
  'message 4': {
    item: { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be brief.' }] },
    role: 'system',
    blocks: [text('Be brief.')],
  },
  'message 5': {
    item: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [
        { type: 'output_text', text: 'Well,', annotations: [] },
        { type: 'refusal', refusal: 'no.' },
      ],
    },
    role: 'assistant',
    blocks: [text('Well,'), text('no.')],
  },
  'message 6': {
    item: { role: 'assistant', content: 'Hm.', phase: 'commentary' },
    role: 'assistant',
    blocks: [text('Hm.')],
  },
  reasoning: {
    item: {
      id: 'rs_1',
      type: 'reasoning',
      summary: [
        { type: 'summary_text', text: 'First.' },
        { type: 'summary_text', text: 'Then.' },
      ],
      encrypted_content: 'gAAA',
    },
    role: 'assistant',
    blocks: [{ type: 'thinking', text: 'First.\n\nThen.' }],
  },
  function_call: {
    item: { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
    role: 'assistant',
    blocks: [{ type: 'function_call', id: 'call_1', function_id: 'weather', arguments: { city: 'Oslo' } }],
  },
  'function_call_output 1': {
    item: { type: 'function_call_output', call_id: 'call_1', output: '4 degrees' },
    role: 'results',
    blocks: [result('call_1', text('4 degrees'))],
  },
  'function_call_output 2': {
    item: {
      type: 'function_call_output',
      call_id: 'call_1',
      output: [
        { type: 'input_text', text: 'A map:' },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0K' },
      ],
    },
    role: 'results',
    blocks: [result('call_1', text('A map:'), image)],
  },
  custom_tool_call: {
    item: { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_2', name: 'sh', input: '{"a":1}' },
    role: 'assistant',
    blocks: [{ type: 'function_call', id: 'call_2', function_id: 'sh', arguments: '{"a":1}' }],
  },
  custom_tool_call_output: {
    item: { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
    role: 'results',
    blocks: [result('call_2', text('done'))],
  },
  local_shell_call: {
    item: {
      id: 'lsh_1',
      type: 'local_shell_call',
      call_id: 'call_3',
      status: 'completed',
      action: { type: 'exec', command: ['ls'], env: {} },
    },
    role: 'assistant',
    blocks: [
      {
        type: 'function_call',
        id: 'call_3',
        function_id: 'local_shell_call',
        arguments: { action: { type: 'exec', command: ['ls'], env: {} } },
      },
    ],
  },
  local_shell_call_output: {
    item: { id: 'call_3', type: 'local_shell_call_output', output: '{"stdout":"a"}' },
    role: 'results',
    blocks: [result('call_3', text('{"stdout":"a"}'))],
  },
  shell_call: {
    item: { type: 'shell_call', call_id: 'call_4', action: { commands: ['ls'] } },
    role: 'assistant',
    blocks: [
      { type: 'function_call', id: 'call_4', function_id: 'shell_call', arguments: { action: { commands: ['ls'] } } },
    ],
  },
  shell_call_output: {
    item: {
      type: 'shell_call_output',
      call_id: 'call_4',
      max_output_length: 100,
      output: [
        { outcome: { type: 'exit', exit_code: 1 }, stdout: 'a\n', stderr: 'b' },
        { outcome: { type: 'timeout' }, stdout: 'c', stderr: '' },
      ],
    },
    role: 'results',
    blocks: [result('call_4', text('a\nb'), text('c'))],
  },
  apply_patch_call: {
    item: {
      type: 'apply_patch_call',
      call_id: 'call_5',
      status: 'completed',
      operation: { type: 'delete_file', path: 'a' },
    },
    role: 'assistant',
    blocks: [
      {
        type: 'function_call',
        id: 'call_5',
        function_id: 'apply_patch_call',
        arguments: { operation: { type: 'delete_file', path: 'a' } },
      },
    ],
  },
  apply_patch_call_output: {
    item: { type: 'apply_patch_call_output', call_id: 'call_5', status: 'failed', output: 'no such file' },
    role: 'results',
    blocks: [result('call_5', text('no such file'))],
  },
  computer_call: {
    item: {
      id: 'cu_1',
      type: 'computer_call',
      call_id: 'call_6',
      status: 'completed',
      pending_safety_checks: [],
      action: { type: 'screenshot' },
    },
    role: 'assistant',
    blocks: [
      {
        type: 'function_call',
        id: 'call_6',
        function_id: 'computer_call',
        arguments: { pending_safety_checks: [], action: { type: 'screenshot' } },
      },
    ],
  },
  computer_call_output: {
    item: {
      type: 'computer_call_output',
      call_id: 'call_6',
      output: { type: 'computer_screenshot', image_url: 'data:image/png;base64,iVBORw0K' },
    },
    role: 'results',
    blocks: [result('call_6', image)],
  },
  'tool_search_call 1': {
    item: { type: 'tool_search_call', call_id: 'call_7', execution: 'client', arguments: { query: 'weather' } },
    role: 'assistant',
    blocks: [
      {
        type: 'function_call',
        id: 'call_7',
        function_id: 'tool_search_call',
        arguments: { execution: 'client', arguments: { query: 'weather' } },
      },
    ],
  },
  'tool_search_output 1': {
    item: { type: 'tool_search_output', call_id: 'call_7', tools: [{ type: 'local_shell' }] },
    role: 'results',
    blocks: [result('call_7', text('[{"type":"local_shell"}]'))],
  },
  'tool_search_call 2': {
    item: { type: 'tool_search_call', call_id: null, execution: 'server', arguments: {} },
    role: 'assistant',
  },
  'tool_search_output 2': {
    item: { type: 'tool_search_output', execution: 'server', tools: [] },
    role: 'assistant',
  },
  program: {
    item: { id: 'prog_1', type: 'program', call_id: 'call_8', code: '1+1', fingerprint: 'f' },
    role: 'assistant',
    blocks: [
      { type: 'function_call', id: 'call_8', function_id: 'program', arguments: { code: '1+1', fingerprint: 'f' } },
    ],
  },
  program_output: {
    item: { id: 'out_1', type: 'program_output', call_id: 'call_8', result: '2', status: 'completed' },
    role: 'results',
    blocks: [result('call_8', text('2'))],
  },
  mcp_approval_request: {
    item: { id: 'mcpr_1', type: 'mcp_approval_request', name: 'send', server_label: 'mail', arguments: '{"to":"a"}' },
    role: 'assistant',
    blocks: [{ type: 'function_call', id: 'mcpr_1', function_id: 'send', arguments: { to: 'a' } }],
  },
  mcp_approval_response: {
    item: { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: false, reason: 'not now' },
    role: 'results',
    blocks: [result('mcpr_1', text('not now'))],
  },
  mcp_call: {
    item: { id: 'mcp_1', type: 'mcp_call', name: 'send', server_label: 'mail', arguments: '{}', output: 'sent' },
    role: 'assistant',
  },
  mcp_list_tools: {
    item: { id: 'mcpl_1', type: 'mcp_list_tools', server_label: 'mail', tools: [] },
    role: 'assistant',
  },
  web_search_call: {
    item: {
      id: 'ws_1',
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'oslo', queries: ['oslo'] },
    },
    role: 'assistant',
  },
  file_search_call: {
    item: { id: 'fs_1', type: 'file_search_call', status: 'completed', queries: ['oslo'], results: null },
    role: 'assistant',
  },
  code_interpreter_call: {
    item: {
      id: 'ci_1',
      type: 'code_interpreter_call',
      code: '1+1',
      container_id: 'cntr_1',
      status: 'completed',
      outputs: [{ type: 'logs', logs: '2' }],
    },
    role: 'assistant',
  },
  image_generation_call: {
    item: { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'iVBORw0K' },
    role: 'assistant',
    blocks: [image],
  },
  'item_reference 1': { item: { type: 'item_reference', id: 'msg_2' }, role: 'assistant' },
  'item_reference 2': { item: { id: 'msg_2' }, role: 'assistant' },
  compaction: { item: { type: 'compaction', encrypted_content: 'gAAA' }, role: 'assistant' },
  compaction_trigger: { item: { type: 'compaction_trigger' }, role: 'assistant' },
  additional_tools: {
    item: { type: 'additional_tools', role: 'developer', tools: [{ type: 'local_shell' }] },
    role: 'system',
  },
};

const itemOf = (name: string): JsonObject => {
  const vector = VECTORS[name];
  if (!vector) throw new Error(`there is no vector ${name}`);
  return wire(vector.item);
};

function edit(item: JsonObject, change: (block: ContentBlock) => ContentBlock): JsonObject {
  const entry = readEntry(item);
  return openaiResponses.write(
    entry,
    entry.parts.map((part) => ({ ...part, block: change(part.block), edited: true as const })),
  );
}
const prune = (item: JsonObject): JsonObject =>
  edit(item, (block) => (block.type === 'function_result' ? { ...block, content: [text('[pruned]')] } : block));

describe('every kind of item', () => {
  test.each(Object.entries(VECTORS))(
    '%s is read, written back as it was, and refused by no rule',
    (_, { item, role, blocks }) => {
      const native = wire(item);
      const before = canonicalJson(native);
      const entry = readEntry(native);
      expect(entry).toMatchObject({ role, path: PATH });
      expect(entry.native).toBe(native);
      expect(entry.parts.map(({ block }) => block)).toEqual(blocks ?? [text(JSON.stringify(native))]);
      expect(openaiResponses.write(entry, [...entry.parts])).toBe(native);
      expect(canonicalJson(native)).toBe(before);
      expect(openaiResponses.faults(entry)).toEqual([]);
    },
  );

  it('takes the call_id of a local shell output before its id', () => {
    const native = { ...itemOf('local_shell_call_output'), call_id: 'call_9' };
    expect(readEntry(native).parts[0]?.block).toMatchObject({ function_call_id: 'call_9' });
  });

  it('tells a reference from what is seen', () => {
    const references = Object.keys(VECTORS).filter((name) => readEntry(itemOf(name)).isReference);
    expect(references.length).toBeGreaterThan(0);
    for (const name of references) expect(name).toMatch(/^item_reference/);
    expect(readEntry({ id: 'msg_1' }).isReference).toBe(true);
  });

  it('reads reasoning that is shown', () => {
    const content = [{ type: 'reasoning_text', text: 'Openly.' }];
    const native = { id: 'rs_1', type: 'reasoning', summary: [], content };
    expect(readEntry(native).parts[0]?.block).toEqual({ type: 'thinking', text: 'Openly.' });
  });
});

describe('an edited result', () => {
  const FIELDS: Readonly<Record<string, JsonObject>> = {
    'function_call_output 1': { output: '[pruned]' },
    'function_call_output 2': { output: [{ type: 'input_text', text: '[pruned]' }] },
    custom_tool_call_output: { output: '[pruned]' },
    local_shell_call_output: { output: '[pruned]' },
    shell_call_output: { output: [{ outcome: { type: 'timeout' }, stdout: '[pruned]', stderr: '' }] },
    apply_patch_call_output: { output: '[pruned]' },
    program_output: { result: '[pruned]' },
    // They have no place for another text
    computer_call_output: {},
    'tool_search_output 1': {},
    mcp_approval_response: {},
  };
  test.each(Object.entries(FIELDS))('of %s keeps every other field', (name, fields) => {
    const native = { ...itemOf(name), note: { kept: true } };
    expect(prune(native)).toEqual({ ...native, ...fields });
    expect(rulesOf(prune(native))).toEqual([]);
  });

  it('is fixed where its item has no place for another text', () => {
    const fixed = Object.keys(VECTORS).filter((name) => readEntry(itemOf(name)).parts.some((part) => part.isFixed));
    expect(fixed.toSorted()).toEqual(['computer_call_output', 'mcp_approval_response', 'tool_search_output 1']);
    // And no other is deaf to what it is told
    const deaf = Object.keys(VECTORS).filter(
      (name) => VECTORS[name]?.role === 'results' && prune(itemOf(name)) === itemOf(name),
    );
    expect(deaf).toEqual([]);
  });

  it('of a shell keeps the chunks that say the same', () => {
    const chunk = (stdout: string): JsonObject => ({ stdout, stderr: 'e', outcome: { type: 'timeout' } });
    const native = { ...itemOf('shell_call_output'), output: [chunk('a'), chunk('b')] };
    const edited = edit(native, (block) =>
      block.type === 'function_result' ? { ...block, content: [text('ae'), text('[cut]')] } : block,
    );
    expect(edited).toEqual({
      ...native,
      output: [chunk('a'), { stdout: '[cut]', stderr: '', outcome: { type: 'timeout' } }],
    });
  });

  test.each(Object.keys(VECTORS).filter((name) => VECTORS[name]?.role === 'results'))(
    'of %s says the same where only its call has another id',
    (name) => {
      const renamed = edit(itemOf(name), (block) =>
        block.type === 'function_result' ? { ...block, function_call_id: 'new' } : block,
      );
      const ids = ['call_id', 'approval_request_id', 'id'].filter((field) => renamed[field] === 'new');
      expect(ids).toHaveLength(1);
      expect(renamed).toEqual({ ...itemOf(name), ...Object.fromEntries(ids.map((field) => [field, 'new'])) });
      expect(readEntry(renamed).parts).toMatchObject([{ block: { function_call_id: 'new' } }]);
      expect(Object.keys(renamed)).toEqual(Object.keys(itemOf(name)));
    },
  );

  it('keeps the blocks that are still there', () => {
    const native = itemOf('function_call_output 2');
    const capped = edit(native, (block) =>
      block.type === 'function_result' ? { ...block, content: [text('A m'), image] } : block,
    );
    expect(capped).toEqual({
      ...native,
      output: [
        { type: 'input_text', text: 'A m' },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0K' },
      ],
    });
  });
});

describe('write', () => {
  it('renames a call, and keeps its arguments as they were written', () => {
    const renamed = (name: string): JsonObject =>
      edit(itemOf(name), (block) => (block.type === 'function_call' ? { ...block, id: 'new' } : block));
    expect(renamed('function_call')).toEqual({ ...itemOf('function_call'), call_id: 'new' });
    expect(renamed('custom_tool_call')).toEqual({ ...itemOf('custom_tool_call'), call_id: 'new' });
    expect(renamed('shell_call')).toEqual({ ...itemOf('shell_call'), call_id: 'new' });
    expect(renamed('mcp_approval_request')).toEqual({ ...itemOf('mcp_approval_request'), id: 'new' });
  });

  it.each<[string, JsonObject]>([
    ['arguments that are no text', { type: 'function_call', call_id: '', name: 7, arguments: { a: 1 } }],
    ['no arguments', { type: 'function_call', call_id: 'a b', name: '' }],
    ['an input that is no text', { type: 'custom_tool_call', call_id: '', name: null, input: ['a'] }],
    ['no output', { type: 'apply_patch_call_output', call_id: '', status: 'completed' }],
    ['an output of null', { type: 'function_call_output', call_id: '', output: null }],
    ['an output that is an object', { type: 'function_call_output', call_id: '', output: { a: 1 } }],
    ['an empty output', { type: 'custom_tool_call_output', call_id: '', output: [] }],
    ['chunks that are none', { type: 'shell_call_output', call_id: '', output: ['a'] }],
  ])('changes nothing but an id where there are %s', (_, native) => {
    const renamed = edit(native, (block) =>
      block.type === 'function_call'
        ? { ...block, id: 'new' }
        : block.type === 'function_result'
          ? { ...block, function_call_id: 'new' }
          : block,
    );
    expect(renamed).toEqual({ ...native, call_id: 'new' });
  });

  it('writes new arguments as JSON text', () => {
    const item = edit(itemOf('function_call'), (block) =>
      block.type === 'function_call' ? { ...block, arguments: { city: 'Bergen' } } : block,
    );
    expect(item).toEqual({ ...itemOf('function_call'), arguments: '{"city":"Bergen"}' });
  });

  it('drops, edits and adds parts of a message', () => {
    const answer = readEntry(itemOf('message 5'));
    const [said, refused] = answer.parts;
    if (!said || !refused) throw new Error('the message has two parts');
    expect(openaiResponses.write(answer, [refused])).toEqual({
      ...answer.native,
      content: [{ type: 'refusal', refusal: 'no.' }],
    });
    const edited: Part[] = [said, refused].map((part) => ({ ...part, block: text('x'), edited: true }));
    expect(openaiResponses.write(answer, [...edited, { block: text('y'), path: PATH }])).toEqual({
      ...answer.native,
      content: [
        { type: 'output_text', text: 'x', annotations: [] },
        { type: 'refusal', refusal: 'x' },
        { type: 'output_text', text: 'y', annotations: [] },
      ],
    });
    expect(openaiResponses.write(answer, [])).toEqual({ ...answer.native, content: '' });
    const question = readEntry(itemOf('message 1'));
    expect(openaiResponses.write(question, [{ block: text('x'), path: PATH }])).toEqual({ role: 'user', content: 'x' });
    expect(openaiResponses.write(question, [...question.parts, { block: image, path: PATH }])).toEqual({
      role: 'user',
      content: [
        { type: 'input_text', text: 'Hello' },
        { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,iVBORw0K' },
      ],
    });
  });

  it('has one place in an item that is no message', () => {
    const call = readEntry(itemOf('function_call'));
    expect(() => openaiResponses.write(call, [...call.parts, ...call.parts])).toThrow(RangeError);
  });

  it('holds a result in an item of its own', () => {
    const native = itemOf('shell_call_output');
    const [part] = readEntry(native).parts;
    if (!part) throw new Error('an output has a part');
    expect(openaiResponses.holdResults([part])).toBe(native);
    expect(openaiResponses.holdResults([{ block: result('call_z', text('aborted')), path: PATH }])).toEqual(
      wire({ type: 'function_call_output', call_id: 'call_z', output: 'aborted' }),
    );
    expect(() => openaiResponses.holdResults([])).toThrow(RangeError);
  });
});

describe('what cannot be mapped', () => {
  test.each<[string, JsonObject, string]>([
    ['nothing', {}, '/type'],
    ['a type that nobody knows', { type: 'telepathy_call', call_id: 'a' }, '/type'],
    ['a name of Object.prototype as type', { type: 'toString' }, '/type'],
    ['a number as type', { type: 1 }, '/type'],
    ['a role of another API', { role: 'tool', content: 'a' }, '/role'],
    ['a message without role', { type: 'message', content: 'a' }, '/role'],
    ['a number as content', { role: 'user', content: 1 }, '/content'],
    ['a block without type', { role: 'user', content: [{ text: 'a' }] }, '/content/0'],
    ['a block without text', { role: 'user', content: [{ type: 'input_text' }] }, '/content/0/text'],
    ['an image of nothing', { role: 'user', content: [{ type: 'input_image' }] }, '/content/0'],
    ['an output of a number', { type: 'function_call_output', call_id: 'a', output: 1 }, '/output'],
    ['an output of texts', { type: 'function_call_output', call_id: 'a', output: ['a'] }, '/output/0'],
  ])('%s is refused with its pointer', (_, item, pointer) => {
    expect(problemOf(item)).toMatchObject({ code: 'invalid_request', path: `${PATH}${pointer}` });
  });
});

describe('what the API refuses', () => {
  const call = itemOf('function_call');
  const output = itemOf('function_call_output 1');
  const thought = itemOf('reasoning');
  test.each<[string, JsonObject, string[]]>([
    ['a call without call_id', { ...call, call_id: undefined }, ['missing-id /messages/3/call_id']],
    ['an output of no call', { ...output, call_id: '' }, ['missing-id /messages/3/call_id']],
    ['65 characters of call_id', { ...output, call_id: 'c'.repeat(65) }, ['bad-id /messages/3/call_id']],
    ['64 characters of call_id', { ...output, call_id: 'c'.repeat(64) }, []],
    ['a call that has the id of a message', { ...call, id: 'msg_1' }, ['bad-field /messages/3/id']],
    ['a message with a UUID', { ...itemOf('message 5'), id: '019f-1' }, ['bad-field /messages/3/id']],
    ['reasoning with an id of 416', { ...thought, id: `rs_${'a'.repeat(413)}` }, ['bad-field /messages/3/id']],
    ['an id with a space', { ...itemOf('mcp_call'), id: 'mcp 1' }, ['bad-field /messages/3/id']],
    ['an empty id', { ...thought, id: '' }, ['bad-field /messages/3/id']],
    [
      'reasoning that only its id could tell',
      { ...thought, id: undefined, encrypted_content: null },
      ['missing-id /messages/3/id'],
    ],
    ['reasoning by its content', { ...thought, id: undefined }, []],
    ['reasoning without summary', { ...thought, summary: undefined }, ['bad-field /messages/3/summary']],
    ['a name with a dot', { ...call, name: 'a.b' }, ['bad-name /messages/3/name']],
    ['no name', { ...call, name: undefined }, ['bad-name /messages/3/name']],
    ['a custom tool of no name', { ...itemOf('custom_tool_call'), name: '' }, ['bad-name /messages/3/name']],
    ['arguments as object', { ...call, arguments: {} }, ['bad-arguments /messages/3/arguments']],
    ['a custom call of nothing', { ...itemOf('custom_tool_call'), input: 1 }, ['bad-arguments /messages/3/input']],
    ['an output of null', { ...output, output: null }, ['bad-field /messages/3/output']],
    ['an output as object', { ...output, output: { a: 1 } }, ['bad-field /messages/3/output']],
    [
      'an output of output_text',
      { ...output, output: [{ type: 'output_text', text: 'a' }] },
      ['bad-block /messages/3/output/0'],
    ],
    ['a screen as text', { ...itemOf('computer_call_output'), output: 'a' }, ['bad-field /messages/3/output']],
    [
      'a generated image without id',
      { ...itemOf('image_generation_call'), id: undefined },
      ['missing-id /messages/3/id'],
    ],
    ['a message of nothing', { role: 'user' }, ['empty-message /messages/3/content']],
    [
      'input_text of an assistant',
      { role: 'assistant', content: [{ type: 'input_text', text: 'a' }] },
      ['bad-block /messages/3/content/0'],
    ],
    [
      'output_text of a user',
      { role: 'user', content: [{ type: 'output_text', text: 'a' }] },
      ['bad-block /messages/3/content/0'],
    ],
    [
      'a block that nobody knows',
      { role: 'user', content: [{ type: 'input_video' }] },
      ['bad-block /messages/3/content/0'],
    ],
  ])('%s', (_, item, rules) => {
    expect(rulesOf(item)).toEqual(rules);
  });

  it('never repeats what was sent', () => {
    const secret = {
      type: 'function_call',
      id: 'S3CRET!',
      call_id: 'S3CRET'.repeat(20),
      name: 'S3CRET!',
      arguments: 1,
    };
    expect(JSON.stringify(openaiResponses.faults(readEntry(secret)))).not.toContain('S3CRET');
    expect(JSON.stringify(problemOf({ type: 'S3CRET', role: 'S3CRET' }))).not.toContain('S3CRET');
  });

  it('is mended for an output by an edit that says the same', () => {
    const same = (block: ContentBlock): ContentBlock => block;
    expect(edit({ ...output, output: { a: 1 } }, same)).toEqual({ ...output, output: '{"a":1}' });
    expect(edit({ ...output, output: null }, same)).toEqual({ ...output, output: '' });
    expect(edit({ ...call, arguments: { a: 1 } }, same)).toEqual({ ...call, arguments: '{"a":1}' });
  });
});

describe('what the API refuses of neighbours', () => {
  const user = itemOf('message 1');
  const answer = itemOf('message 5');
  const thought = itemOf('reasoning');
  test.each<[string, JsonObject[], string[]]>([
    ['reasoning before what it led to', [user, thought, answer], []],
    ['reasoning before a call', [user, thought, itemOf('function_call')], []],
    ['reasoning after reasoning', [thought, { ...thought, id: 'rs_2' }, answer], []],
    ['reasoning at the end', [user, thought], ['lone-reasoning /messages/1']],
    ['reasoning before a user', [thought, user], ['lone-reasoning /messages/0']],
    ['reasoning before a result', [thought, itemOf('function_call_output 1')], ['lone-reasoning /messages/0']],
    ['one item twice', [answer, user, answer], ['duplicate-item-id /messages/2/id']],
    [
      'calls that share the id of their item',
      [itemOf('function_call'), { ...itemOf('function_call'), call_id: 'other' }],
      ['duplicate-item-id /messages/1/id'],
    ],
    ['reasoning twice', [thought, thought, answer], ['duplicate-item-id /messages/1/id']],
    [
      'a request for approval twice, which has no other id',
      [itemOf('mcp_approval_request'), itemOf('mcp_approval_response'), itemOf('mcp_approval_request')],
      ['duplicate-id /messages/2/id'],
    ],
    [
      'an output that has but the id of its call',
      [
        { ...itemOf('local_shell_call'), id: 'call_1', call_id: 'call_1' },
        { type: 'local_shell_call_output', id: 'call_1', output: 'a' },
      ],
      [],
    ],
    ['an item and a reference', [answer, { id: 'msg_1' }], []],
    ['a trigger before the end', [itemOf('compaction_trigger'), user], ['bad-order /messages/0']],
    ['a trigger at the end', [user, itemOf('compaction_trigger')], []],
  ])('%s', (_, items, rules) => {
    expect(neighbourRulesOf(...items)).toEqual(rules);
  });
});

describe('beside the input', () => {
  it('stand the instructions', () => {
    expect(openaiResponses.readSystem('Be brief.', '/system')).toEqual({ ok: true, value: ['Be brief.'] });
    for (const none of [undefined, null]) {
      expect(openaiResponses.readSystem(none, '/system')).toEqual({ ok: true, value: [] });
    }
    expect(openaiResponses.readSystem(['Be brief.'], '/system')).toMatchObject({ problem: { path: '/system' } });
  });

  it('one more is added to them', () => {
    const messages = [itemOf('message 3'), itemOf('message 1')];
    expect(openaiResponses.addInstruction({ messages }, 'x')).toEqual({ messages, system: 'x' });
    expect(openaiResponses.addInstruction({ messages, system: null }, 'x')).toEqual({ messages, system: 'x' });
    expect(openaiResponses.addInstruction({ messages, system: 'Be brief.' }, 'x')).toEqual({
      messages,
      system: 'Be brief.\n\nx',
    });
  });

  it('stand the tools', () => {
    const parameters = { type: 'object', properties: {} };
    const search: Tool = { type: 'web_search', search_context_size: 'low' };
    const tools: Tool[] = [
      { type: 'function', name: 'weather', description: 'Tells it.', parameters, strict: true },
      { type: 'function', name: 'now', description: null, parameters: null, strict: null },
      { type: 'custom', name: 'sh', description: 'Runs.', format: { type: 'text' } },
      search,
    ];
    expect(openaiResponses.readTools(tools, '/tools')).toEqual({
      ok: true,
      value: [
        { name: 'weather', description: 'Tells it.', parameters },
        { name: 'now', description: '', parameters: null },
        { name: 'sh', description: 'Runs.', parameters: { type: 'text' } },
        { name: 'web_search', description: '', parameters: search },
      ],
    });
    expect(openaiResponses.readTools(null, '/tools')).toEqual({ ok: true, value: [] });
    expect(openaiResponses.readTools([1], '/tools')).toMatchObject({ problem: { path: '/tools/0' } });
    expect(openaiResponses.readTools([{ type: 'function' }], '/tools')).toMatchObject({
      problem: { path: '/tools/0/name' },
    });
  });
});

const steps = fc.infiniteStream(fc.nat(5));

/** An item with one value anywhere in it replaced. */
const mutants = fc
  .tuple(fc.constantFrom(...Object.values(VECTORS)), steps, fc.jsonValue({ maxDepth: 3 }))
  .map(([{ item }, way, value]) => mutate(wire(item), way, value));

function mutate(target: JsonObject, way: Iterator<number>, value: unknown): JsonObject {
  const keys = Object.keys(target);
  const key = keys[Number(way.next().value) % keys.length];
  return key === undefined ? target : { ...target, [key]: mutateValue(target[key], way, value) };
}

function mutateValue(old: unknown, way: Iterator<number>, value: unknown): unknown {
  if (Number(way.next().value) === 0) return value;
  if (isJsonObject(old)) return mutate(old, way, value);
  if (!Array.isArray(old)) return value;
  const at = Number(way.next().value) % old.length;
  return old.map((item: unknown, index) => (index === at ? mutateValue(item, way, value) : item));
}

const objects = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })),
  fc.record(
    {
      type: fc.constantFrom(...Object.values(VECTORS).map(({ item }) => item.type), 'constructor'),
      role: fc.constantFrom('user', 'assistant', 'system'),
      id: fc.string(),
      content: fc.jsonValue({ maxDepth: 3 }),
      output: fc.jsonValue({ maxDepth: 3 }),
      summary: fc.jsonValue({ maxDepth: 3 }),
    },
    { requiredKeys: [] },
  ),
  mutants,
);

describe('any JSON object', () => {
  it('is read or refused, judged and edited without a throw, and written back as it was', () => {
    fc.assert(
      fc.property(objects, (native) => {
        const before = canonicalJson(JSON.parse(JSON.stringify(native)));
        const read = openaiResponses.read(native, PATH);
        if (read.ok) {
          openaiResponses.faults(read.value);
          openaiResponses.neighbourFaults?.([read.value, read.value]);
          expect(openaiResponses.write(read.value, [...read.value.parts])).toBe(native);
          expect(problemOf(prune(native))).toBeUndefined();
        } else {
          expect(read.problem).toMatchObject({ code: 'invalid_request', path: expect.stringContaining(PATH) });
        }
        expect(canonicalJson(JSON.parse(JSON.stringify(native)))).toBe(before);
      }),
      { numRuns: 1000 },
    );
  });
});
