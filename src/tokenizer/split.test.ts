import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { characterClasses } from './character-class.ts';
import { CL100K_PATTERN, cl100kPieceEnd, classify, O200K_PATTERN, o200kPieceEnd } from './split.ts';
import type { PieceEnd } from './split.ts';

function split(text: string, pieceEnd: PieceEnd): string[] {
  const bytes = new Uint8Array(text.length * 3 + 1).fill(0x27);
  const input = {
    bytes,
    classes: new Uint8Array(bytes.length),
    end: new TextEncoder().encodeInto(text, bytes).written,
  };
  classify(characterClasses(), input);
  const pieces: string[] = [];
  for (let start = 0; start < input.end;) {
    const end = pieceEnd(input, start);
    pieces.push(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(start, end)));
    start = end;
  }
  return pieces;
}

/** The published pattern in the dialect of JavaScript, whose \s is another set and which has no (?i:...) everywhere. */
function expression(pattern: string): RegExp {
  const dialect = pattern
    .replaceAll(String.raw`\s`, String.raw`\p{White_Space}`)
    .replaceAll(String.raw`\S`, String.raw`\P{White_Space}`)
    .replaceAll("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?:'[sSſ]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])");
  return new RegExp(dialect, 'gu');
}

const fragments = [
  ["'s", "'S", "'ſ", "'t", "'ll", "'Ll", "'rE", "'ve", "'m", "'D", "'r", "'l", "'", "'é", 'a', 'b', 'A', 'ÀB', 'é'],
  ['ǅ', 'ʰ', 'ª', '中', 'ไท', 'שלום', 'مرحبا', '\u0301', '\u0903', '\u20dd', '1', '22', '٣', '½', 'Ⅷ', '𝟙'],
  [' ', '  ', '\t', '\n', '\r\n', '\r', '\v', '\f', '\u0085', '\u00a0', '\u2028', '\u3000', '\ufeff', '\u200b'],
  ['!', '?!', '/', '//', '_', '$', '€', '😀', '👩‍👩‍👧', '\0', '\u{10ffff}', '\u{e0001}', '\ud800', '\udfff'],
].flat();
const texts = fc
  .array(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...fragments) }, fc.string()), { maxLength: 24 })
  .map((parts) => parts.join(''));

describe.each([
  ['o200k_base', O200K_PATTERN, o200kPieceEnd],
  ['cl100k_base', CL100K_PATTERN, cl100kPieceEnd],
] as const)('%s', (_, pattern, pieceEnd) => {
  test('the scanner cuts where the published pattern cuts', () => {
    const published = expression(pattern);
    fc.assert(
      fc.property(texts, (text) => {
        expect(split(text, pieceEnd)).toEqual(text.toWellFormed().match(published) ?? []);
      }),
      { numRuns: 3000 },
    );
  });

  // A scanner that looks far ahead for each piece would not come to an end here.
  test.each([
    ['spaces', ' ', 1],
    ['spaces of three bytes', '\u3000', 1],
    ['line breaks', '\n', 1],
    ['letters', 'a', 1],
    ['capitals', 'A', 1],
    ['marks', '\u0301', 1],
    ['symbols', '!', 1],
    ['digits', '7', 333_334],
    ['lines of blanks', ' \n\t', 2],
  ])('a million times %s', (_name, unit, pieces) => {
    expect(split(unit.repeat(1_000_000), pieceEnd)).toHaveLength(pieces);
  });
});

test('the encodings differ where their patterns do', () => {
  expect(split("DON'T fooBar", o200kPieceEnd)).toEqual(["DON'T", ' foo', 'Bar']);
  expect(split("DON'T fooBar", cl100kPieceEnd)).toEqual(['DON', "'T", ' fooBar']);
  expect(split('</\n/', o200kPieceEnd)).toEqual(['</\n/']);
  expect(split('</\n/', cl100kPieceEnd)).toEqual(['</\n', '/']);
  expect(split('\u0301A', o200kPieceEnd)).toEqual(['\u0301', 'A']);
  expect(split('\u0301A', cl100kPieceEnd)).toEqual(['\u0301A']);
});
