/**
 * JWS Compact Serialization (RFC 7515 section 7.1) by Ed25519 (RFC 8037), and the seeds of keys that must not be the credential's.
 * It signs what it is given and verifies nothing. No I/O, no clock; keys are arguments.
 */
import { canonicalJson, toBase64Url, type JsonObject } from './canonical.ts';
import type { Signer } from './ed25519.ts';
import { KEY_BYTES } from './multikey.ts';

export interface JwsKey {
  /** DID URL of the key. */
  readonly kid: string;
  readonly signer: Signer;
}

/**
 * Signs the RFC 8785 JSON of `payload`; header `alg` and `kid`. The same payload and key always give the same text.
 *
 * @throws TypeError for a payload that has no canonical JSON.
 */
export function signJson(payload: JsonObject, { kid, signer }: JwsKey): Promise<string> {
  return compactJws(JSON.stringify({ alg: 'EdDSA', kid }), canonicalJson(payload), signer);
}

/** `header` is JSON as it goes into the JWS. */
export async function compactJws(header: string, payload: string, signer: Signer): Promise<string> {
  const signingInput = `${encoded(header)}.${encoded(payload)}`;
  return `${signingInput}.${toBase64Url(await signer.sign(utf8(signingInput)))}`;
}

const utf8 = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const encoded = (text: string): string => toBase64Url(utf8(text));

/** HKDF-SHA-256 (RFC 5869) without salt: another key from the same secret, from which neither the secret nor a third key follows. */
export async function deriveSeed(seed: Uint8Array, purpose: string): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey('raw', new Uint8Array(seed), 'HKDF', false, ['deriveBits']);
  const info = utf8(`context-evidence-kit/v1/${purpose}`);
  const parameters = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, KEY_BYTES * 8));
}
