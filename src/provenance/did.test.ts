import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import interop from '../../test/vectors/interop-ours-and-digitalbazaar.json' with { type: 'json' };
import multi from '../../test/vectors/w3c-multi-key-pairs.json' with { type: 'json' };
import w3c from '../../test/vectors/w3c-eddsa-jcs-2022.json' with { type: 'json' };
import { fromHex, type JsonObject } from './canonical.ts';
import {
  DID,
  didDocument,
  didKey,
  didKeyPublicKey,
  verificationMethodId,
  verificationMethodOf,
  type DidDocument,
} from './did.ts';
import { decodePublicKey, encodeBase58 } from './multikey.ts';

function keyOf(multibase: string): Uint8Array {
  const decoded = decodePublicKey(multibase);
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.key;
}
const multibase = w3c.keyPair.publicKeyMultibase;
const publicKey = keyOf(multibase);
const otherKey = keyOf(multi.keyPair1.publicKeyMultibase);
const NOW = new Date('2026-11-30T20:00:00Z');
const WEB = 'did:web:api.example.com';

describe('did:key', () => {
  it('names the W3C key as the vector does', async () => {
    const method = w3c.proofConfig.verificationMethod;
    expect(didKey(publicKey)).toBe(`did:key:${multibase}`);
    expect(await verificationMethodId(didKey(publicKey), publicKey)).toBe(method);
    expect(didKeyPublicKey(method)).toEqual(publicKey);
  });

  test.each([
    `did:key:${multibase}`,
    `did:key:${multibase}#`,
    `did:key:${multibase}#${multi.keyPair1.publicKeyMultibase}`,
    `did:key:${w3c.keyPair.privateKeyMultibase}#${w3c.keyPair.privateKeyMultibase}`,
    `did:web:${multibase}#${multibase}`,
    `did:key:x#x`,
    '',
  ])('has no key in %s', (id) => expect(didKeyPublicKey(id)).toBeUndefined());
});

// RFC 8037 appendix A.3: the thumbprint of the key of RFC 8032's first test.
test('did:web names keys by their JWK thumbprint', async () => {
  const key = fromHex('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  expect(await verificationMethodId(WEB, key)).toBe(`${WEB}#kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k`);
});

describe('didDocument', () => {
  it('lists keys for JWS as JWKs, and the credential’s as a Multikey', async () => {
    const document = await didDocument(WEB, [{ publicKey }], [otherKey]);
    const [id, otherId] = await Promise.all([publicKey, otherKey].map((key) => verificationMethodId(WEB, key)));
    expect(document['@context']).toContain('https://w3id.org/security/jwk/v1');
    expect(document.verificationMethod).toEqual([
      { id, type: 'Multikey', controller: WEB, publicKeyMultibase: multibase },
      {
        id: otherId,
        type: 'JsonWebKey',
        controller: WEB,
        publicKeyJwk: { crv: 'Ed25519', kty: 'OKP', x: Buffer.from(otherKey).toString('base64url') },
      },
    ]);
    expect(document.assertionMethod).toEqual([id, otherId]);
    expect(verificationMethodOf(document, otherId ?? '', NOW)).toEqual({ ok: false, reason: 'wrong_type' });
    expect(verificationMethodOf(document, id ?? '', NOW)).toMatchObject({ ok: true });
  });

  it('lists every key as a method and for assertions', async () => {
    const document = await didDocument(WEB, [{ publicKey }, { publicKey: otherKey, revoked: '2026-01-01T00:00:00Z' }]);
    const [id, otherId] = await Promise.all([publicKey, otherKey].map((key) => verificationMethodId(WEB, key)));
    expect(document).toEqual({
      '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/multikey/v1'],
      id: WEB,
      verificationMethod: [
        { id, type: 'Multikey', controller: WEB, publicKeyMultibase: multibase },
        {
          id: otherId,
          type: 'Multikey',
          controller: WEB,
          publicKeyMultibase: multi.keyPair1.publicKeyMultibase,
          revoked: '2026-01-01T00:00:00Z',
        },
      ],
      assertionMethod: [id, otherId],
    });
  });

  it('is found its own keys in, for did:key and did:web', async () => {
    for (const did of [didKey(publicKey), WEB]) {
      const document = await didDocument(did, [{ publicKey }]);
      const id = await verificationMethodId(did, publicKey);
      expect(verificationMethodOf(document, id, NOW)).toEqual({ ok: true, publicKey });
    }
  });
});

describe('verificationMethodOf', () => {
  const id = `${WEB}#key-2026-11`;
  const method = { id, type: 'Multikey', controller: WEB, publicKeyMultibase: multibase } as const;
  const document: DidDocument = {
    '@context': [],
    id: WEB,
    verificationMethod: [method],
    assertionMethod: [id],
  };
  const withMethod = (change: object) => ({ ...document, verificationMethod: [{ ...method, ...change }] });
  const secret = w3c.keyPair.privateKeyMultibase;
  const lookUp = (given: JsonObject, methodId = id) => verificationMethodOf(given, methodId, NOW);

  it('finds the key of the interop document', () => {
    expect(lookUp(interop.didDocument)).toEqual({ ok: true, publicKey });
  });

  test.each<[string, JsonObject, object]>([
    ['another DID', { ...document, id: 'did:web:other.example' }, { reason: 'id_mismatch' }],
    ['no methods', { ...document, verificationMethod: [] }, { reason: 'not_listed' }],
    ['no method list', { id: WEB }, { reason: 'not_listed' }],
    ['methods that are none', { ...document, verificationMethod: [null, id, [method]] }, { reason: 'not_listed' }],
    ['two methods of one id', { ...document, verificationMethod: [method, method] }, { reason: 'not_listed' }],
    ['another type', withMethod({ type: 'JsonWebKey' }), { reason: 'wrong_type' }],
    ['another controller', withMethod({ controller: 'did:web:other.example' }), { reason: 'wrong_controller' }],
    ['no controller', withMethod({ controller: undefined }), { reason: 'wrong_controller' }],
    ['no assertions', { ...document, assertionMethod: [] }, { reason: 'not_assertion_method' }],
    ['no assertion list', { ...document, assertionMethod: id }, { reason: 'not_assertion_method' }],
    ['a secret key', withMethod({ publicKeyMultibase: secret }), { reason: 'bad_key', key: 'secret_key' }],
    [
      'a small key',
      withMethod({ publicKeyMultibase: `z${encodeBase58(fromHex(`ed0101${'00'.repeat(31)}`))}` }),
      { reason: 'bad_key', key: 'unsafe_key' },
    ],
    ['a revoked key', withMethod({ revoked: '2026-11-30T20:00:00Z' }), { reason: 'revoked', publicKey }],
    ['an expired key', withMethod({ expires: '2026-11-30T20:00:00Z' }), { reason: 'expired', publicKey }],
    ['an unreadable revocation', withMethod({ revoked: 'soon' }), { reason: 'revoked', publicKey }],
  ])('refuses %s', (_, given, failure) => expect(lookUp(given)).toEqual({ ok: false, ...failure }));

  it('takes a key that will be revoked or expire later', () => {
    const later = { revoked: '2026-11-30T20:00:01Z', expires: '2027-01-01T00:00:00Z' };
    expect(lookUp(withMethod(later))).toEqual({ ok: true, publicKey });
  });

  it('asks for the DID and the whole fragment', () => {
    for (const other of [
      WEB,
      `${WEB}#`,
      `${WEB}#key`,
      `${WEB}.evil#key-2026-11`,
      `${WEB}#key-2026-11#x`,
      '#key-2026-11',
    ]) {
      expect(lookUp(document, other)).toMatchObject({ ok: false });
    }
  });

  it('never throws on a document, and never takes another key', () => {
    const documents = fc.record(
      { id: fc.constant(WEB), verificationMethod: fc.jsonValue(), assertionMethod: fc.jsonValue() },
      { requiredKeys: [] },
    );
    fc.assert(fc.property(documents, (given) => !lookUp(given).ok));
  });
});

test('DID syntax', () => {
  for (const did of [WEB, 'did:web:localhost%3A4021', 'did:web:a.example:b:c', didKey(publicKey)])
    expect(did).toMatch(DID);
  const none = [
    'did:web:',
    'did::a',
    'DID:web:a',
    'did:web:a/b',
    'did:web:a#b',
    'did:web:a?b',
    'did:web:a b',
    'did:web:a\n',
    'web:a',
  ];
  for (const text of none) expect(text).not.toMatch(DID);
});
