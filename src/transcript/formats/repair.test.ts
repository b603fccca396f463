import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOY_RULES, toyConversation, toyFormat, type ToyMessage } from '../../../test/toy-format.ts';
import { checkEntries } from './check.ts';
import { readEntries } from './conversation.ts';
import type { Entry, FormatRules, MessageFormat } from './format.ts';
import { MISSING_RESULT_TEXT, repairEntries } from './repair.ts';

function entriesOf(format: MessageFormat, messages: readonly unknown[]): readonly Entry[] {
  const read = readEntries(format, messages);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return read.value;
}
const repair = (rules: FormatRules, messages: readonly unknown[]) => {
  const format = toyFormat(rules);
  const repaired = repairEntries(format, entriesOf(format, messages));
  // What would leave nothing is refused, of which there is a test below.
  fc.pre(repaired.ok);
  return repaired.value;
};
const rulesOf = (format: MessageFormat, messages: readonly unknown[]): string[] =>
  checkEntries(format, entriesOf(format, messages)).map(({ rule }) => rule);

describe.each(TOY_RULES)('$results, joined $joinsAssistant', (rules) => {
  const format = toyFormat(rules);
  const conversations = toyConversation(rules);

  it('leaves nothing that it could mend, and a second time finds nothing to do', () => {
    fc.assert(
      fc.property(conversations, (messages) => {
        const { messages: mended } = repair(rules, messages);
        const left = rulesOf(format, mended).filter((rule) => rule !== 'empty-list');
        expect(left).toEqual([]);
        expect(repair(rules, mended)).toMatchObject({ messages: mended, repairs: [] });
      }),
      { numRuns: 2_000 },
    );
  });

  it('touches nothing that is legal, and says what it touches', () => {
    fc.assert(
      fc.property(conversations, (messages) => {
        const legal = rulesOf(format, messages).every((rule) => rule === 'empty-list');
        const { messages: mended, repairs } = repair(rules, messages);
        expect(repairs.length === 0).toBe(legal);
        if (legal) expect(mended.every((message, index) => message === messages[index])).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('loses no word without a line in the report', () => {
    const textsOf = (messages: readonly unknown[]): string[] =>
      entriesOf(format, messages).flatMap(({ parts }) =>
        parts.map(({ block }) =>
          JSON.stringify('content' in block ? block.content : 'text' in block ? block.text : ''),
        ),
      );
    fc.assert(
      fc.property(conversations, (messages) => {
        const { messages: mended, repairs } = repair(rules, messages);
        const removed = repairs.filter(({ action }) => action.startsWith('removed')).length;
        const added = repairs.filter(({ fault }) => fault === 'open-call').length;
        const emptied = repairs.filter(({ fault }) => fault === 'empty-message').length;
        expect(textsOf(mended).length).toBe(textsOf(messages).length - removed + emptied + added);
      }),
      { numRuns: 1_000 },
    );
  });
});

const next: FormatRules = { results: 'next-messages', userFirst: false, joinsAssistant: false };
const head: FormatRules = { ...next, results: 'head-of-next-user' };
const user = (...say: ToyMessage['say']): ToyMessage => ({ by: 'user', say });
const bot = (...say: ToyMessage['say']): ToyMessage => ({ by: 'bot', say });
const tool = (...say: ToyMessage['say']): ToyMessage => ({ by: 'tool', say });
const call = (id: string) => ({ call: id, do: 'f' });
const gave = (id: string, text: string, more: object = {}) => ({ for: id, gave: text, ...more });

describe('a fault by itself', () => {
  const missing = { for: 'a', gave: MISSING_RESULT_TEXT, error: true };
  it.each<[string, FormatRules, ToyMessage[], unknown[], [string, string][]]>([
    [
      'a result of no call',
      next,
      [user('go'), tool(gave('x', '1'))],
      [user('go')],
      [['/messages/1/say/0', 'orphan-result']],
    ],
    [
      'a call that waits, before the end',
      next,
      [bot(call('a')), user('go')],
      [bot(call('a')), tool(missing), user('go')],
      [['/messages/0/say/0', 'open-call']],
    ],
    ['a call that waits, at the end', next, [user('go'), bot(call('a'))], [user('go'), bot(call('a'))], []],
    [
      'two results: the one that says more stays',
      next,
      [bot(call('a')), tool(gave('a', 'ab')), tool(gave('a', 'abc')), tool(gave('a', 'abcd', { error: true }))],
      [bot(call('a')), tool(gave('a', 'abc'))],
      [
        ['/messages/1/say/0', 'duplicate-result'],
        ['/messages/3/say/0', 'duplicate-result'],
      ],
    ],
    [
      'a result with other fields behind a user: moved whole',
      next,
      [bot(call('a')), user('wait'), { ...tool(gave('a', '1')), extra: 7 } as ToyMessage],
      [bot(call('a')), { ...tool(gave('a', '1')), extra: 7 }, user('wait')],
      [['/messages/2/say/0', 'misplaced-result']],
    ],
    [
      'a result before its call',
      next,
      [tool(gave('a', '1')), bot(call('a')), user('go')],
      [bot(call('a')), tool(gave('a', '1')), user('go')],
      [['/messages/0/say/0', 'misplaced-result']],
    ],
    [
      'calls and results without an id, in their order',
      next,
      [bot(call(''), call('')), tool(gave('', '1')), tool(gave('', '2')), user('go')],
      [bot(call('call_1'), call('call_2')), tool(gave('call_1', '1')), tool(gave('call_2', '2')), user('go')],
      [
        ['/messages/0/say/0', 'missing-id'],
        ['/messages/0/say/1', 'missing-id'],
      ],
    ],
    [
      'an id twice in one message',
      next,
      [bot(call('a'), call('a')), tool(gave('a', '1')), tool(gave('a', '2'))],
      [bot(call('a'), call('call_1')), tool(gave('a', '1')), tool(gave('call_1', '2'))],
      [['/messages/0/say/1', 'duplicate-id']],
    ],
    [
      'an id that comes again in a later turn is none',
      next,
      [bot(call('a')), tool(gave('a', '1')), bot(call('a')), tool(gave('a', '2'))],
      [bot(call('a')), tool(gave('a', '1')), bot(call('a')), tool(gave('a', '2'))],
      [],
    ],
    [
      'results behind other words of a user',
      head,
      [bot(call('a'), call('b')), user('note', gave('b', '2'), 'on', gave('a', '1'))],
      [bot(call('a'), call('b')), user(gave('a', '1'), gave('b', '2'), 'note', 'on')],
      [
        ['/messages/1/say/3', 'misplaced-result'],
        ['/messages/1/say/1', 'misplaced-result'],
      ],
    ],
    [
      'one of two results missing, in a user’s message',
      head,
      [bot(call('b'), call('a')), user(gave('b', '2'), 'on')],
      [bot(call('b'), call('a')), user(gave('b', '2'), missing, 'on')],
      [['/messages/0/say/1', 'open-call']],
    ],
    [
      'both results missing, and no user to bring them',
      head,
      [bot(call('b'), call('a')), bot('well')],
      [bot(call('b'), call('a')), user({ ...missing, for: 'b' }, missing), bot('well')],
      [
        ['/messages/0/say/0', 'open-call'],
        ['/messages/0/say/1', 'open-call'],
      ],
    ],
    [
      'an orphan beside a user’s own words: only the result goes',
      head,
      [bot('hi'), user(gave('x', '1'), 'go')],
      [bot('hi'), user('go')],
      [['/messages/1/say/0', 'orphan-result']],
    ],
    [
      'emptied and empty messages',
      next,
      [user('go'), bot(''), bot(), user('on')],
      [user('go'), user('on')],
      [
        ['/messages/1/say/0', 'empty-block'],
        ['/messages/2', 'empty-message'],
      ],
    ],
    [
      'a result of another id, where one call waits: they are a pair',
      next,
      [user('go'), bot(call('a')), tool(gave('x', '1')), user('on')],
      [user('go'), bot(call('a')), tool(gave('a', '1')), user('on')],
      [['/messages/2/say/0', 'orphan-result']],
    ],
    [
      'a call without an id and its result with one',
      head,
      [bot(call('')), user(gave('q1', '1'), 'on')],
      [bot(call('call_1')), user(gave('call_1', '1'), 'on')],
      [
        ['/messages/0/say/0', 'missing-id'],
        ['/messages/1/say/0', 'orphan-result'],
      ],
    ],
    [
      'two results of other ids, where two calls wait: nobody knows which is whose',
      next,
      [bot(call('a'), call('b')), tool(gave('x', '1')), tool(gave('y', '2')), user('on')],
      [bot(call('a'), call('b')), tool(missing), tool({ ...missing, for: 'b' }), user('on')],
      [
        ['/messages/0/say/0', 'open-call'],
        ['/messages/0/say/1', 'open-call'],
        ['/messages/1/say/0', 'orphan-result'],
        ['/messages/2/say/0', 'orphan-result'],
      ],
    ],
    [
      'calls of one id in elements that are one message, in their order',
      { ...next, results: 'anywhere-after', joinsAssistant: true },
      [user('go'), bot(call('c')), bot(call('c')), tool(gave('c', 'one')), tool(gave('c', 'two!'))],
      [user('go'), bot(call('c')), bot(call('call_1')), tool(gave('c', 'one')), tool(gave('call_1', 'two!'))],
      [['/messages/2/say/0', 'duplicate-id']],
    ],
  ])('%s', (_, rules, messages, mended, repairs) => {
    const out = repair(rules, messages);
    expect(out.messages).toEqual(mended);
    expect(out.repairs.map(({ path, fault }) => [path, fault])).toEqual(repairs);
  });
});

it('refuses what would be left without a message', () => {
  const format = toyFormat(next);
  expect(repairEntries(format, entriesOf(format, [user(''), tool(gave('x', '1'))]))).toMatchObject({
    ok: false,
    problem: { code: 'invalid_request', path: '/messages' },
  });
  expect(repairEntries(format, []).ok).toBe(true);
});

it('says where each message comes from', () => {
  const messages = [
    user(''),
    user('go'),
    bot(call('a')),
    user('on'),
    tool(gave('a', '1')),
    bot(call('b')),
    user('off'),
  ];
  expect(repair(next, messages).origins).toEqual([1, 2, 4, 3, 5, -1, 6]);
});
