import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, conversation, custom, result, user } from '../../test/conversation.ts';
import type { AgentMessage } from '../transcript/message.ts';
import { compact, type CompactOptions, type CompactResult } from './compact.ts';
import { DEFAULT_CONFIG } from './config.ts';
import { heuristic } from './estimator.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';

const ofTokens = (tokens: number): string => 'word'.repeat(tokens);
const sizeOf = (messages: readonly AgentMessage[]): number =>
  messages.reduce((total, message) => total + (message.role === 'custom' ? 0 : heuristic.message(message)), 0);

const asked: SummaryRequest[] = [];
const run = (
  messages: readonly AgentMessage[],
  options: CompactOptions | null = null,
  summary: string | undefined = 'short',
): Promise<CompactResult> => {
  const summarizer: Summarizer = {
    name: 'fake',
    deterministic: true,
    summarize: async (request) => (asked.push(request), summary),
  };
  return compact(
    { messages, model: { id: 'm' }, options },
    {
      config: DEFAULT_CONFIG,
      model: { resolved: 'inline', limits: { context_window: 10_000, max_output_tokens: 1_000 } },
      estimator: heuristic,
      summarizer,
      pause: async () => {},
    },
  );
};

describe('compact', () => {
  const messages = [
    custom(),
    user(ofTokens(1_500)),
    assistant('a'),
    custom(),
    user(ofTokens(900)),
    assistant('b'),
    custom(),
    user('c'),
  ];

  it('summarises what is older than the newest turns that fit, notes apart', async () => {
    expect(await run(messages)).toEqual({
      status: 'ok',
      summary: 'short',
      tail_start_index: 4,
      tokens_before: sizeOf(messages.slice(0, 4)),
      tokens_after: 1 + sizeOf(messages.slice(4)),
      used_prior_summary: false,
    });
    expect(asked.at(-1)?.head).toEqual([messages[1], messages[2]]);
  });

  it.each<[string, CompactOptions, number | null]>([
    ['fewer turns', { tail_turns: 1 }, 7],
    ['a smaller tail', { preserve_recent_tokens: 100 }, 5],
    ['no tail at all', { preserve_recent_tokens: 0 }, 7],
    ['no turn', { tail_turns: 0 }, null],
    ['more turns, and the part of the oldest that fits', { tail_turns: 9 }, 2],
  ])('keeps %s where that is asked for', async (_, options, tail_start_index) => {
    const compacted = await run(messages, options);
    expect(compacted).toMatchObject({ status: 'ok', tail_start_index });
    const tail = tail_start_index === null ? [] : messages.slice(tail_start_index);
    expect(compacted).toMatchObject({ tokens_after: 1 + sizeOf(tail), tokens_before: sizeOf(messages) - sizeOf(tail) });
  });

  it.each<[string, string | null | undefined, string | undefined]>([
    ['none', null, undefined],
    ['an empty one', '', undefined],
    ['one of white space', ' \n', undefined],
    ['one', 'before', 'before'],
  ])('takes %s as a previous summary for what it is', async (_, previous_summary, told) => {
    expect(await run(messages, { previous_summary: previous_summary ?? null })).toMatchObject({
      used_prior_summary: told !== undefined,
    });
    expect(asked.at(-1)?.previousSummary).toBe(told);
  });

  it.each([
    [ofTokens(1_000), undefined, 256],
    [ofTokens(5_000), undefined, 501],
    [ofTokens(50_000), undefined, 2_048],
    [ofTokens(5_000), 128, 128],
    [ofTokens(5_000), 9_999, 9_999],
  ])('bounds the summary by what it stands for, or as it is told', async (long, summary_tokens, budget) => {
    await run([user(long), user('b'), user('c')], { summary_tokens: summary_tokens ?? null });
    expect(asked.at(-1)?.budgetTokens).toBe(budget);
  });

  it.each<[string, AgentMessage[], CompactOptions | null, string | undefined, CompactResult['status']]>([
    ['no messages', [], null, 'short', 'empty'],
    ['notes only', [custom()], null, 'short', 'empty'],
    ['a conversation that stays whole', [user('a'), user('b')], null, 'short', 'empty'],
    [
      'one turn that cannot be split',
      [user('a'), assistant(call('c')), result('c', ofTokens(9_000))],
      null,
      'short',
      'empty',
    ],
    ['a summary of nothing', messages, null, '', 'empty'],
    [
      'a summary as long as what it stands for',
      [user('a'), user('b')],
      { tail_turns: 1 },
      ofTokens(heuristic.message(user('a'))),
      'empty',
    ],
    ['a summariser that fails', messages, null, undefined, 'overflow'],
  ])('is %s: no summary', async (_, list, options, summary, status) => {
    const wrapped = summary === undefined ? await failing(list, options) : await run(list, options, summary);
    expect(wrapped).toEqual({ status });
  });

  const failing = (list: readonly AgentMessage[], options: CompactOptions | null): Promise<CompactResult> =>
    compact(
      { messages: list, model: { id: 'm' }, options },
      {
        config: DEFAULT_CONFIG,
        model: { resolved: 'inline', limits: { context_window: 10_000, max_output_tokens: 1_000 } },
        estimator: heuristic,
        summarizer: { name: 'down', deterministic: false, summarize: async () => undefined },
        pause: async () => {},
      },
    );

  it('splits every conversation into what it says it does', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.nat(3), fc.nat(3_000), async (list, tail_turns, preserve_recent_tokens) => {
        const compacted = await run(list, { tail_turns, preserve_recent_tokens }, 'x');
        if (compacted.status !== 'ok') return;
        const start = compacted.tail_start_index ?? list.length;
        expect(compacted.tokens_before).toBe(sizeOf(list.slice(0, start)));
        expect(compacted.tokens_after).toBe(heuristic.text('x') + sizeOf(list.slice(start)));
        expect(asked.at(-1)?.head).toEqual(list.slice(0, start).filter(({ role }) => role !== 'custom'));
      }),
    );
  });
});
