/**
 * A merge that remembers pieces: an agent sends the same conversation again and again, and merging is most of the work of
 * counting it. It refuses to grow: no text makes its memory larger, or a piece dearer than a few look-ups and one merge.
 * What it holds is in this process's memory and nowhere else.
 */
import type { Merge } from './merge.ts';
import { scatter } from './rank-table.ts';

/** 4 MiB, real memory only as far as it was written. The pieces of 400,000 characters of Chinese take three of them. */
const ARENA_INTS = 2 ** 20;

/** A longer piece hardly ever comes twice, and would push out many others. 16 KiB. */
const LONGEST_KEPT_BYTES = 2 ** 14;

/** How many slots are searched for a piece. So pieces that were made to collide are forgotten, not searched for. */
const PROBES = 4;

// An entry of the arena: its hash, its length in bytes, its number of tokens; then the tokens; then the bytes.
const HEADER_INTS = 3;
const INT_BYTES = 4;

/** Does what a {@link Merge} does, for a piece whose hash is `hash`. */
export type RememberingMerge = (hash: number, ...piece: Parameters<Merge>) => number;

/**
 * `merge` for a piece that is not remembered. When the arena is full, everything in it is forgotten.
 *
 * @param arenaInts a power of two, with room for a few pieces of the greatest length that is kept.
 */
export function remembering(merge: Merge, arenaInts = ARENA_INTS): RememberingMerge {
  const arena = new Int32Array(arenaInts);
  const arenaBytes = new Uint8Array(arena.buffer);
  /** Open addressing; where an entry begins in the arena, 0 for none. Of ordinary text the arena holds half as many. */
  const slots = new Int32Array(arenaInts / 8);
  const firstSlotShift = Math.clz32(slots.length) + 1;
  let top = 1;

  return function mergeOrRecall(hash, text, from, to, out, outAt) {
    const length = to - from;
    if (length > LONGEST_KEPT_BYTES) return merge(text, from, to, out, outAt);
    // There are never more tokens than bytes.
    if (top + HEADER_INTS + 2 * length > arenaInts) {
      slots.fill(0);
      top = 1;
    }
    let slot = scatter(hash) >>> firstSlotShift;
    for (let probe = 1; slots[slot] !== 0; probe++) {
      const entry = slots[slot]!;
      const tokens = entry + HEADER_INTS;
      const bytes = tokens + arena[entry + 2]!;
      if (arena[entry] === hash && arena[entry + 1] === length && isAt(bytes * INT_BYTES, text, from, to)) {
        for (let i = tokens; i < bytes; i++) out[outAt++] = arena[i]!;
        return outAt;
      }
      if (probe === PROBES) break;
      slot = (slot + 1) & (slots.length - 1);
    }
    const end = merge(text, from, to, out, outAt);
    // The slot is empty, or it is the last one searched and holds something older.
    slots[slot] = top;
    arena[top++] = hash;
    arena[top++] = length;
    arena[top++] = end - outAt;
    for (let i = outAt; i < end; i++) arena[top++] = out[i]!;
    for (let i = 0; i < length; i++) arenaBytes[top * INT_BYTES + i] = text[from + i]!;
    top += Math.ceil(length / INT_BYTES);
    return end;
  };

  function isAt(at: number, text: Uint8Array, from: number, to: number): boolean {
    while (from < to && text[from] === arenaBytes[at]) {
      from++;
      at++;
    }
    return from === to;
  }
}
