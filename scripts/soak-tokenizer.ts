/**
 * `npm run soak [-- strings [seed]]`: random strings of every kind, as this tokenizer and as tiktoken encode them. Prints
 * the seed that brings the same strings again; one mismatch is a failure.
 */
import * as fc from 'fast-check';
import { get_encoding } from 'tiktoken';
import { ENCODING_NAMES, loadEncoding } from '../src/tokenizer/encoding.ts';

const STRINGS_PER_ENCODING = 10_000;
const [wanted, given] = process.argv.slice(2).map(Number);
const strings = wanted ?? STRINGS_PER_ENCODING;
const seed = given ?? (Math.random() * 2 ** 31) | 0;
if (!Number.isSafeInteger(strings) || strings < 1 || !Number.isSafeInteger(seed))
  throw new RangeError('usage: npm run soak [-- strings [seed]], both whole numbers');

const joined = (part: fc.Arbitrary<string>, maxLength: number, minLength = 0): fc.Arbitrary<string> =>
  fc.array(part, { minLength, maxLength, size: 'max' }).map((parts) => parts.join(''));
const oneOf = (values: readonly string[]): fc.Arbitrary<string> =>
  fc.noBias(fc.nat(values.length - 1)).map((at) => values[at] ?? '');
/** A code point between two, both inclusive, each as likely as the others. */
const between = (min: number, max: number): fc.Arbitrary<string> =>
  fc.noBias(fc.integer({ min, max })).map((codePoint) => String.fromCodePoint(codePoint));
const CHARACTERS = Array.from({ length: 0x110000 }, (_, codePoint) => String.fromCodePoint(codePoint));
/** Every code point that has a property of Unicode, as the runtime knows it. */
const having = (property: string): fc.Arbitrary<string> => {
  const set = new RegExp(String.raw`\p{${property}}`, 'u');
  return oneOf(CHARACTERS.filter((character) => set.test(character)));
};
const anywhere = fc.noBias(fc.nat(16)).chain((plane) => between(plane << 16, (plane << 16) | 0xffff));

const SCRIPTS =
  'Adlam Arabic Armenian Bengali Cherokee Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Greek Han ' +
  'Hangul Hebrew Hiragana Katakana Khmer Latin Mongolian Myanmar Sinhala Tamil Telugu Thai Tibetan';
const ascii = between(0x20, 0x7e);
const word = fc.oneof(
  joined(between(0x61, 0x7a), 12, 1),
  joined(between(0x41, 0x5a), 6, 1),
  ...SCRIPTS.split(' ').map((script) => joined(having(`Script=${script}`), 8, 1)),
);
const mark = having('M');
const space = fc.oneof(
  oneOf([' ', '  ', '\t', '\n', '\r', '\r\n']),
  having('White_Space'),
  oneOf(['\ufeff', '\u200b']),
);
const lineBreak = oneOf(['\r\n', '\n', '\r', '\n\r', '\u0085', '\u2028', '/', '//', ' ', '!', 'a']);
const digit = fc.oneof(between(0x30, 0x39), having('N'), oneOf(['.', ',', '-', 'e', 'x', ' ']));
const emoji = fc.oneof(
  having('Extended_Pictographic'),
  between(0x1f3fb, 0x1f3ff),
  between(0x1f1e6, 0x1f1ff),
  between(0xe0020, 0xe007f),
  oneOf(['\u200d', '\ufe0f', '\u20e3', '1', '👨‍👩‍👧‍👦', '🏳️‍🌈']),
);
const codeUnit = fc.oneof(between(0xd800, 0xdfff), between(0, 0xffff), ascii);
const suffix = fc
  .tuple(oneOf(['s', 't', 're', 've', 'm', 'll', 'd', 'r', 'v', 'l', 'ſ']), fc.nat(3))
  .map(([letters, upper]) =>
    letters.replace(/[a-z]/g, (letter, at: number) => (upper & (1 << at) ? letter.toUpperCase() : letter)),
  );
const contraction = fc.oneof(
  { weight: 3, arbitrary: suffix.map((letters) => `'${letters}`) },
  oneOf(['a', 'it', 'IT', 'They', 'ſ', '\u0301', '中', '1', '!', "'", '\u2019', ' ', '\n']),
);
const special = fc.oneof(
  oneOf(['<|endoftext|>', '<|endofprompt|>', '<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>', '<|im_start|>']),
  oneOf(['<|', '|>', '<', '|', 'endoftext', ' ', '\n', 'a']),
);
const run = fc
  .tuple(fc.oneof(ascii, space, mark, word, emoji, anywhere), fc.nat(400))
  .map(([unit, n]) => unit.repeat(n));
const code = fc.oneof(
  ascii,
  oneOf(['=>', '();', '\n  ', '\n\t\t', '://', '/*', '*/\n', '"', '\\n', '</', '_id', 'camelCase']),
);

const GENERATORS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  'all planes alike': joined(anywhere, 40),
  'words of many scripts': joined(fc.oneof({ weight: 3, arbitrary: word }, space, ascii), 16),
  'letters of all cases': joined(
    fc.oneof(having('Lu'), having('Ll'), having('Lt'), having('Lm'), having('Lo'), mark),
    30,
  ),
  'white space': joined(fc.oneof({ weight: 4, arbitrary: space }, ascii, word), 30),
  'line breaks and slashes': joined(lineBreak, 30),
  numbers: joined(digit, 60),
  'combining marks': joined(fc.oneof({ weight: 3, arbitrary: mark }, ascii, word), 30),
  emoji: joined(emoji, 30),
  'code units, half pairs too': joined(codeUnit, 40),
  contractions: joined(contraction, 24),
  'spellings of special tokens': joined(special, 12),
  'repeated runs': joined(run, 3),
  code: joined(code, 60),
};
/** JSON in ASCII: what differs is often invisible. */
const escaped = (value: unknown): string =>
  JSON.stringify(value).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const kinds = Object.keys(GENERATORS);
const each = Math.ceil(strings / kinds.length);

process.stdout.write(`seed ${seed}; again: npm run soak -- ${strings} ${seed}\n`);
for (const name of ENCODING_NAMES) {
  const encoding = await loadEncoding(name);
  const tiktoken = get_encoding(name);
  const agrees = (text: string): boolean => {
    const theirs = tiktoken.encode(text, [], []);
    return encoding.encode(text).join() === theirs.join() && encoding.count(text) === theirs.length;
  };
  let mismatches = 0;
  let codeUnits = 0;
  for (const [kind, texts] of Object.entries(GENERATORS)) {
    const tally = fc.property(texts, (text) => {
      codeUnits += text.length;
      if (!agrees(text)) mismatches++;
    });
    const before = mismatches;
    fc.assert(tally, { seed, numRuns: each });
    if (mismatches === before) continue;
    // The same strings again, this time down to the smallest that differs.
    const { counterexample } = fc.check(fc.property(texts, agrees), { seed, numRuns: each });
    process.stdout.write(`${name}, ${kind}: ${mismatches - before} differ, such as ${escaped(counterexample)}\n`);
  }
  tiktoken.free();
  const tried = each * kinds.length;
  process.stdout.write(
    `${name}: ${tried} strings of ${kinds.length} kinds, ${codeUnits} code units, ${mismatches} mismatches\n`,
  );
  if (mismatches > 0) process.exitCode = 1;
}
