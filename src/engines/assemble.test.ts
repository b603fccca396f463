import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, conversation, custom, inline, result, text, user } from '../../test/conversation.ts';
import { referenceMessage, referenceText, referenceTool } from '../../test/reference-count.ts';
import { anyMessage, anyTool, readTranscript, TRANSCRIPTS } from '../../test/transcripts.ts';
import { canonicalJson } from '../provenance/canonical.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { placeResults } from '../transcript/results.ts';
import { assemble, type Assembled, type AssembleOptions, type AssembleResult, type AssembleTools } from './assemble.ts';
import { DEFAULT_CONFIG } from './config.ts';
import { heuristic, tokenizer } from './estimator.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';

const ESTIMATORS = { heuristic, o200k_base: tokenizer(await loadEncoding('o200k_base')) };
const NAMES = ['heuristic', 'o200k_base'] as const;

/** Says so many words, and remembers what it was asked. */
function fake(summary: string | undefined, deterministic = true): Summarizer & { asked: SummaryRequest[] } {
  const asked: SummaryRequest[] = [];
  return { name: 'fake', deterministic, asked, summarize: async (request) => (asked.push(request), summary) };
}

interface Given {
  readonly messages: readonly AgentMessage[];
  /** Usable tokens, as nothing is reserved unless the options say so. */
  readonly usable: number;
  readonly options?: AssembleOptions;
  readonly tools?: Partial<AssembleTools>;
  readonly system_prompt?: string | null;
}
const run = ({ messages, usable, options, tools, system_prompt = null }: Given): Promise<Assembled> =>
  assemble(
    { messages, system_prompt, model: { id: 'm' }, options: { reserved_tokens: 0, ...options } },
    {
      config: { ...DEFAULT_CONFIG, protect_recent_tokens: 0, min_free_tokens: 1 },
      model: { resolved: 'inline', limits: { context_window: usable, max_output_tokens: 0 } },
      estimator: heuristic,
      summarizer: fake('## Goal'),
      withLease: (work) => work(),
      pause: async () => {},
      ...tools,
    },
  );
const fit = async (given: Given): Promise<AssembleResult> => {
  const assembled = await run(given);
  if (assembled.kind !== 'fits') throw new Error(assembled.kind);
  return assembled.result;
};

const ofTokens = (tokens: number): string => 'word'.repeat(tokens);
const sizeOf = (messages: readonly AgentMessage[]): number =>
  messages.reduce((total, message) => total + heuristic.message(message), 0);
const saying = ({ content }: AgentMessage): string =>
  content.map((block) => ('text' in block ? block.text : '')).join('');

describe('what fits', () => {
  const messages = [custom(), user('hello'), assistant('hi'), custom()];

  it('comes back as it was, without notes, and is counted', async () => {
    const given = { messages, usable: 1_000, system_prompt: 'Be brief. \n', options: { request_overhead_tokens: 7 } };
    expect(await fit(given)).toEqual({
      system_prompt: 'Be brief.',
      messages: messages.slice(1, 3),
      token_count: sizeOf(messages.slice(1, 3)) + 2 + 7,
      usable: 1_000,
      effective_max_output_tokens: 0,
      model_resolved: 'inline',
      applied: {
        initial_token_count: sizeOf(messages.slice(1, 3)) + 9,
        pruned: false,
        pruned_tokens: 0,
        compacted: false,
      },
      breakdown: {
        system_prompt_tokens: 2,
        tools_tokens: 0,
        reply_priming_tokens: 0,
        request_overhead_tokens: 7,
        by_role: {
          user: heuristic.message(user('hello')),
          assistant: heuristic.message(assistant('hi')),
          function_result: 0,
          custom: 0,
        },
        estimator: 'heuristic',
      },
    });
  });

  it.each([
    ['Base', 'said', 'Base\n\n# Conversation summary\n\nsaid'],
    ['  Base \n\t', 'said', '  Base\n\n# Conversation summary\n\nsaid'],
    ['', 'said', '# Conversation summary\n\nsaid'],
    [null, 'said', '# Conversation summary\n\nsaid'],
    [' \n', null, ''],
    ['Base', '', 'Base'],
    ['Base', ' \n', 'Base'],
  ])('has the prompt %j with the summary %j as %j', async (system_prompt, previous_summary, expected) => {
    const given = { messages, usable: 1_000, system_prompt, options: { previous_summary } };
    expect((await fit(given)).system_prompt).toBe(expected);
  });

  it('is primed for a reply where there is anything at all', async () => {
    const tools = { estimator: ESTIMATORS.o200k_base };
    const options = { reserved_tokens: 0 };
    expect((await fit({ messages: [], usable: 0, tools, options })).token_count).toBe(0);
    expect((await fit({ messages: [], usable: 9, tools, options: { request_overhead_tokens: 1 } })).token_count).toBe(
      3,
    );
  });
});

describe('old results', () => {
  const messages = [user('task'), assistant(call('c1')), result('c1', ofTokens(5_000)), user('next'), user('done')];

  it('are pruned first, and nothing else is done where that is enough', async () => {
    const summarizer = fake('never needed');
    const { messages: fitted, applied } = await fit({ messages, usable: 4_000, tools: { summarizer } });
    expect(saying(fitted[2]!)).toBe('[output pruned: was ~5000 tokens]');
    expect(applied).toMatchObject({ pruned: true, pruned_tokens: 4_992, compacted: false });
    expect(summarizer.asked).toEqual([]);
  });

  it.each<[string, AssembleOptions]>([
    ['pruning is off', { allow_prune: false, allow_compaction: false }],
    ['the function is protected', { protected_functions: ['shell::run'], allow_compaction: false }],
  ])('are reduced to references where %s', async (_, options) => {
    const { messages: fitted, applied, token_count } = await fit({ messages, usable: 4_000, options });
    expect(saying(fitted[2]!)).toMatch(/^\[function result reduced for context budget\] \{/);
    expect(applied.pruned).toBe(true);
    expect(applied.pruned_tokens).toBe(applied.initial_token_count - token_count);
  });
});

describe('the older part', () => {
  const messages = [
    custom(),
    user(ofTokens(3_000)),
    assistant('r0'),
    user(ofTokens(3_000)),
    custom(),
    assistant('r1'),
    user('recent question'),
    assistant('recent answer'),
  ];

  it('is summarised where pruning is not enough', async () => {
    const summarizer = fake('## Goal\n- ship');
    const given = { messages, usable: 4_000, tools: { summarizer }, system_prompt: 'Base.' };
    const { messages: fitted, applied, system_prompt, token_count } = await fit(given);
    const head = [messages[1]!, messages[2]!, messages[3]!];
    expect(fitted).toEqual(messages.slice(5));
    expect(system_prompt).toBe('Base.\n\n# Conversation summary\n\n## Goal\n- ship');
    expect(applied).toMatchObject({
      compacted: true,
      summary: '## Goal\n- ship',
      tail_start_index: 5,
      tokens_before: sizeOf(head),
      summarized_head_tokens: sizeOf(head),
      pruned: false,
    });
    expect(token_count).toBe(sizeOf(fitted) + heuristic.text(system_prompt));
    expect(summarizer.asked).toMatchObject([
      { head, previousSummary: undefined, budgetTokens: Math.floor(sizeOf(head) / 10) },
    ]);
  });

  it('is told to the summariser as it was sent, with the earlier summary, which the new one replaces', async () => {
    const log = result('c1', ofTokens(5_000));
    const summarizer = fake('new');
    const given = {
      messages: [user('a'), assistant(call('c1')), log, user(ofTokens(2_000)), user('b'), user('c')],
      usable: 2_100,
      options: { previous_summary: 'old '.repeat(300), tail_turns: 1, summary_tokens: 128 },
      tools: { summarizer },
    };
    const { applied, system_prompt, messages: fitted } = await fit(given);
    expect(applied).toMatchObject({ pruned: true, compacted: true });
    expect(summarizer.asked[0]).toMatchObject({ previousSummary: 'old '.repeat(300), budgetTokens: 128 });
    expect(summarizer.asked[0]?.head[2]).toBe(log);
    expect(system_prompt).toBe('# Conversation summary\n\nnew');
    expect(fitted.length).toBeGreaterThan(0);
  });

  it.each<[string, Partial<Given>]>([
    ['compaction is off', { options: { allow_compaction: false } }],
    ['a prefix is cached', { options: { cache_breakpoint: 0 } }],
    ['no turn is to stay', { options: { tail_turns: 0 } }],
    ['there is no turn', { messages: [assistant(ofTokens(5_000)), assistant('b')] }],
    ['the summary is no smaller', { tools: { summarizer: fake(ofTokens(9_000)) } }],
    ['there is none', { tools: { summarizer: fake('') } }],
    ['the summariser fails', { tools: { summarizer: fake(undefined) } }],
  ])('stays where %s, and then it may not fit', async (_, given) => {
    const assembled = await run({ messages, usable: 4_000, ...given });
    expect(assembled).toMatchObject({ kind: 'overflow', usable: 4_000 });
    if (assembled.kind === 'overflow') expect(assembled.token_count).toBeGreaterThan(4_000);
  });

  it('leaves a user’s message at the beginning where that is asked for', async () => {
    const list = [
      user('first'),
      assistant('a'),
      custom(),
      user(ofTokens(600)),
      assistant(call('c')),
      result('c', ofTokens(3_000)),
      assistant('so'),
      user(inline('gone'), 'with a result'),
      assistant('done'),
    ];
    const options = { protected_functions: ['shell::run'], summary_tokens: 128 };
    const asItIs = await fit({ messages: list, usable: 2_500, options });
    expect([asItIs.messages[0], asItIs.applied.tail_start_index]).toEqual([list[6], 6]);
    expect(asItIs.applied).not.toHaveProperty('opening_message_index');
    const asked = await fit({ messages: list, usable: 2_500, options: { ...options, user_first: true } });
    expect(asked.messages).toEqual([list[3], ...list.slice(6)]);
    expect(asked.applied).toMatchObject({ tail_start_index: 6, opening_message_index: 3 });
  });

  it('does not bring a user’s message back that is too long, where another tail begins with one', async () => {
    const list = [user('w '.repeat(1_200)), assistant(), user('v '.repeat(90))];
    const { messages: left, applied } = await fit({ messages: list, usable: 600, options: { user_first: true } });
    expect([left, applied.tail_start_index]).toEqual([[list[2]], 2]);
  });

  it('is summarised under a lease only where a model does it, and a held one is no reason to cut', async () => {
    const held: AssembleTools['withLease'] = async () => undefined;
    const options = {};
    expect((await run({ messages, usable: 4_000, options, tools: { withLease: held } })).kind).toBe('fits');
    const tools = { withLease: held, summarizer: fake('new', false) };
    expect(await run({ messages, usable: 4_000, options, tools })).toEqual({ kind: 'busy' });
    const prunable = [user('task'), assistant(call('c1')), result('c1', ofTokens(5_000)), user('next'), user('done')];
    expect((await run({ messages: prunable, usable: 4_000, tools })).kind).toBe('fits');
  });
});

describe('the last resort', () => {
  const original = result('big', `${'é'.repeat(200)}${ofTokens(2_000)}`, {
    is_error: true,
    details: { exit: 1 },
    extra: [1],
  });
  const messages = [user('a'), assistant(call('big'), call('small')), original, result('small', ofTokens(300))];
  const options = { allow_compaction: false };

  it('reduces the largest result first, to a reference by which it can be told', async () => {
    const { messages: fitted } = await fit({ messages, usable: 900, options });
    expect(fitted[3]).toBe(messages[3]);
    const { content, details, ...rest } = fitted[2] as unknown as Record<string, unknown>;
    const json = canonicalJson(original);
    const reference = {
      kind: 'function_result_reference',
      function_id: 'shell::run',
      function_call_id: 'big',
      original_bytes: Buffer.byteLength(json),
      original_estimated_tokens: heuristic.message(original),
      sha256: createHash('sha256').update(json).digest('hex'),
      preview: `${'é'.repeat(160)}…`,
      retrieval_hint: expect.any(String) as string,
    };
    expect(details).toEqual({ context_reference: reference });
    const [{ text: said }] = content as [{ text: string }];
    expect(JSON.parse(said.replace('[function result reduced for context budget] ', ''))).toEqual(reference);
    const { content: _, details: __, ...others } = original as unknown as Record<string, unknown>;
    expect(rest).toEqual(others);
  });

  it('takes equals in their order, no more than needed, and not what would not shrink', async () => {
    const equals = [
      user('a'),
      assistant(call('1'), call('2'), call('3')),
      ...['1', '2', '3'].map((id) => result(id, ofTokens(1_000))),
    ];
    const usable = sizeOf(equals) - 100;
    const reduced = (list: readonly AgentMessage[]) =>
      list.map((message) => saying(message).startsWith('[function result reduced'));
    expect(reduced((await fit({ messages: equals, usable, options })).messages)).toEqual([
      false,
      false,
      true,
      false,
      false,
    ]);
    const short = [user(ofTokens(500)), assistant(call('1')), result('1', 'short')];
    const overflow = { kind: 'overflow', token_count: sizeOf(short), usable: 100, fixed_tokens: 0 };
    expect(await run({ messages: short, usable: 100, options })).toEqual(overflow);
    const cached = await run({ messages: short, usable: 100, options: { cache_breakpoint: 0 } });
    expect(cached).toEqual({ ...overflow, prefix_tokens: sizeOf(short.slice(0, 1)) });
  });

  it('reduces results in user messages, which have no details, by the call’s name', async () => {
    const block = inline('c', text(ofTokens(2_000)));
    const list = [
      user('a'),
      assistant(call('c', 'file::read')),
      user(block, inline('gone', text(ofTokens(1_500))), 'and?'),
    ];
    const { messages: fitted } = await fit({ messages: list, usable: 600, options });
    const [first, second, beside] = fitted[2]!.content as [
      ContentBlock & { content: [{ text: string }] },
      ContentBlock & { content: [{ text: string }] },
      ContentBlock,
    ];
    const parse = (said: string): Record<string, unknown> =>
      JSON.parse(said.slice(said.indexOf('{'))) as Record<string, unknown>;
    expect(first).not.toHaveProperty('details');
    expect(parse(first.content[0].text)).toMatchObject({
      function_id: 'file::read',
      sha256: createHash('sha256').update(canonicalJson(block)).digest('hex'),
      original_bytes: Buffer.byteLength(canonicalJson(block)),
    });
    expect(parse(second.content[0].text)).toMatchObject({ function_id: null, function_call_id: 'gone' });
    expect(beside).toEqual(text('and?'));
  });

  it('is not misled by fields that nobody knows', async () => {
    const stray = Object.assign(inline('c', text(ofTokens(2_000))), { role: 'function_result' });
    const list = [user('a'), assistant(call('c', 'file::read')), user(stray, 'and?')];
    const { messages: fitted } = await fit({ messages: list, usable: 600, options });
    expect(fitted[2]).toMatchObject({ role: 'user', content: [{ role: 'function_result' }, text('and?')] });
    expect(fitted[2]).not.toHaveProperty('function_call_id');
  });

  it('previews details where a result says nothing', async () => {
    const image: ContentBlock = { type: 'image', data: '', mime: 'image/png' };
    const list = [user('a'), assistant(call('c')), result('c', [image], { details: { rows: 3 } })];
    const { messages: fitted } = await fit({ messages: list, usable: 600, options });
    expect(saying(fitted[2]!)).toContain('"preview":"{\\"rows\\":3}"');
  });

  it('names the result as it was sent, also where it was capped before', async () => {
    const { messages: fitted } = await fit({ messages, usable: 740, options: { ...options, max_result_tokens: 420 } });
    expect(saying(fitted[2]!)).toContain(`"original_bytes":${Buffer.byteLength(canonicalJson(original))}`);
  });

  it('needs few counts of a message with many results', async () => {
    const many = Array.from({ length: 500 }, (_, index) => inline(`c${index}`, text(ofTokens(200 + (index % 7)))));
    const list = [user('a'), assistant(...many.map((_, index) => call(`c${index}`))), user(...many)];
    let counts = 0;
    const estimator = {
      ...heuristic,
      message: (message: AgentMessage) => ((counts += message.content.length), heuristic.message(message)),
    };
    await fit({ messages: list, usable: sizeOf(list) - 20_000, options, tools: { estimator } });
    expect(counts).toBeLessThan(12 * many.length);
  });
});

describe('a cached prefix', () => {
  const messages = [
    user('a'),
    custom(),
    assistant(call('c')),
    result('c', ofTokens(3_000)),
    assistant(call('d')),
    result('d', ofTokens(3_000)),
    user('b'),
    user('c'),
  ];

  it('is not touched, and proven', async () => {
    const cached = [messages[0]!, messages[2]!, messages[3]!];
    const options = { cache_breakpoint: 3 };
    const { messages: fitted, applied } = await fit({ messages, usable: 4_000, options });
    expect(fitted.slice(0, 3)).toEqual(cached);
    expect(saying(fitted[4]!)).toBe('[output pruned: was ~3000 tokens]');
    expect(applied.prefix).toEqual({
      messages: 3,
      tokens: sizeOf(cached),
      sha256: createHash('sha256').update(canonicalJson(cached)).digest('hex'),
    });
    expect(await run({ messages, usable: 2_000, options })).toMatchObject({ kind: 'overflow' });
  });

  it('may hold a call whose result is replaced', async () => {
    const { messages: fitted } = await fit({ messages, usable: 4_000, options: { cache_breakpoint: 4 } });
    expect(saying(fitted[4]!)).toBe('[output pruned: was ~3000 tokens]');
  });

  it('of nothing is no reason not to compact', async () => {
    const list = [user(ofTokens(3_000)), assistant('a'), user('b'), assistant('c')];
    const { applied } = await fit({ messages: list, usable: 2_500, options: { cache_breakpoint: -1 } });
    expect(applied).toMatchObject({ compacted: true, prefix: { messages: 0, tokens: 0 } });
  });

  it('stays the same whatever is appended', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, conversation, fc.nat(2_000), async (first, more, usable) => {
        const options = { cache_breakpoint: first.length - 1 };
        const prefixes = await Promise.all(
          [first, [...first, ...more]].map(async (list) => {
            const assembled = await run({ messages: list, usable, options });
            return assembled.kind === 'fits'
              ? canonicalJson(assembled.result.messages.slice(0, assembled.result.applied.prefix?.messages))
              : undefined;
          }),
        );
        const view = canonicalJson(first.filter(({ role }) => role !== 'custom'));
        for (const prefix of prefixes) if (prefix !== undefined) expect(prefix).toBe(view);
      }),
    );
  });
});

describe.each(NAMES)('whatever is sent, by %s', (by) => {
  const estimator = ESTIMATORS[by];
  /** Keeps the first words that fit, so that a summary is smaller as a rule. */
  const summarizer: Summarizer = {
    name: 'words',
    deterministic: true,
    summarize: async ({ head, previousSummary }) => `${previousSummary ?? ''} ${head.length}`.trim().slice(0, 400),
  };
  const options = fc.record({
    tail_turns: fc.constantFrom(null, 0, 1, 3),
    max_result_tokens: fc.constantFrom(null, null, 20, 200),
    cache_breakpoint: fc.constantFrom(null, null, -1, 0, 2),
    user_first: fc.constantFrom(null, false, true),
    allow_prune: fc.constantFrom(null, true, false),
    allow_compaction: fc.constantFrom(null, true, false),
    protected_functions: fc.constantFrom(null, ['file::read']),
    previous_summary: fc.constantFrom(null, '', 'what was'),
    request_overhead_tokens: fc.constantFrom(null, 0, 33),
  });
  const wellFormed = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value, (_, each: unknown) => (typeof each === 'string' ? each.toWellFormed() : each)));
  const anything = fc.array(anyMessage, { maxLength: 9 }).map((messages) => wellFormed(messages) as AgentMessage[]);
  const tools = fc
    .array(anyTool, { maxLength: 2 })
    .map((list) => wellFormed(list) as { name: string; description: string }[]);
  const count = (
    messages: readonly AgentMessage[],
    prompt: string,
    given: readonly object[],
    overhead: number,
  ): number => {
    const counted =
      messages.reduce((total, message) => total + referenceMessage(message, by), 0) +
      given.reduce<number>((total, tool) => total + referenceTool(tool, by), 0) +
      referenceText(prompt, by) +
      overhead;
    return by === 'heuristic' || counted === 0 ? counted : counted + 2;
  };
  const orphans = (messages: readonly AgentMessage[]): number =>
    placeResults(messages).filter(({ call: called }) => called === undefined).length;

  it('the answer fits by a count from scratch, is legal where the request was, and is final', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(conversation, anything),
        tools,
        fc.nat(9_000),
        options,
        async (messages, given, usable, each) => {
          const before = canonicalJson(messages);
          const request = {
            messages,
            tools: given,
            model: { id: 'm' },
            system_prompt: 'Base ',
            options: { ...each, reserved_tokens: 0 },
          };
          const assembling: AssembleTools = {
            config: { ...DEFAULT_CONFIG, protect_recent_tokens: 50, min_free_tokens: 1, max_output_chars: 20 },
            model: { resolved: 'inline', limits: { context_window: usable, max_output_tokens: 0 } },
            estimator,
            summarizer,
            withLease: (work) => work(),
            pause: async () => {},
          };
          const assembled = await assemble(request, assembling);
          const view = messages.filter(({ role }) => role !== 'custom');
          expect(canonicalJson(messages)).toBe(before);
          if (assembled.kind !== 'fits') {
            expect(assembled).toMatchObject({ kind: 'overflow', usable });
            return;
          }
          const { messages: fitted, system_prompt, token_count, breakdown, applied } = assembled.result;
          expect(token_count).toBe(count(fitted, system_prompt, given, each.request_overhead_tokens ?? 0));
          expect(token_count).toBeLessThanOrEqual(usable);
          const { by_role, estimator: name, ...parts } = breakdown;
          expect([name, by_role.custom]).toEqual([estimator.name, 0]);
          const total = [...Object.values(parts), ...Object.values(by_role)].reduce((sum, part) => sum + part, 0);
          expect(total).toBe(token_count);
          expect(applied.initial_token_count).toBe(
            count(
              view,
              each.previous_summary ? `Base\n\n# Conversation summary\n\n${each.previous_summary}` : 'Base',
              given,
              each.request_overhead_tokens ?? 0,
            ),
          );

          if (view.length > 0) expect(fitted.length).toBeGreaterThan(0);
          const opening = messages.filter((_, index) => index === applied.opening_message_index);
          const tail = applied.compacted
            ? [...opening, ...messages.slice(applied.tail_start_index)].filter(({ role }) => role !== 'custom')
            : view;
          const mayOpen =
            each.user_first === true &&
            view[0]?.role === 'user' &&
            view[0].content.every(({ type }) => type !== 'function_result');
          if (mayOpen && (view[0]?.content.length ?? 0) > 0) expect(fitted[0]?.role).toBe('user');
          expect(fitted.length).toBe(tail.length);
          expect(orphans(fitted)).toBeLessThanOrEqual(orphans(view));
          for (const [index, message] of fitted.entries()) {
            const sent = tail[index]!;
            const keepsPlace = { ...message, content: sent.content, ...('details' in message && { details: 0 }) };
            if (message !== sent) expect(keepsPlace).toEqual({ ...sent, ...('details' in message && { details: 0 }) });
          }

          if (typeof each.cache_breakpoint === 'number') return;
          const again = await assemble(
            { ...request, messages: fitted, system_prompt, options: { ...request.options, previous_summary: null } },
            assembling,
          );
          expect(again).toMatchObject({ kind: 'fits', result: { messages: fitted, system_prompt, token_count } });
        },
      ),
      { numRuns: 400 },
    );
  });

  it('appending turns and handing back summary and tail converges', async () => {
    const { messages } = readTranscript('01-pi-large-session');
    let kept: readonly AgentMessage[] = [];
    let previous_summary: string | null = null;
    for (let end = 40; end <= messages.length; end += 40) {
      kept = [...kept, ...messages.slice(end - 40, end)];
      const assembled = await assemble(
        {
          messages: kept,
          model: { id: 'm' },
          options: { reserved_tokens: 0, previous_summary, max_result_tokens: 1_000 },
        },
        {
          config: DEFAULT_CONFIG,
          model: { resolved: 'inline', limits: { context_window: 16_000, max_output_tokens: 0 } },
          estimator,
          summarizer,
          withLease: (work) => work(),
          pause: async () => {},
        },
      );
      if (assembled.kind !== 'fits') throw new Error(assembled.kind);
      const { applied } = assembled.result;
      if (!applied.compacted) continue;
      previous_summary = applied.summary ?? null;
      kept = kept.slice(applied.tail_start_index);
      expect(orphans(kept)).toBe(0);
    }
    expect(previous_summary).not.toBeNull();
  });
});

it.each(TRANSCRIPTS)(
  '%s fits into a half and a quarter of itself, with every call and result together',
  async (name) => {
    const { messages, system_prompt = '' } = readTranscript(name);
    const whole = (await fit({ messages, usable: 1e9, system_prompt })).token_count;
    for (const share of [0.75, 0.5, 0.25]) {
      const assembled = await run({ messages, usable: Math.floor(whole * share), system_prompt });
      if (assembled.kind === 'overflow') {
        expect(assembled.token_count).toBeGreaterThan(assembled.usable);
        continue;
      }
      if (assembled.kind !== 'fits') throw new Error(assembled.kind);
      expect(placeResults(assembled.result.messages).every(({ call: called }) => called !== undefined)).toBe(true);
    }
  },
);
