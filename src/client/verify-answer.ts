/**
 * Checks a saved answer without asking anybody: against the issuer whom the caller names, offline, with no other package than
 * the ones of this file's imports. An auditor can read all of it.
 */
import { isJsonObject, type JsonObject } from '../json.ts';
import type { Problem } from '../problem.ts';
import { didDocument, didKeyPublicKey } from '../provenance/did.ts';
import { ANSWER_LIMITS, parseStrictJson } from '../provenance/strict-json.ts';
import { readEnvelope, verifyEnvelope, type UncheckedEnvelope, type Verification } from '../provenance/verify.ts';
import { parseRequest } from '../request-json.ts';

export interface AnswerToVerify {
  /** `{ data, _provenance }` as it came, in bytes or text: what a parser has gone over may have lost what is wrong with it. */
  readonly answer: Uint8Array | string;
  /** The request's body as it was sent, where the holder has it. */
  readonly input?: Uint8Array | string;
  /**
   * Who is believed: a did:key, or the DID document of a did:web, kept from a time when it was trusted. Without it nobody is, and an
   * answer can be contradicted but not verified.
   */
  readonly issuer?: string | JsonObject;
  readonly now?: Date;
}

export type VerifiedAnswer =
  | {
      readonly ok: true;
      readonly verification: Verification;
      readonly envelope: UncheckedEnvelope;
      readonly input: unknown;
    }
  /** Nothing to verify: `of` says which text is no JSON that two readers agree on, or has not the parts of an answer. */
  | { readonly ok: false; readonly of: 'answer' | 'input'; readonly problem: Problem };

/** @throws RangeError for an issuer that is neither a did:key with an Ed25519 key nor a document with an id. */
export async function verifyAnswer({
  answer,
  input,
  issuer,
  now = new Date(),
}: AnswerToVerify): Promise<VerifiedAnswer> {
  const trusted = await documentOf(issuer);
  const parsed = parseStrictJson(answer, ANSWER_LIMITS);
  if (!parsed.ok) return { ok: false, of: 'answer', problem: parsed.problem };
  const read = readEnvelope(parsed.value);
  if (!read.ok) return { ok: false, of: 'answer', problem: read.problem };
  const request =
    input === undefined ? undefined : parseRequest(typeof input === 'string' ? utf8.encode(input) : input);
  if (request && !request.ok) return { ok: false, of: 'input', problem: request.problem };
  const asked = request?.value;
  const verification = await verifyEnvelope({ envelope: parsed.value, input: asked, trusted, now });
  return { ok: true, verification, envelope: read.envelope, input: asked };
}

const utf8 = new TextEncoder();

async function documentOf(issuer: string | JsonObject | undefined): Promise<JsonObject> {
  if (issuer === undefined) return {};
  if (isJsonObject(issuer)) {
    if (typeof issuer['id'] !== 'string') throw new RangeError('a DID document has an id');
    return issuer;
  }
  const publicKey = didKeyPublicKey(`${issuer}#${issuer.slice('did:key:'.length)}`);
  if (!publicKey) throw new RangeError('only a did:key says its own key; of another DID the document is needed');
  return didDocument(issuer, [{ publicKey }]);
}
