import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { mutantsOf } from '../../test/mutants.ts';
import { canonicalJsonIfAny, isJsonObject, requestDigest, sameJson, type JsonObject } from './canonical.ts';
import { CONTEXTS } from './credential.ts';
import { didDocument, didKey, verificationMethodId } from './did.ts';
import { createProof, CRYPTOSUITE, PROOF_TYPE } from './eddsa-jcs-2022.ts';
import { createSigner } from './ed25519.ts';
import { issueEnvelope, type Envelope, type EnvelopeFacts, type Issuer } from './envelope.ts';
import { encodeBase58, encodeSecretKey } from './multikey.ts';
import { parseStrictJson } from './strict-json.ts';
import { CHECK_NAMES, conclude, readEnvelope, verifyEnvelope, type CheckName, type Verification } from './verify.ts';

const NOW = new Date('2026-11-30T20:00:00Z');
const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const INPUT = { text: 'hello', limit: 3 };
const DATA = {
  keep: [0, 1, 4],
  tokens: 6485,
  ratio: 0.25,
  note: 'é 💡',
  nested: { list: ['a', { b: null }], ok: true },
};

async function createIssuer(did: string | undefined, fill: number): Promise<Issuer> {
  const signer = await createSigner(new Uint8Array(32).fill(fill));
  const name = did ?? didKey(signer.publicKey);
  return { did: name, verificationMethod: await verificationMethodId(name, signer.publicKey), signer };
}
const WEB = 'did:web:api.example.com';
const issuer = await createIssuer(WEB, 5);
const forger = await createIssuer(undefined, 6);
const trusted = await didDocument(WEB, [{ publicKey: issuer.signer.publicKey }]);

async function issue(facts: Partial<EnvelopeFacts<unknown>> = {}): Promise<Envelope<unknown>> {
  return issueEnvelope({
    issuer,
    operation: 'count',
    operationVersion: '1.2.0',
    title: 'Token count',
    generator: { name: 'context-evidence-kit', version: '0.1.0' },
    deterministic: true,
    versions: { engine: '1.2.0', table: { digest: 'sha256:00' } },
    inputDigest: await requestDigest('count', INPUT),
    data: DATA,
    charged: '1000',
    payment: { network: 'eip155:84532', payer: '0xabc', nonce: '0x01' },
    environment: 'local',
    now: NOW,
    newId: () => crypto.randomUUID(),
    ...facts,
  });
}

const envelopeOf = async (facts?: Partial<EnvelopeFacts<unknown>>) => sent(await issue(facts));

/** A value as a client reads it. */
function sent(value: unknown): JsonObject {
  const parsed = parseStrictJson(JSON.stringify(value));
  if (!parsed.ok || !isJsonObject(parsed.value)) throw new Error('not an object');
  return parsed.value;
}

const verify = (envelope: unknown, change: object = {}): Promise<Verification> =>
  verifyEnvelope({ envelope, trusted, now: NOW, ...change });
const results = ({ checks }: Verification) => CHECK_NAMES.map((name) => checks[name].result).join(' ');
const failed = ({ checks }: Verification) => CHECK_NAMES.filter((name) => checks[name].result === 'fail');

const honest = await envelopeOf();
const sameCall = await envelopeOf();
const otherAnswer = await envelopeOf({ data: 1 });

/** The envelope with what `change` makes of the credential without proof, signed by whoever signs. */
async function resigned(
  change: (unsigned: JsonObject) => JsonObject,
  proofChange: JsonObject = {},
  by: Issuer = issuer,
): Promise<JsonObject> {
  const { manifest, credential } = provenanceOf(honest);
  const { proof: _, ...unsigned } = credential;
  const changed = change(unsigned);
  const options = {
    type: PROOF_TYPE,
    cryptosuite: CRYPTOSUITE,
    created: '2026-11-30T20:00:00Z',
    verificationMethod: by.verificationMethod,
    proofPurpose: 'assertionMethod',
    ...proofChange,
  };
  const proof = await createProof(changed, options, by.signer);
  return { data: honest['data'], _provenance: { manifest, credential: { ...changed, proof } } };
}

function provenanceOf(envelope: unknown): { manifest: JsonObject; credential: JsonObject } {
  const read = readEnvelope(envelope);
  if (!read.ok) throw new Error(read.problem.path);
  const { _provenance } = read.envelope;
  return _provenance;
}

describe('an honest answer', () => {
  it('is verified', async () => {
    const verification = await verify(honest);
    expect(verification).toMatchObject({ verified: true, outcome: 'verified' });
    expect(results(verification)).toBe('pass pass pass pass pass pass pass not_checked not_checked');
  });

  it('is verified with its input, and contradicted by another', async () => {
    const withInput = await verify(honest, { input: { limit: 3, text: 'hello' } });
    expect(results(withInput)).toBe('pass pass pass pass pass pass pass pass not_checked');
    for (const input of [{ text: 'hello' }, null, 'hello', { text: '\ud800' }]) {
      const verification = await verify(honest, { input });
      expect(verification).toMatchObject({ verified: false, outcome: 'contradicted' });
      expect(failed(verification)).toEqual(['input_digest']);
    }
  });

  it('is verified in any spelling of the same JSON', async () => {
    const spelled = JSON.stringify(honest, null, 2)
      .replace('"ratio": 0.25', '"ratio": 25e-2')
      .replace('6485', '6485.0')
      .replace('é', '\\u00e9');
    const parsed = parseStrictJson(spelled);
    expect(parsed.ok && (await verify(parsed.value)).verified).toBe(true);
  });

  it('is verified under did:key when that is the named issuer', async () => {
    const envelope = await envelopeOf({ issuer: forger });
    const own = await didDocument(forger.did, [{ publicKey: forger.signer.publicKey }]);
    expect(await verify(envelope, { trusted: own })).toMatchObject({ verified: true });
  });

  it('is verified whatever its data is', async () => {
    const facts = fc.record(
      {
        data: fc.jsonValue({ stringUnit: 'binary' }),
        charged: fc.nat().map(String),
        sample: fc.constant(true as const),
        now: fc.date({ min: new Date(0), max: NOW, noInvalidDate: true }),
        versions: fc.dictionary(fc.string(), fc.jsonValue()),
      },
      { requiredKeys: ['data'] },
    );
    await fc.assert(
      fc.asyncProperty(facts, async (some) => {
        const envelope: unknown = JSON.parse(JSON.stringify(await issue(some)));
        expect(await verify(envelope, { input: INPUT })).toMatchObject({ verified: true });
      }),
      { numRuns: 150 },
    );
  });
});

/** Someone who signs in the name of the issuer but points at a did:key made of this multikey. */
const underName = (multikey: string): Issuer => ({
  did: WEB,
  verificationMethod: `did:key:${multikey}#${multikey}`,
  signer: forger.signer,
});
const smallOrderKey = `z${encodeBase58(Uint8Array.of(0xed, 0x01, 0x01, ...new Uint8Array(31)))}`;
const namesake = await createIssuer(WEB, 6);
const stranger = await createIssuer('did:web:other.example', 6);

describe('whose answer it is', () => {
  it('does not verify a forger under his own did:key', async () => {
    const verification = await verify(await envelopeOf({ issuer: forger }));
    expect(verification).toMatchObject({ verified: false, outcome: 'unverifiable' });
    expect(results(verification)).toBe('pass pass not_checked pass pass pass pass not_checked not_checked');
    expect(verification.checks.issuer.reason).toBe(`Signed by ${forger.did}; who ${forger.did} is was not checked.`);
  });

  it('does not look up a foreign did:web', async () => {
    const verification = await verify(await envelopeOf({ issuer: stranger }));
    expect(verification.outcome).toBe('unverifiable');
    expect(results(verification)).toBe('pass not_checked not_checked pass pass pass pass not_checked not_checked');
  });

  it('contradicts tampering also where the issuer is unknown', async () => {
    const envelope = { ...(await envelopeOf({ issuer: forger })), data: {} };
    expect((await verify(envelope)).outcome).toBe('contradicted');
  });

  test.each<[string, Issuer, CheckName[]]>([
    ['by his own did:key', { ...forger, did: WEB }, ['issuer']],
    ['by a key he lists under the name', namesake, ['issuer']],
    ['by his key under the name of ours', { ...issuer, signer: forger.signer }, ['signature']],
    ['by a foreign did:web', { ...stranger, did: WEB }, ['issuer']],
    ['by our key under the name of another', { ...issuer, did: 'did:web:other.example' }, ['issuer']],
    ['by a did:key that is a secret', underName(encodeSecretKey(new Uint8Array(32).fill(6))), ['signature', 'issuer']],
    ['by a did:key of small order', underName(smallOrderKey), ['signature', 'issuer']],
  ])('contradicts a forgery in the name of the issuer, signed %s', async (_, by, checks) => {
    const verification = await verify(await envelopeOf({ issuer: by }));
    expect(verification).toMatchObject({ verified: false, outcome: 'contradicted' });
    expect(failed(verification)).toEqual(checks);
  });

  it('keeps verifying what a retired key signed, until it is revoked', async () => {
    const next = await createIssuer(WEB, 7);
    const keys = [{ publicKey: next.signer.publicKey }, { publicKey: issuer.signer.publicKey }];
    expect((await verify(honest, { trusted: await didDocument(WEB, keys) })).verified).toBe(true);

    const [current, retired] = keys;
    if (!current || !retired) throw new Error('no keys');
    const revoked = await didDocument(WEB, [current, { ...retired, revoked: '2026-11-30T19:00:00Z' }]);
    const verification = await verify(honest, { trusted: revoked });
    expect(verification.outcome).toBe('contradicted');
    expect(failed(verification)).toEqual(['issuer']);
    expect(verification.checks.signature.result).toBe('pass');

    const removed = await verify(honest, { trusted: await didDocument(WEB, [current]) });
    expect([removed.outcome, removed.checks.signature.result]).toEqual(['contradicted', 'not_checked']);
  });

  it('contradicts what is signed with a key that the document has for JWS only', async () => {
    const key = issuer.signer.publicKey;
    const document = await didDocument(WEB, [{ publicKey: forger.signer.publicKey }], [key]);
    expect(document.assertionMethod).toContain(issuer.verificationMethod);
    const verdict = await verify(await envelopeOf(), { trusted: document });
    expect(verdict).toMatchObject({ verified: false, outcome: 'contradicted', checks: { issuer: { result: 'fail' } } });
    expect(verdict.checks.issuer.reason).toContain('another type than Multikey');
  });

  it('cuts a long DID', async () => {
    const did = `did:web:${'a'.repeat(300)}.example`;
    const verification = await verify(await envelopeOf({ issuer: await createIssuer(did, 6) }));
    expect(verification.outcome).toBe('unverifiable');
    expect(verification.checks.issuer.reason.length).toBeLessThan(300);
  });
});

describe('time', () => {
  test.each<[string, Date, string]>([
    ['now', NOW, 'pass'],
    ['years later', later(1e9), 'pass'],
    ['300 s before', later(-300), 'pass'],
    ['301 s before', later(-301), 'fail'],
  ])('an answer looked at %s', async (_, now, result) => {
    expect((await verify(honest, { now })).checks.time.result).toBe(result);
  });

  test.each<[string, JsonObject, JsonObject, string]>([
    ['created ahead', {}, { created: '2026-11-30T20:05:01Z' }, 'fail'],
    ['valid ahead', { validFrom: '2026-11-30T20:05:01Z' }, {}, 'fail'],
    ['proof expired just now', {}, { expires: '2026-11-30T20:00:00Z' }, 'fail'],
    ['proof expires soon', {}, { expires: '2026-11-30T20:00:01Z' }, 'pass'],
    ['ended', { validFrom: '2026-01-01T00:00:00Z', validUntil: '2026-11-30T19:59:59Z' }, {}, 'fail'],
    ['ends now', { validUntil: '2026-11-30T20:00:00Z' }, {}, 'pass'],
  ])('%s', async (_, change, proofChange, result) => {
    const verification = await verify(await resigned((unsigned) => ({ ...unsigned, ...change }), proofChange));
    expect(verification.checks.time.result).toBe(result);
    expect(verification.checks.signature.result).toBe('pass');
    expect(verification.verified).toBe(result === 'pass');
  });
});

it('compares the manifest with the credential, not only with itself', async () => {
  const verification = await verify(
    await resigned((unsigned) => {
      const subject = unsigned['credentialSubject'];
      return { ...unsigned, credentialSubject: { ...(isJsonObject(subject) && subject), operationVersion: '9.9.9' } };
    }),
  );
  expect(failed(verification)).toEqual(['manifest']);
});

describe('readEnvelope', () => {
  test.each<[string, unknown, string]>([
    ['a string', 'x', ''],
    ['an array', [honest], ''],
    ['no data', { _provenance: honest['_provenance'] }, '/data'],
    ['no evidence', { data: 1 }, '/_provenance'],
    ['evidence that is none', { data: 1, _provenance: [] }, '/_provenance'],
    ['no manifest', { data: 1, _provenance: { credential: {} } }, '/_provenance/manifest'],
    ['no credential', { data: 1, _provenance: { manifest: {}, credential: 'x' } }, '/_provenance/credential'],
    ['no proof', { data: 1, _provenance: { manifest: {}, credential: {} } }, '/_provenance/credential/proof'],
    [
      'proofs',
      { data: 1, _provenance: { manifest: {}, credential: { proof: [{}] } } },
      '/_provenance/credential/proof',
    ],
  ])('misses something in %s', async (_, value, path) => {
    expect(readEnvelope(value)).toMatchObject({ ok: false, problem: { code: 'invalid_request', path } });
    expect(await verify(value)).toMatchObject({ outcome: 'contradicted', checks: { profile: { result: 'fail' } } });
  });

  it('takes null for data', () => {
    expect(readEnvelope({ data: null, _provenance: { manifest: {}, credential: { proof: {} } } }).ok).toBe(true);
  });
});

async function outcomeWith(name: CheckName, result: 'fail' | 'not_checked'): Promise<string> {
  const { checks } = await verify(honest);
  return conclude({ ...checks, [name]: { result, reason: '' } }).outcome;
}

describe('conclude', () => {
  test.each(CHECK_NAMES)('a %s that fails contradicts', async (name) => {
    expect(await outcomeWith(name, 'fail')).toBe('contradicted');
  });

  test.each(CHECK_NAMES)('a %s that was not checked', async (name) => {
    const isOptional = name === 'input_digest' || name === 'rerun';
    expect(await outcomeWith(name, 'not_checked')).toBe(isOptional ? 'verified' : 'unverifiable');
  });
});

describe('mutation campaign', () => {
  it('accepts nothing that is not the same canonical document', async () => {
    const original = canonicalJsonIfAny(honest);
    const changed = [...mutantsOf(honest)].filter((mutant) => canonicalJsonIfAny(mutant) !== original);
    expect(changed.length).toBeGreaterThan(4_500);
    const accepted: unknown[] = [];
    const outcomes = new Set<string>();
    for (const mutant of changed) {
      const { verified, outcome } = await verify(mutant);
      outcomes.add(outcome);
      if (verified) accepted.push(mutant);
    }
    expect(accepted).toEqual([]);
    expect(outcomes).toEqual(new Set(['contradicted']));
  });

  const { manifest, credential } = provenanceOf(honest);
  const proof = sent(credential['proof']);
  const contexts = [...CONTEXTS, 'https://evil.example'];
  const withCredential = (change: JsonObject) => ({
    data: honest['data'],
    _provenance: { manifest, credential: { ...credential, ...change } },
  });
  test.each<[string, unknown]>([
    ['a context appended', withCredential({ '@context': contexts })],
    ['a context appended to the proof', withCredential({ proof: { ...proof, '@context': contexts } })],
    ['a context appended to both', withCredential({ '@context': contexts, proof: { ...proof, '@context': contexts } })],
    ['a proof set', withCredential({ proof: [proof] })],
    ['a proof set with a bad one', withCredential({ proof: [{ ...proof, type: 'Other' }, proof] })],
    ['a proof without context', withCredential({ proof: { ...proof, '@context': undefined } })],
    ['another key named', withCredential({ proof: { ...proof, verificationMethod: forger.verificationMethod } })],
    ['another issuer named', withCredential({ issuer: forger.did })],
    ['something beside the data', { ...honest, note: 'also true' }],
    ['something beside the credential', { ...honest, _provenance: { manifest, credential, note: 'also true' } }],
    ['the evidence of another answer', { data: DATA, _provenance: otherAnswer['_provenance'] }],
    [
      'the manifest of another answer to the same call',
      { data: DATA, _provenance: { manifest: provenanceOf(sameCall).manifest, credential } },
    ],
  ])('does not accept %s', async (_, mutant) => {
    const verification = await verify(sent(mutant));
    expect(verification.outcome).toBe('contradicted');
  });

  it('is not reached by names used twice', () => {
    const text = JSON.stringify(honest);
    const members = [...text.matchAll(/"[^"\\]+":/g)];
    expect(members.length).toBeGreaterThan(60);
    for (const { index, 0: member } of members) {
      const twice = `${text.slice(0, index)}${member}0,${text.slice(index)}`;
      expect(parseStrictJson(twice)).toMatchObject({ ok: false, problem: { code: 'duplicate_key' } });
    }
  });
});

const nameIn = (object: JsonObject) => fc.constantFrom(...Object.keys(object), 'other');

describe('garbage', () => {
  const anything = fc.oneof(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom('\ud800', { a: ['\udc00'] }));

  it('gets a verdict for any JSON', async () => {
    const envelopes = fc.oneof(
      anything,
      fc.record({
        data: anything,
        _provenance: fc.oneof(anything, fc.record({ manifest: anything, credential: anything })),
      }),
    );
    await fc.assert(
      fc.asyncProperty(envelopes, async (envelope) => {
        expect(await verify(envelope)).toMatchObject({ verified: false, outcome: 'contradicted' });
      }),
      { numRuns: 300 },
    );
  });

  it('gets a verdict for garbage in any place of a real envelope', async () => {
    const { manifest, credential } = provenanceOf(honest);
    const subject = sent(credential['credentialSubject']);
    const proof = sent(credential['proof']);
    const place = fc.constantFrom('data', 'manifest', 'credential', 'subject', 'proof', 'assertions', 'claim');
    await fc.assert(
      fc.asyncProperty(
        place,
        anything,
        nameIn(credential),
        nameIn(subject),
        nameIn(proof),
        async (where, value, c, s, p) => {
          const put = (there: string, object: JsonObject, key: string) =>
            where === there ? { ...object, [key]: value } : object;
          const changed = {
            data: where === 'data' ? value : DATA,
            _provenance: {
              manifest: put('assertions', put('claim', put('manifest', manifest, 'label'), 'claim.v2'), 'assertions'),
              credential: put(
                'credential',
                { ...credential, credentialSubject: put('subject', subject, s), proof: put('proof', proof, p) },
                c,
              ),
            },
          };
          fc.pre(!sameJson(changed, honest));
          expect((await verify(changed)).outcome).toBe('contradicted');
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is never repeated in a reason', async () => {
    const secret = 'hunter2 <script>';
    for (const path of ['issuer', 'type', 'id', 'validFrom', secret]) {
      const verification = await verify(await resigned((unsigned) => ({ ...unsigned, [path]: secret })));
      expect(verification.outcome).toBe('contradicted');
      expect(JSON.stringify(verification)).not.toContain('hunter2');
    }
  });

  it('of 20,000 levels is read without a stack', async () => {
    const deep: unknown = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000));
    expect((await verify({ ...honest, data: deep })).checks.data_digest.result).toBe('fail');
    expect((await verify(deep)).outcome).toBe('contradicted');
  });
});
