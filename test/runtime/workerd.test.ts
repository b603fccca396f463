/** The tokenizer in workerd, the runtime of Cloudflare Workers: it counts there what it counts in Node, and needs nothing of Node. */
import * as fc from 'fast-check';
import { Miniflare } from 'miniflare';
import { rolldown, type OutputChunk } from 'rolldown';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENCODING_NAMES, loadEncoding, type EncodingName } from '../../src/tokenizer/encoding.ts';
import type { CountRequest } from './count-worker.ts';

const TEXTS = {
  nothing: '',
  'emoji families, flags, keycaps': '👨‍👩‍👧‍👦👩🏽‍🚀🏳️‍🌈🇩🇪1️⃣😀\u200d',
  'stacked marks': 'e\u0301\u0302 \u0301x Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!',
  'Chinese, Japanese, Korean': '我们的目标是让每个人都能用。日本語のテキスト、カタカナ。한국어 텍스트',
  'Thai and Hindi': 'สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง नमस्ते दुनिया',
  'right to left': 'שָׁלוֹם עולם مرحبا بالعالم \u200fabc\u202e',
  'letters of Unicode 16 and of 17': "a\u1c89b \u{10d4a}\u{10d4b}'s \u1c8a's \u{a7ce}\u{a7cf}'s \u{323b0}'s",
  'title case and case that folds away': "ǅǈǋ ªº ʰʷ ﬀﬁ ßẞ İıſ x'ſ 'ſ YOU'RE",
  'lone surrogates': '\ud800 a\udc00b \udfff\ud800\ud83d',
  'special tokens': '<|endoftext|> <|endofprompt|><|fim_prefix|><|im_start|>system<|im_end|>',
  'each kind of space': ' \t\n\v\f\r\u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\u180ex',
  'runs of spaces and line breaks': 'a  b   c\r\n\r\n  f \n \n\tg\t\t \t\n   ',
  'controls and no characters': '\0\0a\0 \u0001\u001b[31m\u007f\u0080\ufffe\uffff\u{10ffff}',
  digits: `${'1234567890'.repeat(1000)} ٣٤٥٦ 𝟙𝟚𝟛𝟜 ½¾ Ⅷ`,
  'one letter, 100,000 times': 'a'.repeat(100_000),
  'one space, 100,000 times': ' '.repeat(100_000),
  'a surrogate without its pair, 70,000 times': '\ud800'.repeat(70_000),
};

let chunks: OutputChunk[];
let miniflare: Miniflare | undefined;
let url: URL;
beforeAll(async () => {
  chunks = await bundle(join(import.meta.dirname, 'count-worker.ts'));
  miniflare = new Miniflare({
    host: '127.0.0.1',
    port: 0,
    // Without it Miniflare would ask the network what `request.cf` is.
    cf: false,
    // No compatibility flag is set: `nodejs_compat` would give the Worker what is Node's.
    compatibilityDate: '2026-04-26',
    modules: chunks.map(({ fileName, code }) => ({ type: 'ESModule', path: fileName, contents: code })),
  });
  url = await miniflare.ready;
});
afterAll(() => miniflare?.dispose());

/** One file, as a deployment is: the vocabularies are inside, each evaluated when it is first asked for. */
async function bundle(input: string): Promise<OutputChunk[]> {
  const build = await rolldown({ input, platform: 'neutral' });
  const { output } = await build.generate({ format: 'esm', codeSplitting: false });
  await build.close();
  return output.filter((file) => file.type === 'chunk');
}

async function countInWorkerd(encoding: EncodingName, texts: readonly string[]): Promise<unknown> {
  const body: CountRequest = { encoding, texts };
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

async function countInNode(encoding: EncodingName, texts: readonly string[]): Promise<number[]> {
  const { count } = await loadEncoding(encoding);
  return texts.map(count);
}

it('the Worker is one file and imports nothing, of Node or of anyone', () => {
  const [worker, ...others] = chunks;
  expect(others).toEqual([]);
  expect(worker?.imports).toEqual([]);
  expect(worker?.dynamicImports.filter((file) => file !== worker.fileName)).toEqual([]);
  expect(worker?.code).not.toMatch(/\bnode:|\bimport\(|\brequire\(/);
});

describe.each(ENCODING_NAMES)('%s counts in workerd as in Node', (name) => {
  it.each(Object.entries(TEXTS))('%s', async (_, text) => {
    expect(await countInWorkerd(name, [text])).toEqual(await countInNode(name, [text]));
  });

  it('random text over all planes', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 50 }), async (texts) => {
        expect(await countInWorkerd(name, texts)).toEqual(await countInNode(name, texts));
      }),
      { numRuns: 50 },
    );
  });

  it('every code point of the planes with characters, between letters, digits and spaces', async () => {
    const pages = Array.from({ length: 0x1100 }, (_, page) => page).filter((page) => page < 0x400 || page >> 8 === 14);
    const texts = pages.map((page) =>
      Array.from({ length: 256 }, (_, low) => ` ${String.fromCodePoint(page * 256 + low)}'s${low}`).join(''),
    );
    expect(await countInWorkerd(name, texts)).toEqual(await countInNode(name, texts));
  });
});
