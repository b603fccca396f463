/**
 * Exact token counts by the encodings of OpenAI's models: the numbers that tiktoken gives, for any string, in time that
 * grows with the length only. The one file of this room that loads anything, and it refuses any vocabulary but the
 * published one.
 */
import { characterClasses, UNICODE_VERSION } from './character-class.ts';
import { createMerge } from './merge.ts';
import { decodeRanks, hashOf, indexRanks, NO_RANK, rankOf } from './rank-table.ts';
import type { RankTable } from './rank-table.ts';
import { remembering } from './remember.ts';
import { CL100K_PATTERN, cl100kPieceEnd, classify, O200K_PATTERN, o200kPieceEnd } from './split.ts';
import type { PieceEnd } from './split.ts';

export const ENCODING_NAMES = ['o200k_base', 'cl100k_base'] as const;
export type EncodingName = (typeof ENCODING_NAMES)[number];

export function isEncodingName(name: string): name is EncodingName {
  return ENCODING_NAMES.some((known) => known === name);
}

/**
 * Text to tokens. Total and deterministic: no string throws, the runtime's Unicode version does not matter. The spelling
 * of a special token such as `<|endoftext|>` is plain text, and a lone surrogate counts as U+FFFD.
 */
export interface Encoding {
  readonly name: EncodingName;
  /**
   * `sha256:` and 64 hex digits: the SHA-256 of everything that decides a count. That is, in UTF-8, the splitting pattern
   * and the version of Unicode that it is read by, a line feed after each; then for each rank from 0 upwards one byte
   * with the token's length, and the token.
   */
  readonly tableDigest: string;
  /** How many tokens `text` is; 0 for the empty string. */
  count(text: string): number;
  /** The tokens of `text` by rank, in order. */
  encode(text: string): number[];
}

interface Definition {
  readonly pattern: string;
  readonly pieceEnd: PieceEnd;
  readonly tableDigest: string;
  /** The rank text, of the form that `decodeRanks` describes. */
  readonly ranks: () => Promise<string>;
}

const DEFINITIONS: Readonly<Record<EncodingName, Definition>> = {
  o200k_base: {
    pattern: O200K_PATTERN,
    pieceEnd: o200kPieceEnd,
    tableDigest: 'sha256:9c8e47f721f3179d3e2ebee4ed8bb38d4d68d8e0e0d932c6cf04b060810cfec0',
    ranks: async () => (await import('js-tiktoken/ranks/o200k_base')).default.bpe_ranks,
  },
  cl100k_base: {
    pattern: CL100K_PATTERN,
    pieceEnd: cl100kPieceEnd,
    tableDigest: 'sha256:83cb9eeb4258ee641630200a5b506cfb2881c4349bb182dbcac61152efee94bd',
    ranks: async () => (await import('js-tiktoken/ranks/cl100k_base')).default.bpe_ranks,
  },
};

const encodings = new Map<EncodingName, Promise<Encoding>>();

/**
 * Loads an encoding the first time it is asked for, some 25 MB and 60 ms for o200k_base, and keeps it. A failed load is not
 * kept: the next call tries again.
 *
 * @throws RangeError if the installed vocabulary is not the one with the known digest.
 */
export function loadEncoding(name: EncodingName): Promise<Encoding> {
  let encoding = encodings.get(name);
  if (encoding === undefined) {
    encoding = load(name);
    encoding.catch(() => encodings.delete(name));
    encodings.set(name, encoding);
  }
  return encoding;
}

async function load(name: EncodingName): Promise<Encoding> {
  const { pattern, pieceEnd, tableDigest, ranks } = DEFINITIONS[name];
  const reading = ranks();
  // Made while the vocabulary is read.
  const classOf = characterClasses();
  const vocabulary = decodeRanks(await reading);
  const digest = sha256(`${pattern}\n${UNICODE_VERSION}\n`, vocabulary.packed);
  const tokenize = createTokenizer(indexRanks(vocabulary), classOf, pieceEnd);
  if ((await digest) !== tableDigest)
    throw new RangeError(`the installed ${name} vocabulary is not the published one, its digest is ${await digest}`);
  return {
    name,
    tableDigest,
    count: (text) => tokenize(text).length,
    encode: (text) => Array.from(tokenize(text)),
  };
}

async function sha256(header: string, body: Uint8Array): Promise<string> {
  const head = new TextEncoder().encode(header);
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', whole));
  return `sha256:${Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** The most bytes of UTF-8 that one UTF-16 code unit comes to. */
const UTF8_BYTES_PER_UNIT = 3;
/** Texts up to this length share working memory, about 1.2 MB; a longer one gets its own. */
const SHARED_TEXT_UNITS = 65_536;

/** The result is a view into working memory: read it before the next call. */
function createTokenizer(table: RankTable, classOf: Uint8Array, pieceEnd: PieceEnd): (text: string) => Int32Array {
  const merge = remembering(createMerge(table));
  const utf8 = new TextEncoder();
  const shared = workspace(SHARED_TEXT_UNITS);

  return function tokenize(text) {
    const { bytes, classes, ranks } = text.length <= SHARED_TEXT_UNITS ? shared : workspace(text.length);
    const input = { bytes, classes, end: utf8.encodeInto(text, bytes).written };
    classify(classOf, input);
    let count = 0;
    for (let start = 0; start < input.end;) {
      const end = pieceEnd(input, start);
      const hash = hashOf(bytes, start, end);
      const rank = rankOf(table, hash, bytes, start, end);
      if (rank === NO_RANK) count = merge(hash, bytes, start, end, ranks, count);
      else ranks[count++] = rank;
      start = end;
    }
    return ranks.subarray(0, count);
  };
}

function workspace(units: number) {
  const capacity = units * UTF8_BYTES_PER_UNIT + 1;
  return { bytes: new Uint8Array(capacity), classes: new Uint8Array(capacity), ranks: new Int32Array(capacity) };
}
