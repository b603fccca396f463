import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, conversation, inline, result, text, user } from '../../test/conversation.ts';
import type { AgentMessage } from '../transcript/message.ts';
import { placeResults, safeStarts } from '../transcript/results.ts';
import { selectTail, tailBudget } from './tail.ts';

it.each([
  [0, 2_000],
  [8_003, 2_000],
  [8_004, 2_001],
  [20_000, 5_000],
  [172_000, 8_000],
])('of %i usable tokens the tail may take %i', (usable, tokens) => {
  expect(tailBudget(usable)).toBe(tokens);
});

describe('the tail', () => {
  const plain = [user('1'), assistant('a'), user('2'), assistant('b'), user('3'), assistant('c')];
  const tools = [user('1'), assistant('a'), user('2'), assistant(call('x')), result('x', '..'), assistant('done')];
  const answered = [
    user('old'),
    assistant('a'),
    user('follow'),
    assistant(call('x')),
    user(inline('x', text('..')), 'and now'),
    assistant('done'),
  ];

  it.each<[string, AgentMessage[], number[], number, number, number | undefined]>([
    ['is the newest turns, as many as wanted', plain, [9, 9, 9, 9, 9, 9], 1, 100, 4],
    ['is the newest turns that fit', plain, [9, 9, 9, 9, 9, 9], 3, 40, 2],
    ['is just as many tokens as it may be', plain, [9, 9, 9, 9, 9, 9], 2, 36, 2],
    ['splits a turn that does not fit', plain, [9, 9, 30, 9, 9, 9], 2, 30, 3],
    ['splits the newest turn at an assistant, never at a result', tools, [1, 1, 1, 1, 99, 1], 1, 50, 5],
    ['is all where all of it fits', plain, [9, 9, 9, 9, 9, 9], 9, 100, 0],
    ['is the newest whole turn where nothing fits', plain, [9, 9, 9, 9, 9, 9], 2, 0, 4],
    ['is the newest whole turn where no split is safe', tools, [1, 1, 9, 9, 9, 99], 1, 5, 2],
    ['is carried by an older turn where the newest begins with results', answered, [9, 9, 9, 9, 9, 9], 2, 100, 2],
    [
      'begins at the call where its result begins the newest turn and the older turn does not fit',
      answered,
      [9, 9, 99, 9, 9, 9],
      1,
      100,
      3,
    ],
    [
      'cannot begin in a single turn that does not fit',
      [user('1'), assistant(call('x')), result('x', '')],
      [9, 9, 9],
      2,
      5,
      0,
    ],
    ['is nothing where no turn is wanted', plain, [9, 9, 9, 9, 9, 9], 0, 100, undefined],
    ['is nothing where there is no turn', [assistant('a'), assistant('b')], [9, 9], 2, 100, undefined],
    ['is nothing of nothing', [], [], 2, 100, undefined],
    ['leaves what precedes the first turn', [assistant('hi'), user('1'), assistant('a')], [9, 9, 9], 2, 100, 1],
  ])('%s', (_, messages, sizes, turns, budget, expected) => {
    expect(selectTail(messages, sizes, { turns, budget }).start).toBe(expected);
  });

  it('parts no pair and is never empty, whatever the sizes', () => {
    const sized = conversation.chain((messages) =>
      fc.tuple(fc.constant(messages), fc.array(fc.nat(50), { minLength: messages.length, maxLength: messages.length })),
    );
    fc.assert(
      fc.property(sized, fc.nat(4), fc.nat(400), ([messages, sizes], turns, budget) => {
        const { start } = selectTail(messages, sizes, { turns, budget });
        if (start === undefined || start === 0) return;
        expect(start).toBeLessThan(messages.length);
        expect(safeStarts(messages, placeResults(messages))[start]).toBe(true);
      }),
    );
  });
});
