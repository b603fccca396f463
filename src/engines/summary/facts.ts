/**
 * Facts: the strings that a later turn must have letter by letter, such as paths, URLs, identifiers, numbers and versions.
 * One pass over the characters, so no text takes more than linear time. It ranks nothing.
 */

/** Longer ones cost more than they say; shorter ones are words. Numbers count from three digits. */
const MAX_FACT_CHARS = 120;
const MIN_FACT_CHARS = 4;
const MIN_DIGITS = 3;
const MIN_HEX_CHARS = 6;
/** What goes on for longer without a break is data, such as base64. */
const MAX_RUN_CHARS = 400;

// Character classes of ASCII; everything else, and what has none, parts one run from the next.
const DIGIT = 1;
const LOWER = 2;
const UPPER = 4;
/** `_` and `$` belong to names. */
const NAME = 8;
/** `_`, `.` and `-` join the parts of a name. */
const JOIN = 16;
/** What may stand in front of a fact: `~ / . $ @`. */
const LEAD = 32;
/** Parts `key=value`, `file:line` and the like. */
const PART = 64;
const RUN = 128;

const ALNUM = DIGIT | LOWER | UPPER;
const SLASH = 47;
const DOT = 46;
const COLON = 58;
const AT = 64;

const CLASS = classes();

function classes(): Uint8Array {
  const table = new Uint8Array(128);
  const mark = (characters: string, bits: number) => {
    for (const character of characters) table[character.charCodeAt(0)]! |= bits | RUN;
  };
  mark('0123456789', DIGIT);
  mark('abcdefghijklmnopqrstuvwxyz', LOWER);
  mark('ABCDEFGHIJKLMNOPQRSTUVWXYZ', UPPER);
  mark('_$', NAME);
  mark('_.-', JOIN);
  mark('~/.$@_', LEAD);
  mark(':=&?%#+\\', PART);
  return table;
}

/** No look-up beyond the table: engines compile one that never misses to a single load. */
const classOf = (code: number): number => (code < 128 ? (CLASS[code] ?? 0) : 0);
const classAt = (text: string, at: number): number => classOf(text.charCodeAt(at));

/** Whether a letter, a digit or `_` stands there, so that a fact beside it would be part of a longer word. */
export function isWordAt(text: string, at: number): boolean {
  return (classAt(text, at) & ALNUM) !== 0 || text.charCodeAt(at) === 95;
}

/** The facts of runs that were seen before; the same names stand in a conversation again and again. */
export type SeenRuns = Map<string, readonly string[]>;
const MAX_SEEN_RUNS = 16_384;

/** Of a text, what holds no fact is passed over in few steps, and the first group is a run that may hold some. */
const TOKEN = new RegExp(
  [
    // The line numbers that tools put in front of a listing: `12→`, `12:`, `12|`, `12 |`, or with a tab.
    String.raw`^[ \t]*\d+(?:[→\t:|]| \|)`,
    // Closing tags, and what terminals read as colours and movements: `ESC [ 1 m`.
    String.raw`</[\w.$-]{0,118}>|\u001b\[[\d;?]{0,22}[^\n]?`,
    // Words, small letters after the first at most, with all that stands between them; bounded, so that nothing piles up.
    String.raw`(?:[A-Za-z][a-z]*(?![RUN])|[^RUN\n<\u001b]{1,64}){1,32}`,
    '([RUN]+)',
  ]
    .join('|')
    .replaceAll('RUN', String.raw`\w$@~./:%#?&=+\\\-`),
  'gm',
);

/** Calls `add` for each fact of `text` between two indices, in order and as often as it occurs. */
export function eachFact(
  text: string,
  add: (fact: string) => void,
  from = 0,
  to = text.length,
  seen: SeenRuns = new Map(),
): void {
  TOKEN.lastIndex = from;
  for (let match = TOKEN.exec(text); match && match.index < to; match = TOKEN.exec(text)) {
    const run = match[1];
    if (run === undefined || run.length < MIN_DIGITS || run.length > MAX_RUN_CHARS) continue;
    for (const fact of seen.get(run) ?? remember(seen, run)) add(fact);
  }
}

function remember(seen: SeenRuns, run: string): readonly string[] {
  const facts = factsOfRun(run, 0, run.length);
  if (seen.size < MAX_SEEN_RUNS) seen.set(run, facts);
  return facts;
}

function factsOfRun(text: string, from: number, to: number): readonly string[] {
  const [start, end] = trimmed(text, skipEscapes(text, from, to), to);
  if (end - start < MIN_DIGITS) return NONE;
  if (isUrl(text, start, end) || isAddress(text, start, end)) {
    return end - start <= MAX_FACT_CHARS ? [text.slice(start, end)] : NONE;
  }
  const facts: string[] = [];
  for (let at = start; at < end;) {
    let stop = at;
    while (stop < end && (classAt(text, stop) & PART) === 0) stop++;
    if (stop - at >= MIN_DIGITS) {
      const [first, last] = trimmed(text, at, stop);
      if (isSpecific(text, first, last)) facts.push(text.slice(first, last));
    }
    at = stop + 1;
  }
  return facts;
}

const NONE: readonly string[] = [];

/** The line ends and tabs of JSON within a text, `\n\t`; further inside a run a backslash may be one of a path. */
function skipEscapes(text: string, from: number, to: number): number {
  let at = from;
  while (at + 1 < to && text[at] === '\\' && /[nrt]/.test(text[at + 1] ?? '')) at += 2;
  return at;
}

/** Without punctuation around it: neither `// ` of a comment nor the full stop of a sentence. */
function trimmed(text: string, from: number, to: number): [start: number, end: number] {
  let [start, end] = [from, to];
  while (start < end) {
    const bits = classAt(text, start);
    const code = text.charCodeAt(start);
    if ((bits & (ALNUM | LEAD)) === 0) start++;
    else if (code === SLASH && text.charCodeAt(start + 1) === SLASH) while (text.charCodeAt(start) === SLASH) start++;
    else if (code === DOT && text.charCodeAt(start + 1) === DOT && text.charCodeAt(start + 2) !== SLASH)
      while (text.charCodeAt(start) === DOT) start++;
    else break;
  }
  while (end > start && (classAt(text, end - 1) & (ALNUM | NAME)) === 0) end--;
  return [start, end];
}

/** `scheme://` and something after it. */
function isUrl(text: string, start: number, end: number): boolean {
  if ((classAt(text, start) & (LOWER | UPPER)) === 0) return false;
  let at = start + 1;
  while (at < end && ((classAt(text, at) & ALNUM) !== 0 || text[at] === '+')) at++;
  return at + 3 < end && text.charCodeAt(at) === COLON && text.startsWith('//', at + 1);
}

/** `name@host.tld`. */
function isAddress(text: string, start: number, end: number): boolean {
  let at = -1;
  let dotted = false;
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index);
    if (code === AT) {
      if (at >= 0 || index === start) return false;
      at = index;
    } else if (code === DOT) {
      if (at >= 0) {
        if (index === at + 1 || text.charCodeAt(index - 1) === DOT) return false;
        dotted = true;
      }
    } else if ((classAt(text, index) & (ALNUM | JOIN)) === 0 && (at >= 0 || text[index] !== '+')) return false;
  }
  return dotted;
}

const ERROR_CODE = /^(?:v\d|[A-Z]{1,5}\d{3,}$|E(?:NO|CONN|ADDR|PERM|ACC|EXIST|PIPE|IS|NOT|TIME|INVAL)[A-Z]*$)/;

/** A path, a joined or camel-case name, a hexadecimal id, a number, a version, an error code. */
export function isSpecific(text: string, start = 0, end = text.length): boolean {
  const length = end - start;
  if (length > MAX_FACT_CHARS || length < MIN_DIGITS) return false;
  let all = 0;
  let digits = 0;
  let hex = 0;
  let hexLetters = 0;
  let capitals = 0;
  for (let at = start; at < end; at++) {
    const bits = classAt(text, at);
    const code = text.charCodeAt(at);
    all |= bits;
    if ((bits & DIGIT) !== 0) digits++;
    const letter = code | 32;
    if (letter >= 97 && letter <= 102 && (bits & (LOWER | UPPER)) !== 0) hexLetters++;
    if ((bits & DIGIT) !== 0 || (letter >= 97 && letter <= 102)) hex++;
    if (length >= MIN_FACT_CHARS && at > start) {
      const before = classAt(text, at - 1);
      if ((before & LOWER) !== 0 && (bits & UPPER) !== 0) return true;
      if ((before & LOWER) !== 0 && (bits & LOWER) !== 0 && capitals >= 2) return true;
      if (text.charCodeAt(at - 1) === SLASH && ((bits & (ALNUM | JOIN)) !== 0 || code === AT || code === 126))
        return true;
      if ((before & JOIN) !== 0 && (bits & ALNUM) !== 0 && hasAlnumBefore(text, start, at - 1)) return true;
    }
    // How many capitals stand before the lower-case letters here.
    if ((bits & UPPER) !== 0) capitals = (classAt(text, at - 1) & UPPER) !== 0 && at > start ? capitals + 1 : 1;
    else if ((bits & LOWER) === 0 || (classAt(text, at - 1) & UPPER) === 0) capitals = 0;
  }
  if (digits === length) return true;
  if (length < MIN_FACT_CHARS) return false;
  if (length >= MIN_HEX_CHARS && hex === length && digits > 0 && hexLetters > 0) return true;
  return (all & ALNUM) !== 0 && ERROR_CODE.test(text.slice(start, end));
}

function hasAlnumBefore(text: string, start: number, join: number): boolean {
  let at = join;
  while (at >= start && (classAt(text, at) & JOIN) !== 0) at--;
  return at >= start && (classAt(text, at) & ALNUM) !== 0;
}

export function holdsFact(text: string): boolean {
  let found = false;
  eachFact(text, () => (found = true));
  return found;
}

/** Whether the whole of a text is one fact. */
export function isFact(text: string): boolean {
  let count = 0;
  let same = false;
  if (text.length <= MAX_FACT_CHARS)
    eachFact(text, (fact) => {
      count++;
      same = fact === text;
    });
  return count === 1 && same;
}

/** Between two facts in a list, some tokens of the one join the gap. */
const GAP_TOKENS = 0.5;
const TOKENS_PER_DIGIT = 1 / 3;
const TOKENS_PER_LETTER = 1 / 8;

/** About how many tokens a fact takes in a list: one for each word and each mark in it, and more for long ones. */
export function roughTokens(fact: string): number {
  let tokens = GAP_TOKENS;
  let before = 0;
  for (let at = 0; at < fact.length; at++) {
    const kind = classAt(fact, at) & ALNUM;
    const continues = kind !== 0 && (kind === before || (before === UPPER && kind === LOWER));
    tokens += continues ? (kind === DIGIT ? TOKENS_PER_DIGIT : TOKENS_PER_LETTER) : 1;
    before = kind;
  }
  return tokens;
}
