/**
 * What it costs to issue evidence and to check it: beside @digitalbazaar/vc with the same cryptosuite, and beside the least that any
 * implementation has to do, which is canonical JSON, SHA-256 and one native Ed25519 operation.
 */
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto';
import { canonicalJson, requestDigest } from '../src/provenance/canonical.ts';
import { didDocument, didKey, verificationMethodId } from '../src/provenance/did.ts';
import { createProof, verifyProof } from '../src/provenance/eddsa-jcs-2022.ts';
import { createSigner } from '../src/provenance/ed25519.ts';
import { issueEnvelope } from '../src/provenance/envelope.ts';
import { verifyEnvelope } from '../src/provenance/verify.ts';
import { signerOfTheirs, verifyByThem } from '../test/digitalbazaar.ts';
import { cells, head, medianMs } from './measure.ts';

const RUNS = 301;
const DATA_CHARS = [1_000, 1_000_000] as const;

export async function benchEvidence(): Promise<void> {
  const seed = new Uint8Array(32).fill(11);
  const signer = await createSigner(seed);
  const did = didKey(signer.publicKey);
  const issuer = { did, verificationMethod: await verificationMethodId(did, signer.publicKey), signer };
  const trusted = await didDocument(did, [signer]);
  const theirs = await signerOfTheirs(seed, trusted);
  const native = generateKeyPairSync('ed25519');
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();

  const issue = async (data: unknown) =>
    issueEnvelope({
      issuer,
      operation: 'count',
      operationVersion: '1.0.0',
      title: 'Token count',
      generator: { name: 'context-evidence-kit', version: '0.1.0' },
      deterministic: true,
      versions: { engine: 'count/1.0.0' },
      inputDigest: await requestDigest('count', {}),
      data,
      charged: '1000',
      now: new Date(),
      newId: () => crypto.randomUUID(),
    });
  const { credential } = (await issue({ tokens: 1 }))._provenance;
  const { proof: whole, ...unsigned } = credential;
  const { proofValue: _, '@context': __, ...options } = whole;
  const bytes = Buffer.concat([hash(canonicalJson(options)), hash(canonicalJson(unsigned))]);
  const signature = sign(null, bytes, native.privateKey);

  process.stdout.write(
    '\nThe credential alone, its proof made and checked; in brackets how many times as long as ours.\n\n',
  );
  head('', 'ours, ms', '@digitalbazaar/vc, ms', 'the least, ms');
  const ratio = (ms: number, to: number): string => `${ms.toFixed(3)} (${(ms / to).toFixed(1)})`;
  const made = await medianMs(() => createProof(unsigned, { ...options, created: whole.created }, signer), RUNS);
  cells(
    'sign',
    made.toFixed(3),
    ratio(await medianMs(() => theirs(unsigned), RUNS), made),
    ratio(
      await medianMs(
        () =>
          sign(null, Buffer.concat([hash(canonicalJson(options)), hash(canonicalJson(unsigned))]), native.privateKey),
        RUNS,
      ),
      made,
    ),
  );
  const checked = await medianMs(() => verifyProof(credential, signer.publicKey), RUNS);
  cells(
    'verify',
    checked.toFixed(3),
    ratio(await medianMs(() => verifyByThem(credential, trusted), RUNS), checked),
    ratio(
      await medianMs(
        () =>
          verify(
            null,
            Buffer.concat([hash(canonicalJson(options)), hash(canonicalJson(unsigned))]),
            native.publicKey,
            signature,
          ),
        RUNS,
      ),
      checked,
    ),
  );

  process.stdout.write(
    '\nA whole answer: manifest, digests and credential; the least is to hash its data once, and the above.\n\n',
  );
  head(
    'data',
    'issue, ms',
    'the least',
    'verify with all checks, ms',
    'the least',
    '@digitalbazaar/vc, of the credential alone',
  );
  for (const chars of DATA_CHARS) {
    const data = { text: 'evidence '.repeat(chars / 9) };
    const envelope = await issue(data);
    const issuing = await medianMs(() => issue(data), RUNS);
    const verifying = await medianMs(() => verifyEnvelope({ envelope, trusted, now: new Date() }), RUNS);
    const least = await medianMs(
      () => sign(null, Buffer.concat([hash(canonicalJson(data)), bytes]), native.privateKey),
      RUNS,
    );
    const leastCheck = await medianMs(
      () => [hash(canonicalJson(data)), verify(null, bytes, native.publicKey, signature)],
      RUNS,
    );
    const byThem = await medianMs(() => verifyByThem(envelope._provenance.credential, trusted), RUNS);
    cells(
      `${chars} characters`,
      issuing.toFixed(3),
      ratio(least, issuing),
      verifying.toFixed(3),
      ratio(leastCheck, verifying),
      ratio(byThem, verifying),
    );
  }
}
