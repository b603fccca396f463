import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { get_encoding } from 'tiktoken';
import shippedCl100k from 'tiktoken/encoders/cl100k_base.json' with { type: 'json' };
import shippedO200k from 'tiktoken/encoders/o200k_base.json' with { type: 'json' };
import type { Tiktoken } from 'tiktoken';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { characterClasses } from './character-class.ts';
import { ENCODING_NAMES, isEncodingName, loadEncoding } from './encoding.ts';
import type { Encoding, EncodingName } from './encoding.ts';

const dependency = (path: string) => readFileSync(new URL(`../../node_modules/${path}`, import.meta.url), 'utf8');
const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');

const shipped = { o200k_base: shippedO200k, cl100k_base: shippedCl100k };

const TRICKY = {
  nothing: '',
  'plain text': 'Hello, world!',
  'emoji families, skin tones, flags, keycaps': '👨‍👩‍👧‍👦👩🏽‍🚀🏳️‍🌈🇩🇪1️⃣😀\u200d',
  'marks in every place': 'e\u0301e\u0301\u0302\u0303 \u0301x !\u0301\u0301 1\u0301 é Å A\u030a Å \u0301\u0301ABC',
  'stacked marks': 'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞',
  'right to left': 'שָׁלוֹם עולם مرحبا بالعالم ۱۲۳٤٥٦ \u200fabc\u202e',
  'Chinese, Japanese, Korean': '我们的目标是让每个人都能用。日本語のテキスト、カタカナ。한국어 텍스트',
  'Thai, Hindi, Kannada, Tamil': 'สวัสดีชาวโลก नमस्ते दुनिया ಕನ್ನಡ தமிழ்',
  'Georgian, Cherokee, Deseret, Adlam': 'ქართული ᏣᎳᎩ ꭳꮯ 𐐀𐐨 𞤀𞤢',
  'case, title case and no case': 'ǅǈǋ ªº ʰʷ ﬀﬁ ßẞ İıſ ŁÓDŹ łódź iPhone XMLHttpRequest ABCdefGHI',
  'NUL and controls': '\0\0a\0 \u0001\u001b[31mred\u001b[0m\u007f\u0080',
  'line breaks': 'a\r\nb\rc\nd\n\n\ne\r\n\r\n  f \n \n\tg\t\t \t\n',
  'each kind of space':
    ' \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\u180ex',
  'runs of spaces': 'a  b   c    d     e\u3000\u3000f\u00a0\u00a0g\u0085\u0085h trailing   ',
  numbers: '1 12 123 1234 12345678901234567890 3.14159 1,000,000 ½¾ Ⅷ ٣٤٥٦ 𝟙𝟚𝟛𝟜 0x1F 2026-11-30T12:34:56Z',
  contractions: "I'm you're he's she'd we'll they've don't I'M YOU'RE HE'S SHE'D WE'LL THEY'VE DON'T 'Re 'lL",
  'contractions at odds': "'s 't ' 'r 'v 'l 're' ''s a'sb A'SB x'ſ 'ſ 1's !'s 's's d'Artagnan rock'n'roll '",
  'special tokens': '<|endoftext|> <|endofprompt|><|fim_prefix|><|im_start|>system<|im_end|>',
  'lone surrogates': '\ud800 a\udc00b \udfff\ud800\ud83d',
  code: 'if (a !== b) { return a[i]?.x ?? `${y}`; } // no\n/* yes */ #include <x.h>\n\tpath/to//file\\n',
  markup: ' <a href="/x">/</a>/\n/\r\n/<!-- -->\n',
  symbols: '!!!???...---___===+++***///\n\n~~~`@#$%^&*()[]{}|\\:;"\'<>,.?/ €£¥ ∑∫√ →⇒ ■□ ¿¡',
  'letters of Unicode 16 and of 17': "a\u1c89b \u{10d4a}\u{10d4b}'s \u1c8a's \u{a7ce}\u{a7cf}'s \u{323b0}'s",
  'no characters and private ones': '\u{10ffff}\u{e0001}\u{f0000}\ufffe\uffff\ufffd',
};

const REAL = ['fast-check/README.md', 'ajv/lib/core.ts', 'vitest/LICENSE.md', 'nanoid/README.md'].map(dependency);

const RUNS = [
  'a',
  'A',
  ' ',
  '\n',
  '\t',
  '0',
  '-',
  '=',
  '\0',
  'é',
  '中',
  '😀',
  '\u0301',
  '\ud800',
  'ab',
  ' a',
  '\r\n',
  '\u3000',
];

/** Letters without a pattern, from a linear congruential generator. */
function letters(length: number): string {
  let state = 1;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return String.fromCharCode(97 + ((state >>> 16) % 26));
  }).join('');
}

/** What tiktoken 1.0.22 itself gives, [count, SHA-256 of the JSON of its tokens]; it takes up to 22 s for one of them. */
const SLOW_FOR_TIKTOKEN: Record<EncodingName, [text: string, count: number, tokens: string][]> = {
  o200k_base: [
    ['a'.repeat(96_000), 12_000, 'e7aedd2bb10a376fd8dd47a518bb2531a3cd4dfd2861dcc5fd8fd9adf694f64d'],
    [' '.repeat(96_000) + 'x', 752, '94ff16479d9780755a427b9d288931347900b0f67b5cec888cb30c041f362615'],
    [letters(20_000), 10_389, '3b5cc1303a4b43d6d86f86cc5f770bf499b291b01e6915edcc621c129ff38880'],
    [
      '的一是不了人我在有他这中大来上个国'.repeat(1200),
      18_000,
      '953dbcd2bddd9f7ce3706c3eb9ee40deb3dd531285e3466a52598e600f7da068',
    ],
  ],
  cl100k_base: [
    ['a'.repeat(96_000), 12_000, 'f3b42e3c1e9976aeed199e5fffadd39cb0c11bc61732c39f84efc80ba6f91817'],
    [' '.repeat(96_000) + 'x', 752, 'fa7b1201e36cecd1af5c76ad7cc3b47b62f6f957b677e361a7c8c9a560365e01'],
    [letters(20_000), 10_840, 'a507f3342775b64a6ab9d06a1df791f19d4622c05c3d4611f18e08ffd69c7731'],
    [
      '的一是不了人我在有他这中大来上个国'.repeat(1200),
      20_400,
      'f318b4eb2853f825ce5e9448200b511bb7d26d9ed077756131436ef7b09a3581',
    ],
  ],
};

describe.each(ENCODING_NAMES)('%s', (name) => {
  let encoding: Encoding;
  let tiktoken: Tiktoken;
  beforeAll(async () => {
    encoding = await loadEncoding(name);
    tiktoken = get_encoding(name);
    return () => tiktoken.free();
  });

  function expectTiktokens(text: string): void {
    const tokens = Array.from(tiktoken.encode(text, [], []));
    expect(encoding.encode(text).join(' ')).toBe(tokens.join(' '));
    expect(encoding.count(text)).toBe(tokens.length);
  }

  test.each(Object.entries(TRICKY))('like tiktoken: %s', (_, text) => expectTiktokens(text));

  test('like tiktoken: real text', () => {
    for (const text of REAL) expectTiktokens(text);
  });

  test('like tiktoken: runs', () => {
    for (const unit of RUNS) {
      for (const length of [1, 2, 3, 7, 64, 127, 128, 129, 1025]) {
        expectTiktokens(unit.repeat(length));
        expectTiktokens(`x${unit.repeat(length)}x`);
      }
    }
  });

  test('like tiktoken: one piece around the size of a window', () => {
    for (const length of [4095, 4096, 4097, 8000]) {
      expectTiktokens(letters(length));
      expectTiktokens('a'.repeat(length));
    }
  });

  test('like tiktoken: random text over all planes', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.string({ unit: 'grapheme', maxLength: 8 }),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
      fc.constantFrom(...Object.values(TRICKY).flatMap((text) => text.split(/(?<= )/))),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 30 }), (parts) => expectTiktokens(parts.join(''))),
      { numRuns: 1000 },
    );
  });

  // Contexts in which a letter, a mark, a number, a space and a symbol come to other tokens.
  test('like tiktoken: every character at the edge of a class', () => {
    const classes = characterClasses();
    const edges = Array.from(classes.keys()).filter(
      (at) => classes[at] !== classes[at - 1] || classes[at] !== classes[at + 1],
    );
    expect(edges.length).toBeGreaterThan(4000);
    for (let i = 0; i < edges.length; i += 64) {
      const characters = edges.slice(i, i + 64).map((codePoint) => String.fromCodePoint(codePoint));
      expectTiktokens(characters.map((c) => ` ${c}'s${c}123  ${c}/\n`).join(''));
    }
  });

  test('like tiktoken: long unbroken runs', () => {
    for (const [text, count, tokens] of SLOW_FOR_TIKTOKEN[name]) {
      expect(encoding.count(text)).toBe(count);
      expect(sha256(JSON.stringify(encoding.encode(text)))).toBe(tokens);
    }
  });

  test('tokens spell the text, up to a million characters without a break', () => {
    const spelling = rankBytes(name);
    for (const text of ['a'.repeat(1_000_000), letters(200_000), '我们'.repeat(50_000)]) {
      const spelled = Buffer.concat(encoding.encode(text).map((rank) => spelling[rank]!));
      expect(sha256(spelled)).toBe(sha256(text));
    }
  });

  test('an answer does not depend on the texts before, and keeps after them', () => {
    const first = encoding.encode("it's");
    encoding.count('x'.repeat(70_000));
    encoding.count("zz're");
    expectTiktokens("zz'");
    expectTiktokens("zz'r");
    expect(encoding.encode("it's")).toEqual(first);
    expect(first).toEqual(Array.from(tiktoken.encode("it's", [], [])));
  });

  test('the digest is that of the vocabulary which tiktoken ships', () => {
    const { pat_str: pattern } = shipped[name];
    const packed = rankBytes(name).flatMap((token) => [Buffer.of(token.length), token]);
    const digest = sha256(Buffer.concat([Buffer.from(`${pattern}\n16.0.0\n`), ...packed]));
    expect(encoding.tableDigest).toBe(`sha256:${digest}`);
  });
});

function rankBytes(name: EncodingName): Buffer[] {
  return shipped[name].bpe_ranks
    .split(' ')
    .slice(2)
    .map((word) => Buffer.from(word, 'base64'));
}

test('isEncodingName', () => {
  expect(['o200k_base', 'cl100k_base', 'gpt2', 'toString', '__proto__', ''].map(isEncodingName)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

describe('loading', () => {
  test('is lazy, happens once under concurrent calls, and a failure is not kept', async () => {
    const { default: published } = await vi.importActual<{ default: { bpe_ranks: string } }>(
      'js-tiktoken/ranks/cl100k_base',
    );
    const reads: string[] = [];
    const words = published.bpe_ranks;
    const answers = ['', words.slice(0, words.lastIndexOf(' ')), words];
    vi.resetModules();
    vi.doMock('js-tiktoken/ranks/o200k_base', () => expect.unreachable('o200k_base was not asked for'));
    vi.doMock('js-tiktoken/ranks/cl100k_base', () => ({
      default: {
        get bpe_ranks() {
          reads.push('read');
          return answers[reads.length - 1];
        },
      },
    }));
    const fresh = await import('./encoding.ts');
    expect(reads).toHaveLength(0);
    await expect(fresh.loadEncoding('cl100k_base')).rejects.toThrow('begins with rank 0');
    await expect(fresh.loadEncoding('cl100k_base')).rejects.toThrow('not the published one');
    const loaded = await Promise.all([fresh.loadEncoding('cl100k_base'), fresh.loadEncoding('cl100k_base')]);
    expect(loaded[0]).toBe(loaded[1]);
    expect(await fresh.loadEncoding('cl100k_base')).toBe(loaded[0]);
    expect(reads).toHaveLength(3);
    vi.doUnmock('js-tiktoken/ranks/o200k_base');
    vi.doUnmock('js-tiktoken/ranks/cl100k_base');
  });
});
