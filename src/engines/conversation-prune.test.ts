import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import example from '../../test/vectors/contracts/conversation-prune.example.json' with { type: 'json' };
import { conversationPrune as operation } from '../operations/conversation-prune.ts';
import { canonicalJson, sha256, toHex } from '../provenance/canonical.ts';
import { type Encoding, loadEncoding } from '../tokenizer/encoding.ts';
import {
  conversationPrune,
  type MessageKind,
  type PruneMessage,
  type PruneRequest,
  type PruneResult,
} from './conversation-prune.ts';

const o200k = await loadEncoding('o200k_base');

/** Counts UTF-16 units, so that a test can state counts by hand, and remembers what it was asked. */
function lengthEncoding(asked: string[] = []): Encoding {
  const count = (text: string): number => {
    asked.push(text);
    return text.length;
  };
  return { ...o200k, count };
}

const text = (tokens: number, more: Partial<PruneMessage> = {}): PruneMessage => ({ role: 'user', tokens, ...more });
const loose = (tokens: number, more: Partial<PruneMessage> = {}): PruneMessage =>
  text(tokens, { droppable: true, ...more });
const call = (toolCallId: string, tokens = 10, more: Partial<PruneMessage> = {}): PruneMessage => ({
  role: 'assistant',
  kind: 'tool_call',
  toolCallId,
  tokens,
  ...more,
});
const result = (toolCallId: string, tokens = 10, more: Partial<PruneMessage> = {}): PruneMessage => ({
  role: 'tool',
  kind: 'tool_result',
  toolCallId,
  tokens,
  ...more,
});

/** Nothing cached, nothing recent, target 0: whatever may be dropped is dropped. */
const prune = (messages: PruneMessage[], more: Partial<PruneRequest> = {}): Promise<PruneResult> =>
  conversationPrune({ messages, cacheBreakpoint: -1, targetTokens: 0, keepRecent: 0, ...more }, lengthEncoding());

const indices = ({ dropped }: PruneResult): number[] => dropped.map(({ index }) => index);
const faults = ({ witnesses }: PruneResult): (readonly [string, number | undefined])[] =>
  witnesses.filter(({ ruleId }) => ruleId !== 'target-met').map(({ ruleId, index }) => [ruleId, index]);

describe('the contract’s example', () => {
  it('drops the stale pair and keeps the prefix', async () => {
    const { prefix, limits, ...answer } = await conversationPrune(
      operation.input.parse(example) as PruneRequest,
      undefined,
    );
    expect(answer).toEqual({
      status: 'pass',
      keep: [0, 1, 4, 5],
      dropped: [
        { index: 2, role: 'assistant', kind: 'tool_call', tokens: 30, reason: 'stale-tool-pair', pairedWith: 3 },
        { index: 3, role: 'user', kind: 'tool_result', tokens: 6000, reason: 'stale-tool-pair', pairedWith: 2 },
      ],
      tokensBefore: 6485,
      tokensAfter: 455,
      targetMet: true,
      notes: [],
      witnesses: [],
      versions: { engine: 'conversation-prune/1.0.0', tokenizer: 'none' },
      deterministic: true,
    });
    const canonical =
      '[{"content":"You are a support agent.","role":"system","tokens":400},{"content":"Look up order 1042.","role":"user","tokens":20}]';
    expect(prefix).toEqual({ messages: 2, tokens: 420, sha256: toHex(await sha256(canonical)) });
    expect(limits.join(' ')).toMatch(/minimum cacheable size.*TTL/);
  });
});

describe('what is never dropped', () => {
  it('messages up to the cache breakpoint', async () => {
    expect(indices(await prune([loose(1), loose(2), loose(3)], { cacheBreakpoint: 1 }))).toEqual([2]);
  });

  it('the last keepRecent messages, four by default', async () => {
    const messages = Array.from({ length: 6 }, () => loose(1));
    expect(indices(await prune(messages, { keepRecent: 5 }))).toEqual([0]);
    expect(indices(await conversationPrune({ messages, cacheBreakpoint: -1, targetTokens: 0 }, undefined))).toEqual([
      0, 1,
    ]);
    expect(indices(await prune(messages, { keepRecent: 100 }))).toEqual([]);
  });

  it('pinned messages, and text that nobody marked droppable', async () => {
    const messages = [loose(1, { pinned: true }), text(1), text(1, { droppable: false }), loose(1, { pinned: false })];
    expect(indices(await prune(messages))).toEqual([3]);
  });

  it.each<[string, PruneMessage[], Partial<PruneRequest>]>([
    ['is in the prefix', [call('a'), result('a')], { cacheBreakpoint: 0 }],
    ['is recent', [call('a'), result('a')], { keepRecent: 1 }],
    ['is pinned', [call('a', 1, { pinned: true }), result('a')], {}],
    ['is pinned, the result', [call('a'), result('a', 1, { pinned: true })], {}],
    ['is not droppable', [call('a', 1, { droppable: false }), result('a')], {}],
    ['is not droppable, the result', [call('a'), result('a', 1, { droppable: false })], {}],
  ])('a pair of which one half %s', async (_, messages, more) => {
    const answer = await prune(messages, more);
    expect(answer.keep).toEqual([0, 1]);
    expect(faults(answer)).toEqual([]);
  });

  it('a call without a result and a result without a call, even if marked droppable', async () => {
    const answer = await prune([call('a', 1, { droppable: true }), result('b', 1, { droppable: true })]);
    expect(answer.keep).toEqual([0, 1]);
  });
});

describe('what is said of a dropped message', () => {
  it('is its own fields, the kind made plain, an id only if it has one', async () => {
    const { dropped } = await prune([
      loose(3, { id: 'm0' }),
      loose(4, { role: 'x', content: 'long', toolCallId: 't' }),
    ]);
    expect(dropped).toEqual([
      { index: 0, id: 'm0', role: 'user', kind: 'text', tokens: 3, reason: 'droppable' },
      { index: 1, role: 'x', kind: 'text', tokens: 4, reason: 'droppable' },
    ]);
  });
});

describe('pairing', () => {
  it('gives an id used again in a later turn a pair of its own', async () => {
    const answer = await prune([call('a', 1), result('a', 50), text(1), call('a', 1), result('a', 5)], {
      targetTokens: 10,
    });
    expect(answer).toMatchObject({ status: 'pass', keep: [2, 3, 4], tokensAfter: 7 });
  });

  it('drops parallel calls independently', async () => {
    const messages = [call('a', 1), call('b', 1), result('b', 50), result('a', 5)];
    const answer = await prune(messages, { strategy: 'largest-first', targetTokens: 6 });
    expect(answer).toMatchObject({ status: 'pass', keep: [0, 3] });
    expect(answer.dropped).toMatchObject([
      { index: 1, pairedWith: 2 },
      { index: 2, pairedWith: 1 },
    ]);
  });

  it('ignores a toolCallId on text', async () => {
    const answer = await prune([text(1, { toolCallId: 'a' }), call('a'), loose(1, { toolCallId: 'a' }), result('a')]);
    expect(answer.keep).toEqual([0]);
  });

  it('takes an empty id for none', async () => {
    const answer = await prune([call(''), result(''), loose(3, { toolCallId: '' })]);
    expect(answer.keep).toEqual([0, 1]);
    expect(faults(answer)).toEqual([['pair-complete', 1]]);
    expect(answer.notes).toEqual(['Message 0 is a tool call without a result; it is kept.']);
  });

  it('treats names of object members as plain ids', async () => {
    const answer = await prune([call('__proto__'), result('__proto__'), call('constructor'), result('constructor')]);
    expect(answer.keep).toEqual([]);
  });
});

describe('order of dropping', () => {
  const messages = [loose(5), call('a', 1), loose(5), result('a', 30), loose(7)];

  it('is by the first message of a unit when oldest-first', async () => {
    expect(indices(await prune(messages, { targetTokens: 42 }))).toEqual([0, 1, 3]);
    expect(indices(await prune(messages, { targetTokens: 12, strategy: 'oldest-first' }))).toEqual([0, 1, 3]);
    expect(indices(await prune(messages, { targetTokens: 11 }))).toEqual([0, 1, 2, 3]);
  });

  it('is by the tokens of a unit when largest-first, ties oldest first', async () => {
    const strategy = 'largest-first';
    expect(indices(await prune(messages, { strategy, targetTokens: 17 }))).toEqual([1, 3]);
    expect(indices(await prune(messages, { strategy, targetTokens: 16 }))).toEqual([1, 3, 4]);
    expect(indices(await prune(messages, { strategy, targetTokens: 9 }))).toEqual([0, 1, 3, 4]);
  });

  it('drops nothing at or under the target, and stops exactly at it', async () => {
    expect(indices(await prune(messages, { targetTokens: 48 }))).toEqual([]);
    expect(indices(await prune(messages, { targetTokens: 47 }))).toEqual([0]);
    expect(await prune(messages, { targetTokens: 43 })).toMatchObject({
      tokensAfter: 43,
      targetMet: true,
      status: 'pass',
    });
  });

  it('takes units of 0 tokens in their turn', async () => {
    expect(indices(await prune([loose(0), loose(5), loose(0)], { targetTokens: 0 }))).toEqual([0, 1]);
  });

  it('is no matter when the total is 0', async () => {
    expect(await prune([loose(0), loose(0)])).toMatchObject({ status: 'pass', keep: [0, 1], tokensAfter: 0 });
  });
});

/** The witnesses of a request whose target is no trouble, without their sentences. */
async function witnessesOf(messages: PruneMessage[], more: Partial<PruneRequest> = {}): Promise<object[]> {
  const answer = await prune(messages, { targetTokens: 1000, ...more });
  expect(answer).toMatchObject({ status: 'fail', targetMet: true });
  return withoutDetail(answer);
}

const withoutDetail = ({ witnesses }: PruneResult): object[] =>
  witnesses.map(({ detail, ...rest }) => {
    expect(detail).toMatch(/^[A-Z].*\.$/);
    return rest;
  });

describe('violations', () => {
  it('breakpoint-in-range', async () => {
    expect(await witnessesOf([loose(1), loose(2)], { cacheBreakpoint: 2 })).toEqual([
      {
        ruleId: 'breakpoint-in-range',
        path: '/cacheBreakpoint',
        expected: 'at most 1',
        actual: 2,
      },
    ]);
    const answer = await prune([loose(1), loose(2)], { cacheBreakpoint: 499 });
    expect(answer).toMatchObject({ keep: [0, 1], prefix: { messages: 2, tokens: 3 } });
    expect(answer.witnesses.map(({ ruleId }) => ruleId)).toEqual(['breakpoint-in-range', 'target-met']);
  });

  it('a breakpoint at the last message is in range', async () => {
    expect(await prune([loose(1), loose(2)], { cacheBreakpoint: 1, targetTokens: 3 })).toMatchObject({
      status: 'pass',
    });
  });

  it('pair-unique: a second result', async () => {
    expect(await witnessesOf([call('a'), result('a'), text(1), result('a')])).toEqual([
      {
        ruleId: 'pair-unique',
        path: '/messages/3',
        index: 3,
        expected: 'one result for the call at 0',
        actual: 'a second result; the first is at 1',
      },
    ]);
  });

  it('pair-unique names the latest pair of the id', async () => {
    expect(await witnessesOf([call('a'), result('a'), call('a'), result('a'), result('a')])).toMatchObject([
      { index: 4, expected: 'one result for the call at 2', actual: 'a second result; the first is at 3' },
    ]);
  });

  it('pair-unique: an id called again while open', async () => {
    const messages = [call('a'), text(1), call('a'), result('a'), result('a')];
    expect(await witnessesOf(messages)).toEqual([
      {
        ruleId: 'pair-unique',
        path: '/messages/2',
        index: 2,
        expected: 'a result for the call at 0 before its id is used again',
        actual: 'called again while open',
      },
    ]);
    // Both results found an open call, so the one fault has one witness and no call is left open.
    expect((await prune(messages)).notes).toEqual([]);
    expect(faults(await prune([...messages, result('a')]))).toEqual([
      ['pair-unique', 2],
      ['pair-unique', 5],
    ]);
  });

  it('pair-order', async () => {
    expect(await witnessesOf([result('a'), text(1), call('a'), result('a')])).toEqual([
      {
        ruleId: 'pair-order',
        path: '/messages/0',
        index: 0,
        expected: 'a call of this id earlier in the conversation',
        actual: 'its first call is at 2',
      },
    ]);
  });

  it('pair-complete: no call of the id, or no id', async () => {
    const noId: PruneMessage = { role: 'tool', kind: 'tool_result', tokens: 1 };
    expect(await witnessesOf([result('a'), noId])).toEqual([
      {
        ruleId: 'pair-complete',
        path: '/messages/0',
        index: 0,
        expected: 'a call of this id earlier in the conversation',
        actual: 'no call of this id',
      },
      {
        ruleId: 'pair-complete',
        path: '/messages/1',
        index: 1,
        expected: 'a toolCallId that names an earlier call',
        actual: 'no toolCallId',
      },
    ]);
  });

  it('target-met, after all that may be dropped was dropped', async () => {
    const answer = await prune([text(7), loose(1), loose(2)], { targetTokens: 6 });
    expect(answer).toMatchObject({ status: 'fail', keep: [0], tokensAfter: 7, targetMet: false });
    expect(withoutDetail(answer)).toEqual([
      {
        ruleId: 'target-met',
        path: '/targetTokens',
        expected: 'a total of at most 6',
        actual: 7,
      },
    ]);
  });

  it('keep every message of the id that is at fault, and only those', async () => {
    const early = [call('a'), result('a'), call('b'), result('b')];
    const late = [call('a'), result('a'), result('a'), loose(1, { toolCallId: 'a' }), loose(1)];
    const answer = await prune([...early, ...late], { targetTokens: 51 });
    expect(answer).toMatchObject({ status: 'fail', targetMet: true, keep: [0, 1, 4, 5, 6, 7] });
  });

  it('stand in the order of the messages, one a fault', async () => {
    const messages = [result('x'), call('a'), call('b'), call('a'), result('b'), result('b'), result('c'), call('c')];
    expect(faults(await prune(messages))).toEqual([
      ['pair-complete', 0],
      ['pair-unique', 3],
      ['pair-unique', 5],
      ['pair-order', 6],
    ]);
  });
});

describe('notes', () => {
  it('name open calls, with or without an id, and are no violation', async () => {
    const open: PruneMessage = { role: 'assistant', kind: 'tool_call', tokens: 1 };
    expect(await prune([open, call('a', 1)], { targetTokens: 2 })).toMatchObject({
      status: 'pass',
      keep: [0, 1],
      notes: [
        'Message 0 is a tool call without a result; it is kept.',
        'Message 1 is a tool call without a result; it is kept.',
      ],
    });
  });

  it.each([
    [19, undefined],
    [20, '1 more tool calls are without a result.'],
    [120, '101 more tool calls are without a result.'],
  ])('fold what is beyond the 19th: %i open calls', async (count, folded) => {
    const { notes } = await prune(Array.from({ length: count }, (_, index) => call(`c${index}`)));
    expect(notes.slice(0, 19)).toHaveLength(19);
    expect(notes[19]).toBe(folded);
    expect(notes.length).toBeLessThanOrEqual(20);
  });
});

const said = (content: string): PruneMessage => ({ role: 'user', content });

describe('counting', () => {
  it('lets the number of the caller win, and counts each other content once', async () => {
    const asked: string[] = [];
    const messages = [said('four'), { ...said('not asked'), tokens: 100 }, said(''), said('four')];
    const request = { messages, cacheBreakpoint: 0, targetTokens: 1000 };
    const answer = await conversationPrune(request, lengthEncoding(asked));
    expect(answer).toMatchObject({ status: 'pass', tokensBefore: 108, prefix: { messages: 1, tokens: 4 } });
    expect(asked).toEqual(['four', '', 'four']);
  });

  it('is exact, adds no framing, and takes special tokens for text', async () => {
    const request = {
      messages: [said('hello world'), said('<|endoftext|>')],
      cacheBreakpoint: 0,
      targetTokens: 1000,
    };
    const answer = await conversationPrune(request, o200k);
    expect(answer).toMatchObject({ tokensBefore: 9, prefix: { tokens: 2 } });
    expect(answer.versions).toEqual({
      engine: 'conversation-prune/1.0.0',
      tokenizer: 'o200k_base',
      tokenizerTableDigest: o200k.tableDigest,
    });
  });

  it('names no tokenizer that it did not use', async () => {
    const { versions } = await conversationPrune({ messages: [text(1)], cacheBreakpoint: -1, targetTokens: 9 }, o200k);
    expect(versions).toEqual({ engine: 'conversation-prune/1.0.0', tokenizer: 'none' });
  });

  it('unknown: neither tokens nor content, nothing dropped, no totals, nothing counted', async () => {
    const asked: string[] = [];
    const messages: PruneMessage[] = [said('x'), { role: 'user' }, loose(5), call('a'), { role: 'user' }];
    const request = { messages, cacheBreakpoint: 0, targetTokens: 0, keepRecent: 0 };
    const { prefix, limits, ...answer } = await conversationPrune(request, lengthEncoding(asked));
    expect(answer).toEqual({
      status: 'unknown',
      keep: [0, 1, 2, 3, 4],
      dropped: [],
      notes: [
        'Neither tokens nor content is given, so the total is unknown, at messages 1, 4.',
        'Message 3 is a tool call without a result; it is kept.',
      ],
      witnesses: [],
      versions: { engine: 'conversation-prune/1.0.0', tokenizer: 'none' },
      deterministic: true,
    });
    expect(Object.keys(prefix)).toEqual(['messages', 'sha256']);
    expect(prefix.messages).toBe(1);
    expect(limits).not.toEqual([]);
    expect(asked).toEqual([]);
  });

  it('unsupported > unknown > fail > pass', async () => {
    const request = { cacheBreakpoint: -1, targetTokens: 9, tokenizer: 'claude' };
    const orphan = result('x', 1);
    const blank: PruneMessage = { role: 'user' };
    const run = (...messages: PruneMessage[]): Promise<PruneResult> =>
      conversationPrune({ ...request, messages }, undefined);
    const unsupported = await run(said('x'), blank, orphan);
    expect(unsupported).toMatchObject({ status: 'unsupported', keep: [0, 1, 2], dropped: [] });
    expect(unsupported).not.toHaveProperty('tokensBefore');
    expect(unsupported).not.toHaveProperty('tokensAfter');
    expect(unsupported).not.toHaveProperty('targetMet');
    expect(unsupported.prefix).not.toHaveProperty('tokens');
    expect(unsupported.notes).toEqual([
      'The tokenizer asked for is not offered here, and content waits to be counted, at messages 0.',
      'Neither tokens nor content is given, so the total is unknown, at messages 1.',
    ]);
    expect(faults(unsupported)).toEqual([['pair-complete', 2]]);
    expect(await run(text(1), blank, orphan)).toMatchObject({ status: 'unknown' });
    expect(await run(text(1), orphan)).toMatchObject({ status: 'fail' });
    expect(await run({ ...said('x'), tokens: 1 })).toMatchObject({ status: 'pass' });
  });
});

describe('the prefix', () => {
  it('is the digest of [] when nothing is cached', async () => {
    expect((await prune([text(1)])).prefix).toEqual({
      messages: 0,
      tokens: 0,
      sha256: '4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945',
    });
  });

  it('does not depend on what comes after it, and does on every field within', async () => {
    const cached = { cacheBreakpoint: 0 };
    const digestOf = async (messages: PruneMessage[]): Promise<string> => (await prune(messages, cached)).prefix.sha256;
    const first = await digestOf([text(1), loose(9), loose(9)]);
    expect(await digestOf([text(1)])).toBe(first);
    expect(await digestOf([text(1, { pinned: false })])).not.toBe(first);
    expect(await digestOf([text(1, { content: '' })])).not.toBe(first);
  });
});

// Properties

const anyMessage: fc.Arbitrary<PruneMessage> = fc.record(
  {
    id: fc.string({ maxLength: 3, unit: 'grapheme' }),
    role: fc.constantFrom('user', 'assistant', 'tool'),
    kind: fc.constantFrom<MessageKind[]>('text', 'tool_call', 'tool_result'),
    toolCallId: fc.constantFrom('a', 'b', 'c', ''),
    content: fc.string({ maxLength: 8, unit: 'grapheme' }),
    tokens: fc.nat(20),
    pinned: fc.boolean(),
    droppable: fc.boolean(),
  },
  { requiredKeys: ['role'] },
);

const counted = (message: PruneMessage): PruneMessage => ({
  ...message,
  tokens: message.tokens ?? message.content?.length ?? 3,
});

const requestWith = (messages: fc.Arbitrary<PruneMessage[]>): fc.Arbitrary<PruneRequest> =>
  fc.record(
    {
      messages,
      cacheBreakpoint: fc.oneof(fc.constant(-1), fc.integer({ min: -1, max: 20 })),
      targetTokens: fc.nat(150),
      keepRecent: fc.nat(6),
      strategy: fc.constantFrom('oldest-first' as const, 'largest-first' as const),
    },
    { requiredKeys: ['messages', 'cacheBreakpoint', 'targetTokens'] },
  );

const anyRequest = requestWith(fc.array(anyMessage, { minLength: 1, maxLength: 16 }));
const countedRequest = requestWith(fc.array(anyMessage.map(counted), { minLength: 1, maxLength: 16 }));

/** Turns of parallel calls, their results in any order, then text; ids come again in later turns. */
const soundMessages: fc.Arbitrary<PruneMessage[]> = fc
  .array(
    fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 }).chain((ids) =>
      fc.record({
        ids: fc.constant(ids),
        answers: fc.shuffledSubarray(ids, { minLength: ids.length }),
        sizes: fc.array(fc.nat(20), { minLength: 7, maxLength: 7 }),
        droppable: fc.boolean(),
      }),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((turns) =>
    turns.flatMap(({ ids, answers, sizes, droppable }) => [
      ...ids.map((id, at) => call(id, sizes[at])),
      ...answers.map((id, at) => result(id, sizes[at + 3])),
      text(sizes[6] ?? 0, { droppable }),
    ]),
  );

const size = (messages: readonly PruneMessage[]): number =>
  messages.reduce((total, { tokens = 0 }) => total + tokens, 0);
const at = (request: PruneRequest, chosen: readonly number[]): PruneMessage[] =>
  request.messages.filter((_, index) => chosen.includes(index));

const check = (
  arbitrary: fc.Arbitrary<PruneRequest>,
  property: (request: PruneRequest) => Promise<void>,
): Promise<void> => fc.assert(fc.asyncProperty(arbitrary, property), { numRuns: 400 });

const ascending = (list: number[]): number[] => list.toSorted((a, b) => a - b);

/** Counts the calls that stay open; a result must find its call among the earlier ones. */
function openAtEnd(messages: readonly PruneMessage[]): number {
  const open = new Set<string>();
  for (const { kind, toolCallId = '' } of messages) {
    if (kind === 'tool_call') open.add(toolCallId);
    if (kind === 'tool_result') expect(open.delete(toolCallId)).toBe(true);
  }
  return open.size;
}

const droppedUnits = ({ dropped }: PruneResult): { tokens: number }[] =>
  dropped
    .filter(({ index, pairedWith = Infinity }) => index < pairedWith)
    .map(({ tokens, pairedWith }) => ({
      tokens: tokens + (dropped.find(({ index }) => index === pairedWith)?.tokens ?? 0),
    }));

/** The same JSON with its keys in another order. */
const reordered = ({ messages, cacheBreakpoint, ...rest }: PruneRequest): PruneRequest => ({
  ...rest,
  cacheBreakpoint,
  messages: messages.map(({ role, ...others }) => ({ ...others, role })),
});

describe('properties', () => {
  it('keeps and drops every index once, in order', async () => {
    await check(anyRequest, async (request) => {
      const answer = await conversationPrune(request, lengthEncoding());
      expect(answer.keep).toEqual(ascending(answer.keep));
      expect(indices(answer)).toEqual(ascending(indices(answer)));
      expect(ascending([...answer.keep, ...indices(answer)])).toEqual([...request.messages.keys()]);
    });
  });

  it('never drops the prefix, the recent, the pinned, nor unmarked text', async () => {
    await check(countedRequest, async (request) => {
      for (const { index } of (await conversationPrune(request, undefined)).dropped) {
        const message = request.messages[index];
        expect(index).toBeGreaterThan(request.cacheBreakpoint);
        expect(index).toBeLessThan(request.messages.length - (request.keepRecent ?? 4));
        expect(message?.pinned).not.toBe(true);
        expect(message?.droppable).not.toBe(false);
        if ((message?.kind ?? 'text') === 'text') expect(message?.droppable).toBe(true);
      }
    });
  });

  it('leaves no result without its call and no call without its result where there was none', async () => {
    await check(requestWith(soundMessages), async (request) => {
      const answer = await conversationPrune(request, undefined);
      expect(faults(answer).filter(([ruleId]) => ruleId !== 'breakpoint-in-range')).toEqual([]);
      expect(openAtEnd(at(request, answer.keep))).toBe(0);
    });
  });

  it('names the halves of a pair to each other', async () => {
    await check(requestWith(soundMessages), async (request) => {
      const { dropped } = await conversationPrune(request, undefined);
      for (const { index, pairedWith, reason } of dropped) {
        expect(pairedWith === undefined).toBe(reason === 'droppable');
        if (pairedWith !== undefined)
          expect(dropped.find((other) => other.index === pairedWith)?.pairedWith).toBe(index);
      }
    });
  });

  it('drops nothing after the target is met: without its last unit it would be over', async () => {
    await check(countedRequest, async (request) => {
      const answer = await conversationPrune(request, undefined);
      const oldestFirst = droppedUnits(answer);
      const last =
        request.strategy === 'largest-first'
          ? oldestFirst.toSorted((a, b) => b.tokens - a.tokens).at(-1)
          : oldestFirst.at(-1);
      if (last && answer.targetMet)
        expect((answer.tokensAfter ?? 0) + last.tokens).toBeGreaterThan(request.targetTokens);
      if (size(request.messages) <= request.targetTokens) expect(last).toBeUndefined();
    });
  });

  it('totals are the sums', async () => {
    await check(countedRequest, async (request) => {
      const answer = await conversationPrune(request, undefined);
      expect(answer.tokensBefore).toBe(size(request.messages));
      expect(answer.tokensAfter).toBe(size(at(request, answer.keep)));
      expect(answer.targetMet).toBe(size(at(request, answer.keep)) <= request.targetTokens);
      expect(answer.prefix.tokens).toBe(size(request.messages.slice(0, request.cacheBreakpoint + 1)));
      expect(answer.prefix.messages).toBe(Math.min(request.cacheBreakpoint + 1, request.messages.length));
      expect(answer.status).toBe(answer.witnesses.length > 0 ? 'fail' : 'pass');
    });
  });

  it('gives the same bytes again, whatever the order of keys, and leaves the request alone', async () => {
    await check(anyRequest, async (request) => {
      const before = JSON.stringify(request);
      const bytes = canonicalJson(await conversationPrune(request, lengthEncoding()));
      const other = reordered(request);
      expect(canonicalJson(await conversationPrune(request, lengthEncoding()))).toBe(bytes);
      expect(canonicalJson(await conversationPrune(other, lengthEncoding()))).toBe(bytes);
      expect(JSON.stringify(request)).toBe(before);
    });
  });
});

/** The contract page once more, as slow and literal as it reads: the judge of the engine on small inputs. */
function reference({ messages, cacheBreakpoint, targetTokens, keepRecent = 4, strategy }: PruneRequest) {
  const kind = (i: number): string => messages[i]?.kind ?? 'text';
  const id = (i: number): string => messages[i]?.toolCallId ?? '';
  const all = [...messages.keys()];
  const partner = new Map<number, number>();
  for (const i of all) {
    if (kind(i) !== 'tool_result' || id(i) === '') continue;
    const found = all.findLast((j) => j < i && kind(j) === 'tool_call' && id(j) === id(i) && !partner.has(j));
    if (found === undefined) continue;
    partner.set(found, i);
    partner.set(i, found);
  }

  const violations: [string, number | undefined][] = [];
  const atFault = new Set<string>();
  if (cacheBreakpoint >= messages.length) violations.push(['breakpoint-in-range', undefined]);
  for (const i of all) {
    const sameCalls = all.filter((j) => kind(j) === 'tool_call' && id(j) === id(i));
    let ruleId: string | undefined;
    if (kind(i) === 'tool_call' && id(i) !== '') {
      if (sameCalls.some((j) => j < i && (partner.get(j) ?? Infinity) > i)) ruleId = 'pair-unique';
    } else if (kind(i) === 'tool_result' && !partner.has(i)) {
      if (id(i) === '' || sameCalls.length === 0) ruleId = 'pair-complete';
      else ruleId = sameCalls.some((j) => j < i) ? 'pair-unique' : 'pair-order';
    }
    if (ruleId === undefined) continue;
    violations.push([ruleId, i]);
    atFault.add(id(i));
  }
  atFault.delete('');

  const free = (i: number): boolean =>
    i > cacheBreakpoint && i < messages.length - keepRecent && !messages[i]?.pinned && !atFault.has(id(i));
  let units = all.flatMap((i) => {
    if (kind(i) === 'text') return messages[i]?.droppable && free(i) ? [[i]] : [];
    const other = partner.get(i) ?? -1;
    const whole = [i, other];
    return other > i && whole.every((half) => free(half) && messages[half]?.droppable !== false) ? [whole] : [];
  });

  let keep = all;
  const total = (chosen: readonly number[]): number => size(messages.filter((_, i) => chosen.includes(i)));
  while (total(keep) > targetTokens && units.length > 0) {
    const most = Math.max(...units.map(total));
    const next = strategy === 'largest-first' ? units.find((unit) => total(unit) === most) : units[0];
    keep = keep.filter((i) => !next?.includes(i));
    units = units.filter((unit) => unit !== next);
  }
  if (total(keep) > targetTokens) violations.push(['target-met', undefined]);
  const openCalls = all.filter((i) => kind(i) === 'tool_call' && !partner.has(i)).length;
  return { keep, violations, openCalls };
}

describe('against the contract read literally', () => {
  it('chooses, judges and notes the same on 3,000 small conversations', async () => {
    await fc.assert(
      fc.asyncProperty(countedRequest, async (request) => {
        const answer = await conversationPrune(request, undefined);
        expect({
          keep: answer.keep,
          violations: answer.witnesses.map(({ ruleId, index }) => [ruleId, index]),
          openCalls: answer.notes.length,
        }).toEqual(reference(request));
      }),
      { numRuns: 3000 },
    );
  });
});

// Real conversations

const transcript = z.object({
  messages: z.array(
    z.object({
      role: z.string(),
      function_call_id: z.string().optional(),
      content: z.array(
        z.object({
          type: z.string(),
          text: z.string().default(''),
          id: z.string().default(''),
          arguments: z.unknown().optional(),
        }),
      ),
    }),
  ),
});

/** One message a call and one a result; assistant text is marked droppable. */
function readTranscript(name: string): PruneMessage[] {
  const file = new URL(`../../test/transcripts/${name}.json`, import.meta.url);
  const { messages } = transcript.parse(JSON.parse(readFileSync(file, 'utf8')));
  return messages.flatMap(({ role, content, function_call_id }): PruneMessage[] => {
    if (function_call_id !== undefined) {
      const joined = content.map((block) => block.text).join('\n');
      return [{ role: 'tool', kind: 'tool_result', toolCallId: function_call_id, content: joined }];
    }
    return content.map((block) =>
      block.type === 'function_call'
        ? { role, kind: 'tool_call', toolCallId: block.id, content: JSON.stringify(block.arguments) }
        : { role, content: block.text, droppable: role === 'assistant' },
    );
  });
}

const charsOf = ({ content = '' }: PruneMessage): number => content.length;
const totalChars = (messages: readonly PruneMessage[]): number =>
  messages.reduce((total, message) => total + charsOf(message), 0);

describe('real conversations', () => {
  const names = ['01-pi-large-session', '18-tau-bench-retail-fewshot-d64', '25-anthropic-parallel-tool-calls'];

  it.each(names)('%s is brought to half its tokens, legally', async (name) => {
    const messages = readTranscript(name);
    const whole = await conversationPrune({ messages, cacheBreakpoint: 0, targetTokens: 1e8 }, o200k);
    expect(whole).toMatchObject({ status: 'pass', dropped: [] });
    const targetTokens = Math.floor((whole.tokensBefore ?? 0) / 2);
    const counts = messages.map(({ content = '', ...rest }) => ({ ...rest, tokens: o200k.count(content) }));
    for (const strategy of ['oldest-first', 'largest-first'] as const) {
      const request = { messages, cacheBreakpoint: 0, targetTokens, strategy };
      const answer = await conversationPrune(request, o200k);
      expect(answer.tokensBefore).toBe(size(counts));
      expect(answer.tokensAfter).toBe(size(at({ ...request, messages: counts }, answer.keep)));
      expect(answer.keep).toEqual(reference({ ...request, messages: counts }).keep);
    }
  });

  it('fits the largest request: 500 messages, 400,000 characters', async () => {
    const once = readTranscript('01-pi-large-session');
    const again = once.map((message) =>
      message.toolCallId === undefined ? message : { ...message, toolCallId: `${message.toolCallId}-again` },
    );
    // The first 500 hold a little more than that, so the longest gives the rest.
    const whole = [...once, ...again].slice(0, 500);
    const excess = totalChars(whole) - 400_000;
    const [longest] = whole.toSorted((a, b) => charsOf(b) - charsOf(a));
    const messages = whole.map((message): PruneMessage =>
      message === longest ? { ...message, content: message.content?.slice(excess) ?? '' } : message,
    );
    expect(totalChars(messages)).toBe(400_000);

    const request = operation.input.parse({ messages, cacheBreakpoint: 20, targetTokens: 60_000 }) as PruneRequest;
    const answer = await conversationPrune(request, o200k);
    expect(answer).toMatchObject({ status: 'pass', targetMet: true, prefix: { messages: 21 } });
    expect(answer.keep.length + answer.dropped.length).toBe(500);
    expect(answer.tokensAfter).toBeGreaterThan(55_000);
  });
});
