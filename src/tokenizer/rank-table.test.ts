import { expect, test } from 'vitest';
import { decodeRanks, extendHash, indexRanks, NO_RANK, rankOf } from './rank-table.ts';

const hashOf = (bytes: readonly number[]) => bytes.reduce(extendHash, 0);

const tokens = [[0x61], [0, 0], [0], [0xff, 0xfe], [0x61, 0x62, 0x63], Array.from({ length: 128 }, () => 0x20)];
const text = `! 0 ${tokens.map((token) => btoa(String.fromCharCode(...token))).join(' ')}`;
const table = indexRanks(decodeRanks(text));

test('a rank text becomes length-prefixed tokens in the order of their ranks', () => {
  expect([...decodeRanks('! 0 IQ== AAE= AAEC').packed]).toEqual([1, 0x21, 2, 0, 1, 3, 0, 1, 2]);
  expect([...decodeRanks('! 0 IQ== AAE= AAEC').starts]).toEqual([1, 3, 6]);
  expect(table.longest).toBe(128);
});

test('every token is found, wherever it stands', () => {
  for (const [rank, token] of tokens.entries()) {
    const around = Uint8Array.of(0x62, ...token, 0x62);
    expect(rankOf(table, hashOf(token), around, 1, around.length - 1)).toBe(rank);
  }
});

test('other bytes are not found, not even under the hash of a token', () => {
  expect(rankOf(table, hashOf([0x61, 0x62]), Uint8Array.of(0x61, 0x62), 0, 2)).toBe(NO_RANK);
  expect(rankOf(table, hashOf([0x61, 0x62, 0x63]), Uint8Array.of(0x61, 0x62, 0x64), 0, 3)).toBe(NO_RANK);
  expect(rankOf(table, hashOf([0x61, 0x62, 0x63]), Uint8Array.of(0x61, 0x62), 0, 2)).toBe(NO_RANK);
  expect(rankOf(table, hashOf([0x61]), Uint8Array.of(0x61, 0x62, 0x63), 0, 3)).toBe(NO_RANK);
  expect(rankOf(table, hashOf([0, 0, 0]), Uint8Array.of(0, 0, 0), 0, 3)).toBe(NO_RANK);
});

test.each(['', 'IQ== Ig==', '! 1 IQ==', '! 0 IQ= ', '! 0 IQ==  Ig==', '! 0 I*==', '! 0 IQ==\nIg==', '! 0 IQ== é'])(
  'refuses %j',
  (garbage) => {
    expect(() => decodeRanks(garbage)).toThrow(RangeError);
  },
);
