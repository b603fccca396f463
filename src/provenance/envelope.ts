/**
 * An answer with its evidence: `{ data, _provenance: { manifest, credential } }`, made and signed in one step. This is the
 * only place that signs, and it signs nothing but this. The time, the ids and the key are arguments.
 */
import { canonicalJson, digest, formatDigest, parseDigest, sha256 } from './canonical.ts';
import { CONTEXTS, CREDENTIAL_TYPES, PROOF_PURPOSE } from './credential.ts';
import type { Credential, Payment, Proof, UnsignedCredential } from './credential.ts';
import { toDateTimeStamp } from './date-time.ts';
import { verificationMethodId } from './did.ts';
import { createProof, CRYPTOSUITE, PROOF_TYPE } from './eddsa-jcs-2022.ts';
import type { Signer } from './ed25519.ts';
import { buildManifest, type Manifest, type ManifestFacts } from './manifest.ts';

export interface Issuer {
  readonly did: string;
  /** See `verificationMethodId`. */
  readonly verificationMethod: string;
  readonly signer: Signer;
}

/** The issuer that signs under `did` with this key. */
export async function issuerOf(did: string, signer: Signer): Promise<Issuer> {
  return { did, signer, verificationMethod: await verificationMethodId(did, signer.publicKey) };
}

export interface EnvelopeFacts<Data> extends Omit<ManifestFacts, 'inputHash' | 'dataHash' | 'credentialId'> {
  readonly issuer: Issuer;
  /** See `requestDigest`. */
  readonly inputDigest: string;
  /** JSON; what JSON.stringify leaves out is not signed either. */
  readonly data: Data;
  /** Atomic units, or `'0'`. */
  readonly charged: string;
  readonly payment?: Payment;
  readonly environment?: 'local';
  readonly sample?: true;
}

export interface Envelope<Data> {
  readonly data: Data;
  readonly _provenance: { readonly manifest: Manifest; readonly credential: Credential };
}

/**
 * Signs an answer. `validFrom` and `created` are `now` in whole seconds.
 *
 * @throws RangeError for an `inputDigest` that is none; TypeError for data that has no canonical JSON.
 */
export async function issueEnvelope<Data>(facts: EnvelopeFacts<Data>): Promise<Envelope<Data>> {
  const { issuer, data, inputDigest, newId } = facts;
  const inputHash = parseDigest(inputDigest);
  if (!inputHash) throw new RangeError('inputDigest must be a sha256 digest');
  const dataHash = await sha256(canonicalJson(data));
  const credentialId = `urn:uuid:${newId()}`;
  const manifest = await buildManifest({ ...facts, inputHash, dataHash, credentialId });
  const time = toDateTimeStamp(facts.now);

  const unsigned: UnsignedCredential = {
    '@context': CONTEXTS,
    id: credentialId,
    type: CREDENTIAL_TYPES,
    issuer: issuer.did,
    validFrom: time,
    credentialSubject: {
      id: `urn:uuid:${newId()}`,
      operation: facts.operation,
      operationVersion: facts.operationVersion,
      inputDigest,
      dataDigest: formatDigest(dataHash),
      manifestDigest: await digest(manifest),
      charged: facts.charged,
      ...(facts.payment && { payment: facts.payment }),
      ...(facts.environment && { environment: facts.environment }),
      ...(facts.sample && { sample: facts.sample }),
    },
  };
  const options: Omit<Proof, 'proofValue' | '@context'> = {
    type: PROOF_TYPE,
    cryptosuite: CRYPTOSUITE,
    created: time,
    verificationMethod: issuer.verificationMethod,
    proofPurpose: PROOF_PURPOSE,
  };
  const proof = await createProof(unsigned, options, issuer.signer);
  return { data, _provenance: { manifest, credential: { ...unsigned, proof } } };
}
