/**
 * JSON as RFC 8259 and I-JSON (RFC 7493) have it, from text that nobody vouches for. It refuses what JSON.parse lets
 * pass and no two readers agree on (names used twice, half surrogate pairs, integers that lose digits, bottomless nesting),
 * and it never quotes the text. One pass, no recursion, no more state than the open containers.
 */
import { jsonPointer, type JsonPointer, type Problem, type Result } from '../problem.ts';

export interface JsonLimits {
  /** Containers inside each other; the outermost is level 1. */
  readonly levels: number;
  /**
   * Members and items in one text. A reader's cost grows with them more than with bytes: 8 MiB of brackets or of names keep
   * a process busy for seconds and take hundreds of megabytes; as many as a request may have take a fraction of that.
   */
  readonly values: number;
}

export const REQUEST_LIMITS: JsonLimits = { levels: 64, values: 100_000 };

/**
 * Of a saved answer, alone or beside its request: it may give back what it was given, some levels further down. Whatever was
 * taken as a request can so be verified.
 */
export const ANSWER_LIMITS: JsonLimits = { levels: REQUEST_LIMITS.levels + 4, values: 3 * REQUEST_LIMITS.values };

/**
 * The value of one JSON text (bytes are UTF-8; a byte order mark is skipped), or the first problem in reading order:
 * `invalid_utf8`, `invalid_json` (offset in UTF-16 units), `duplicate_key`, `nesting_too_deep`, `too_many_values`,
 * `invalid_unicode` or `unsafe_number`.
 */
export function parseStrictJson(source: Uint8Array | string, limits = REQUEST_LIMITS): Result<unknown> {
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  if (text === undefined) return { ok: false, problem: { code: 'invalid_utf8', path: '' } };
  const problem = findProblem(text, limits);
  return problem ? { ok: false, problem } : { ok: true, value: JSON.parse(text) as unknown };
}

/** So many half pairs are mended in one text at most. */
const MENDED_MAX = 1_000;

/**
 * As `parseStrictJson`, except that half surrogate pairs in values become U+FFFD.
 *
 * @returns the value, and the pointers of the texts that had some.
 */
export function parseMending(
  source: Uint8Array | string,
  limits = REQUEST_LIMITS,
): Result<{ readonly value: unknown; readonly mended: readonly JsonPointer[] }> {
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  if (text === undefined) return { ok: false, problem: { code: 'invalid_utf8', path: '' } };
  const mended: JsonPointer[] = [];
  const problem = findProblem(text, limits, mended);
  if (problem) return { ok: false, problem };
  const wellFormed = (_: string, value: unknown): unknown => (typeof value === 'string' ? value.toWellFormed() : value);
  return { ok: true, value: { value: JSON.parse(text, wellFormed) as unknown, mended } };
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** An open container: `names` are the keys seen so far (objects only), `place` is the current key or index, undefined before the first key. */
interface Level {
  readonly names: Set<string> | undefined;
  place: string | number | undefined;
}

type Expected = 'value' | 'first item' | 'name' | 'first name' | 'separator';

/** What scanning a token came to. */
type Token = 'ok' | 'bad syntax' | 'half pair' | 'unsafe number';

/** @param mended takes the pointers of values with half pairs; without it they are a problem. */
function findProblem(text: string, limits: JsonLimits, mended?: JsonPointer[]): Problem | undefined {
  const scanner = new Scanner(text);
  const open: Level[] = [];
  const path = () => jsonPointer(open.flatMap(({ place }) => place ?? []));
  const badSyntax = (): Problem => ({ code: 'invalid_json', path: path(), offset: scanner.at });
  let expected: Expected = 'value';
  // The outermost value is in nothing.
  let values = -1;

  for (;;) {
    const char = scanner.skipWhitespace();
    const level = open[open.length - 1];
    if (expected === 'value' || (expected === 'first item' && char !== CLOSE_BRACKET)) {
      values += 1;
      if (values > limits.values) return { code: 'too_many_values', path: path(), limit: limits.values };
      if (char === OPEN_BRACE || char === OPEN_BRACKET) {
        if (open.length === limits.levels) {
          return { code: 'nesting_too_deep', path: path(), limit: limits.levels };
        }
        scanner.at++;
        const isObject = char === OPEN_BRACE;
        open.push(isObject ? { names: new Set(), place: undefined } : { names: undefined, place: 0 });
        expected = isObject ? 'first name' : 'first item';
        continue;
      }
      const token = scanner.scalar(char);
      if (token === 'bad syntax') return badSyntax();
      if (token === 'half pair' && (mended?.push(path()) ?? Infinity) > MENDED_MAX) {
        return { code: 'invalid_unicode', path: path() };
      }
      if (token === 'unsafe number') return { code: 'unsafe_number', path: path() };
      expected = 'separator';
    } else if (level?.names && (expected === 'name' || (expected === 'first name' && char !== CLOSE_BRACE))) {
      const token = scanner.string();
      if (token === 'bad syntax') return badSyntax();
      const name = scanner.lastString();
      level.place = name;
      if (token === 'half pair') return { code: 'invalid_unicode', path: path() };
      if (level.names.has(name)) return { code: 'duplicate_key', path: path() };
      level.names.add(name);
      if (scanner.skipWhitespace() !== COLON) return badSyntax();
      scanner.at++;
      expected = 'value';
    } else if (level && expected === 'separator' && char === COMMA) {
      scanner.at++;
      if (typeof level.place === 'number') level.place++;
      expected = level.names ? 'name' : 'value';
    } else if (level && char === (level.names ? CLOSE_BRACE : CLOSE_BRACKET)) {
      scanner.at++;
      open.pop();
      expected = 'separator';
    } else {
      return !level && scanner.at === text.length ? undefined : badSyntax();
    }
  }
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const UPPER_E = 0x45;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_E = 0x65;
const LOWER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const FIRST_PRINTABLE = 0x20;

/** What may follow a backslash, apart from `u`. */
const SHORT_ESCAPES = new Set(Array.from('"\\/bfnrt', (char) => char.charCodeAt(0)));
const LITERALS = new Map(['true', 'false', 'null'].map((literal) => [literal.charCodeAt(0), literal]));
/** As many decimal digits as always stay below 2^53. */
const ALWAYS_SAFE_DIGITS = 15;
/** From here on ECMAScript writes a number with an exponent (Number::toString, step 8), so it no longer looks exact. */
const FIRST_EXPONENT_FORM = 1e21;

/** Walks over tokens; `at` is the next UTF-16 unit, after `bad syntax` the one that does not fit. */
class Scanner {
  at = 0;
  private readonly text: string;
  private stringStart = 0;
  private stringHasEscapes = false;

  constructor(text: string) {
    this.text = text;
  }

  /** The unit after the whitespace; NaN at the end. */
  skipWhitespace(): number {
    const { text } = this;
    let at = this.at;
    let char = text.charCodeAt(at);
    while (char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09) char = text.charCodeAt(++at);
    this.at = at;
    return char;
  }

  /** A string, number or literal whose first unit is `char`. */
  scalar(char: number): Token {
    if (char === QUOTE) return this.string();
    if (char === MINUS || isDigit(char)) return this.number();
    const literal = LITERALS.get(char);
    if (literal === undefined) return 'bad syntax';
    for (let index = 0; index < literal.length; index++, this.at++) {
      if (this.text.charCodeAt(this.at) !== literal.charCodeAt(index)) return 'bad syntax';
    }
    return 'ok';
  }

  string(): Token {
    const { text } = this;
    if (text.charCodeAt(this.at) !== QUOTE) return 'bad syntax';
    this.stringStart = this.at;
    this.stringHasEscapes = false;
    let afterHigh = false;
    let halfPair = false;
    let at = this.at + 1;
    for (; ; at++) {
      let unit = text.charCodeAt(at);
      if (unit === QUOTE) break;
      // Written so that NaN, the end of the text, is refused too.
      if (!(unit >= FIRST_PRINTABLE)) return this.badSyntaxAt(at);
      if (unit === BACKSLASH) {
        this.stringHasEscapes = true;
        unit = text.charCodeAt(++at);
        if (unit === LOWER_U) {
          unit = 0;
          for (let digits = 0; digits < 4; digits++) {
            const digit = hexDigit(text.charCodeAt(++at));
            if (digit === undefined) return this.badSyntaxAt(at);
            unit = unit * 16 + digit;
          }
        } else if (!SHORT_ESCAPES.has(unit)) return this.badSyntaxAt(at);
      }
      // A pair counts however its halves are spelled: what is judged is the string that comes out.
      if (afterHigh || (unit & 0xf800) === 0xd800) {
        const isLow = (unit & 0xfc00) === 0xdc00;
        if (isLow !== afterHigh) halfPair = true;
        afterHigh = (unit & 0xfc00) === 0xd800;
      }
    }
    this.at = at + 1;
    return halfPair || afterHigh ? 'half pair' : 'ok';
  }

  /** The value of the string that `string` has just walked over. */
  lastString(): string {
    return this.stringHasEscapes
      ? String(JSON.parse(this.text.slice(this.stringStart, this.at)))
      : this.text.slice(this.stringStart + 1, this.at - 1);
  }

  private number(): Token {
    const { text } = this;
    const start = this.at;
    let isInteger = true;
    let hasExponent = false;
    if (text.charCodeAt(this.at) === MINUS) this.at++;
    if (text.charCodeAt(this.at) === ZERO) this.at++;
    else if (!this.digits()) return 'bad syntax';
    if (text.charCodeAt(this.at) === POINT) {
      isInteger = false;
      this.at++;
      if (!this.digits()) return 'bad syntax';
    }
    const exponent = text.charCodeAt(this.at);
    if (exponent === LOWER_E || exponent === UPPER_E) {
      isInteger = false;
      hasExponent = true;
      const sign = text.charCodeAt(++this.at);
      if (sign === PLUS || sign === MINUS) this.at++;
      if (!this.digits()) return 'bad syntax';
    }
    if (!hasExponent && this.at - start <= ALWAYS_SAFE_DIGITS) return 'ok';
    return isSafe(Number(text.slice(start, this.at)), isInteger) ? 'ok' : 'unsafe number';
  }

  private digits(): boolean {
    const { text } = this;
    const start = this.at;
    let at = start;
    while (isDigit(text.charCodeAt(at))) at++;
    this.at = at;
    return at > start;
  }

  private badSyntaxAt(at: number): Token {
    this.at = at;
    return 'bad syntax';
  }
}

/**
 * Refused are infinities and integers past 2^53 - 1, be they spelled as one or be they one once ECMAScript writes the
 * number back (1e16 comes back as 10000000000000000). So whatever is accepted is also accepted after a round trip.
 * Fractions are RFC 8785's: every spelling of one double is the same number.
 */
function isSafe(value: number, isInteger: boolean): boolean {
  const magnitude = Math.abs(value);
  if (magnitude <= Number.MAX_SAFE_INTEGER) return true;
  return Number.isFinite(value) && !isInteger && magnitude >= FIRST_EXPONENT_FORM;
}

const isDigit = (char: number): boolean => char >= ZERO && char <= NINE;

function hexDigit(char: number): number | undefined {
  if (isDigit(char)) return char - ZERO;
  const lower = char | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : undefined;
}
