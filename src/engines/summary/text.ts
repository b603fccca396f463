/**
 * Prose made of what people and models wrote: without markup and listings, cut into sentences, clipped between words. No half
 * of a surrogate pair comes out, and no text takes more than linear time.
 */
import type { Said } from './reading.ts';

/** How much of one long text is read for its sentences: people ask at the beginning or at the end. */
const FIRST_CHARS = 8_000;
const LAST_CHARS = 2_000;

/** What terminals read as colours and movements. */
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]{0,20}[A-Za-z]`, 'g');

/** One line of well-formed text. Which characters are controls (Cc) no version of Unicode changes. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(COLOUR, '')
    .replace(/[\s\p{Cc}\u200b]+/gu, ' ')
    .trim();
}

/** At most `maxChars` UTF-16 units, cut between words where there is a gap near the end, and marked so. */
export function clip(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const room = Math.max(0, maxChars - 1);
  const gap = text.lastIndexOf(' ', room);
  let end = gap > room * 0.6 ? gap : room;
  if (isHighSurrogate(text, end - 1)) end--;
  return `${text.slice(0, end).replace(/[\s,;:([{'"`*-]{1,8}$/, '')}…`;
}

function isHighSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code <= 0xdbff;
}

/** Tags that hold what a person asked for, though a machine set them; other machine-made elements are dropped. */
const ASKING_TAG =
  /[-_](?:args|query|request|input|task|question|feedback|goal|objective|prompt|issue|description|answer)$/i;
/** Not where someone writes about a tag, in backticks. */
const TAG = /(?<!`)<(\/?)([A-Za-z][\w.:-]{0,40})(?:\s[^<>]{0,200})?(\/?)>/g;

/** Without elements that machines put into messages (`<system-reminder>…`); of all others only the tags go. */
export function withoutMarkup(text: string): string {
  let kept = '';
  let at = 0;
  let dropped: string | undefined;
  for (const match of text.matchAll(TAG)) {
    const [tag, closing, name, selfClosing] = match;
    if (dropped === undefined) kept += `${text.slice(at, match.index)} `;
    at = match.index + tag.length;
    if (dropped !== undefined) {
      if (closing === '/' && name === dropped) dropped = undefined;
    } else if (
      closing === '' &&
      selfClosing === '' &&
      name !== undefined &&
      /[-_]/.test(name) &&
      !ASKING_TAG.test(name)
    )
      dropped = name;
  }
  return dropped === undefined ? kept + text.slice(at) : kept;
}

export interface Sentence {
  readonly text: string;
  /** An item of a list, which is how people write requirements down. */
  readonly listed: boolean;
}

/** Something said, as sentences. */
export interface Text extends Said {
  readonly sentences: readonly Sentence[];
}

/** What ends a sentence: a mark and a gap, or a mark of a script that writes no gaps. */
const SENTENCE = /(?<=[.!?…؟۔][)"'*”]?)\s+(?=[^\sa-z])|(?<=[!?؟])\s+|(?<=[。！？；])/;
const MARKER = /^\s{0,40}(?:[-*+•·](?=\s)|\(?\d{1,3}[.)](?=\s)|\d{1,3}、|>|#{1,6}(?=\s))\s*(?:\[[ xX]\]\s)?/;

/** The sentences of a text in order, without code, listings and markup. */
export function sentences(text: string): Sentence[] {
  const whole =
    text.length <= FIRST_CHARS + LAST_CHARS ? text : `${text.slice(0, FIRST_CHARS)}\n${text.slice(-LAST_CHARS)}`;
  const found: Sentence[] = [];
  let fenced = false;
  for (const line of withoutMarkup(whole).split(/[\n\r\u2028\u2029]+/)) {
    if (/^\s{0,40}(?:```|~~~)/.test(line)) {
      fenced = !fenced;
      continue;
    }
    if (fenced) continue;
    const listed = MARKER.test(line) && !/^\s*[>#]/.test(line);
    const plain = oneLine(line.replace(MARKER, '').replaceAll('**', ''));
    if (!isProse(plain) || (HEADING.test(line) && weight(plain) < MIN_HEADING_WEIGHT)) continue;
    for (const sentence of plain.split(SENTENCE)) if (sentence !== '') found.push({ text: sentence, listed });
  }
  return found;
}

const HEADING = /^\s*(?:#|\*\*[^*]{1,60}\*\*:?\s*$)/;
/** A short heading only names what follows. */
const MIN_HEADING_WEIGHT = 20;

/** How much of a line of prose is letters and gaps, at least. */
const PROSE_SHARE = 0.75;

/** Prose is mostly letters and gaps, and does not open like a listing. */
function isProse(line: string): boolean {
  const sample = line.slice(0, 200);
  if (sample === '' || /^(?:[[{(<|$>\\/=}\])]|\d+\s*[:|→])/.test(sample)) return false;
  const letters = sample.replace(/[^A-Za-z \u00aa-\uffff]/g, '').length;
  return letters / sample.length >= PROSE_SHARE && !/[;{}]$/.test(sample) && /[A-Za-z\u00aa-\uffff]{2}/.test(sample);
}

/** About how much a text says, in Latin letters: a Han, Kana or Hangul character says as much as three. */
export function weight(text: string): number {
  return text.length + 2 * text.replace(/[^\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]/g, '').length;
}

/** What makes two bullets the same: their letters and digits, as far as the shorter goes. */
export function keyOf(bullet: string): string {
  return bullet
    .replace(/…$/, '')
    .replace(/[^0-9A-Za-z\u00aa-\uffff]+/g, ' ')
    .replace(/[A-Z]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 32))
    .trim()
    .slice(0, KEY_CHARS);
}
const KEY_CHARS = 60;
