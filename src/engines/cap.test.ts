import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, conversation, inline, result, text, user } from '../../test/conversation.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { placeResults } from '../transcript/results.ts';
import { resultText } from '../transcript/walk.ts';
import { CAP_MIN_TOKENS, type Capped, capResults } from './cap.ts';
import { heuristic, tokenizer } from './estimator.ts';
import { createMeter } from './meter.ts';

const ESTIMATORS = { heuristic, o200k_base: tokenizer(await loadEncoding('o200k_base')) };
const run = (messages: readonly AgentMessage[], cap: number, estimator = heuristic, from = 0): Promise<Capped> => {
  const sizes = messages.map((message) => estimator.message(message));
  return capResults(
    { messages, sizes },
    from,
    cap,
    estimator,
    createMeter(async () => {}),
  );
};
const said = (messages: readonly AgentMessage[]): string[] =>
  placeResults(messages).map(({ result: each }) => resultText(each.content));

describe('a cap', () => {
  it('keeps the head and the tail of a result, six to four, and says what it was', async () => {
    const lines = Array.from({ length: 1_000 }, (_, index) => `line ${String(index).padStart(4, '0')}\n`).join('');
    const { messages, capped_parts, capped_tokens } = await run([assistant(call('c')), result('c', lines)], 500);
    const [capped = ''] = said(messages);
    const [head = '', tail = ''] = capped.split('\n[… capped: was ~2500 tokens …]\n');
    expect(lines.startsWith(head) && lines.endsWith(tail)).toBe(true);
    expect(head.length / (head.length + tail.length)).toBeCloseTo(0.6, 2);
    expect(heuristic.text(capped)).toBeLessThanOrEqual(450);
    expect(heuristic.text(capped)).toBeGreaterThan(430);
    expect([capped_parts, capped_tokens]).toEqual([1, 2_500 - heuristic.text(capped)]);
  });

  it('leaves what is not over it, and what is cached', async () => {
    const messages = [
      assistant(call('c')),
      result('c', 'word'.repeat(100)),
      user(inline('c', text('word'.repeat(101)))),
    ];
    expect((await run(messages, 101)).messages).toEqual(messages);
    const capped = await run(messages, 100);
    expect(capped.messages[1]).toBe(messages[1]);
    expect(capped.messages[2]).not.toEqual(messages[2]);
    expect((await run(messages, 50, heuristic, 2)).messages[1]).toBe(messages[1]);
  });

  it('puts the text where the first text was and leaves other blocks', async () => {
    const image: ContentBlock = { type: 'image', data: 'AAAA', mime: 'image/png' };
    const { messages } = await run([result('c', [image, text('word'.repeat(50)), image, text('word'.repeat(50))])], 60);
    expect(messages[0]?.content.map(({ type }) => type)).toEqual(['image', 'text', 'image']);
  });

  it('counts the texts of a result as the message does, on lines of their own', async () => {
    const { o200k_base } = ESTIMATORS;
    const letters = [result('c', Array.from('abcdefghij'.repeat(10), text))];
    expect(o200k_base.message(letters[0]!)).toBeGreaterThan(150);
    const capped = await run(letters, 100, o200k_base);
    expect(capped).toMatchObject({ capped_parts: 1 });
    expect(o200k_base.message(capped.messages[0]!)).toBeLessThanOrEqual(100);
    const inside = [user(inline('c', ...Array.from('abcdefghij'.repeat(10), text)))];
    expect((await run(inside, 100, o200k_base)).messages).toEqual(inside);
  });

  it.each(Object.entries(ESTIMATORS))(
    'by %s is kept with a margin, once and for all, and cuts no character',
    async (_, estimator) => {
      await fc.assert(
        fc.asyncProperty(conversation, fc.integer({ min: CAP_MIN_TOKENS, max: 300 }), async (messages, cap) => {
          const capped = await run(messages, cap, estimator);
          for (const [index, each] of said(capped.messages).entries()) {
            const before = said(messages)[index] ?? '';
            if (each !== before) expect(estimator.text(each)).toBeLessThanOrEqual(Math.floor(cap * 0.9));
            expect(estimator.text(each)).toBeLessThanOrEqual(cap);
            expect(each.isWellFormed()).toBe(true);
          }
          const again = await run(capped.messages, cap, estimator);
          expect(again).toMatchObject({ capped_parts: 0, capped_tokens: 0 });
          expect(again.messages).toEqual(capped.messages);
        }),
      );
    },
  );

  it('has room for its marker at the least', () => {
    const marker = '\n[… capped: was ~99999999 tokens …]\n';
    for (const estimator of Object.values(ESTIMATORS)) {
      expect(estimator.text(marker)).toBeLessThanOrEqual(Math.floor(CAP_MIN_TOKENS * 0.9));
    }
  });
});
