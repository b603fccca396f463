import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMerge } from './merge.ts';
import { decodeRanks, indexRanks } from './rank-table.ts';

const tableOf = (tokens: readonly string[]) => indexRanks(decodeRanks(`! 0 ${tokens.map(btoa).join(' ')}`));
const bytesOf = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

function merged(tokens: readonly string[], text: string, windowBytes?: number): string[] {
  const bytes = bytesOf(`<${text}>`);
  const out = new Int32Array(text.length + 2);
  const end = createMerge(tableOf(tokens), windowBytes)(bytes, 1, bytes.length - 1, out, 1);
  return Array.from(out.subarray(1, end), (rank) => tokens[rank]!);
}

/** Byte pair encoding as it is defined, in quadratic time. */
function defined(tokens: readonly string[], text: string): string[] {
  const ranks = new Map(tokens.map((token, rank) => [token, rank]));
  const parts = Array.from({ length: text.length }, (_, i) => text[i]!);
  for (;;) {
    let lowest = Infinity;
    let left = -1;
    for (let i = 0; i + 1 < parts.length; i++) {
      const rank = ranks.get(parts[i]! + parts[i + 1]!) ?? Infinity;
      if (rank < lowest) [lowest, left] = [rank, i];
    }
    if (left < 0) return parts;
    parts.splice(left, 2, parts[left]! + parts[left + 1]!);
  }
}

test('the lowest rank goes first, and of equal ones the leftmost', () => {
  expect(merged(['a', 'b', 'c', 'bc', 'ab'], 'abc')).toEqual(['a', 'bc']);
  expect(merged(['a', 'aa'], 'aaa')).toEqual(['aa', 'a']);
  expect(merged(['a', 'b', 'abab', 'ab'], 'abababab')).toEqual(['abab', 'abab']);
});

test('any vocabulary and any window give what the definition gives', () => {
  const letters = ['a', 'b', 'c'];
  const vocabularies = fc
    .uniqueArray(fc.string({ unit: fc.constantFrom(...letters), minLength: 2, maxLength: 6 }), { maxLength: 40 })
    .chain((words) => fc.shuffledSubarray([...letters, ...words], { minLength: letters.length + words.length }));
  const irregular = fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 400 });
  const periodic = fc
    .string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 5 })
    .map((s) => s.repeat(80));
  const texts = fc.tuple(periodic, irregular).chain(([a, b]) => fc.constantFrom(a, b, a + b, b + a));
  fc.assert(
    fc.property(vocabularies, texts, fc.integer({ min: 49, max: 100 }), (tokens, text, windowBytes) => {
      expect(merged(tokens, text, windowBytes)).toEqual(defined(tokens, text));
    }),
    { numRuns: 500 },
  );
});

// Here the merge starts at the right end and each pair depends on the pair behind it, so that every window that ends
// elsewhere shifts its tokens by one: windows cannot be joined and must grow.
test.each([199, 200])('a chain of %i bytes that is decided from its far end', (length) => {
  const bytes = Array.from({ length: 200 }, (_, i) => String.fromCharCode(i + 1));
  const text = bytes.slice(0, length).join('');
  const pairs = bytes.slice(1).map((byte, i) => bytes[i]! + byte);
  const tokens = [...bytes, ...pairs.toReversed()];
  expect(merged(tokens, text, 32)).toEqual(defined(tokens, text));
  expect(merged(tokens, text, 32)[0]).toHaveLength(length % 2 === 0 ? 2 : 1);
});
