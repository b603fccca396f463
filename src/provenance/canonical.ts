/**
 * Canonical JSON (RFC 8785), SHA-256 and the digests made of both: the one definition of what is hashed and signed.
 * A value counts as the JSON that `JSON.stringify` would send. No I/O.
 */
import canonicalize from 'canonicalize';

export { isJsonObject, type JsonObject } from '../json.ts';

/**
 * The RFC 8785 text of a value: keys in UTF-16 order, ECMAScript numbers, no whitespace.
 *
 * @throws TypeError where no canonical JSON exists: undefined, NaN, infinities, BigInt, cycles, half surrogate pairs.
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (cause) {
    throw new TypeError('the value has no canonical JSON', { cause });
  }
  if (text === undefined) throw new TypeError('the value has no canonical JSON');
  return text;
}

/** `canonicalJson` for values that nobody has looked at yet: undefined instead of an exception. */
export function canonicalJsonIfAny(value: unknown): string | undefined {
  try {
    return canonicalJson(value);
  } catch {
    return undefined;
  }
}

/** Whether two values are the same JSON. */
export function sameJson(a: unknown, b: unknown): boolean {
  const text = canonicalJsonIfAny(a);
  return text !== undefined && text === canonicalJsonIfAny(b);
}

const utf8 = new TextEncoder();

/** SHA-256 (FIPS 180-4), 32 bytes; a string is hashed as its UTF-8. */
export async function sha256(data: string | Uint8Array): Promise<Uint8Array> {
  const bytes = typeof data === 'string' ? utf8.encode(data) : new Uint8Array(data);
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** `sha256:` and 64 lower-case hex digits of the SHA-256 over the UTF-8 of the canonical JSON. Throws as `canonicalJson`. */
export async function digest(value: unknown): Promise<string> {
  return formatDigest(await sha256(canonicalJson(value)));
}

/** The digest that names a request: what the ledger keys on and what a credential calls `inputDigest`. */
export function requestDigest(operation: string, input: unknown): Promise<string> {
  return digest({ operation, input });
}

/** A 32-byte SHA-256 as `sha256:` and hex. */
export function formatDigest(hash: Uint8Array): string {
  return `sha256:${toHex(hash)}`;
}

/** The 32 bytes of a `sha256:` digest, or undefined where the value is none. */
export function parseDigest(value: unknown): Uint8Array | undefined {
  return typeof value === 'string' && DIGEST.test(value) ? fromHex(value.slice('sha256:'.length)) : undefined;
}

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  let hex = '';
  for (const byte of bytes) hex += byte.toString(16).padStart(2, '0');
  return hex;
}

/** The bytes of an even number of hex digits. The caller vouches for the digits. */
export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, index) =>
    Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16),
  );
}

/** Base64 with padding (RFC 4648 section 4). For digests and keys, not for large data. */
export function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** Base64url without padding (RFC 4648 section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
