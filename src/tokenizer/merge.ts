/**
 * Byte pair encoding of one piece of text that is no token itself: of all neighbours whose bytes together are a token,
 * those with the lowest rank become one, from the left, until none are left. O(n log n) at worst and linear in practice;
 * no allocation while it merges.
 */
import { extendHash, HASH_STEP, NO_RANK, rankOf, scatter } from './rank-table.ts';
import type { RankTable } from './rank-table.ts';

/**
 * Long pieces are merged by windows of this size: the working arrays then stay in the processor's cache, and time grows
 * with the length only.
 *
 * Why that is exact: let two overlapping stretches of bytes, each merged alone, both contain the same token. Follow the
 * first up to it and the second from it on. Then any two neighbours are neighbours in one of the two stretches. Merging
 * the whole picks, among the pairs of that stretch, the same pairs in the same order as merging it alone, as long as
 * nothing has crossed a token's border; and the first pair to cross one would have crossed it there too. So the joined
 * tokens are those of the whole. The next window begins at a token of the joined ones, so that the token which both must
 * contain is its first; if it is another one, the piece starts over with windows of twice the size.
 */
const WINDOW_BYTES = 4096;

/** Where a window is joined to the next: far enough from its end for the tokens there to be the final ones, mostly. */
const JOINT = 7 / 8;

/**
 * What two tokens come to is remembered, each entry until another pair falls there: few pairs make up most of a text, and
 * a look-up in the vocabulary waits for memory several times. 512 KiB.
 */
const PAIR_MEMORY_BITS = 15;
/** Left rank, right rank, rank of both together; the fourth is free. */
const PAIR_INTS = 4;

const NO_TEXT = new Uint8Array(0);

/**
 * Writes the ranks of `text[from .. to)` into `out` from `outAt` on and returns the position behind them.
 * There are never more tokens than bytes.
 */
export type Merge = (text: Uint8Array, from: number, to: number, out: Int32Array, outAt: number) => number;

/**
 * A merge over `table` with working memory of its own, about 28 bytes for each byte of a window, so one merge must not run
 * inside another.
 *
 * @param windowBytes the first window of a piece; more than eight times the longest token.
 */
export function createMerge(table: RankTable, windowBytes = WINDOW_BYTES): Merge {
  const { longest } = table;
  const byteRanks = Int32Array.from({ length: 256 }, (_, byte) =>
    rankOf(table, extendHash(0, byte), Uint8Array.of(byte), 0, 1),
  );
  const stepPowers = new Int32Array(longest + 1);
  stepPowers[0] = 1;
  for (let i = 1; i <= longest; i++) stepPowers[i] = Math.imul(stepPowers[i - 1]!, HASH_STEP);

  // The window is text[base .. base + length). It is cut into parts; a part is known by where it starts in the window.
  let text: Uint8Array = NO_TEXT;
  let base = 0;
  let length = 0;
  /** Hash of the first i bytes of the window. */
  const hashes = new Int32Array(windowBytes + 1);
  /** Where the part behind this one starts, or `length`. */
  const next = new Int32Array(windowBytes + 1);
  /** Where the part before this one starts, or -1. */
  const previous = new Int32Array(windowBytes + 1);
  /** The part's own rank. */
  const ranks = new Int32Array(windowBytes + 1);
  /**
   * From `leaves` on, the rank of the part at that place and the next one together. Below that, the lower one of places
   * 2i and 2i + 1, so that the lowest of all is at place 1.
   */
  const lowest = new Int32Array(2 * leavesFor(windowBytes));
  let leaves = 0;
  const memory = new Int32Array(PAIR_INTS << PAIR_MEMORY_BITS).fill(-1);

  return function merge(source, from, to, out, outAt) {
    text = source;
    length = 0;
    let count = outAt;
    mergeWindow(from, Math.min(from + windowBytes, to));
    while (base + length < to) {
      const start = base;
      let joint = 0;
      for (; joint < windowBytes * JOINT; joint = next[joint]!) out[count++] = ranks[joint]!;
      const jointRank = ranks[joint]!;
      mergeWindow(start + joint, Math.min(start + joint + windowBytes, to));
      if (ranks[0] !== jointRank) return createMerge(table, 2 * windowBytes)(source, from, to, out, outAt);
    }
    for (let part = 0; part < length; part = next[part]!) out[count++] = ranks[part]!;
    text = NO_TEXT;
    return count;
  };

  function mergeWindow(from: number, to: number): void {
    const repeated = to - from === length && sameBytes(from);
    base = from;
    length = to - from;
    if (repeated) return;
    for (let i = 0; i < length; i++) {
      const byte = text[base + i]!;
      hashes[i + 1] = extendHash(hashes[i]!, byte);
      ranks[i] = byteRanks[byte]!;
      next[i] = i + 1;
      previous[i + 1] = i;
    }
    previous[0] = -1;
    leaves = leavesFor(length);
    for (let i = 0; i < length; i++) lowest[leaves + i] = pairRank(i);
    lowest.fill(NO_RANK, leaves + length, 2 * leaves);
    for (let i = leaves - 1; i > 0; i--) lowest[i] = lower(lowest[2 * i]!, lowest[2 * i + 1]!);
    for (let rank = lowest[1]!; rank !== NO_RANK; rank = lowest[1]!) {
      let place = 1;
      while (place < leaves) place = 2 * place + isLower(rank, lowest[2 * place]!);
      join(place - leaves, rank);
    }
  }

  /** Whether the window, moved to `from`, holds the bytes that it holds now: so it is in a run of one character. */
  function sameBytes(from: number): boolean {
    for (let i = 0; i < length; i++) if (text[from + i] !== text[base + i]) return false;
    return true;
  }

  function join(left: number, rank: number): void {
    const right = next[left]!;
    const after = next[right]!;
    ranks[left] = rank;
    next[left] = after;
    previous[after] = left;
    setPair(right, NO_RANK);
    setPair(left, pairRank(left));
    if (left > 0) setPair(previous[left]!, pairRank(previous[left]!));
  }

  function setPair(left: number, rank: number): void {
    let place = leaves + left;
    lowest[place] = rank;
    for (place >>= 1; place > 0; place >>= 1) {
      const lowestBelow = lower(lowest[2 * place]!, lowest[2 * place + 1]!);
      if (lowest[place] === lowestBelow) return;
      lowest[place] = lowestBelow;
    }
  }

  /** The rank of the part at `left` and the next one together. */
  function pairRank(left: number): number {
    const right = next[left]!;
    if (right >= length) return NO_RANK;
    const leftRank = ranks[left]!;
    const rightRank = ranks[right]!;
    const hash = scatter(extendHash(leftRank, rightRank));
    const at = (hash >>> (32 - PAIR_MEMORY_BITS)) * PAIR_INTS;
    if (memory[at] === leftRank && memory[at + 1] === rightRank) return memory[at + 2]!;
    const rank = windowRank(left, next[right]!);
    memory[at] = leftRank;
    memory[at + 1] = rightRank;
    memory[at + 2] = rank;
    return rank;
  }

  function windowRank(from: number, to: number): number {
    if (to - from > longest) return NO_RANK;
    const hash = (hashes[to]! - Math.imul(hashes[from]!, stepPowers[to - from]!)) | 0;
    return rankOf(table, hash, text, base + from, base + to);
  }
}

/** A power of two. */
function leavesFor(length: number): number {
  return 1 << (32 - Math.clz32(length - 1));
}

// Without branches, which no processor could foresee here. Ranks are not negative, so their difference is an Int32.

function lower(a: number, b: number): number {
  const over = a - b;
  return a - (over & ~(over >> 31));
}

/** 1 or 0. */
function isLower(a: number, b: number): number {
  return (a - b) >>> 31;
}
