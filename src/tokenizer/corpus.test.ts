/**
 * Equality with tiktoken on files of this project's own dependencies, whose versions and digests the lock file pins:
 * messages in some sixty locales, source, minified code, JSON, prose. A file that is not compared must be named here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { get_encoding } from 'tiktoken';
import { expect, test } from 'vitest';
import { ENCODING_NAMES, loadEncoding } from './encoding.ts';

const DEPENDENCIES = join(import.meta.dirname, '../../node_modules');
const FOLDERS = [
  'zod/v4/locales', // the same few sentences in every language that zod speaks
  '@adraffy/ens-normalize', // minified code, tables of Unicode
  'ajv', // TypeScript, JavaScript, JSON schemas, source maps
  'fast-check', // one bundle of 390,000 characters
  'oxlint', // 770,000 characters of JSON
];

/** The most text in one message that the operation `count` takes (1 MiB). It also keeps tiktoken's share to seconds. */
const LONGEST_FILE_BYTES = 1_048_576;
const LONGER = ['oxlint/dist/lint.js'];

/** Katakana, the rarest, has 86; all the others have hundreds. */
const LETTERS_PER_SCRIPT = 80;
const SCRIPTS =
  'Arabic Armenian Bengali Cyrillic Devanagari Georgian Greek Gujarati Han Hangul Hebrew Hiragana Kannada Katakana ' +
  'Khmer Latin Tamil Thai';

interface File {
  readonly path: string;
  readonly bytes: Uint8Array;
}

const files: File[] = FOLDERS.flatMap((folder) =>
  readdirSync(join(DEPENDENCIES, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(DEPENDENCIES, path), bytes: readFileSync(path) })),
);
const compared = files
  .filter(({ bytes }) => bytes.length <= LONGEST_FILE_BYTES)
  .map(({ path, bytes }) => ({ path, text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }));

test('the corpus is there, and nothing is left out silently', () => {
  const compares = new Set(compared.map(({ path }) => path));
  expect(files.map(({ path }) => path).filter((path) => !compares.has(path))).toEqual(LONGER);
  expect(compared.length).toBeGreaterThan(700);
  expect(compared.reduce((characters, { text }) => characters + text.length, 0)).toBeGreaterThan(4_800_000);
});

test.each(SCRIPTS.split(' '))('the corpus has text in %s', (script) => {
  const letter = new RegExp(String.raw`\p{Script=${script}}`, 'gu');
  const letters = compared.reduce((count, { text }) => count + (text.match(letter)?.length ?? 0), 0);
  expect(letters).toBeGreaterThan(LETTERS_PER_SCRIPT);
});

test.each(ENCODING_NAMES)('%s: every file as tiktoken has it', async (name) => {
  const encoding = await loadEncoding(name);
  const tiktoken = get_encoding(name);
  const differing = compared.filter(({ text }) => {
    const theirs = tiktoken.encode(text, [], []);
    const ours = encoding.encode(text);
    return (
      encoding.count(text) !== theirs.length ||
      ours.length !== theirs.length ||
      ours.some((rank, i) => rank !== theirs[i])
    );
  });
  tiktoken.free();
  expect(differing.map(({ path }) => path)).toEqual([]);
});
