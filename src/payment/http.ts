/**
 * x402 v2 over HTTP: PAYMENT-SIGNATURE in, PAYMENT-REQUIRED and PAYMENT-RESPONSE out. It translates between headers and
 * the gate, and decides nothing about money.
 */
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http';
import type { Operation } from '../operation.ts';
import { validate } from '../operations/validate.ts';
import { problemResponse, toWire, type Problem, type Result } from '../problem.ts';
import type { Gate, GateAnswer } from './gate.ts';
import { parsePaymentHeader } from './payload.ts';

export interface HttpCall {
  readonly requestId: string;
  readonly operation: Operation;
  readonly resourceUrl: string;
  readonly headers: Headers;
  /** The parsed JSON; undefined where the caller sent none, as crawlers do. */
  readonly body: Result<unknown> | undefined;
}

export const PAYMENT_HEADER = 'PAYMENT-SIGNATURE';

/** draft-ietf-httpapi-idempotency-key-header: the caller's own name for one call. Taken as it is, quotes and all. */
export const IDEMPOTENCY_HEADER = 'Idempotency-Key';
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export const API_KEY_HEADER = 'X-API-KEY';
/** What the key has left, in atomic USDC units. */
const CREDITS_HEADER = 'X-Credits-Remaining';

/** Paid answers are for the payer alone, and every challenge is made for its moment. */
const PRIVATE = 'private, no-store';

export async function payOverHttp(gate: Gate, { headers, body, ...call }: HttpCall): Promise<Response> {
  const idempotencyKey = headers.get(IDEMPOTENCY_HEADER) ?? undefined;
  if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) return problemResponse(BAD_KEY);
  const header = headers.get(PAYMENT_HEADER);
  const parsed = header === null ? undefined : parsePaymentHeader(header);
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
  );
}

const BAD_KEY: Problem = {
  code: 'invalid_request',
  path: '',
  detail: `the header ${IDEMPOTENCY_HEADER} has to be 1 to 255 visible ASCII characters`,
};

function toHttp(answer: GateAnswer): Response {
  if (answer.kind === 'refused' && !answer.challenge) return problemResponse(answer.problem);
  const headers = new Headers({ 'Content-Type': 'application/json', 'Cache-Control': PRIVATE });
  if (answer.settlement) headers.set('PAYMENT-RESPONSE', encodePaymentResponseHeader(answer.settlement));
  if (answer.kind === 'answered' && answer.credits !== undefined) headers.set(CREDITS_HEADER, answer.credits);
  if (answer.kind === 'answered') return new Response(answer.body, { headers });
  const { challenge, problem } = answer;
  if (challenge) headers.set('PAYMENT-REQUIRED', encodePaymentRequiredHeader(challenge));
  const { status, body } = toWire(problem);
  return new Response(JSON.stringify({ ...challenge, ...body }), { status, headers });
}
