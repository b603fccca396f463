/** Short ways to write conversations in tests, and plausible random ones: calls, parallel calls, results of both forms, used ids. */
import * as fc from 'fast-check';
import type { AgentMessage, AssistantMessage, ContentBlock, FunctionResultMessage } from '../src/transcript/message.ts';

export const text = (value: string): ContentBlock => ({ type: 'text', text: value });
export const call = (id: string, function_id = 'shell::run', args: unknown = {}): ContentBlock => ({
  type: 'function_call',
  id,
  function_id,
  arguments: args,
});
export const inline = (id: string, ...content: ContentBlock[]): ContentBlock => ({
  type: 'function_result',
  function_call_id: id,
  content,
});
const blocks = (content: readonly (string | ContentBlock)[]): ContentBlock[] =>
  content.map((each) => (typeof each === 'string' ? text(each) : each));

export const user = (...content: (string | ContentBlock)[]): AgentMessage => ({
  role: 'user',
  content: blocks(content),
  timestamp: 1,
});
export const assistant = (...content: (string | ContentBlock)[]): AssistantMessage => ({
  role: 'assistant',
  content: blocks(content),
  timestamp: 2,
  model: 'm',
  provider: 'p',
  stop_reason: 'end',
});
export const result = (id: string, said: string | ContentBlock[], more: object = {}): FunctionResultMessage => ({
  role: 'function_result',
  function_call_id: id,
  function_id: 'shell::run',
  content: typeof said === 'string' ? [text(said)] : said,
  timestamp: 3,
  ...more,
});
export const custom = (said = 'note'): AgentMessage => ({
  role: 'custom',
  custom_type: 'marker',
  content: [text(said)],
  timestamp: 4,
});

const words = fc.oneof(
  { weight: 3, arbitrary: fc.lorem({ maxCount: 30 }) },
  { weight: 2, arbitrary: fc.nat({ max: 400 }).map((count) => 'src/shop/cart.ts:42 total '.repeat(count)) },
  { weight: 1, arbitrary: fc.constantFrom('', '合計が合わない。'.repeat(40), '👩🏽‍🚀 '.repeat(30), 'a'.repeat(900)) },
);
const callId = fc.constantFrom('c1', 'c2', 'c3', 'c4');
const functionId = fc.constantFrom('shell::run', 'file::read');

/** What an agent does in one step: it says or calls something, and what it called is answered in one form or the other. */
const step = fc.oneof(
  words.map((said) => [assistant(said)]),
  fc
    .record({ ids: fc.uniqueArray(callId, { minLength: 1, maxLength: 3 }), function_id: functionId, said: words })
    .chain(({ ids, function_id, said }) =>
      fc
        .record({
          answers: fc.array(words, { minLength: ids.length, maxLength: ids.length }),
          inUserMessage: fc.boolean(),
          beside: fc.option(words),
          note: fc.boolean(),
        })
        .map(({ answers, inUserMessage, beside, note }) => {
          const calls = assistant(said, ...ids.map((id) => call(id, function_id)));
          const answered = inUserMessage
            ? [
                user(
                  ...ids.map((id, index) => inline(id, text(answers[index] ?? ''))),
                  ...(beside === null ? [] : [beside]),
                ),
              ]
            : ids.map((id, index) => result(id, answers[index] ?? '', { function_id, details: { at: index } }));
          return [calls, ...(note ? [custom()] : []), ...answered];
        }),
    ),
);
const turn = fc
  .record({ said: words, steps: fc.array(step, { maxLength: 4 }) })
  .map(({ said, steps }) => [user(said), ...steps.flat()]);

/** Legal ones, oldest first; the last turn may have calls that are not answered yet. */
export const conversation = fc
  .record({ turns: fc.array(turn, { maxLength: 5 }), opening: fc.boolean(), open: fc.boolean() })
  .map(({ turns, opening, open }): AgentMessage[] => [
    ...(opening ? [assistant('Hello.')] : []),
    ...turns.flat(),
    ...(open ? [assistant(call('open'))] : []),
  ]);
