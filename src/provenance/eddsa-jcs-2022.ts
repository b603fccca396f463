/**
 * The Data Integrity cryptosuite eddsa-jcs-2022 (W3C Recommendation vc-di-eddsa, 15 May 2025, section 3.3): create and
 * verify one proof over one document. It says whether a key signed a document; whose key it is, is asked elsewhere.
 */
import { canonicalJson, isJsonObject, sameJson, sha256, type JsonObject } from './canonical.ts';
import { parseDateTimeStamp } from './date-time.ts';
import { SIGNATURE_BYTES, verifySignature, type Signer } from './ed25519.ts';
import { decodeBase58, encodeBase58 } from './multikey.ts';

export const PROOF_TYPE = 'DataIntegrityProof';
export const CRYPTOSUITE = 'eddsa-jcs-2022';

/** The options with the document's `@context`: the part of a proof that is signed along with the document. */
export function proofConfiguration<Options extends JsonObject>(
  document: JsonObject,
  options: Options,
): Options & { readonly '@context'?: unknown } {
  return '@context' in document ? { ...options, '@context': document['@context'] } : options;
}

/** SHA-256 of the proof configuration, then SHA-256 of the document: the 64 bytes that are signed. Throws as `canonicalJson`. */
export async function hashData(document: JsonObject, configuration: JsonObject): Promise<Uint8Array> {
  const [proofHash, documentHash] = await Promise.all([
    sha256(canonicalJson(configuration)),
    sha256(canonicalJson(document)),
  ]);
  return Uint8Array.of(...proofHash, ...documentHash);
}

/**
 * A proof for a document that has none yet.
 *
 * @throws TypeError for options of another type or suite, a `created` that is no dateTimeStamp, or what `canonicalJson` refuses.
 */
export async function createProof<Options extends JsonObject>(
  document: JsonObject,
  options: Options,
  signer: Pick<Signer, 'sign'>,
): Promise<Options & { readonly '@context'?: unknown; readonly proofValue: string }> {
  if (!isForThisSuite(options)) throw new TypeError(`the options are not those of an ${CRYPTOSUITE} proof`);
  const configuration = proofConfiguration(document, options);
  const signature = await signer.sign(await hashData(document, configuration));
  return { ...configuration, proofValue: `z${encodeBase58(signature)}` };
}

export type ProofVerdict =
  /** `document` is what was signed: without the proof, and with the contexts that the proof names. */
  | { readonly verified: true; readonly document: JsonObject }
  | {
      readonly verified: false;
      readonly reason: 'proof_form' | 'proof_value' | 'context' | 'no_canonical_form' | 'signature';
    };

/**
 * Verifies the one proof of a document by a public key of 32 bytes. Any JSON may come in; it never throws on it.
 * Contexts may stand in the document after those of the proof, as the Recommendation has it; `document` is without them.
 * Stricter than it in one thing: a proof that names no context at all (`[]`) does not cover the document's.
 */
export async function verifyProof(secured: JsonObject, publicKey: Uint8Array): Promise<ProofVerdict> {
  const { proof, ...unsecured } = secured;
  if (!isJsonObject(proof)) return refuse('proof_form');
  const { proofValue, ...configuration } = proof;
  if (!isForThisSuite(configuration)) return refuse('proof_form');
  const signature = decodeProofValue(proofValue);
  if (!signature) return refuse('proof_value');

  let document: JsonObject = unsecured;
  if ('@context' in configuration) {
    if (!startsWithContexts(secured['@context'], configuration['@context'])) return refuse('context');
    document = { ...unsecured, '@context': configuration['@context'] };
  }
  let signed: Uint8Array;
  try {
    signed = await hashData(document, configuration);
  } catch {
    return refuse('no_canonical_form');
  }
  return (await verifySignature(signature, signed, publicKey)) ? { verified: true, document } : refuse('signature');
}

const refuse = (reason: (ProofVerdict & { verified: false })['reason']): ProofVerdict => ({ verified: false, reason });

function isForThisSuite(proof: JsonObject): boolean {
  const { type, cryptosuite, created } = proof;
  if (type !== PROOF_TYPE || cryptosuite !== CRYPTOSUITE) return false;
  return created === undefined || parseDateTimeStamp(created) !== undefined;
}

/** The 64 bytes of a `proofValue`: multibase base58btc, the only base that the suite allows. */
export function decodeProofValue(proofValue: unknown): Uint8Array | undefined {
  const signature = typeof proofValue === 'string' && proofValue.startsWith('z') && decodeBase58(proofValue.slice(1));
  return signature && signature.length === SIGNATURE_BYTES ? signature : undefined;
}

/** Contexts are compared by value, since inline ones are objects. */
function startsWithContexts(document: unknown, proof: unknown): boolean {
  const [all, first] = [document, proof].map(
    (contexts) => (Array.isArray(contexts) ? contexts : [contexts]) as unknown[],
  );
  if (!all || !first || first.length === 0) return false;
  return first.every((context, index) => sameJson(context, all[index]));
}
