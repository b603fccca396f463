import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isOver, judge, type Verdict } from './verdict.ts';

/** README's table of what an operation answers, and what proxies add to it: before the payment runs out, and after. */
const TABLE: readonly [status: number, code: string | undefined, verdict: Verdict, over?: Verdict][] = [
  [200, undefined, 'answered'],
  [400, 'invalid_request', 'kept'],
  [400, 'malformed_payment', 'kept'],
  [401, undefined, 'kept'],
  [402, 'payment_failed', 'void'],
  [402, 'payment_invalid', 'kept', 'void'],
  [402, 'payment_expires_too_soon', 'kept', 'void'],
  [402, 'payment_required', 'kept'],
  [402, undefined, 'kept'],
  [404, 'not_found', 'kept'],
  [409, 'payment_reused', 'kept'],
  [409, 'payment_spent', 'kept'],
  [413, 'payload_too_large', 'kept'],
  [422, 'context/overflow', 'kept'],
  [429, 'payment_exhausted', 'kept'],
  [500, 'internal_error', 'kept'],
  [502, undefined, 'ask_again'],
  [503, 'settlement_unknown', 'ask_again'],
  [503, 'facilitator_unavailable', 'ask_again'],
  [503, undefined, 'ask_again'],
  [503, 'busy', 'kept'],
  [504, undefined, 'ask_again'],
];

describe('judge', () => {
  it.each(TABLE)('%d %s: %s', (status, code, verdict, over = verdict) => {
    expect([judge(status, code, false), judge(status, code, true)]).toEqual([verdict, over]);
  });

  it('takes nothing for a proof that is none, whatever comes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999 }), fc.anything(), fc.boolean(), (status, code, over) => {
        const isProof =
          status === 402 &&
          (code === 'payment_failed' ||
            (over && ['payment_invalid', 'payment_expires_too_soon'].includes(String(code))));
        expect(judge(status, code, over) === 'void').toBe(isProof);
        expect(judge(status, code, over) === 'answered').toBe(status === 200);
      }),
    );
  });
});

it('a payment is over a minute after its end, and not before', () => {
  const at = (seconds: number): boolean => isOver({ validBefore: 1_000 }, new Date(seconds * 1_000));
  expect([at(999), at(1_001), at(1_060), at(1_061)]).toEqual([false, false, false, true]);
});
