import { describe, expect, it } from 'vitest';
import { didDocument, didKey } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import { createIssuers } from './issuer.ts';

const { publicKey } = await createSigner(new Uint8Array(32).fill(7));
const DID_KEY = didKey(publicKey);
const CALLED = new URL('https://api.example/api/v1/count');

/** What stands under each URL; everything else is 404. */
function web(pages: Record<string, unknown>): { fetch: (url: string) => Promise<Response>; asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    fetch: async (url) => {
      asked.push(url);
      return url in pages ? Response.json(pages[url]) : new Response(null, { status: 404 });
    },
  };
}

const ownPage = 'https://api.example/.well-known/did.json';
const own = await didDocument('did:web:api.example', [{ publicKey }]);
const otherHost = await didDocument('did:web:evil.example', [{ publicKey }]);
const otherPort = await didDocument('did:web:api.example%3A1', [{ publicKey }]);

describe('a named issuer', () => {
  it('that is a did:key or a document needs no network', async () => {
    const { fetch, asked } = web({});
    expect(await createIssuers(DID_KEY, fetch).documentFor(CALLED)).toEqual(
      await didDocument(DID_KEY, [{ publicKey }]),
    );
    expect(await createIssuers(own, fetch).documentFor(CALLED)).toBe(own);
    expect(await createIssuers(own, fetch).refresh(CALLED)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it.each([
    ['did:web:issuer.example', 'https://issuer.example/.well-known/did.json'],
    ['did:web:issuer.example%3A8443', 'https://issuer.example:8443/.well-known/did.json'],
    ['did:web:issuer.example:team:a', 'https://issuer.example/team/a/did.json'],
    ['did:web:api.example', ownPage],
  ])('%s is read at %s', async (did, url) => {
    const document = await didDocument(did, [{ publicKey }]);
    const { fetch, asked } = web({ [url]: document });
    expect(await createIssuers(did, fetch).documentFor(CALLED)).toEqual(document);
    expect(asked).toEqual([url]);
  });

  it('is not believed where another document stands in its place', async () => {
    const { fetch } = web({ 'https://issuer.example/.well-known/did.json': own });
    await expect(createIssuers('did:web:issuer.example', fetch).documentFor(CALLED)).rejects.toMatchObject({
      code: 'issuer_unavailable',
    });
  });

  it.each([
    '',
    'api.example',
    'did:key:z6Mkx',
    'did:example:1',
    'did:web:',
    'did:web:a/b',
    'did:web:a#b',
    'did:web:a@b',
  ])('refuses %s', (did) => {
    expect(() => createIssuers(did, web({}).fetch)).toThrow(RangeError);
  });
});

describe('the issuer that a service publishes', () => {
  it('is fetched once for its origin, and again only on demand', async () => {
    const { fetch, asked } = web({ [ownPage]: own });
    const issuers = createIssuers(undefined, fetch);
    await Promise.all([issuers.documentFor(CALLED), issuers.documentFor(new URL('/other', CALLED))]);
    expect(asked).toEqual([ownPage]);
    await issuers.refresh(CALLED);
    expect(asked).toEqual([ownPage, ownPage]);
  });

  it('is asked for again after it could not be had', async () => {
    const pages: Record<string, unknown> = {};
    const issuers = createIssuers(undefined, web(pages).fetch);
    await expect(issuers.documentFor(CALLED)).rejects.toMatchObject({ code: 'issuer_unavailable' });
    pages[ownPage] = own;
    expect(await issuers.documentFor(CALLED)).toEqual(own);
  });

  it('may be a did:key, which lends its name to no other key', async () => {
    const other = await createSigner(new Uint8Array(32).fill(8));
    const { fetch } = web({ [ownPage]: await didDocument(DID_KEY, [{ publicKey }, other]) });
    expect(await createIssuers(undefined, fetch).documentFor(CALLED)).toEqual(
      await didDocument(DID_KEY, [{ publicKey }]),
    );
  });

  it.each<[string, unknown]>([
    ['another host', otherHost],
    ['another port', otherPort],
    ['a key that is none', { id: 'did:key:z6Mkx' }],
    ['no id', {}],
    ['no object', 'x'],
  ])('cannot be %s', async (_, document) => {
    const { fetch } = web({ [ownPage]: document });
    await expect(createIssuers(undefined, fetch).documentFor(CALLED)).rejects.toMatchObject({
      code: 'issuer_unavailable',
    });
  });
});
