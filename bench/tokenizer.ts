/** Counting against the two peers that ship here: tiktoken (wasm) and js-tiktoken. A peer that would take minutes is left out of a row. */
import { getEncoding } from 'js-tiktoken';
import { get_encoding } from 'tiktoken';
import { loadEncoding } from '../src/tokenizer/encoding.ts';
import { medianMs, row } from './measure.ts';

const TEXTS: Readonly<Record<string, { text: string; peers: boolean }>> = {
  'English, 100,000 characters': {
    text: 'The quick brown fox jumps over the lazy dog, and the agent reads on. '.repeat(1_450),
    peers: true,
  },
  'JSON, 100,000 characters': {
    text: JSON.stringify(Array.from({ length: 2_000 }, (_, id) => ({ id, name: `item ${id}`, ok: true }))),
    peers: true,
  },
  '4,000 x "a"': { text: 'a'.repeat(4_000), peers: true },
  '96,000 x "a"': { text: 'a'.repeat(96_000), peers: false },
  '1,000,000 x "a"': { text: 'a'.repeat(1_000_000), peers: false },
};

export async function benchTokenizer(): Promise<void> {
  const start = performance.now();
  const ours = await loadEncoding('o200k_base');
  const load = performance.now() - start;
  const peerStart = performance.now();
  const js = getEncoding('o200k_base');
  row('load o200k_base', load, { name: 'js-tiktoken', ms: performance.now() - peerStart });
  const wasm = get_encoding('o200k_base');
  for (const [name, { text, peers }] of Object.entries(TEXTS)) {
    const own = await medianMs(() => ours.count(text), 5);
    row(name, own);
    if (!peers) continue;
    const others = { tiktoken: () => wasm.encode(text, [], []), 'js-tiktoken': () => js.encode(text, [], []) };
    for (const [peer, encode] of Object.entries(others)) {
      row(`  ${peer}`, await medianMs(encode, 3), { name: 'ours', ms: own });
    }
  }
  wasm.free();
}
