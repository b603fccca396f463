import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, result, text, user } from '../../test/conversation.ts';
import type { AgentMessage } from '../transcript/message.ts';
import { placeResults } from '../transcript/results.ts';
import { heuristic } from './estimator.ts';
import { createMeter } from './meter.ts';
import { isReference, reduceResults } from './reduce.ts';

const reduce = async (messages: readonly AgentMessage[]): Promise<readonly AgentMessage[]> => {
  const sizes = messages.map((message) => heuristic.message(message));
  const all = { messages, sizes, originals: messages, from: 0 };
  return (
    await reduceResults(
      all,
      Infinity,
      heuristic,
      createMeter(async () => {}),
    )
  ).messages;
};
const conversation = (id: string, function_id: string, said: string): AgentMessage[] => [
  user('go'),
  assistant(call(id, function_id)),
  result(id, said, { function_id }),
];
const referenceIn = (messages: readonly AgentMessage[]): Record<string, unknown> => {
  const [place] = placeResults(messages);
  const said = place?.result.content.map((block) => (block.type === 'text' ? block.text : '')).join('') ?? '';
  return JSON.parse(said.slice(said.indexOf('{'))) as Record<string, unknown>;
};

describe('a reference', () => {
  it('is known as one, whatever the result said and was called', async () => {
    const hard = fc.constantFrom('\u0000', '"', '\\', '💡', 'a');
    const words = fc.string({ unit: hard, minLength: 1, maxLength: 500 });
    await fc.assert(
      fc.asyncProperty(words, words, words, async (id, name, said) => {
        const once = await reduce(conversation(id, name, said.repeat(100)));
        fc.pre(once.length > 0 && placeResults(once).every(isReference));
        expect(await reduce(once)).toEqual(once);
      }),
      { numRuns: 300 },
    );
  });

  it('previews nothing of a result that said nothing and has no details', async () => {
    const image = { type: 'image', data: 'A'.repeat(90), mime: 'image/png' } as const;
    const messages = [user('go'), assistant(call('c')), result('c', [image])];
    expect(referenceIn(await reduce(messages))['preview']).toBe('');
    const detailed = [user('go'), assistant(call('c')), result('c', [image], { details: { rows: 3 } })];
    expect(referenceIn(await reduce(detailed))['preview']).toBe('{"rows":3}');
  });

  it.each([
    ['no JSON', 'x'.repeat(4_000)],
    ['another kind', JSON.stringify({ kind: 'x', preview: 'a', rest: 'x'.repeat(4_000) })],
    ['a preview that is longer', JSON.stringify({ kind: 'function_result_reference', preview: 'x'.repeat(4_000) })],
  ])('is no text that only begins like one: %s', (_, rest) => {
    const [place] = placeResults([
      assistant(call('c')),
      result('c', [text(`[function result reduced for context budget] ${rest}`)]),
    ]);
    expect(place && isReference(place)).toBe(false);
  });
});
