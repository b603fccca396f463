/**
 * DIDs (DID 1.0), their documents and the look-up of a verification method (CID 1.0 section 3.3). Documents are given,
 * never fetched, and a key counts only if everything about it is in order.
 */
import { canonicalJson, isJsonObject, sha256, toBase64Url, type JsonObject } from './canonical.ts';
import { parseDateTimeStamp } from './date-time.ts';
import { decodePublicKey, encodePublicKey, type MultikeyFailure } from './multikey.ts';

/** A DID of any method, without path, query or fragment (DID 1.0 section 3.1). */
export const DID = /^did:[a-z0-9]+:(?:[\w.%-]*:)*[\w.%-]+$/;

export type VerificationMethod = {
  readonly id: string;
  readonly type: 'Multikey';
  readonly controller: string;
  readonly publicKeyMultibase: string;
  /** From then on no proof of this key holds, however old: for a compromise only. */
  readonly revoked?: string;
  /** From then on no proof of this key holds either, so a key that merely retires has none. */
  readonly expires?: string;
};

/** A key that signs JWS (CID 1.0 section 2.2.3). No proof of a credential can name it: those take a Multikey. */
export type JsonWebKeyMethod = {
  readonly id: string;
  readonly type: 'JsonWebKey';
  readonly controller: string;
  readonly publicKeyJwk: Ed25519Jwk;
};

type Ed25519Jwk = { readonly crv: 'Ed25519'; readonly kty: 'OKP'; readonly x: string };

export type DidDocument = {
  readonly '@context': readonly string[];
  readonly id: string;
  readonly verificationMethod: readonly (VerificationMethod | JsonWebKeyMethod)[];
  /** Ids of the methods that may sign in the issuer's name, each what its type is for; retired keys stay listed. */
  readonly assertionMethod: readonly string[];
};

const DID_CONTEXTS = ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/multikey/v1'];
const JWK_CONTEXT = 'https://w3id.org/security/jwk/v1';
const DID_KEY_PREFIX = 'did:key:';

/** `did:key:z6Mk...`: a DID that is its own key and has no more to tell. */
export function didKey(publicKey: Uint8Array): string {
  return DID_KEY_PREFIX + encodePublicKey(publicKey);
}

/** The public key that a verification method of the form `did:key:X#X` carries in itself. */
export function didKeyPublicKey(methodId: string): Uint8Array | undefined {
  const [did = '', fragment] = methodId.split('#', 2);
  if (!did.startsWith(DID_KEY_PREFIX) || did.slice(DID_KEY_PREFIX.length) !== fragment) return undefined;
  const decoded = decodePublicKey(fragment);
  return decoded.ok ? decoded.key : undefined;
}

/** The id of a key under a DID: for did:key the key itself, else its JWK thumbprint (RFC 7638), which is never reused. */
export async function verificationMethodId(did: string, publicKey: Uint8Array): Promise<string> {
  if (did.startsWith(DID_KEY_PREFIX)) return `${did}#${encodePublicKey(publicKey)}`;
  return `${did}#${toBase64Url(await sha256(canonicalJson(jwkOf(publicKey))))}`;
}

const jwkOf = (publicKey: Uint8Array): Ed25519Jwk => ({ crv: 'Ed25519', kty: 'OKP', x: toBase64Url(publicKey) });

export interface DidKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** A dateTimeStamp; see `VerificationMethod`. */
  readonly revoked?: string;
}

/**
 * The document of a DID with these keys, the signing one and the retired ones alike, and with `jwsKeys`, which sign JWS and no
 * credentials.
 */
export async function didDocument(
  did: string,
  keys: readonly DidKey[],
  jwsKeys: readonly Uint8Array[] = [],
): Promise<DidDocument> {
  const multikeys = keys.map(async ({ publicKey, ...status }): Promise<VerificationMethod> => ({
    id: await verificationMethodId(did, publicKey),
    type: 'Multikey',
    controller: did,
    publicKeyMultibase: encodePublicKey(publicKey),
    ...status,
  }));
  const jwks = jwsKeys.map(async (publicKey): Promise<JsonWebKeyMethod> => ({
    id: await verificationMethodId(did, publicKey),
    type: 'JsonWebKey',
    controller: did,
    publicKeyJwk: jwkOf(publicKey),
  }));
  const methods = await Promise.all([...multikeys, ...jwks]);
  return {
    '@context': jwks.length > 0 ? [...DID_CONTEXTS, JWK_CONTEXT] : DID_CONTEXTS,
    id: did,
    verificationMethod: methods,
    assertionMethod: methods.map((method) => method.id),
  };
}

export type MethodFailure =
  /** The id is not `document.id` and a fragment. */
  | { readonly reason: 'id_mismatch' }
  /** Not in `verificationMethod`, or there more than once. */
  | { readonly reason: 'not_listed' }
  | { readonly reason: 'wrong_type' }
  | { readonly reason: 'wrong_controller' }
  | { readonly reason: 'not_assertion_method' }
  | { readonly reason: 'bad_key'; readonly key: MultikeyFailure }
  /** The key is known all the same, so that a signature can still be told from a forgery. */
  | { readonly reason: 'revoked' | 'expired'; readonly publicKey: Uint8Array };

export type MethodLookup =
  | { readonly ok: true; readonly publicKey: Uint8Array }
  | ({ readonly ok: false } & MethodFailure);

/**
 * The key with which `id` may sign credentials in the name of the document's subject at `now`. The document is any JSON,
 * since it may come from a file.
 */
export function verificationMethodOf(document: JsonObject, id: string, now: Date): MethodLookup {
  const { id: did, verificationMethod, assertionMethod } = document;
  if (typeof did !== 'string' || !id.startsWith(`${did}#`)) return { ok: false, reason: 'id_mismatch' };
  const listed: readonly unknown[] = Array.isArray(verificationMethod) ? verificationMethod : [];
  const [method, ...others] = listed.filter(isJsonObject).filter((candidate) => candidate['id'] === id);
  if (!method || others.length > 0) return { ok: false, reason: 'not_listed' };
  if (method['type'] !== 'Multikey') return { ok: false, reason: 'wrong_type' };
  if (method['controller'] !== did) return { ok: false, reason: 'wrong_controller' };
  if (!Array.isArray(assertionMethod) || !assertionMethod.includes(id)) {
    return { ok: false, reason: 'not_assertion_method' };
  }
  const decoded = decodePublicKey(method['publicKeyMultibase']);
  if (!decoded.ok) return { ok: false, reason: 'bad_key', key: decoded.reason };
  const publicKey = decoded.key;
  if (hasCome(method['revoked'], now)) return { ok: false, reason: 'revoked', publicKey };
  if (hasCome(method['expires'], now)) return { ok: false, reason: 'expired', publicKey };
  return { ok: true, publicKey };
}

/** Whether a stated time is past; a time that cannot be read counts as past. */
function hasCome(time: unknown, now: Date): boolean {
  return time !== undefined && (parseDateTimeStamp(time) ?? 0) <= now.getTime();
}
