/**
 * Finds the DID document whose keys may sign the answers of a service: the one that the caller named, else the one that the
 * service itself publishes. What is fetched is kept, and fetched again only where a key is not in it.
 */
import { isJsonObject, type JsonObject } from '../provenance/canonical.ts';
import { didDocument, didKeyPublicKey } from '../provenance/did.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';
import { PaidFetchError } from './failure.ts';

export interface Issuers {
  /** @throws PaidFetchError `issuer_unavailable` */
  documentFor(url: URL): Promise<JsonObject>;
  /** Fetched anew; undefined where it was given and there is nothing to fetch. */
  refresh(url: URL): Promise<JsonObject | undefined>;
  /**
   * Where an issuer was named: that the service does not publish another one, whose answers could not be verified after they were paid
   * for. A service that publishes none is not asked why.
   *
   * @throws PaidFetchError `issuer_unavailable`
   */
  checkPublished(url: URL): Promise<void>;
}

type Fetch = (url: string) => Promise<Response>;

/**
 * @param issuer a DID (did:key, did:web), a DID document, or undefined for whatever the service publishes.
 * @throws RangeError for a DID of another method, or a document without an id.
 */
export function createIssuers(issuer: string | JsonObject | undefined, fetch: Fetch): Issuers {
  const checkPublished = async (url: URL): Promise<void> => {
    const named = isJsonObject(issuer) ? issuer['id'] : issuer;
    const published = named === undefined ? undefined : await publishedBy(url, fetch);
    if (published === undefined || published === named) return;
    throw new PaidFetchError({
      code: 'issuer_unavailable',
      reason: 'the service publishes another issuer than the named one',
    });
  };
  if (isJsonObject(issuer)) {
    if (typeof issuer['id'] !== 'string') throw new RangeError('a DID document has an id');
    return { documentFor: async () => issuer, refresh: async () => undefined, checkPublished };
  }
  if (issuer?.startsWith('did:key:')) {
    const document = didKeyDocument(issuer);
    if (!document) throw new RangeError('this did:key holds no Ed25519 key');
    return { documentFor: () => document, refresh: async () => undefined, checkPublished };
  }
  if (issuer !== undefined && !DID_WEB.test(issuer)) throw new RangeError('the issuer is no did:key and no did:web');

  const documents = new Map<string, Promise<JsonObject>>();
  const load = (url: URL): Promise<JsonObject> => {
    const place = issuer === undefined ? url.origin + WELL_KNOWN : documentUrl(issuer, url);
    const isRight = (id: string): boolean =>
      issuer === undefined ? id.startsWith('did:key:') || webHost(id) === url.host : id === issuer;
    const loading = loadDocument(place, isRight, fetch);
    documents.set(url.origin, loading);
    loading.catch(() => documents.delete(url.origin));
    return loading;
  };
  return { documentFor: (url) => documents.get(url.origin) ?? load(url), refresh: load, checkPublished };
}

const WELL_KNOWN = '/.well-known/did.json';
const DID_WEB = /^did:web:[\w.-]+(?:%3A\d{1,5})?(?::[\w.%-]+)*$/i;

/** The host that a did:web names, with its port. */
function webHost(did: string): string | undefined {
  return DID_WEB.test(did) ? did.split(':')[2]?.replace(/%3A/i, ':') : undefined;
}

/** did:web's read operation: https, but for the very origin that is called, which tests have on loopback. */
function documentUrl(did: string, called: URL): string {
  const host = webHost(did) ?? '';
  const origin = host === called.host ? called.origin : `https://${host}`;
  const path = did.split(':').slice(3);
  return path.length === 0 ? origin + WELL_KNOWN : `${origin}/${path.join('/')}/did.json`;
}

/** The id of the document that a service publishes; undefined where it has none that can be read. */
async function publishedBy({ origin }: URL, fetch: Fetch): Promise<string | undefined> {
  const response = await fetch(origin + WELL_KNOWN).catch(() => undefined);
  if (!response?.ok) return undefined;
  const parsed = parseStrictJson(new Uint8Array(await response.arrayBuffer()));
  const id = parsed.ok && isJsonObject(parsed.value) ? parsed.value['id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

async function loadDocument(url: string, isRight: (id: string) => boolean, fetch: Fetch): Promise<JsonObject> {
  let document: unknown;
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url} answers ${response.status}`);
    const parsed = parseStrictJson(new Uint8Array(await response.arrayBuffer()));
    document = parsed.ok ? parsed.value : undefined;
  } catch (cause) {
    throw new PaidFetchError({ code: 'issuer_unavailable', reason: `${url} cannot be read` }, { cause });
  }
  const id = isJsonObject(document) ? document['id'] : undefined;
  if (!isJsonObject(document) || typeof id !== 'string' || !isRight(id)) {
    throw new PaidFetchError({ code: 'issuer_unavailable', reason: `${url} is not the document of the issuer` });
  }
  // The key of a did:key stands in its name; whatever else a document of one lists is nobody's word.
  const own = id.startsWith('did:key:') ? didKeyDocument(id) : Promise.resolve(document);
  if (!own) throw new PaidFetchError({ code: 'issuer_unavailable', reason: `${url} names a key that is none` });
  return own;
}

function didKeyDocument(did: string): Promise<JsonObject> | undefined {
  const publicKey = didKeyPublicKey(`${did}#${did.slice('did:key:'.length)}`);
  return publicKey && didDocument(did, [{ publicKey }]);
}
