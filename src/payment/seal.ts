/**
 * Sealing of stored answers: AES-256-GCM under a key that needs the server's secret and the caller's own request, so that
 * neither the operator nor a thief of the store can open one alone. No I/O; the secret is an argument.
 */

import { toHex } from '../provenance/canonical.ts';

/** What only someone who holds the original request can say. */
export interface SealBinding {
  /** `sha256:` digest of the request. */
  readonly requestDigest: string;
  /** The name that the caller gave the call, else the payment's fingerprint, signature included. */
  readonly callerSecret: string;
}

/** What a MAC stands for; the same texts under two purposes give two MACs. */
export type Purpose = 'request' | 'call' | 'probe' | 'identifier' | 'answer' | 'store';

export interface Sealer {
  /** HMAC-SHA-256, hex: equal texts are recognised, guessed ones cannot be tested. */
  mac(purpose: Purpose, ...texts: readonly string[]): Promise<string>;
  seal(plain: Uint8Array<ArrayBuffer>, binding: SealBinding): Promise<Uint8Array>;
  /** The plain bytes, or undefined where the binding is not the one it was sealed under. */
  open(sealed: Uint8Array, binding: SealBinding): Promise<Uint8Array<ArrayBuffer> | undefined>;
}

export const STORE_SECRET_BYTES = 32;
/** NIST SP 800-38D: 96-bit initialisation vectors; each key seals one answer. */
const IV_BYTES = 12;

/** @throws RangeError if the secret is shorter than STORE_SECRET_BYTES. */
export async function createSealer(storeSecret: Uint8Array<ArrayBuffer>): Promise<Sealer> {
  if (storeSecret.length < STORE_SECRET_BYTES)
    throw new RangeError(`the store secret needs ${STORE_SECRET_BYTES} bytes`);
  const root = await crypto.subtle.importKey('raw', storeSecret, 'HKDF', false, ['deriveKey']);
  const macKey = await derive(root, 'request-mac', { name: 'HMAC', hash: 'SHA-256', length: 256 }, ['sign']);

  /** JSON keeps the texts apart: no two lists share one. */
  const mac = async (...texts: readonly string[]): Promise<string> =>
    toHex(new Uint8Array(await crypto.subtle.sign('HMAC', macKey, new TextEncoder().encode(JSON.stringify(texts)))));

  /** The binding goes in as its MAC: HKDF's info is bounded, and a contract wallet's signature can be long. */
  const answerKey = async ({ requestDigest, callerSecret }: SealBinding): Promise<CryptoKey> => {
    const info = `answer/${await mac('answer', requestDigest, callerSecret)}`;
    return derive(root, info, { name: 'AES-GCM', length: 256 }, ['encrypt', 'decrypt']);
  };

  return {
    mac,
    seal: async (plain, binding) => {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await answerKey(binding), plain);
      const out = new Uint8Array(IV_BYTES + sealed.byteLength);
      out.set(iv);
      out.set(new Uint8Array(sealed), IV_BYTES);
      return out;
    },
    open: async (sealed, binding) => {
      const iv = sealed.slice(0, IV_BYTES);
      const key = await answerKey(binding);
      try {
        return new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, sealed.slice(IV_BYTES)));
      } catch {
        return undefined; // the tag does not fit: another request, another payment, or changed bytes
      }
    },
  };
}

/** RFC 5869; `info` keeps the purposes apart. */
function derive(
  root: CryptoKey,
  info: string,
  algorithm: HmacKeyGenParams | AesKeyGenParams,
  usages: KeyUsage[],
): Promise<CryptoKey> {
  const context = new TextEncoder().encode(`context-evidence-kit/v1/${info}`);
  const parameters = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: context };
  return crypto.subtle.deriveKey(parameters, root, algorithm, false, usages);
}
