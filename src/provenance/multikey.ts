/**
 * Ed25519 keys as Multikey text (CID 1.0 section 2.2.2): base58btc of a two-byte prefix and 32 bytes, and the guard against
 * keys under which one signature fits many messages. It never repeats the text it was given, which may be a secret.
 */
import { fromHex, toHex } from './canonical.ts';

const BASE58_ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const BASE58_DIGIT = new Map(Array.from(BASE58_ALPHABET, (char, digit) => [char, BigInt(digit)]));
/** Base conversion is quadratic, so its input is bounded; the longest that is ever needed is a signature, 64 bytes. */
const MAX_BASE58_CHARS = 128;
const MAX_BASE58_BYTES = 88;

/**
 * Base58 in Bitcoin's alphabet (draft-msporny-base58), without multibase prefix.
 *
 * @throws RangeError for more than 88 bytes.
 */
export function encodeBase58(bytes: Uint8Array): string {
  if (bytes.length > MAX_BASE58_BYTES) throw new RangeError('too many bytes for base58');
  let text = '';
  for (let value = BigInt(`0x0${toHex(bytes)}`); value > 0n; value /= 58n) {
    text = BASE58_ALPHABET.charAt(Number(value % 58n)) + text;
  }
  return '1'.repeat(leading(bytes, 0)) + text;
}

/** The bytes, or undefined where the text is not base58 or longer than 128 characters. Each byte string has one spelling. */
export function decodeBase58(text: string): Uint8Array | undefined {
  if (text.length > MAX_BASE58_CHARS) return undefined;
  let value = 0n;
  for (const char of text) {
    const digit = BASE58_DIGIT.get(char);
    if (digit === undefined) return undefined;
    value = value * 58n + digit;
  }
  const hex = value === 0n ? '' : value.toString(16);
  return fromHex('00'.repeat(leading(text, '1')) + hex.padStart(hex.length + (hex.length % 2), '0'));
}

/** How many items at the start are `item`. */
function leading<Item>(items: ArrayLike<Item>, item: Item): number {
  let count = 0;
  while (count < items.length && items[count] === item) count++;
  return count;
}

export const KEY_BYTES = 32;
/** Multicodec `ed25519-pub` and `ed25519-priv` as varints. */
const PUBLIC_PREFIX = [0xed, 0x01];
const SECRET_PREFIX = [0x80, 0x26];

export type MultikeyFailure =
  | 'not_base58btc'
  /** A secret stands where a public key belongs, or the other way round. */
  | 'secret_key'
  | 'public_key'
  | 'not_ed25519'
  | 'wrong_length'
  /** See `isSafePublicKey`. */
  | 'unsafe_key';

export type DecodedKey =
  | { readonly ok: true; readonly key: Uint8Array }
  | { readonly ok: false; readonly reason: MultikeyFailure };

/** `publicKeyMultibase` of 32 bytes: `z6Mk...`, 48 characters. */
export function encodePublicKey(publicKey: Uint8Array): string {
  return encode(PUBLIC_PREFIX, publicKey);
}

/** `secretKeyMultibase` of a 32-byte seed: `z3u2...`. */
export function encodeSecretKey(seed: Uint8Array): string {
  return encode(SECRET_PREFIX, seed);
}

/** The 32 bytes of a `publicKeyMultibase` that is safe to verify with. */
export function decodePublicKey(multibase: unknown): DecodedKey {
  const decoded = decode(multibase, PUBLIC_PREFIX);
  return decoded.ok && !isSafePublicKey(decoded.key) ? refuse('unsafe_key') : decoded;
}

/** The 32-byte seed of a `secretKeyMultibase`. */
export function decodeSecretKey(multibase: unknown): DecodedKey {
  return decode(multibase, SECRET_PREFIX);
}

function encode(prefix: readonly number[], key: Uint8Array): string {
  if (key.length !== KEY_BYTES) throw new RangeError(`an Ed25519 key has ${KEY_BYTES} bytes`);
  return `z${encodeBase58(Uint8Array.of(...prefix, ...key))}`;
}

function decode(multibase: unknown, prefix: readonly number[]): DecodedKey {
  const bytes = typeof multibase === 'string' && multibase.startsWith('z') && decodeBase58(multibase.slice(1));
  if (!bytes) return refuse('not_base58btc');
  const has = (expected: readonly number[]) => expected.every((byte, index) => bytes[index] === byte);
  if (!has(prefix)) {
    if (has(SECRET_PREFIX)) return refuse('secret_key');
    return refuse(has(PUBLIC_PREFIX) ? 'public_key' : 'not_ed25519');
  }
  const key = bytes.slice(prefix.length);
  return key.length === KEY_BYTES ? { ok: true, key } : refuse('wrong_length');
}

const refuse = (reason: MultikeyFailure): DecodedKey => ({ ok: false, reason });

/** 2^255 - 19, the order of the field. */
const FIELD_ORDER = 2n ** 255n - 19n;
const SIGN_BIT = 0x80;

/**
 * The y coordinates of the eight points of small order (Chalkias, Garillot, Nikolaenko: Taming the many EdDSAs, 2020):
 * 0, 1, -1 and the two of order 8.
 */
const SMALL_ORDER_Y = new Set([
  0n,
  1n,
  FIELD_ORDER - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

/**
 * False for keys of the wrong length, of small order, or spelled non-canonically (y >= 2^255 - 19). OpenSSL takes them,
 * and whoever holds one has signatures that fit messages he never saw.
 */
export function isSafePublicKey(publicKey: Uint8Array): boolean {
  if (publicKey.length !== KEY_BYTES) return false;
  const y = littleEndian(publicKey.map((byte, index) => (index === KEY_BYTES - 1 ? byte & ~SIGN_BIT : byte)));
  return y < FIELD_ORDER && !SMALL_ORDER_Y.has(y);
}

/** The number that bytes stand for, least significant first. */
export function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x0${toHex(bytes.toReversed())}`);
}
