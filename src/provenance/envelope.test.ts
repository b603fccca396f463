import { describe, expect, it, test } from 'vitest';
import { digest, requestDigest } from './canonical.ts';
import { didKey, verificationMethodId } from './did.ts';
import { createSigner } from './ed25519.ts';
import { verifyProof } from './eddsa-jcs-2022.ts';
import { issueEnvelope, type EnvelopeFacts } from './envelope.ts';

const signer = await createSigner(new Uint8Array(32).fill(5));
const did = didKey(signer.publicKey);
const issuer = { did, verificationMethod: await verificationMethodId(did, signer.publicKey), signer };
const inputDigest = await requestDigest('count', { text: 'hello' });
const numbered = () => {
  let count = 0;
  return () => `00000000-0000-4000-8000-${String(++count).padStart(12, '0')}`;
};
const facts = (): EnvelopeFacts<unknown> => ({
  issuer,
  operation: 'count',
  operationVersion: '1.2.0',
  title: 'Token count',
  generator: { name: 'context-evidence-kit', version: '0.1.0' },
  deterministic: true,
  versions: { engine: '1.2.0' },
  inputDigest,
  data: { tokens: 1 },
  charged: '1000',
  now: new Date('2026-11-30T20:00:00.900Z'),
  newId: numbered(),
});

describe('issueEnvelope', () => {
  it('says everything that the subject has to say', async () => {
    const payment = { network: 'eip155:84532', payer: '0xabc', nonce: '0x01' };
    const { data, _provenance } = await issueEnvelope({ ...facts(), payment, environment: 'local', sample: true });
    expect(data).toEqual({ tokens: 1 });
    const contexts = ['https://www.w3.org/ns/credentials/v2', 'https://www.w3.org/ns/credentials/undefined-terms/v2'];
    const { proofValue, ...proof } = _provenance.credential.proof;
    expect(proofValue).toMatch(/^z[1-9A-HJ-NP-Za-km-z]{80,90}$/);
    expect({ ..._provenance.credential, proof }).toEqual({
      '@context': contexts,
      id: 'urn:uuid:00000000-0000-4000-8000-000000000001',
      type: ['VerifiableCredential', 'ApiResultProvenanceCredential'],
      issuer: did,
      validFrom: '2026-11-30T20:00:00Z',
      credentialSubject: {
        id: 'urn:uuid:00000000-0000-4000-8000-000000000005',
        operation: 'count',
        operationVersion: '1.2.0',
        inputDigest,
        dataDigest: await digest({ tokens: 1 }),
        manifestDigest: await digest(_provenance.manifest),
        charged: '1000',
        payment,
        environment: 'local',
        sample: true,
      },
      proof: {
        '@context': contexts,
        type: 'DataIntegrityProof',
        cryptosuite: 'eddsa-jcs-2022',
        created: '2026-11-30T20:00:00Z',
        verificationMethod: issuer.verificationMethod,
        proofPurpose: 'assertionMethod',
      },
    });
  });

  it('leaves out what there is not', async () => {
    const { _provenance } = await issueEnvelope(facts());
    expect(Object.keys(_provenance.credential.credentialSubject)).not.toContain('payment');
    expect(JSON.stringify(_provenance)).not.toMatch(/environment|sample|validUntil|expires/);
  });

  it('links manifest and credential', async () => {
    const { _provenance } = await issueEnvelope(facts());
    const { manifest, credential } = _provenance;
    expect(manifest['claim.v2'].signature).toBe(credential.id);
  });

  it('signs', async () => {
    const { _provenance } = await issueEnvelope(facts());
    expect(await verifyProof(_provenance.credential, signer.publicKey)).toMatchObject({ verified: true });
  });

  it('gives the same bytes for the same facts', async () => {
    const [first, second] = await Promise.all([issueEnvelope(facts()), issueEnvelope(facts())]);
    expect(JSON.stringify(first)).toBe(JSON.stringify(second));
  });

  it('signs what is sent, whatever JSON leaves out', async () => {
    const { data, _provenance } = await issueEnvelope({
      ...facts(),
      data: { a: undefined, b: [undefined], c: new Date(0) },
    });
    const { dataDigest } = _provenance.credential.credentialSubject;
    expect(dataDigest).toBe(await digest(JSON.parse(JSON.stringify(data))));
    expect(dataDigest).toBe(await digest({ b: [null], c: '1970-01-01T00:00:00.000Z' }));
  });

  test.each([`sha256:${'A0'.repeat(32)}`, 'sha256:00', ''])('refuses %j as digest of the input', async (bad) => {
    await expect(issueEnvelope({ ...facts(), inputDigest: bad })).rejects.toThrow(RangeError);
  });

  test.each([{ a: Number.NaN }, { a: '\ud800' }, undefined])('refuses data that is no JSON', async (data) => {
    await expect(issueEnvelope({ ...facts(), data })).rejects.toThrow(TypeError);
  });
});
