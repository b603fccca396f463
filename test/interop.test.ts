/** The evidence beside the reference implementation of verifiable credentials, both ways: real answers, and honest and forged ones. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../src/json.ts';
import { operations } from '../src/operations/list.ts';
import { didDocument, didKey, verificationMethodId } from '../src/provenance/did.ts';
import { createSigner } from '../src/provenance/ed25519.ts';
import { issueEnvelope } from '../src/provenance/envelope.ts';
import { requestDigest } from '../src/provenance/canonical.ts';
import { verifyEnvelope } from '../src/provenance/verify.ts';
import { signerOfTheirs, verifyByThem } from './digitalbazaar.ts';
import { startTestService, type TestService } from './service.ts';

let service: TestService;
let document: JsonObject;
beforeAll(async () => {
  service = await startTestService();
  document = (await (await fetch(`${service.url}/.well-known/did.json`)).json()) as JsonObject;
});
afterAll(() => service.close());

describe('@digitalbazaar/vc', () => {
  it.each(operations.map(({ id }) => id))('verifies the evidence of %s, and no forgery of it', async (id) => {
    const sample = (await (await fetch(`${service.url}/api/v1/samples/${id}`)).json()) as {
      response: { _provenance: { credential: JsonObject } };
    };
    const { credential } = sample.response._provenance;
    expect(await verifyByThem(credential, document)).toBe(true);
    const subject = credential['credentialSubject'] as JsonObject;
    for (const forged of [
      { ...credential, validFrom: '2020-01-01T00:00:00Z' },
      { ...credential, credentialSubject: { ...subject, charged: '1' } },
      { ...credential, issuer: 'did:web:other.example' },
    ]) {
      expect(await verifyByThem(forged, document)).toBe(false);
    }
  });

  it('signs what is verified here, and what it signs otherwise is not', async () => {
    const seed = new Uint8Array(32).fill(9);
    const signer = await createSigner(seed);
    const did = didKey(signer.publicKey);
    const own = await didDocument(did, [signer]);
    const input = { messages: [] };
    const envelope = await issueEnvelope({
      issuer: { did, verificationMethod: await verificationMethodId(did, signer.publicKey), signer },
      operation: 'count',
      operationVersion: '1.0.0',
      title: 'Token count',
      generator: { name: 'a', version: '1' },
      deterministic: true,
      versions: {},
      inputDigest: await requestDigest('count', input),
      data: { tokens: 7 },
      charged: '1000',
      now: new Date(),
      newId: () => crypto.randomUUID(),
    });
    const { manifest, credential } = envelope._provenance;
    const { proof: _, ...unsigned } = credential;
    const sign = await signerOfTheirs(seed, own);
    const outcomeOf = async (signed: unknown, data: unknown = envelope.data): Promise<string> => {
      expect(isJsonObject(signed)).toBe(true);
      const answer = JSON.parse(JSON.stringify({ data, _provenance: { manifest, credential: signed } })) as unknown;
      return (await verifyEnvelope({ envelope: answer, input, trusted: own, now: new Date() })).outcome;
    };
    expect(await outcomeOf(await sign(unsigned))).toBe('verified');
    expect(await outcomeOf(await sign(unsigned), { tokens: 8 })).toBe('contradicted');
    const { validFrom: __, ...undated } = unsigned;
    expect(await outcomeOf(await sign(undated))).toBe('contradicted');
  });
});
