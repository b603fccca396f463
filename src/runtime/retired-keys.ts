/**
 * Keys that sign no longer: they stay in the DID document, so that what they signed stays verifiable. RETIRED_KEYS is a file with DID
 * documents of earlier keys, as /.well-known/did.json served them; a key that was compromised has `revoked` there.
 */
import { isJsonObject, type JsonObject } from '../json.ts';
import { parseDateTimeStamp } from '../provenance/date-time.ts';
import type { DidKey } from '../provenance/did.ts';
import { decodePublicKey, KEY_BYTES } from '../provenance/multikey.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';
import { readContent } from './watched-file.ts';

export interface RetiredKeys {
  readonly keys: readonly DidKey[];
  /** Of offers and receipts, 32 bytes each. */
  readonly jwsKeys: readonly Uint8Array[];
}

/** @throws Error that says what is wrong with the file. */
export async function loadRetiredKeys(path: string): Promise<RetiredKeys> {
  const content = await readContent(path);
  if (!content.ok) throw new Error(`RETIRED_KEYS: ${path} cannot be read (${content.reason})`);
  const parsed = parseStrictJson(content.bytes);
  const documents: readonly unknown[] = parsed.ok ? [parsed.value].flat() : [];
  const methods = documents.flatMap((document): readonly unknown[] => {
    const listed = isJsonObject(document) ? document['verificationMethod'] : undefined;
    return Array.isArray(listed) ? listed : [undefined];
  });
  const keys = new Map<string, DidKey>();
  const jwsKeys = new Map<string, Uint8Array>();
  for (const [index, method] of methods.entries()) {
    const read = isJsonObject(method) ? readMethod(method) : undefined;
    if (!read)
      throw new Error(`RETIRED_KEYS: ${path} has no key that can be relied on as its verification method ${index}`);
    const { publicKey, revoked } = read;
    if (read.type === 'JsonWebKey') jwsKeys.set(publicKey.join(), publicKey);
    else keys.set(publicKey.join(), { publicKey, ...(revoked !== undefined && { revoked }) });
  }
  if (methods.length === 0) throw new Error(`RETIRED_KEYS: ${path} must be a DID document, or a list of them`);
  return { keys: [...keys.values()], jwsKeys: [...jwsKeys.values()] };
}

type Method = { readonly type: 'Multikey' | 'JsonWebKey'; readonly publicKey: Uint8Array; readonly revoked?: string };

function readMethod({ type, publicKeyMultibase, publicKeyJwk, revoked }: JsonObject): Method | undefined {
  if (type === 'JsonWebKey') {
    const { crv, x } = isJsonObject(publicKeyJwk) ? publicKeyJwk : {};
    const publicKey = typeof x === 'string' ? Buffer.from(x, 'base64url') : undefined;
    return crv === 'Ed25519' && publicKey?.length === KEY_BYTES ? { type, publicKey } : undefined;
  }
  const decoded = type === 'Multikey' ? decodePublicKey(publicKeyMultibase) : undefined;
  if (!decoded?.ok) return undefined;
  if (revoked === undefined) return { type: 'Multikey', publicKey: decoded.key };
  // A time that cannot be read would count as past: nobody should find that out by surprise.
  if (typeof revoked !== 'string' || parseDateTimeStamp(revoked) === undefined) return undefined;
  return { type: 'Multikey', publicKey: decoded.key, revoked };
}

/** Those that are not in use, though an earlier document may have them. */
export function without({ keys, jwsKeys }: RetiredKeys, current: readonly Uint8Array[]): RetiredKeys {
  const isRetired = (key: Uint8Array): boolean => !current.some((each) => Buffer.from(each).equals(key));
  return { keys: keys.filter(({ publicKey }) => isRetired(publicKey)), jwsKeys: jwsKeys.filter(isRetired) };
}
