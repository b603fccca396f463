import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import fep from '../../test/vectors/fep-8b32.json' with { type: 'json' };
import interop from '../../test/vectors/interop-ours-and-digitalbazaar.json' with { type: 'json' };
import multi from '../../test/vectors/w3c-multi-key-pairs.json' with { type: 'json' };
import w3c from '../../test/vectors/w3c-eddsa-jcs-2022.json' with { type: 'json' };
import wind4greg from '../../test/vectors/wind4greg-server-for-vcs-signedEdDSA_JCS.json' with { type: 'json' };
import { canonicalJson, isJsonObject, sha256, toHex, type JsonObject } from './canonical.ts';
import { createProof, decodeProofValue, hashData, proofConfiguration, verifyProof } from './eddsa-jcs-2022.ts';
import { createSigner } from './ed25519.ts';
import { decodePublicKey, decodeSecretKey, encodeBase58 } from './multikey.ts';

function sent(value: JsonObject): JsonObject {
  const parsed: unknown = JSON.parse(JSON.stringify(value));
  return isJsonObject(parsed) ? parsed : {};
}

function keyOf(decoded: ReturnType<typeof decodePublicKey>): Uint8Array {
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.key;
}
const publicKey = keyOf(decodePublicKey(w3c.keyPair.publicKeyMultibase));
const signer = await createSigner(keyOf(decodeSecretKey(w3c.keyPair.privateKeyMultibase)));
const { '@context': contexts, ...optionsWithoutContext } = w3c.proofConfig;

describe('W3C vector', () => {
  it('has our canonical forms and hashes', async () => {
    expect(canonicalJson(w3c.unsigned)).toBe(w3c.canonDoc);
    expect(toHex(await sha256(w3c.canonDoc))).toBe(w3c.docHash);
    const configuration = proofConfiguration(w3c.unsigned, optionsWithoutContext);
    expect(configuration).toEqual(w3c.proofConfig);
    expect(canonicalJson(configuration)).toBe(w3c.proofCanon);
    expect(toHex(await sha256(w3c.proofCanon))).toBe(w3c.proofHash);
    expect(toHex(await hashData(w3c.unsigned, configuration))).toBe(w3c.combinedHash);
  });

  it('has our signature', async () => {
    const signature = await signer.sign(await hashData(w3c.unsigned, w3c.proofConfig));
    expect(toHex(signature)).toBe(w3c.sigHex);
    expect(`z${encodeBase58(signature)}`).toBe(w3c.sigBTC58);
    expect(toHex(decodeProofValue(w3c.sigBTC58) ?? new Uint8Array())).toBe(w3c.sigHex);
    expect(signer.publicKey).toEqual(publicKey);
  });

  it('is created as signed', async () => {
    const proof = await createProof(w3c.unsigned, optionsWithoutContext, signer);
    expect(JSON.stringify({ ...w3c.unsigned, proof })).toBe(JSON.stringify(w3c.signed));
  });

  it('verifies, and gives back what was signed', async () => {
    expect(await verifyProof(w3c.signed, publicKey)).toEqual({ verified: true, document: w3c.unsigned });
  });
});

describe('vectors of others', () => {
  test.each<[string, JsonObject, string]>([
    ['FEP-8b32, whose proof has no context', fep.signed, fep.publicKeyMultibase],
    ['Wind4Greg, with milliseconds', wind4greg.signed, multi.keyPair1.publicKeyMultibase],
    ['ours', interop.ours, w3c.keyPair.publicKeyMultibase],
    ['Digital Bazaar', interop.db, w3c.keyPair.publicKeyMultibase],
  ])('%s', async (_, signed, key) => {
    const { proof: _proof, ...unsigned } = signed;
    expect(await verifyProof(signed, keyOf(decodePublicKey(key)))).toEqual({ verified: true, document: unsigned });
    expect(await verifyProof(signed, keyOf(decodePublicKey(multi.keyPair4.publicKeyMultibase)))).toEqual({
      verified: false,
      reason: 'signature',
    });
  });

  it('fails FEP-8b32 once its proof is given a context', async () => {
    const proof = { ...fep.signed.proof, '@context': fep.signed['@context'] };
    expect(await verifyProof({ ...fep.signed, proof }, publicKey)).toEqual({ verified: false, reason: 'signature' });
  });
});

describe('changes to the W3C vector', () => {
  const { signed } = w3c;
  const [first = '', second = ''] = contexts;
  const withProof = (change: JsonObject) => ({ ...signed, proof: { ...signed.proof, ...change } });
  const { proofValue, ...proofWithoutValue } = signed.proof;
  const { proof, ...withoutProof } = signed;

  it('takes contexts after those of the proof, and does not answer with them', async () => {
    const appended = {
      ...signed,
      '@context': [...contexts, 'https://example.com/evil', { a: 'https://example.com/a' }],
    };
    expect(await verifyProof(appended, publicKey)).toEqual({ verified: true, document: w3c.unsigned });
  });

  test.each<[string, JsonObject, string]>([
    ['contexts reordered', { ...signed, '@context': [second, first] }, 'context'],
    ['a context dropped', { ...signed, '@context': [first] }, 'context'],
    ['a context put first', { ...signed, '@context': ['https://example.com/evil', ...contexts] }, 'context'],
    ['no contexts', { ...signed, '@context': [] }, 'context'],
    ['no context member', withoutContext(signed), 'context'],
    ['proof contexts reordered', withProof({ '@context': [second, first] }), 'context'],
    ['a proof context dropped', withProof({ '@context': [first] }), 'signature'],
    ['no proof contexts', withProof({ '@context': [] }), 'context'],
    ['a name changed', { ...signed, name: 'Alumni credential' }, 'signature'],
    ['a member added', { ...signed, extra: null }, 'signature'],
    ['a proof member added', withProof({ nonce: 'x' }), 'signature'],
    ['created changed', withProof({ created: '2023-02-24T23:36:39Z' }), 'signature'],
    ['created unreadable', withProof({ created: 'yesterday' }), 'proof_form'],
    ['created without zone', withProof({ created: '2023-02-24T23:36:38' }), 'proof_form'],
    ['another suite', withProof({ cryptosuite: 'eddsa-rdfc-2022' }), 'proof_form'],
    ['another type', withProof({ type: 'Ed25519Signature2020' }), 'proof_form'],
    ['a proof set', { ...signed, proof: [proof] }, 'proof_form'],
    ['no proof', withoutProof, 'proof_form'],
    ['no value', { ...signed, proof: proofWithoutValue }, 'proof_value'],
    ['a value in base64url', withProof({ proofValue: `u${'A'.repeat(86)}` }), 'proof_value'],
    ['a value of 65 bytes', withProof({ proofValue: `z1${proofValue.slice(1)}` }), 'proof_value'],
    ['a value without prefix', withProof({ proofValue: proofValue.slice(1) }), 'proof_value'],
    ['a value that is a number', withProof({ proofValue: 7 }), 'proof_value'],
    ['half a surrogate pair', { ...signed, name: '\ud800' }, 'no_canonical_form'],
  ])('%s', async (_, changed, reason) => {
    expect(await verifyProof(changed, publicKey)).toEqual({ verified: false, reason });
  });

  it('fails with the two hashes swapped', async () => {
    const data = await hashData(w3c.unsigned, w3c.proofConfig);
    const swapped = await signer.sign(Uint8Array.of(...data.subarray(32), ...data.subarray(0, 32)));
    const forged = withProof({ proofValue: `z${encodeBase58(swapped)}` });
    expect(await verifyProof(forged, publicKey)).toEqual({ verified: false, reason: 'signature' });
  });
});

function withoutContext<Document extends { '@context': unknown }>(document: Document): Omit<Document, '@context'> {
  const { '@context': _, ...rest } = document;
  return rest;
}

describe('createProof', () => {
  const options = { type: 'DataIntegrityProof', cryptosuite: 'eddsa-jcs-2022' };

  it('makes proofs that verify, over any JSON', async () => {
    const documents = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ stringUnit: 'binary' }));
    await fc.assert(
      fc.asyncProperty(documents, async (document) => {
        const { proof: _, ...unsigned } = document;
        fc.pre(JSON.stringify(unsigned['@context']) !== '[]');
        const proof = await createProof(unsigned, options, signer);
        const verdict = await verifyProof(sent({ ...unsigned, proof }), signer.publicKey);
        expect(verdict).toEqual({ verified: true, document: sent(unsigned) });
      }),
      { numRuns: 60 },
    );
  });

  test.each<[string, JsonObject]>([
    ['another type', { ...options, type: 'Proof' }],
    ['another suite', { ...options, cryptosuite: 'eddsa-rdfc-2022' }],
    ['a created that is none', { ...options, created: 'now' }],
  ])('refuses %s', async (_, bad) => {
    await expect(createProof({}, bad, signer)).rejects.toThrow(TypeError);
  });

  it('refuses a document without canonical form', async () => {
    await expect(createProof({ a: Number.NaN }, options, signer)).rejects.toThrow(TypeError);
  });
});

it('answers any JSON with a verdict', async () => {
  const garbage = fc.record(
    { '@context': fc.jsonValue(), proof: fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue())) },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(garbage, async (document) => {
      expect(await verifyProof(document, publicKey)).toMatchObject({ verified: false });
    }),
  );
});
