/**
 * x402 v2 over HTTP: PAYMENT-SIGNATURE in, PAYMENT-REQUIRED and PAYMENT-RESPONSE out. It translates between headers and
 * the gate, and decides nothing about money.
 */
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http';
import type { Operation } from '../operation.ts';
import { validate } from '../operations/validate.ts';
import { problemResponse, toWire, type Result } from '../problem.ts';
import type { Gate, GateAnswer } from './gate.ts';
import { parsePaymentHeader } from './payload.ts';

export type PaidHandler = (
  operation: Operation,
  headers: Headers,
  body: Result<unknown> | undefined,
) => Promise<Response>;

/** Paid answers are for the payer alone, and every challenge is made for its moment. */
const PRIVATE = 'private, no-store';

/** `body` is the request's parsed JSON; undefined where the caller sent none, as crawlers do. */
export function createHttpAdapter(gate: Gate, resourceUrl: (operation: Operation) => string): PaidHandler {
  return async (operation, headers, body) => {
    const header = headers.get('PAYMENT-SIGNATURE');
    const parsed = header === null ? undefined : parsePaymentHeader(header);
    if (parsed?.ok === false) return problemResponse(parsed.problem);
    const input = body?.ok ? validate(operation, body.value) : body;
    return toHttp(await gate.admit({ operation, resourceUrl: resourceUrl(operation), input, payment: parsed?.value }));
  };
}

function toHttp(answer: GateAnswer): Response {
  switch (answer.kind) {
    case 'answered': {
      const headers = new Headers({ 'Content-Type': 'application/json', 'Cache-Control': PRIVATE });
      if (answer.settlement) headers.set('PAYMENT-RESPONSE', encodePaymentResponseHeader(answer.settlement));
      return new Response(answer.body, { headers });
    }
    case 'challenged': {
      const { status, body } = toWire(answer.problem);
      const headers = new Headers({ 'Content-Type': 'application/json', 'Cache-Control': PRIVATE });
      const challenge = { ...answer.challenge, error: body.error };
      headers.set('PAYMENT-REQUIRED', encodePaymentRequiredHeader(challenge));
      if (answer.settlement) headers.set('PAYMENT-RESPONSE', encodePaymentResponseHeader(answer.settlement));
      return new Response(JSON.stringify({ ...challenge, ...body }), { status, headers });
    }
    case 'refused':
      return problemResponse(answer.problem);
  }
}
