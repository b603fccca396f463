import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, conversation, custom, inline, result, text, user } from '../../test/conversation.ts';
import type { AgentMessage } from './message.ts';
import { beginsTurn, placeResults, replaceResults, safeStarts } from './results.ts';

const pairs = (messages: AgentMessage[]): unknown[] =>
  placeResults(messages).map(({ message, block, call: called, function_id }) => [message, block, called, function_id]);

describe('a result', () => {
  it.each<[string, AgentMessage[], unknown[]]>([
    ['answers the call of its id', [assistant(call('a')), result('a', 'x')], [[1, undefined, 0, 'shell::run']]],
    [
      'of parallel calls each has its own',
      [assistant(call('a', 'f'), call('b', 'g')), result('b', ''), user(inline('a'))],
      [
        [1, undefined, 0, 'shell::run'],
        [2, 0, 0, 'f'],
      ],
    ],
    [
      'may come several times',
      [assistant(call('a')), result('a', '1'), user('x', inline('a'))],
      [
        [1, undefined, 0, 'shell::run'],
        [2, 1, 0, 'shell::run'],
      ],
    ],
    [
      'answers the newest call of an id that is used again',
      [assistant(call('a', 'f')), user(inline('a')), assistant(call('a', 'g')), user(inline('a'))],
      [
        [1, 0, 0, 'f'],
        [3, 0, 2, 'g'],
      ],
    ],
    [
      'of an id used twice in one message answers them in their order, and then the last',
      [assistant(call('a', 'f'), call('a', 'g')), user(inline('a'), inline('a'), inline('a'))],
      [
        [1, 0, 0, 'f'],
        [1, 1, 0, 'g'],
        [1, 2, 0, 'g'],
      ],
    ],
    [
      'without a call before it is an orphan',
      [result('a', ''), user(inline('b')), assistant(call('a'))],
      [
        [0, undefined, undefined, 'shell::run'],
        [1, 0, undefined, undefined],
      ],
    ],
    ['is not one in an assistant’s own message', [assistant(call('a'), inline('a'))], []],
    ['answers assistants only', [user(call('a')), result('a', '')], [[1, undefined, undefined, 'shell::run']]],
  ])('%s', (_, messages, expected) => {
    expect(pairs(messages)).toEqual(expected);
  });
});

describe('a conversation may begin', () => {
  const safe = (messages: AgentMessage[]): boolean[] => safeStarts(messages, placeResults(messages));
  it.each<[string, AgentMessage[], boolean[]]>([
    ['at users and assistants', [user('a'), assistant('b'), user('c')], [true, true, true]],
    [
      'not at results or notes',
      [user('a'), assistant(call('1')), result('1', ''), custom()],
      [true, true, false, false],
    ],
    ['not at a user message with results, even orphans', [user(inline('x')), assistant('b')], [false, true]],
    [
      'not between a call and a later result',
      [assistant(call('1')), user('wait'), assistant('so'), result('1', ''), assistant('b')],
      [true, false, false, false, true],
    ],
    [
      'nor between overlapping pairs',
      [assistant(call('1')), assistant(call('2')), result('1', ''), assistant('x'), result('2', ''), assistant('y')],
      [true, false, false, false, false, true],
    ],
    ['after an open call', [assistant(call('1')), user('b')], [true, true]],
  ])('%s', (_, messages, expected) => {
    expect(safe(messages)).toEqual(expected);
  });

  it('nowhere that parts a pair, and everywhere else', () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        const places = placeResults(messages);
        for (const [start, isSafe] of safeStarts(messages, places).entries()) {
          const parts = places.some(
            ({ call: called, message }) => called !== undefined && called < start && message >= start,
          );
          const message = messages[start];
          const fits =
            message?.role === 'assistant' ||
            (message?.role === 'user' && !message.content.some(({ type }) => type === 'function_result'));
          expect(isSafe).toBe(!parts && fits);
        }
      }),
    );
  });
});

it.each<[string, AgentMessage, boolean]>([
  ['a user message', user('a'), true],
  ['an empty one', user(), true],
  ['one with text beside results', user(inline('a'), 'and now?'), true],
  ['one with results only', user(inline('a'), inline('b')), false],
  ['an assistant', assistant('a'), false],
  ['a result', result('a', ''), false],
])('%s begins a turn: %s', (_, message, expected) => {
  expect(beginsTurn(message)).toBe(expected);
});

describe('replaceResults', () => {
  it('changes the results named and nothing else, whatever else stands beside them', () => {
    const messages = [
      assistant(call('a'), call('b')),
      user(inline('a', text('1')), 'hi', inline('b', text('2'))),
      result('a', '3', { extra: 1 }),
    ];
    const places = placeResults(messages);
    const replaced = replaceResults(
      messages,
      places.map((place) => ({ ...place, by: { ...place.result, content: [text('x')] } })),
    );
    expect(replaced).toEqual([
      messages[0],
      user(inline('a', text('x')), 'hi', inline('b', text('x'))),
      result('a', 'x', { extra: 1 }),
    ]);
    expect(replaced[0]).toBe(messages[0]);
    expect(replaceResults(messages, [])[1]).toBe(messages[1]);
    expect(messages[1]).toEqual(user(inline('a', text('1')), 'hi', inline('b', text('2'))));
  });
});
