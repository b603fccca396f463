/**
 * x402 over HTTP: PAYMENT-SIGNATURE in, PAYMENT-REQUIRED and PAYMENT-RESPONSE out; what v1 has in their place is v1.ts's. It
 * translates between headers and the gate, and decides nothing about money.
 */
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http';
import type { Operation } from '../operation.ts';
import { validate } from '../operations/validate.ts';
import { problemResponse, toWire, type Problem, type Result } from '../problem.ts';
import type { Gate, GateAnswer } from './gate.ts';
import { malformed, parsePaymentHeader, type Payment } from './payload.ts';
import { parseV1PaymentHeader, toV1Challenge, toV1Settlement, V1_PAYMENT_HEADER, V1_RESPONSE_HEADER } from './v1.ts';

export interface HttpCall {
  readonly requestId: string;
  readonly operation: Operation;
  readonly resourceUrl: string;
  readonly headers: Headers;
  /** The parsed JSON; undefined where the caller sent none, as crawlers do. */
  readonly body: Result<unknown> | undefined;
}

const PAYMENT_HEADER = 'PAYMENT-SIGNATURE';

/** Whether there is a payment in one of the headers that may carry one, good or not. */
export const carriesPayment = (headers: Headers): boolean =>
  headers.has(PAYMENT_HEADER) || headers.has(V1_PAYMENT_HEADER);

/** draft-ietf-httpapi-idempotency-key-header: the caller's own name for one call. Taken as it is, quotes and all. */
export const IDEMPOTENCY_HEADER = 'Idempotency-Key';
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export const API_KEY_HEADER = 'X-API-KEY';
/** What the key has left, in atomic USDC units. */
const CREDITS_HEADER = 'X-Credits-Remaining';

/** Paid answers are for the payer alone, and every challenge is made for its moment. */
const PRIVATE = 'private, no-store';

export async function payOverHttp(gate: Gate, { headers, body, ...call }: HttpCall): Promise<Response> {
  // Whoever sends too much is told so, whether or not he pays: what he sent was not read.
  if (body?.ok === false && body.problem.code === 'payload_too_large') return problemResponse(body.problem);
  const idempotencyKey = headers.get(IDEMPOTENCY_HEADER) ?? undefined;
  if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) return problemResponse(BAD_KEY);
  const parsed = readPayment(headers);
  if (parsed?.ok === false) return problemResponse(parsed.problem);
  const apiKey = headers.get(API_KEY_HEADER);
  const input = body?.ok ? validate(call.operation, body.value) : body;
  return toHttp(
    await gate.admit({
      ...call,
      input,
      payment: parsed?.value,
      ...(idempotencyKey && { idempotencyKey }),
      ...(apiKey !== null && { apiKey }),
    }),
    headers.has(V1_PAYMENT_HEADER),
  );
}

/** Of two payments in one request nobody could say which one is meant. */
function readPayment(headers: Headers): Result<Payment> | undefined {
  const [header, v1Header] = [headers.get(PAYMENT_HEADER), headers.get(V1_PAYMENT_HEADER)];
  if (header !== null && v1Header !== null)
    return malformed(`send ${PAYMENT_HEADER} or ${V1_PAYMENT_HEADER}, not both`);
  if (header !== null) return parsePaymentHeader(header);
  return v1Header === null ? undefined : parseV1PaymentHeader(v1Header);
}

const BAD_KEY: Problem = {
  code: 'invalid_request',
  path: '',
  detail: `the header ${IDEMPOTENCY_HEADER} has to be 1 to 255 visible ASCII characters`,
};

function toHttp(answer: GateAnswer, v1: boolean): Response {
  if (answer.kind === 'refused' && !answer.challenge) return problemResponse(answer.problem);
  const headers = new Headers({ 'Content-Type': 'application/json', 'Cache-Control': PRIVATE });
  if (answer.settlement) {
    headers.set('PAYMENT-RESPONSE', encodePaymentResponseHeader(answer.settlement));
    if (v1) headers.set(V1_RESPONSE_HEADER, encodePaymentResponseHeader(toV1Settlement(answer.settlement)));
  }
  if (answer.kind === 'answered' && answer.credits !== undefined) headers.set(CREDITS_HEADER, answer.credits);
  if (answer.kind === 'answered') return new Response(answer.body, { headers });
  const { challenge, problem } = answer;
  if (challenge) headers.set('PAYMENT-REQUIRED', encodePaymentRequiredHeader(challenge));
  const { status, body } = toWire(problem);
  // v2 clients read the header, and the body only where it is one of v1.
  return new Response(JSON.stringify({ ...(challenge && toV1Challenge(challenge)), ...body }), { status, headers });
}
