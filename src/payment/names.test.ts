/** The names that a caller gives a call: Idempotency-Key and payment-identifier; and what a payer may have for nothing. */
import type { Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf, paidTo, parsed, PRICE, setUpGate, signedPayment, textOf } from '../../test/payment-gate.ts';
import { startLocalChain, type LocalChain } from '../runtime/local-chain.ts';
import { PAYMENT_IDENTIFIER, type Payment } from './payload.ts';

let chain: LocalChain;
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(() => chain.stop());
const balanceOf = (owner: Address): Promise<bigint> => paidTo(chain, owner);

const KEY = { idempotencyKey: '"8e03978e-40d5-43dd-bc93-6894a57f9324"' };
const newAccount = () => privateKeyToAccount(generatePrivateKey());

describe('Idempotency-Key', () => {
  it('keeps an unpaid copy of the same request from being asked for a second payment while the first is open', async () => {
    let broken = true;
    const { call, payTo } = await setUpGate(chain, {
      settle: async (real, ...rest) => (broken ? Promise.reject(new Error('reset')) : real(...rest)),
    });
    const payment = await signedPayment(chain, call);
    expect(codeOf(await call(payment, { n: 1 }, KEY))).toBe('settlement_unknown');
    const unpaid = await call(undefined, { n: 1 }, KEY);
    expect(unpaid).toMatchObject({ problem: { code: 'settlement_unknown', retry_after_seconds: 2 } });
    expect(unpaid).not.toHaveProperty('challenge');
    // The key alone means nothing, nor does the request alone.
    expect(codeOf(await call(undefined, { n: 2 }, KEY))).toBe('payment_required');
    expect(codeOf(await call(undefined, { n: 1 }, { idempotencyKey: 'other' }))).toBe('payment_required');
    expect(codeOf(await call(undefined, { n: 1 }))).toBe('payment_required');
    broken = false;
    expect(codeOf(await call(payment, { n: 1 }, KEY))).toBe('answered');
    expect(codeOf(await call(undefined, { n: 1 }, KEY))).toBe('payment_required');
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('does so while the engine still runs', async () => {
    const { call } = await setUpGate(chain, {
      outcome: async () => {
        expect(codeOf(await call(undefined, { n: 1 }, KEY))).toBe('settlement_unknown');
        return Promise.reject(new Error('and then it breaks'));
      },
    });
    expect(codeOf(await call(await signedPayment(chain, call), { n: 1 }, KEY))).toBe('internal_error');
    expect(codeOf(await call(undefined, { n: 1 }, KEY))).toBe('payment_required');
  });

  it('gives a payer who signs again what he has paid for, and leaves the second payment alone', async () => {
    let broken = true;
    const { call, counts, payTo } = await setUpGate(chain, {
      settle: async (real, ...rest) => (broken ? Promise.reject(new Error('reset')) : real(...rest)),
    });
    const account = newAccount();
    const [first, second] = [
      await signedPayment(chain, call, PRICE, account),
      await signedPayment(chain, call, 0n, account),
    ];
    expect(codeOf(await call(first, { n: 1 }, KEY))).toBe('settlement_unknown');
    expect(codeOf(await call(second, { n: 1 }, KEY))).toBe('settlement_unknown');
    broken = false;
    const answer = await call(first, { n: 1 }, KEY);
    expect(codeOf(answer)).toBe('answered');
    // The wallet is empty by now, so the second payment could not even be verified.
    expect(await call(second, { n: 1 }, KEY)).toEqual(answer);
    expect(codeOf(await call(second, { n: 2 }, KEY))).toBe('payment_invalid');
    expect(counts.runs).toBe(1);
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('is a name of one payer only', async () => {
    const { call, counts } = await setUpGate(chain);
    const answers = [];
    for (let n = 0; n < 2; n += 1) answers.push(await call(await signedPayment(chain, call), { n: 1 }, KEY));
    expect(answers.map(codeOf)).toEqual(['answered', 'answered']);
    expect(textOf(answers[0] as never)).not.toBe(textOf(answers[1] as never));
    expect(counts.runs).toBe(2);
  });

  it('has to be said again with the payment', async () => {
    const { call } = await setUpGate(chain);
    const payment = await signedPayment(chain, call);
    expect(codeOf(await call(payment, { n: 1 }, KEY))).toBe('answered');
    for (const more of [{}, { idempotencyKey: 'other' }]) {
      expect(codeOf(await call(payment, { n: 1 }, more))).toBe('payment_reused');
    }
  });

  it('lets one of two payments through that arrive together', async () => {
    const { call, counts, payTo } = await setUpGate(chain);
    const account = newAccount();
    const payments = await Promise.all([1, 2, 3].map(() => signedPayment(chain, call, PRICE, account)));
    const answers = await Promise.all(payments.map((payment) => call(payment, { n: 1 }, KEY)));
    expect(answers.filter(({ kind }) => kind === 'answered').length).toBeGreaterThan(0);
    for (const payment of payments) expect(codeOf(await call(payment, { n: 1 }, KEY))).toBe('answered');
    expect(counts).toMatchObject({ runs: 1, settles: 1 });
    expect(await balanceOf(payTo)).toBe(PRICE);
  });
});

describe('payment-identifier', () => {
  const ID = 'pay_7d5d747be160e280504c099d984bcfe0';
  const withId = (payment: Payment, id: unknown): unknown => ({
    ...payment.payload,
    extensions: { ...payment.payload.extensions, [PAYMENT_IDENTIFIER]: { info: { required: false, id } } },
  });

  it('is declared in the challenge, and no id is needed', async () => {
    const { call } = await setUpGate(chain);
    expect(await call(undefined)).toMatchObject({
      challenge: { extensions: { [PAYMENT_IDENTIFIER]: { info: { required: false }, schema: { type: 'object' } } } },
    });
    const payment = await signedPayment(chain, call);
    expect(payment.payload.extensions).toHaveProperty([PAYMENT_IDENTIFIER, 'info', 'required'], false);
    expect(payment).not.toHaveProperty('identifier');
    expect(codeOf(await call(payment))).toBe('answered');
  });

  it('with the same payload gives the stored answer, with another one 409 and no charge', async () => {
    const { call, counts, payTo } = await setUpGate(chain);
    const account = newAccount();
    const [one, two] = [
      await signedPayment(chain, call, 10n * PRICE, account),
      await signedPayment(chain, call, 0n, account),
    ];
    const first = parsed(withId(one, ID));
    const answer = await call(first);
    expect(codeOf(answer)).toBe('answered');
    expect(await call(first)).toEqual(answer);
    expect(codeOf(await call(first, { n: 2 }))).toBe('payment_reused');
    expect(codeOf(await call(parsed(withId(two, ID))))).toBe('payment_identifier_reused');
    expect(codeOf(await call(parsed(withId(two, ID)), { n: 2 }))).toBe('payment_identifier_reused');
    expect(counts.runs).toBe(1);
    expect(await balanceOf(payTo)).toBe(PRICE);
    // The answer is sealed under the id: a copy of the payment from the chain does not open it.
    expect(codeOf(await call(one))).toBe('payment_reused');
    expect(codeOf(await call(parsed(withId(two, `${ID}_2`)), { n: 2 }))).toBe('answered');
  });

  it('is another’s where the payer is another', async () => {
    const { call } = await setUpGate(chain);
    for (let n = 0; n < 2; n += 1) {
      expect(codeOf(await call(parsed(withId(await signedPayment(chain, call), ID))))).toBe('answered');
    }
  });

  it('is free again after an answer that was not charged', async () => {
    let billable = false;
    const { call } = await setUpGate(chain, {
      outcome: () => ({ kind: 'answer', billable, data: { versions: {}, ran: 1 } }),
    });
    const account = newAccount();
    const [one, two] = [
      await signedPayment(chain, call, 10n * PRICE, account),
      await signedPayment(chain, call, 0n, account),
    ];
    expect(codeOf(await call(parsed(withId(one, ID))))).toBe('answered');
    billable = true;
    expect(await call(parsed(withId(two, ID)))).toMatchObject({ kind: 'answered', settlement: { success: true } });
  });

  it('where required: its lack is a bad request, and the challenge says so', async () => {
    const { call, counts } = await setUpGate(chain, { identifierRequired: true });
    expect(await call(undefined)).toMatchObject({
      challenge: { extensions: { [PAYMENT_IDENTIFIER]: { info: { required: true } } } },
    });
    const payment = await signedPayment(chain, call);
    expect(codeOf(await call(payment))).toBe('malformed_payment');
    expect(counts.verifies).toBe(0);
    expect(codeOf(await call(parsed(withId(payment, ID))))).toBe('answered');
  });
});

describe('answers for nothing', () => {
  it('have an end for one payer, whatever number of payments, and not for another', async () => {
    let billable = false;
    const { call, counts } = await setUpGate(chain, {
      outcome: () => ({ kind: 'answer', billable, data: { versions: {}, ran: 1 } }),
    });
    const account = newAccount();
    const challenge = await signedPayment(chain, call, PRICE, account);
    const payments = [challenge];
    // A hundred free answers at three a payment.
    for (let n = 1; n < 34; n += 1) payments.push(await signedPayment(chain, call, 0n, account));
    const codes: string[] = [];
    for (const payment of payments) for (const n of [1, 2, 3]) codes.push(codeOf(await call(payment, { n })));
    expect(codes.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 'answered'));
    expect(codes.slice(100)).toEqual(['payer_exhausted', 'payer_exhausted']);
    expect(counts.runs).toBe(100);
    billable = true;
    expect(codeOf(await call(await signedPayment(chain, call), { n: 1 }))).toBe('answered');
  });
});
