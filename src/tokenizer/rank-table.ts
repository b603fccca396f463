/**
 * The vocabulary of an encoding as typed arrays: decoding the published rank text, and finding a byte string in it.
 * No I/O; it refuses a rank text that is not one unbroken list of base64 tokens from rank 0 upwards.
 */

/** What {@link rankOf} gives for bytes that are no token: a number above every rank. */
export const NO_RANK = 0x7fffffff;

/** The tokens of a vocabulary. A rank is a token's number; the lower it is, the earlier its bytes are merged. */
export interface Vocabulary {
  /** For each rank from 0 upwards: one byte with the token's length, then the token. */
  readonly packed: Uint8Array;
  /** Where each token begins in `packed`, behind its length. */
  readonly starts: Int32Array;
}

/** A vocabulary with a hash index over it. */
export interface RankTable extends Vocabulary {
  /** Length of the longest token in bytes. */
  readonly longest: number;
  /**
   * Open addressing: the high bits of a mixed hash say where a search begins. A slot holds rank + 1 in its low
   * `rankBits` bits and the low bits of the mixed hash above them; 0 is an empty slot.
   */
  readonly slots: Int32Array;
  readonly rankBits: number;
}

/**
 * Step of the polynomial hash modulo 2^32. A polynomial, because then the hash of any substring follows from two prefix
 * hashes; the step itself is the 32-bit FNV prime.
 */
export const HASH_STEP = 0x01000193;

/** 2^32 over the golden ratio. */
const GOLDEN = 0x9e3779b1;

/** Carries every bit of a hash into the high bits of a number, which then say where in a table a search begins. */
export function scatter(hash: number): number {
  return Math.imul(hash, GOLDEN);
}

/** The {@link hashOf} a byte string, 0 for the empty one, made longer by one byte. The 1 keeps leading NULs from vanishing. */
export function extendHash(hash: number, byte: number): number {
  return (Math.imul(hash, HASH_STEP) + (byte + 1)) | 0;
}

export function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0;
  for (let i = from; i < to; i++) hash = extendHash(hash, bytes[i]!);
  return hash;
}

/** The rank of `text[from .. to)`, whose hash is `hash`; NO_RANK if that is no token. */
export function rankOf(table: RankTable, hash: number, text: Uint8Array, from: number, to: number): number {
  const { slots, starts, packed, rankBits } = table;
  const mixed = scatter(hash);
  const tag = mixed << rankBits;
  for (let slot = mixed >>> (31 - rankBits); ; slot = (slot + 1) & (slots.length - 1)) {
    const held = slots[slot]!;
    if (held === 0) return NO_RANK;
    const rank = (held ^ tag) - 1;
    if (rank >>> rankBits !== 0) continue;
    let at = starts[rank]!;
    if (packed[at - 1] !== to - from) continue;
    let read = from;
    while (read < to && text[read] === packed[at]) {
      read++;
      at++;
    }
    if (read === to) return rank;
  }
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const PADDING = 0x3d;
const HEADER = '! 0 ';
const SPACE = 0x20;
/** A word of a rank text is at least four base64 characters and a space. */
const SHORTEST_WORD_CHARS = 5;

/**
 * Decodes `! 0 <base64> <base64> ...`, in which the n-th word is the token of rank n, counted from 0.
 *
 * @throws RangeError if the text has another form.
 */
export function decodeRanks(text: string): Vocabulary {
  if (!text.startsWith(HEADER)) throw new RangeError('a rank text begins with rank 0');
  const sextets = new Int8Array(256).fill(-1);
  for (let i = 0; i < ALPHABET.length; i++) sextets[ALPHABET.charCodeAt(i)] = i;
  sextets[PADDING] = 0;

  const source = new TextEncoder().encode(text);
  const packed = new Uint8Array(source.length);
  const starts = new Int32Array(source.length / SHORTEST_WORD_CHARS + 2);
  let size = 0;
  let end = 1;
  starts[0] = end;
  for (let i = HEADER.length; i < source.length; i += 4) {
    const quad =
      (sextets[source[i]!]! << 18) |
      (sextets[source[i + 1]!]! << 12) |
      (sextets[source[i + 2]!]! << 6) |
      sextets[source[i + 3]!]!;
    if (quad < 0 || i + 4 > source.length) throw new RangeError(`character ${i} of the rank text is not base64`);
    packed[end] = quad >> 16;
    packed[end + 1] = quad >> 8;
    packed[end + 2] = quad;
    end += source[i + 2] === PADDING ? 1 : source[i + 3] === PADDING ? 2 : 3;
    if (i + 4 === source.length || source[i + 4] === SPACE) {
      packed[starts[size]! - 1] = end - starts[size]!;
      starts[++size] = ++end;
      i++;
    }
  }
  // What is behind these views was never written to, so it is no memory yet; a copy would be.
  return { packed: packed.subarray(0, end - 1), starts: starts.subarray(0, size) };
}

/** Adds the hash index. */
export function indexRanks({ packed, starts }: Vocabulary): RankTable {
  const rankBits = 32 - Math.clz32(starts.length);
  // Twice as many slots as there can be ranks, so that a search soon meets an empty one.
  const slots = new Int32Array(2 << rankBits);
  let longest = 0;
  for (let rank = 0; rank < starts.length; rank++) {
    const start = starts[rank]!;
    const length = packed[start - 1]!;
    if (length > longest) longest = length;
    const mixed = scatter(hashOf(packed, start, start + length));
    let slot = mixed >>> (31 - rankBits);
    while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
    slots[slot] = (mixed << rankBits) | (rank + 1);
  }
  return { packed, starts, longest, slots, rankBits };
}
