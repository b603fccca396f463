import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonPointer, problemResponse, toWire, type Problem, type ProblemCode } from './problem.ts';

/** One problem of each code and the status it must get; the type makes a missing code an error. */
const EVERY: { readonly [Code in ProblemCode]: readonly [Extract<Problem, { code: Code }>, number] } = {
  invalid_json: [{ code: 'invalid_json', path: '/a', offset: 7 }, 400],
  invalid_utf8: [{ code: 'invalid_utf8', path: '' }, 400],
  duplicate_key: [{ code: 'duplicate_key', path: '/a' }, 400],
  nesting_too_deep: [{ code: 'nesting_too_deep', path: '/a', limit: 64 }, 400],
  too_many_values: [{ code: 'too_many_values', path: '/a', limit: 9 }, 400],
  invalid_unicode: [{ code: 'invalid_unicode', path: '/a' }, 400],
  unsafe_number: [{ code: 'unsafe_number', path: '/a' }, 400],
  invalid_request: [{ code: 'invalid_request', path: '', detail: 'a list is expected' }, 400],
  'context/invalid_request': [
    { code: 'context/invalid_request', path: '/messages', detail: 'messages is required' },
    400,
  ],
  'context/overflow': [{ code: 'context/overflow', token_count: 9, usable: 8, fixed_tokens: 3, prefix_tokens: 2 }, 422],
  'context/model_unresolved': [{ code: 'context/model_unresolved' }, 422],
  busy: [{ code: 'busy', retry_after_seconds: 5 }, 503],
  rate_limited: [{ code: 'rate_limited', retry_after_seconds: 5 }, 429],
  payload_too_large: [{ code: 'payload_too_large', limit_bytes: 8 }, 413],
  unsupported_media_type: [{ code: 'unsupported_media_type' }, 415],
  not_found: [{ code: 'not_found' }, 404],
  method_not_allowed: [{ code: 'method_not_allowed', allow: ['POST'] }, 405],
  unauthorized: [{ code: 'unauthorized' }, 401],
  forbidden_origin: [{ code: 'forbidden_origin' }, 403],
  malformed_payment: [{ code: 'malformed_payment', detail: 'it is not base64' }, 400],
  payment_required: [{ code: 'payment_required' }, 402],
  payment_invalid: [{ code: 'payment_invalid', reason: 'invalid_exact_evm_signature' }, 402],
  payment_expires_too_soon: [{ code: 'payment_expires_too_soon', needed_seconds: 30 }, 402],
  payment_failed: [{ code: 'payment_failed', reason: 'invalid_exact_evm_insufficient_balance' }, 402],
  payment_reused: [{ code: 'payment_reused' }, 409],
  payment_spent: [{ code: 'payment_spent', transaction: '0xab' }, 409],
  payment_exhausted: [{ code: 'payment_exhausted', retry_after_seconds: 9 }, 429],
  payment_identifier_reused: [{ code: 'payment_identifier_reused' }, 409],
  payer_exhausted: [{ code: 'payer_exhausted', retry_after_seconds: 9 }, 429],
  settlement_unknown: [{ code: 'settlement_unknown', retry_after_seconds: 9 }, 503],
  facilitator_unavailable: [{ code: 'facilitator_unavailable', retry_after_seconds: 9 }, 503],
  invalid_api_key: [{ code: 'invalid_api_key', reason: 'unknown' }, 401],
  credits_spent: [{ code: 'credits_spent', credits: '4999', price: '5000' }, 402],
  left_to_payment: [{ code: 'left_to_payment' }, 402],
  idempotency_key_reused: [{ code: 'idempotency_key_reused' }, 409],
  key_exhausted: [{ code: 'key_exhausted', retry_after_seconds: 9 }, 429],
  debit_unknown: [{ code: 'debit_unknown', retry_after_seconds: 9 }, 503],
  internal_error: [{ code: 'internal_error' }, 500],
};

describe('problems', () => {
  it.each(Object.values(EVERY))('%j has its status and says whether anything was charged', async (problem, status) => {
    const response = problemResponse(problem);
    expect(response.status).toBe(status);
    expect(response.headers.get('Cache-Control')).toBe('no-store');
    const body = (await response.json()) as { error: string; code: string; charged: unknown };
    expect(body.code).toBe(problem.code);
    expect([body.charged, body.error.includes('Nothing was charged.')]).toEqual(
      ['settlement_unknown', 'debit_unknown'].includes(problem.code) ? ['unknown', false] : [false, true],
    );
    const { code: _code, ...evidence } = problem;
    for (const [name, value] of Object.entries(evidence)) {
      expect(body).toHaveProperty(name, value);
    }
  });

  it('of size say what is too large: the body, or the text at a path', () => {
    const body = toWire({ code: 'payload_too_large', limit_bytes: 8 }).body;
    expect([body.error, 'path' in body]).toEqual(['The body is larger than 8 bytes. Nothing was charged.', false]);
    const text = toWire({ code: 'payload_too_large', limit_bytes: 8, path: '/messages/3' }).body;
    expect(text).toMatchObject({ path: '/messages/3', limit_bytes: 8 });
    expect(text.error).toContain('The text at /messages/3 is larger than 8 bytes.');
  });

  it('that may pass say when to come again; the others do not', () => {
    const waiting = Object.values(EVERY).filter(([problem]) => 'Retry-After' in toWire(problem).headers);
    expect(waiting.map(([{ code }]) => code)).toEqual([
      'busy',
      'rate_limited',
      'payment_exhausted',
      'payer_exhausted',
      'settlement_unknown',
      'facilitator_unavailable',
      'key_exhausted',
      'debit_unknown',
    ]);
  });

  it('of the body stand in the challenge, before anybody signs', () => {
    const refused = { code: 'invalid_request', path: '/messages', detail: 'at most 500 items' } as const;
    const { body } = toWire({ code: 'payment_required', refused });
    expect(body.error).toContain('at most 500 items');
    expect(body['refused']).toMatchObject({ code: 'invalid_request', path: '/messages' });
  });
});

describe('jsonPointer', () => {
  it('escapes as RFC 6901 says', () => {
    expect(jsonPointer([])).toBe('');
    expect(jsonPointer(['a/b', 'm~n', 0, ''])).toBe('/a~1b/m~0n/0/');
  });

  it('of a deep place names as much of the way as fits into a header', () => {
    const deep = jsonPointer(Array.from({ length: 64 }, (_, level) => `${level}`.padEnd(60, 'x')));
    expect(deep.length).toBeLessThanOrEqual(512);
    expect(deep.startsWith('/0xxx')).toBe(true);
    expect(
      deep
        .split('/')
        .slice(1)
        .every((key) => key.length === 60),
    ).toBe(true);
  });

  it('stays short and well-formed, whatever the keys are', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { maxLength: 3 }), (keys) => {
        const pointer = jsonPointer(keys.map((key) => `${key}\ud800`));
        expect(pointer.isWellFormed()).toBe(true);
        expect(pointer.length).toBeLessThanOrEqual(keys.length * 132);
        expect(pointer.match(/\//g)?.length ?? 0).toBe(keys.length);
      }),
    );
  });
});
