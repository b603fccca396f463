import { describe, expect, it, test } from 'vitest';
import suite from '../../test/vectors/vcdm2-test-suite-inputs.json' with { type: 'json' };
import { isJsonObject, sameJson, type JsonObject } from './canonical.ts';
import { CONTEXTS, CREDENTIAL_TYPES, readCredential } from './credential.ts';
import { didKey, verificationMethodId } from './did.ts';
import { createProof, CRYPTOSUITE, PROOF_TYPE } from './eddsa-jcs-2022.ts';
import { createSigner } from './ed25519.ts';

const signer = await createSigner(new Uint8Array(32).fill(5));
const issuer = didKey(signer.publicKey);
const options = {
  type: PROOF_TYPE,
  cryptosuite: CRYPTOSUITE,
  created: '2026-11-30T20:00:00Z',
  verificationMethod: await verificationMethodId(issuer, signer.publicKey),
  proofPurpose: 'assertionMethod',
};
const SOME_DIGEST = `sha256:${'0a'.repeat(32)}`;
const subject = {
  id: 'urn:uuid:0c7f1a4e-9b1c-4a57-8d0d-000000000001',
  operation: 'count',
  operationVersion: '1.2.0',
  inputDigest: SOME_DIGEST,
  dataDigest: SOME_DIGEST,
  manifestDigest: SOME_DIGEST,
  charged: '1000',
};
const unsigned = {
  '@context': CONTEXTS,
  id: 'urn:uuid:6f0b8a0e-3a44-4a27-9d3f-0b1d6d3f5a11',
  type: CREDENTIAL_TYPES,
  issuer,
  validFrom: '2026-11-30T20:00:00Z',
  credentialSubject: subject,
};
const sign = async (document: JsonObject) => ({ ...document, proof: await createProof(document, options, signer) });
const honest = await sign(unsigned);

describe('readCredential', () => {
  it('takes what this service issues, before and after sending', () => {
    expect(readCredential(honest)).toEqual({ ok: true, credential: honest });
    expect(readCredential(JSON.parse(JSON.stringify(honest)))).toMatchObject({ ok: true });
  });

  test.each<[string, JsonObject]>([
    [
      'a payment',
      { ...unsigned, credentialSubject: { ...subject, payment: { network: 'n', payer: 'p', nonce: 'o' } } },
    ],
    ['local mode', { ...unsigned, credentialSubject: { ...subject, environment: 'local', sample: true } }],
    ['a member of the subject that it does not know', { ...unsigned, credentialSubject: { ...subject, later: 1 } }],
    ['an end', { ...unsigned, validUntil: '2026-11-30T20:00:00Z' }],
    ['no charge', { ...unsigned, credentialSubject: { ...subject, charged: '0' } }],
    ['did:web', { ...unsigned, issuer: 'did:web:localhost%3A4021' }],
  ])('takes %s', async (_, document) => expect(readCredential(await sign(document))).toMatchObject({ ok: true }));

  const withSubject = (change: JsonObject) => ({ ...unsigned, credentialSubject: { ...subject, ...change } });
  test.each<[string, JsonObject]>([
    ['an issuer object', { ...unsigned, issuer: { id: issuer } }],
    ['an issuer that is a URL', { ...unsigned, issuer: 'https://api.example.com' }],
    ['an endless issuer', { ...unsigned, issuer: `did:web:${'a'.repeat(600)}` }],
    ['a context too many', { ...unsigned, '@context': [...CONTEXTS, 'https://example.com/v1'] }],
    ['a context as string', { ...unsigned, '@context': CONTEXTS[0] }],
    ['types in another order', { ...unsigned, type: CREDENTIAL_TYPES.toReversed() }],
    ['a type too many', { ...unsigned, type: [...CREDENTIAL_TYPES, 'Evil'] }],
    ['a status', { ...unsigned, credentialStatus: { type: 'BitstringStatusListEntry' } }],
    ['an end before the beginning', { ...unsigned, validUntil: '2026-11-30T19:59:59Z' }],
    ['an end that is null', { ...unsigned, validUntil: null }],
    ['a time without zone', { ...unsigned, validFrom: '2026-11-30T20:00:00' }],
    ['subjects', { ...unsigned, credentialSubject: [subject] }],
    ['an upper-case digest', withSubject({ dataDigest: SOME_DIGEST.toUpperCase() })],
    ['a digest less', withSubject({ inputDigest: null })],
    ['a charge that is a number', withSubject({ charged: 1000 })],
    ['a charge with a point', withSubject({ charged: '0.005' })],
    ['half a payment', withSubject({ payment: { network: 'eip155:84532', payer: '0xabc' } })],
    ['a payment that is null', withSubject({ payment: null })],
    ['another environment', withSubject({ environment: 'base' })],
    ['a sample that is none', withSubject({ sample: false })],
    ['an empty operation', withSubject({ operation: '' })],
  ])('refuses %s', async (_, document) => expect(readCredential(await sign(document))).toMatchObject({ ok: false }));

  test.each<[string, unknown]>([
    ['a proof set', [honest.proof]],
    ['no proof', undefined],
    ['another purpose', { ...honest.proof, proofPurpose: 'authentication' }],
    ['another suite', { ...honest.proof, cryptosuite: 'eddsa-rdfc-2022' }],
    ['a nonce', { ...honest.proof, nonce: 'x' }],
    ['a domain', { ...honest.proof, domain: 'example.com' }],
    ['a challenge', { ...honest.proof, challenge: 'x' }],
    ['a chain', { ...honest.proof, previousProof: 'urn:uuid:x' }],
    ['no context', { ...honest.proof, '@context': undefined }],
    ['an empty context', { ...honest.proof, '@context': [] }],
    ['fewer contexts', { ...honest.proof, '@context': CONTEXTS.slice(0, 1) }],
    ['no time', { ...honest.proof, created: undefined }],
    ['an end that is none', { ...honest.proof, expires: 'never' }],
    ['a method that is no DID URL', { ...honest.proof, verificationMethod: 'https://example.com/key#1' }],
    ['a method without fragment', { ...honest.proof, verificationMethod: issuer }],
    ['a method with two', { ...honest.proof, verificationMethod: `${issuer}#a#b` }],
    ['a signature of 65 bytes', { ...honest.proof, proofValue: `z1${honest.proof.proofValue.slice(1)}` }],
    ['a signature in base64url', { ...honest.proof, proofValue: `u${'A'.repeat(86)}` }],
  ])('refuses a proof with %s', (_, proof) => {
    expect(readCredential({ ...honest, proof })).toMatchObject({ ok: false });
  });

  test.each([null, [], 'x', 1, {}, [honest]])('refuses %j', (value) => {
    expect(readCredential(value)).toMatchObject({ ok: false });
  });
});

const [BASE] = CONTEXTS;
const EXAMPLES = 'https://www.w3.org/ns/credentials/examples/v2';
const isPlain = (contexts: unknown) => sameJson(contexts, [BASE]) || sameJson(contexts, [BASE, EXAMPLES]);

function fit(name: string, input: JsonObject): JsonObject {
  const { '@context': contexts, type, credentialSubject } = input;
  return {
    ...(name.includes('no-issuer') ? {} : { issuer }),
    id: unsigned.id,
    validFrom: unsigned.validFrom,
    ...input,
    ...(isPlain(contexts) ? { '@context': CONTEXTS } : {}),
    ...(sameJson(type, ['VerifiableCredential']) || type === 'VerifiableCredential' ? { type: CREDENTIAL_TYPES } : {}),
    ...(isJsonObject(credentialSubject) && sameJson(credentialSubject, { id: 'did:example:subject' })
      ? { credentialSubject: subject }
      : {}),
  };
}

describe('inputs of the VCDM 2.0 test suite', () => {
  const inputs = Object.entries<JsonObject>(suite.inputs);
  const failing = inputs.filter(([name]) => name.includes('-fail'));

  it('are all there', () => expect([inputs.length, failing.length]).toEqual([120, 52]));

  test.each(failing)('%s does not pass with a proof of ours', async (name, input) => {
    const { proof: _, ...document } = input;
    const signed = await sign({ issuer, ...document });
    expect(readCredential(signed)).toMatchObject({ ok: false });
    // Once more with everything harmless about it made to fit, so that only its own fault is left to notice.
    const fitted = await sign(fit(name, document));
    const { type: __, ...untyped } = fitted.proof;
    const fault = name.includes('proof-missing-type') ? { ...fitted, proof: untyped } : fitted;
    expect(readCredential(fault)).toMatchObject({ ok: false });
  });

  test.each(['credential-ok.json', 'credential-validuntil-ok.json', 'credential-validuntil-tz-ok.json'])(
    '%s passes once it is made to fit',
    async (name) => {
      const input = inputs.find(([candidate]) => candidate === name)?.[1] ?? {};
      expect(readCredential(await sign(fit(name, input)))).toMatchObject({ ok: true });
    },
  );
});
