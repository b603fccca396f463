/**
 * Whether what came back is the signed answer to this very call and payment. On top of `verifyEnvelope` it holds the
 * evidence against what the caller knows: the operation, the input, the price, the nonce. No network.
 */
import { isJsonObject, type JsonObject } from '../provenance/canonical.ts';
import { ANSWER_LIMITS, parseStrictJson } from '../provenance/strict-json.ts';
import { verifyEnvelope, type Verification } from '../provenance/verify.ts';
import { parseRequest } from '../request-json.ts';
import type { SignedPayment } from './payment.ts';

export interface AnswerToCheck {
  readonly url: URL;
  /** The bodies as they went over the wire. */
  readonly request: Uint8Array;
  readonly answer: Uint8Array;
  /** Undefined where the call was paid otherwise, as with an API key. */
  readonly payment: SignedPayment | undefined;
  /** The caller gave the call an Idempotency-Key, so an earlier payment of his may stand for this one. */
  readonly named: boolean;
  readonly trusted: JsonObject;
  readonly now: Date;
}

export type Evidence =
  | { readonly ok: true; readonly charged: bigint }
  | { readonly ok: false; readonly reason: string; readonly verification?: Verification };

export async function checkEvidence(answer: AnswerToCheck): Promise<Evidence> {
  const envelope = parseStrictJson(answer.answer, ANSWER_LIMITS);
  if (!envelope.ok) return { ok: false, reason: 'the answer is not JSON' };
  const request = parseRequest(answer.request);
  if (!request.ok) return { ok: false, reason: 'the request is not JSON, so nothing can say that it was answered' };
  const { trusted, now } = answer;
  const verification = await verifyEnvelope({ envelope: envelope.value, input: request.value, trusted, now });
  if (!verification.verified) {
    const broken = Object.values(verification.checks).find(({ result }) => result === 'fail');
    const doubtful = broken ?? verification.checks.issuer;
    return { ok: false, reason: doubtful.reason, verification };
  }
  const { credentialSubject: subject } = (envelope.value as Verified)._provenance.credential;
  const fault = findFault(subject, answer);
  if (fault !== undefined) return { ok: false, reason: fault, verification };
  return { ok: true, charged: BigInt(subject.charged) };
}

/** What the form rules of a credential that was verified vouch for. */
interface Verified {
  readonly _provenance: {
    readonly credential: {
      readonly credentialSubject: { readonly operation: string; readonly charged: string } & JsonObject;
    };
  };
}

type Subject = Verified['_provenance']['credential']['credentialSubject'];

function findFault(subject: Subject, { url, payment, named }: AnswerToCheck): string | undefined {
  if (subject.operation !== url.pathname.split('/').at(-1)) return 'it answers another operation';
  if (subject['sample'] === true) return 'it is a sample';
  if (!payment || subject.charged === '0') return undefined;
  if (subject.charged !== String(payment.amount)) return 'it says that another amount was charged';
  const { network, payer, nonce } = isJsonObject(subject['payment']) ? subject['payment'] : {};
  if (network !== payment.network || payer !== payment.payer) return 'it was paid by somebody else';
  // Under an Idempotency-Key the service answers for the payment that the key stands for, and leaves this one alone.
  return nonce === payment.nonce || named ? undefined : 'it was paid by another payment';
}
