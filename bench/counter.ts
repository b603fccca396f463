/**
 * One tokenizer in a process of its own: loads the one it is told, says what that cost, and counts what it is sent. Each
 * is called the way that was found fastest, with special tokens read as plain text.
 */
import { median, timeMs } from './measure.ts';

type Count = (text: string) => number;

const COUNTERS = {
  ours: async (): Promise<Count> => {
    const { loadEncoding } = await import('../src/tokenizer/encoding.ts');
    const encoding = await loadEncoding('o200k_base');
    return (text) => encoding.count(text);
  },
  'gpt-tokenizer': async (): Promise<Count> => {
    const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base');
    const options = { disallowedSpecial: new Set<string>() };
    return (text) => countTokens(text, options);
  },
  'js-tiktoken': async (): Promise<Count> => {
    const { Tiktoken } = await import('js-tiktoken/lite');
    const encoding = new Tiktoken((await import('js-tiktoken/ranks/o200k_base')).default);
    return (text) => encoding.encode(text, [], []).length;
  },
  tiktoken: async (): Promise<Count> => {
    const encoding = (await import('tiktoken')).get_encoding('o200k_base');
    return (text) => encoding.encode_ordinary(text).length;
  },
  'ai-tokenizer': async (): Promise<Count> => {
    const { Tokenizer } = await import('ai-tokenizer');
    const encoding = new Tokenizer(await import('ai-tokenizer/encoding/o200k_base'));
    return (text) => encoding.encode(text, 'all').length;
  },
};

export type CounterName = keyof typeof COUNTERS;
/** Ours is the first. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as CounterName[];

/** What a counter says when it is ready. */
export interface Loaded {
  readonly loadMs: number;
  readonly residentMb: number;
}

/** What it says of each text: milliseconds of the first count, then of later ones of the same text; at last, that it is done. */
export type Said = { coldMs: number; tokens: number } | { warmMs: number } | 'done';

/** It stops early when the texts have taken so long. */
export const ENOUGH_MS = 1_000;
const WARM_RUNS = 3;

function answer(count: Count, texts: readonly string[], say: (said: Said) => void): void {
  const start = performance.now();
  const enough = () => performance.now() - start > ENOUGH_MS;
  for (const text of texts) {
    let tokens = 0;
    const coldMs = timeMs(() => (tokens = count(text)));
    say({ coldMs, tokens });
    const warm: number[] = [];
    do warm.push(timeMs(() => count(text)));
    while (warm.length < WARM_RUNS && !enough());
    say({ warmMs: median(warm)! });
    if (enough()) break;
  }
  say('done');
}

const name = process.argv[2];
if (process.send && name !== undefined && name in COUNTERS) {
  const before = process.memoryUsage.rss();
  const start = performance.now();
  const count = await COUNTERS[name as CounterName]();
  const loaded: Loaded = {
    loadMs: performance.now() - start,
    residentMb: (process.memoryUsage.rss() - before) / 1e6,
  };
  process.on('message', (texts: string[]) => answer(count, texts, (said) => process.send?.(said)));
  process.send(loaded);
}
