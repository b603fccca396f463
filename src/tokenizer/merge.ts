/**
 * Byte pair encoding of one piece of text that is no token itself: of all neighbours whose bytes together are a token,
 * those with the lowest rank become one, from the left, until none are left. O(n log n) at worst and linear in practice;
 * no allocation while it merges.
 */
import { extendHash, HASH_STEP, NO_RANK, rankOf } from './rank-table.ts';
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

/** Working memory for a longer window than this is not kept after use; it is about 36 bytes for each byte of text. */
const KEPT_WINDOW_BYTES = 16 * WINDOW_BYTES;

/** A pair's key in the heap is rank * RANK_UNIT + position: lowest rank first, then leftmost. Exact, being below 2^53. */
const RANK_UNIT = 2 ** 32;

const NO_TEXT = new Uint8Array(0);

/**
 * Writes the ranks of `text[from .. to)` into `out` from `outAt` on and returns the position behind them.
 * There are never more tokens than bytes.
 */
export type Merge = (text: Uint8Array, from: number, to: number, out: Int32Array, outAt: number) => number;

/**
 * A merge over `table` with working memory of its own, so one merge must not run inside another.
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
  let capacity = 0;
  /** Hash of the first i bytes of the window. */
  let hashes = new Int32Array(0);
  /** Where the part behind this one starts, or `length`. */
  let next = new Int32Array(0);
  /** Where the part before this one starts, or -1. */
  let previous = new Int32Array(0);
  /** The part's own rank. */
  let ranks = new Int32Array(0);
  /** The rank of this part and the next one together. */
  let pairs = new Int32Array(0);
  let heap = new Float64Array(0);
  let heapSize = 0;

  return function merge(source, from, to, out, outAt) {
    text = source;
    length = 0;
    let size = windowBytes;
    let count = outAt;
    mergeWindow(from, Math.min(from + size, to));
    while (base + length < to) {
      const start = base;
      let joint = 0;
      for (; joint < size * JOINT; joint = next[joint]!) out[count++] = ranks[joint]!;
      const jointRank = ranks[joint]!;
      mergeWindow(start + joint, Math.min(start + joint + size, to));
      if (ranks[0] === jointRank) continue;
      size *= 2;
      count = outAt;
      mergeWindow(from, Math.min(from + size, to));
    }
    for (let part = 0; part < length; part = next[part]!) out[count++] = ranks[part]!;
    text = NO_TEXT;
    if (capacity > KEPT_WINDOW_BYTES) allocate(windowBytes);
    return count;
  };

  function allocate(bytes: number): void {
    capacity = bytes;
    hashes = new Int32Array(bytes + 1);
    next = new Int32Array(bytes + 1);
    previous = new Int32Array(bytes + 1);
    ranks = new Int32Array(bytes + 1);
    pairs = new Int32Array(bytes + 1);
    // Fewer than one pair for each byte at the start; a merge takes one out and puts at most two in.
    heap = new Float64Array(2 * bytes);
  }

  function mergeWindow(from: number, to: number): void {
    const repeated = to - from === length && sameBytes(from);
    base = from;
    length = to - from;
    if (repeated) return;
    if (length > capacity) allocate(length);
    for (let i = 0; i < length; i++) {
      const byte = text[base + i]!;
      hashes[i + 1] = extendHash(hashes[i]!, byte);
      ranks[i] = byteRanks[byte]!;
      next[i] = i + 1;
      previous[i + 1] = i;
    }
    previous[0] = -1;
    heapSize = 0;
    for (let i = 0; i < length; i++) setPair(i);
    while (heapSize > 0) {
      const key = pop();
      // The position is the low 32 bits. A pair that has changed since is in the heap again under its new rank.
      const left = key >>> 0;
      const rank = pairs[left]!;
      if (rank * RANK_UNIT + left === key) join(left, rank);
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
    pairs[right] = NO_RANK;
    setPair(left);
    if (left > 0) setPair(previous[left]!);
  }

  function setPair(left: number): void {
    const right = next[left]!;
    const rank = right < length ? windowRank(left, next[right]!) : NO_RANK;
    pairs[left] = rank;
    if (rank !== NO_RANK) push(rank * RANK_UNIT + left);
  }

  function windowRank(from: number, to: number): number {
    if (to - from > longest) return NO_RANK;
    const hash = (hashes[to]! - Math.imul(hashes[from]!, stepPowers[to - from]!)) | 0;
    return rankOf(table, hash, text, base + from, base + to);
  }

  function push(key: number): void {
    let at = heapSize++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]! < key) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = key;
  }

  function pop(): number {
    const top = heap[0]!;
    const key = heap[--heapSize]!;
    let at = 0;
    for (let child = 1; child < heapSize; child = 2 * at + 1) {
      if (child + 1 < heapSize && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! > key) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = key;
    return top;
  }
}
