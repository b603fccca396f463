/** Providers' conversations in which an operation could go wrong: what stays first, whose indices are told, what has no other place. */
import { describe, expect, it } from 'vitest';
import { readEntries } from '../transcript/formats/conversation.ts';
import { checkEntries } from '../transcript/formats/check.ts';
import { assemble } from './assemble.ts';
import { compact } from './compact.ts';
import { conversationPrune } from './conversation-prune.ts';
import { formatOf } from './native.ts';
import { DEFAULT_CONTEXT } from './run-context.ts';
import { validate } from './validate.ts';

type Operation = typeof assemble | typeof compact | typeof conversationPrune;
type Native = Readonly<Record<string, unknown>>;

async function run(operation: Operation, input: object): Promise<Record<string, unknown>> {
  const taken = validate(operation as typeof assemble, input);
  if (!taken.ok) throw new Error(JSON.stringify(taken.problem));
  const outcome = await (operation as typeof assemble).run(taken.value, DEFAULT_CONTEXT);
  if (outcome.kind !== 'answer') throw new Error(outcome.problem.code);
  return outcome.data;
}

function problemOf(operation: Operation, input: object): object | undefined {
  const taken = validate(operation as typeof assemble, input);
  return taken.ok ? undefined : taken.problem;
}

const rulesOf = (format: string, messages: unknown): string[] => {
  const read = readEntries(formatOf(format), messages as Native[]);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return checkEntries(formatOf(format), read.value).map(({ rule }) => rule);
};

const anthropic = { format: 'anthropic-messages' };
const user = (content: unknown): Native => ({ role: 'user', content });
const assistant = (content: unknown): Native => ({ role: 'assistant', content });
const toolUse = (id: string): Native => ({ type: 'tool_use', id, name: 'f', input: {} });
const toolResult = (tool_use_id: string, content: string): Native => ({ type: 'tool_result', tool_use_id, content });
const steps = (count: number, said = 'line of output '.repeat(40)): Native[] =>
  Array.from({ length: count }, (_, index) => [
    assistant([toolUse(`t${index}`)]),
    user([toolResult(`t${index}`, said)]),
  ]).flat();

describe('compact', () => {
  it('keeps a user’s message before a tail that would begin with the assistant, where the provider wants one', async () => {
    const messages = [user('do it'), ...steps(12)];
    const model = { id: 'claude-sonnet-4' };
    const options = { preserve_recent_tokens: 700 };
    const data = await run(compact, { ...anthropic, messages, model, options });
    const { tail_start_index: start } = data;
    expect(data).toMatchObject({ status: 'ok', opening_message_index: 0 });
    expect(data['messages']).toEqual([messages[0], ...messages.slice(Number(start))]);
    expect(rulesOf('anthropic-messages', data['messages'])).toEqual([]);
    const asked = { ...options, user_first: false };
    const without = await run(compact, { ...anthropic, messages, model, options: asked });
    expect(without['messages']).toEqual(messages.slice(Number(without['tail_start_index'])));
  });

  it('puts an instruction that stood after a summarised user’s message beside the array', async () => {
    const messages = [
      user('do it'),
      { role: 'system', content: 'Never guess.' },
      ...steps(12),
      user('go on'),
      ...steps(1),
    ];
    const input = { ...anthropic, system: 'Be brief.', messages, model: { id: 'claude-sonnet-4' } };
    const data = await run(compact, { ...input, options: { preserve_recent_tokens: 700, tail_turns: 1 } });
    expect(data).toMatchObject({ status: 'ok', system: 'Be brief.\n\nNever guess.' });
    expect(data['messages']).toEqual(messages.slice(-3));
    const limits = { context_window: 1_500, max_output_tokens: 10 };
    const assembled = await run(assemble, { ...input, model: { id: 'claude-sonnet-4', limits } });
    // There the user's message stays as the opening one, and the instruction after it.
    expect(assembled['system']).toMatch(/^Be brief\.\n\n# Conversation summary/);
    expect(assembled['messages']).toEqual(expect.arrayContaining(messages.slice(0, 2)));
    expect(rulesOf('anthropic-messages', assembled['messages'])).toEqual([]);
  });
});

describe('conversation-prune', () => {
  const target = { cacheBreakpoint: -1, targetTokens: 0, keepRecent: 0 };

  it('leaves the messages that an instruction has its place between', async () => {
    const messages = [
      user('go'),
      assistant('well'),
      user('note'),
      { role: 'system', content: 'Never guess.' },
      assistant('done'),
      user('thanks'),
    ];
    const data = await run(conversationPrune, { ...anthropic, messages, ...target, droppable: [1, 2, 4] });
    expect(data['keep']).toEqual([0, 2, 3, 4, 5]);
  });

  it('never leaves nothing', async () => {
    const messages = [assistant('a'), assistant('b')];
    const data = await run(conversationPrune, { format: 'openai-chat', messages, ...target, droppable: [0, 1] });
    expect(data['keep']).toEqual([1]);
  });

  it('keeps calls with the reasoning before them, also where a result stands between', async () => {
    const items = (index: number): Native[] => [
      { type: 'function_call', call_id: `c${index}`, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: `c${index}`, output: 'ok' },
    ];
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' };
    const turn = [{ role: 'user', content: 'go' }, reasoning, ...items(1), ...items(2)];
    const messages = [...turn, { role: 'user', content: 'on' }];
    const input = { format: 'openai-responses', messages, ...target, targetTokens: 25 };
    const data = await run(conversationPrune, input);
    expect(data['keep']).toEqual([0, 5 + 1]);
  });

  it('tells the caller’s own indices where messages were mended', async () => {
    const messages = [
      user('first'),
      assistant(''),
      user('pinned'),
      user('droppable'),
      assistant([toolUse('t')]),
      user('last'),
    ];
    const data = await run(conversationPrune, {
      ...anthropic,
      messages,
      ...target,
      repair: true,
      pinned: [2],
      droppable: [1, 3],
      cacheBreakpoint: 0,
    });
    expect(data).toMatchObject({
      keep: [0, 2, 4, 5],
      dropped: [{ index: 3 }],
      prefix: { messages: 1 },
      repairs: [
        { path: '/messages/1', fault: 'empty-message' },
        { path: '/messages/4/content/0', fault: 'open-call' },
      ],
    });
    const missing = { tool_use_id: 't', is_error: true };
    expect(data['messages']).toMatchObject([
      messages[0]!,
      messages[2]!,
      messages[4]!,
      user([missing, { type: 'text', text: 'last' }]),
    ]);
  });

  it('refuses an index of no message', () => {
    const input = { ...anthropic, messages: [user('go')], ...target };
    expect(problemOf(conversationPrune, { ...input, pinned: [0, 1] })).toMatchObject({ path: '/pinned/1' });
    expect(problemOf(conversationPrune, { ...input, droppable: [499] })).toMatchObject({ path: '/droppable/0' });
    expect(problemOf(conversationPrune, { ...input, droppable: [0] })).toBeUndefined();
  });
});

describe('where half surrogate pairs were', () => {
  const input = { format: 'openai-chat', messages: [user('half \ufffd'), user('whole')], model: { id: 'gpt-5' } };
  it.each<[string, object, string | undefined]>([
    ['is taken where a replacement stands', { repair: true, split_surrogates: ['/messages/0/content'] }, undefined],
    ['is nowhere', { repair: true, split_surrogates: ['/messages/0/content', '/nowhere'] }, '/split_surrogates/1'],
    [
      'is a text without a replacement',
      { repair: true, split_surrogates: ['/messages/1/content'] },
      '/split_surrogates/0',
    ],
    ['is no pointer', { repair: true, split_surrogates: ['not a pointer'] }, '/split_surrogates/0'],
    ['is told without repair', { split_surrogates: ['/messages/0/content'] }, '/split_surrogates/0'],
  ])('%s', (_, more, path) => {
    expect(problemOf(assemble, { ...input, ...more })).toEqual(path && expect.objectContaining({ path }));
  });
});

describe('what cannot say anything else', () => {
  const shot = (id: string): Native[] => [
    {
      type: 'computer_call',
      id: `cu_${id}`,
      call_id: id,
      action: { type: 'screenshot' },
      pending_safety_checks: [],
      status: 'completed',
    },
    {
      type: 'computer_call_output',
      call_id: id,
      output: { type: 'computer_screenshot', image_url: 'https://a.example/1.png' },
    },
  ];
  const messages = [{ role: 'user', content: 'look' }, ...['a', 'b', 'c', 'd', 'e', 'f'].flatMap(shot)];
  const input = { format: 'openai-responses', messages };

  it('is left alone, and what does not fit so is not said to', async () => {
    const limits = { context_window: 10_000, max_output_tokens: 100 };
    const tight = { ...input, model: { id: 'gpt-5', limits }, options: { allow_compaction: false } };
    await expect(run(assemble, tight)).rejects.toThrow('context/overflow');
    const wide = { ...input, model: { id: 'gpt-5', limits: { ...limits, context_window: 100_000 } } };
    expect((await run(assemble, wide))['messages']).toEqual(messages);
  });

  it('has its count in the whole that is told', async () => {
    const limits = { context_window: 16_000, max_output_tokens: 100 };
    const data = await run(assemble, { ...input, model: { id: 'gpt-5', limits } });
    const model = { id: 'gpt-5', limits: { context_window: 1_000_000, max_output_tokens: 100 } };
    const { messages: left, system } = data;
    const again = await run(assemble, { ...input, messages: left, model, ...(system !== undefined && { system }) });
    expect(again['token_count']).toBe(data['token_count']);
  });
});

it('leaves results alone whose call the provider may hold', () => {
  const messages = [
    { role: 'user', content: 'go' },
    { type: 'item_reference', id: 'fc_1' },
    { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
    { role: 'user', content: 'on' },
  ];
  expect(rulesOf('openai-responses', messages)).toEqual([]);
  expect(rulesOf('openai-responses', messages.toSpliced(1, 1))).toEqual(['orphan-result']);
});

it('keeps blocks apart that read the same, where only an id is mended', async () => {
  const blocks = [
    { type: 'image', source: { type: 'url', url: 'X' } },
    { type: 'image', source: { type: 'file', file_id: 'X' } },
    { type: 'text', text: 'd', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'd' },
  ];
  const messages = [
    user('go'),
    assistant([toolUse('a'), toolUse('a')]),
    user([toolResult('a', 'one'), { ...toolResult('a', ''), content: blocks }]),
  ];
  const input = { ...anthropic, messages, repair: true, cacheBreakpoint: -1, targetTokens: 100_000 };
  const data = await run(conversationPrune, input);
  expect(data['messages']).toEqual([
    messages[0],
    assistant([toolUse('a'), toolUse('call_1')]),
    user([toolResult('a', 'one'), { ...toolResult('call_1', ''), content: blocks }]),
  ]);
});
