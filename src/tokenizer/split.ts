/**
 * Cutting text into the pieces that byte pair encoding never merges across, by hand-written scanners for the two
 * published patterns. No regular expression: its stack and its Unicode version are the runtime's. Linear in time.
 */
import { LETTER, LINE_BREAK, LOWER, NUMBER, SPACE, SYMBOL, UPPER } from './character-class.ts';

/**
 * Well-formed UTF-8 and, byte by byte, the class of the character that the byte belongs to. Both arrays are longer than
 * the text and hold a 0 at `end`, where therefore every run and every comparison stops.
 */
export interface ClassifiedText {
  readonly bytes: Uint8Array;
  readonly classes: Uint8Array;
  readonly end: number;
}

/** The end of the piece that begins at `start`, which lies before the end of the text. */
export type PieceEnd = (text: ClassifiedText, start: number) => number;

/** Fills `classes` and writes the two zeros at `end`. */
export function classify(classOf: Uint8Array, { bytes, classes, end }: ClassifiedText): void {
  let at = 0;
  while (at < end) {
    const lead = bytes[at]!;
    if (lead < 0x80) {
      classes[at++] = classOf[lead]!;
      continue;
    }
    const next = characterEnd(bytes, at);
    let codePoint = lead & (0x7f >> (next - at));
    for (let i = at + 1; i < next; i++) codePoint = (codePoint << 6) | (bytes[i]! & 0x3f);
    const found = classOf[codePoint]!;
    while (at < next) classes[at++] = found;
  }
  bytes[end] = 0;
  classes[end] = 0;
}

/** The pattern that {@link o200kPieceEnd} implements, as tiktoken publishes it. */
export const O200K_PATTERN = [
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String.raw`\p{N}{1,3}`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
  String.raw`\s*[\r\n]+`,
  String.raw`\s+(?!\S)`,
  String.raw`\s+`,
].join('|');

export function o200kPieceEnd(text: ClassifiedText, start: number): number {
  return o200kWordEnd(text, start) || numberEnd(text, start) || symbolsEnd(text, start, SLASH) || spaceEnd(text, start);
}

/** The pattern that {@link cl100kPieceEnd} implements, as tiktoken publishes it. */
export const CL100K_PATTERN = [
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)`,
  String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`,
  String.raw`\p{N}{1,3}`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
  String.raw`\s*[\r\n]+`,
  String.raw`\s+(?!\S)`,
  String.raw`\s+`,
].join('|');

export function cl100kPieceEnd(text: ClassifiedText, start: number): number {
  return cl100kWordEnd(text, start) || numberEnd(text, start) || symbolsEnd(text, start) || spaceEnd(text, start);
}

// Each function below matches alternatives of a pattern at `start` and returns the end of the match, or 0 for none.

const BLANK = 0x20;
const SLASH = 0x2f;
const APOSTROPHE = 0x27;
const LINE_FEED = 0x0a;
/** Set in the ASCII lower case letters, clear in the upper case ones. */
const CASE_BIT = 0x20;

function o200kWordEnd({ bytes, classes }: ClassifiedText, start: number): number {
  const end = mixedWordEnd(classes, start, wordStart(bytes, classes, start));
  return end && end + contractionLength(bytes, end);
}

function cl100kWordEnd({ bytes, classes }: ClassifiedText, start: number): number {
  const contraction = contractionLength(bytes, start);
  if (contraction > 0) return start + contraction;
  const word = wordStart(bytes, classes, start);
  const end = runEnd(classes, word, LETTER);
  return end > word ? end : 0;
}

/** Behind `[^\r\n\p{L}\p{N}]?`. */
function wordStart(bytes: Uint8Array, classes: Uint8Array, start: number): number {
  return classes[start]! & (SYMBOL | SPACE) ? characterEnd(bytes, start) : start;
}

/** The two alternatives `.?UPPER*LOWER+` and `.?UPPER+LOWER*`, where `word` is behind the first character if it is taken. */
function mixedWordEnd(classes: Uint8Array, start: number, word: number): number {
  const upperEnd = runEnd(classes, word, UPPER);
  const end = runEnd(classes, upperEnd, LOWER);
  if (end > upperEnd) return end;
  // UPPER* gives back up to its last character that LOWER+ can take; what follows that one is upper case only.
  const last = lastEnd(classes, word, upperEnd, LOWER);
  if (last > 0) return last;
  // LOWER+ takes the first character instead, which only a mark can be; the capitals behind it are the next piece.
  if (word > start && classes[start]! & LOWER) return word;
  return upperEnd > word ? upperEnd : 0;
}

/** `(?i:'s|'t|'re|'ve|'m|'ll|'d)`: its length in bytes, 0 for no match. Case folding makes U+017F (long s) an s. */
function contractionLength(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== APOSTROPHE) return 0;
  switch (bytes[at + 1]! | CASE_BIT) {
    case 0x73: // s
    case 0x74: // t
    case 0x6d: // m
    case 0x64: // d
      return 2;
    case 0x72: // r
    case 0x76: // v
      return (bytes[at + 2]! | CASE_BIT) === 0x65 ? 3 : 0; // e
    case 0x6c: // l
      return (bytes[at + 2]! | CASE_BIT) === 0x6c ? 3 : 0; // l
    default:
      return bytes[at + 1] === 0xc5 && bytes[at + 2] === 0xbf ? 3 : 0; // U+017F in UTF-8
  }
}

/** `\p{N}{1,3}`. */
function numberEnd({ bytes, classes }: ClassifiedText, start: number): number {
  let end = start;
  for (let digits = 0; digits < 3 && classes[end]! & NUMBER; digits++) end = characterEnd(bytes, end);
  return end > start ? end : 0;
}

/** ` ?[^\s\p{L}\p{N}]+[\r\n]*`, where a byte `tail` may stand among the line breaks. */
function symbolsEnd({ bytes, classes }: ClassifiedText, start: number, tail = LINE_FEED): number {
  const symbols = bytes[start] === BLANK ? start + 1 : start;
  let end = runEnd(classes, symbols, SYMBOL);
  if (end === symbols) return 0;
  while (classes[end]! & LINE_BREAK || bytes[end] === tail) end++;
  return end;
}

/** `\s*[\r\n]+|\s+(?!\S)|\s+`. */
function spaceEnd({ bytes, classes, end: textEnd }: ClassifiedText, start: number): number {
  const end = runEnd(classes, start, SPACE | LINE_BREAK);
  const lastBreak = lastEnd(classes, start, end, LINE_BREAK);
  if (lastBreak > 0 || end === textEnd) return lastBreak || end;
  // The last space is left to the word or the symbols after it, unless it is the only one.
  let last = end - 1;
  while ((bytes[last]! & 0xc0) === 0x80) last--;
  return last > start ? last : end;
}

/** The first position from `at` on whose class is not in `mask`. */
function runEnd(classes: Uint8Array, at: number, mask: number): number {
  while (classes[at]! & mask) at++;
  return at;
}

/** Behind the last byte of [start, end) whose class is in `mask`; 0 if there is none. */
function lastEnd(classes: Uint8Array, start: number, end: number, mask: number): number {
  let at = end;
  while (at > start && !(classes[at - 1]! & mask)) at--;
  return at > start ? at : 0;
}

function characterEnd(bytes: Uint8Array, at: number): number {
  const lead = bytes[at]!;
  return at + (lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);
}
