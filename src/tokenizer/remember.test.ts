import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Merge } from './merge.ts';
import { remembering } from './remember.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Not byte pair encoding, but as much a function of the bytes alone: each byte twice, or once if it is even. */
function recorder() {
  const merged: string[] = [];
  const merge: Merge = (text, from, to, out, outAt) => {
    merged.push(new TextDecoder().decode(text.subarray(from, to)));
    for (let i = from; i < to; i++) if (i === from || text[i]! % 2 === 1) out[outAt++] = text[i]! * 1000 + i - from;
    return outAt;
  };
  return { merge, merged };
}

/** The tokens of one piece, taken from the middle of a text into the middle of an output. */
function tokensOf(merge: (...piece: Parameters<Merge>) => number, piece: string): number[] {
  const text = bytesOf(`<${piece}>`);
  const out = new Int32Array(text.length + 1).fill(-1);
  const end = merge(text, 1, text.length - 1, out, 1);
  expect([out[0], out[end]]).toEqual([-1, -1]);
  return Array.from(out.subarray(1, end));
}

test('a piece is merged once, and again when 4 MiB of others came between', () => {
  const { merge, merged } = recorder();
  const remember = remembering(merge);
  const hash = (piece: string) => Array.from(bytesOf(piece)).reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, 7);
  const tokens = (piece: string) => tokensOf((...args) => remember(hash(piece), ...args), piece);
  const first = tokens('piece');
  expect(tokens('piece')).toEqual(first);
  expect(tokens('other')).not.toEqual(first);
  expect(tokens('piece')).toEqual(first);
  expect(merged).toEqual(['piece', 'other']);
  for (let i = 0; i < 5000; i++) tokens(`${i}`.padEnd(1000, 'x'));
  expect(tokens('piece')).toEqual(first);
  expect(merged.filter((piece) => piece === 'piece')).toHaveLength(2);
});

test('a piece of more than 16 KiB is not kept', () => {
  const { merge, merged } = recorder();
  const remember = remembering(merge);
  for (const piece of ['x'.repeat(16_384), 'x'.repeat(16_385)])
    for (let i = 0; i < 3; i++) tokensOf((...args) => remember(1, ...args), piece);
  expect(merged.map((piece) => piece.length)).toEqual([16_384, 16_385, 16_385, 16_385]);
});

// The hash is no proof: whatever it is, and however often the arena starts over, the answer is that of the merge.
test('any pieces under any hashes give what the merge gives', () => {
  const piece = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '中'), minLength: 1, maxLength: 6 });
  const pieces = fc.array(
    fc.oneof(
      piece,
      piece.map((s) => s.repeat(50)),
    ),
    { minLength: 1, maxLength: 300 },
  );
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 50 }), fc.nat(), (list, hashes, salt) => {
      const { merge } = recorder();
      const remember = remembering(merge, 4096);
      for (const text of [...list, ...list]) {
        const hash = Math.imul((text.length + text.charCodeAt(0)) % hashes, salt | 1);
        expect(tokensOf((...args) => remember(hash, ...args), text)).toEqual(tokensOf(merge, text));
      }
    }),
    { numRuns: 300 },
  );
});

test('pieces that collide cost four look-ups and a merge, and do not keep the others out', () => {
  const { merge, merged } = recorder();
  const remember = remembering(merge);
  for (let i = 0; i < 10_000; i++) tokensOf((...args) => remember(5, ...args), `${i}`);
  tokensOf((...args) => remember(6, ...args), 'other');
  tokensOf((...args) => remember(6, ...args), 'other');
  expect(merged).toHaveLength(10_001);
});
