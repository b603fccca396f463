import { expect, test } from 'vitest';
import { characterClasses, LETTER, LINE_BREAK, LOWER, NUMBER, SPACE, SYMBOL, UPPER } from './character-class.ts';

const classes = characterClasses();

test.each([
  ['A', UPPER | LETTER],
  ['ǅ', UPPER | LETTER],
  ['a', LOWER | LETTER],
  ['ʰ', UPPER | LOWER | LETTER],
  ['中', UPPER | LOWER | LETTER],
  ['\u0301', UPPER | LOWER | SYMBOL],
  ['٣', NUMBER],
  ['½', NUMBER],
  [' ', SPACE],
  ['\u0085', SPACE],
  ['\u3000', SPACE],
  ['\ufeff', SYMBOL],
  ['\r', LINE_BREAK],
  ['\n', LINE_BREAK],
  ['\u2028', SPACE],
  ['_', SYMBOL],
  ['\0', SYMBOL],
  ['😀', SYMBOL],
  ['\u{10d4a}', UPPER | LOWER | LETTER],
  ['\u{10ffff}', SYMBOL],
])('%j', (character, expected) => {
  expect(classes[character.codePointAt(0)!]).toBe(expected);
});

// Another version of Unicode knows more or fewer characters and, very rarely, moves one; everything else is for ever.
test('the runtime agrees on every character that both know, but for a few', () => {
  const sets: [RegExp, number][] = [
    [/[\p{Lu}\p{Lt}]/u, UPPER | LETTER],
    [/\p{Ll}/u, LOWER | LETTER],
    [/[\p{Lm}\p{Lo}]/u, UPPER | LOWER | LETTER],
    [/\p{M}/u, UPPER | LOWER | SYMBOL],
    [/\p{N}/u, NUMBER],
    [/[\r\n]/u, LINE_BREAK],
    [/\p{White_Space}/u, SPACE],
  ];
  let moved = 0;
  for (let codePoint = 0; codePoint < classes.length; codePoint++) {
    const character = String.fromCodePoint(codePoint);
    const theirs = sets.find(([set]) => set.test(character))?.[1] ?? SYMBOL;
    const ours = classes[codePoint]!;
    if (ours !== theirs && ours !== SYMBOL && theirs !== SYMBOL) moved++;
  }
  expect(classes).toHaveLength(0x110000);
  expect(moved).toBeLessThan(5);
});
