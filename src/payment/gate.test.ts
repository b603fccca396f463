/** The gate against the real chain and contract; only the facilitator's word is bent, by a wrapper around the real one. */
import type { SettleResponse } from '@x402/core/types';
import type { Address } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  codeOf,
  paidTo,
  parsed,
  PRICE,
  setUpGate,
  signedPayment as signPayment,
  textOf,
  type GateOptions,
} from '../../test/payment-gate.ts';
import { emptyWallet } from '../../test/service.ts';
import type { Outcome } from '../operation.ts';
import { startLocalChain, type LocalChain } from '../runtime/local-chain.ts';
import { createChainView } from './chain.ts';
import type { GateAnswer } from './gate.ts';
import { BASE_SEPOLIA } from './networks.ts';
import type { Payment } from './payload.ts';

let chain: LocalChain;
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(() => chain.stop());

const setUp = (options?: GateOptions) => setUpGate(chain, options);
const signedPayment = (call: (payment: undefined) => Promise<GateAnswer>, funds?: bigint): Promise<Payment> =>
  signPayment(chain, call, funds);
const balanceOf = (owner: Address): Promise<bigint> => paidTo(chain, owner);

describe('one payment, one request', () => {
  it('runs once, settles once and gives 20 concurrent copies equal bytes', async () => {
    const { call, counts, payTo } = await setUp();
    const payment = await signedPayment(call, 10n * PRICE);
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(payment)));
    expect(new Set(answers.map(textOf)).size).toBe(1);
    expect(answers.every(({ kind }) => kind === 'answered')).toBe(true);
    expect(counts).toMatchObject({ runs: 1, settles: 1, errors: [] });
    expect(await balanceOf(payTo)).toBe(PRICE);
    expect(textOf(await call(payment))).toBe(textOf(answers[0] as GateAnswer));
    expect(counts).toMatchObject({ runs: 1, settles: 1 });
  });

  it('refuses another request under the same payment, before, while and after it runs', async () => {
    const { call, counts, payTo } = await setUp();
    const payment = await signedPayment(call, 10n * PRICE);
    const both = await Promise.all([call(payment, { n: 1 }), call(payment, { n: 2 })]);
    expect(both.map(codeOf).toSorted()).toEqual(['answered', 'payment_reused']);
    expect(codeOf(await call(payment, { n: 3 }))).toBe('payment_reused');
    expect(counts).toMatchObject({ runs: 1, settles: 1 });
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('gives the stored answer to nobody whose copy of the payment differs in any signed field or in the signature', async () => {
    const { call } = await setUp();
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('answered');
    const { authorization, signature } = payment.payload.payload as {
      authorization: Record<string, string>;
      signature: string;
    };
    const forged = [
      { authorization, signature: `${signature.slice(0, -2)}1f` },
      { authorization: { ...authorization, value: '1' }, signature },
      { authorization: { ...authorization, to: authorization['from'] }, signature },
      { authorization: { ...authorization, validBefore: String(Number(authorization['validBefore']) + 1) }, signature },
    ];
    for (const payload of forged) {
      expect(codeOf(await call(parsed({ ...payment.payload, payload })))).toBe('payment_reused');
    }
  });

  it('judges a resend by what was asked for, not by what the resend says was accepted', async () => {
    const { call, payTo } = await setUp({ settle: async () => Promise.reject(new Error('reset')) });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('settlement_unknown');
    const accepted = { ...payment.payload.accepted, amount: '0', payTo: payment.authorization.payer };
    expect(codeOf(await call(parsed({ ...payment.payload, accepted })))).toBe('settlement_unknown');
    expect(await balanceOf(payTo)).toBe(0n);
  });

  it('knows a payment under whatever network and token it is relabelled', async () => {
    const { call, payTo } = await setUp();
    const payment = await signedPayment(call, 10n * PRICE);
    expect(codeOf(await call(payment))).toBe('answered');
    const accepted = { ...payment.payload.accepted, network: 'eip155:1', asset: payTo };
    const relabelled = parsed({ ...payment.payload, accepted });
    expect(codeOf(await call(relabelled, { n: 2 }))).toBe('payment_reused');
    expect(codeOf(await call(relabelled))).toBe('answered');
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('answers many payments at once', async () => {
    const { call, counts, payTo } = await setUp();
    const payments = await Promise.all(Array.from({ length: 12 }, () => signedPayment(call)));
    const answers = await Promise.all(payments.map((payment) => call(payment)));
    expect(answers.map(codeOf)).toEqual(payments.map(() => 'answered'));
    expect(counts.runs).toBe(12);
    expect(await balanceOf(payTo)).toBe(12n * PRICE);
  });
});

describe('what costs nothing', () => {
  it('does not run, verify or settle for a refused input', async () => {
    const { gate, call, operation, counts } = await setUp();
    const payment = await signedPayment(call);
    const input = { ok: false, problem: { code: 'invalid_json', path: '', offset: 0 } } as const;
    const answer = await gate.admit({ requestId: 'r2', operation, resourceUrl: '', input, payment });
    expect(codeOf(answer)).toBe('invalid_json');
    expect(counts).toMatchObject({ runs: 0, verifies: 0, settles: 0 });
    expect(codeOf(await call(payment))).toBe('answered');
  });

  it('releases a payment for any body after an uncharged answer, three times, and then refuses it', async () => {
    const data = { versions: {}, ran: 0 };
    let time = Date.now();
    const outcome = () => ({ kind: 'answer', billable: false, data }) as const;
    const { call, counts, payTo } = await setUp({ outcome, now: () => time });
    const payment = await signedPayment(call);
    for (const n of [1, 2, 3]) {
      const answer = await call(payment, { n });
      expect(answer).toMatchObject({ kind: 'answered' });
      expect(answer).not.toHaveProperty('settlement');
      expect(JSON.parse(textOf(answer))).toHaveProperty('_provenance.credential.credentialSubject.charged', '0');
    }
    expect(codeOf(await call(payment, { n: 4 }))).toBe('payment_exhausted');
    expect(counts).toMatchObject({ runs: 3, settles: 0 });
    expect(await balanceOf(payTo)).toBe(0n);
    time = payment.authorization.validBefore * 1_000;
    expect(codeOf(await call(payment, { n: 5 }))).toBe('payment_expires_too_soon');
  });

  it('charges a released payment when a later answer is billable', async () => {
    const outcomes: Outcome<{ versions: Record<string, unknown>; ran: number }>[] = [
      { kind: 'problem', billable: false, problem: { code: 'invalid_request', path: '', detail: 'no' } },
      { kind: 'answer', billable: true, data: { versions: {}, ran: 2 } },
    ];
    const { call, payTo } = await setUp({ outcome: () => outcomes.shift() as (typeof outcomes)[number] });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment, { n: 1 }))).toBe('invalid_request');
    expect(codeOf(await call(payment, { n: 2 }))).toBe('answered');
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('does not charge for an engine that throws, and says so', async () => {
    const { call, counts, payTo } = await setUp({ outcome: () => Promise.reject(new Error('a secret of the caller')) });
    expect(codeOf(await call(await signedPayment(call)))).toBe('internal_error');
    expect(counts).toMatchObject({ settles: 0, errors: ['engine_failed r1'] });
    expect(await balanceOf(payTo)).toBe(0n);
  });

  it('challenges an empty wallet, a payment for another price and one that ends too soon or too late', async () => {
    const { call, counts } = await setUp();
    expect(codeOf(await call(await signedPayment(call, 0n)))).toBe('payment_invalid');
    const payment = await signedPayment(call);
    const cheap = parsed({ ...payment.payload, accepted: { ...payment.payload.accepted, amount: '1' } });
    expect(codeOf(await call(cheap))).toBe('payment_invalid');
    const validBefore = payment.authorization.validBefore * 1_000;
    const late = await setUp({ now: () => validBefore - 29_000 });
    expect(codeOf(await late.call(payment))).toBe('payment_invalid'); // of another gate's PAY_TO
    const own = await signedPayment(late.call);
    expect(codeOf(await late.call(own))).toBe('payment_expires_too_soon');
    const early = await setUp({ now: () => validBefore - 25 * 3_600_000 });
    expect(await early.call(await signedPayment(early.call))).toMatchObject({
      problem: { reason: 'valid_before_too_far_ahead' },
    });
    expect(counts.runs + late.counts.runs + early.counts.runs).toBe(0);
  });
});

describe('a settlement that went wrong', () => {
  const pending: SettleResponse = {
    success: false,
    errorReason: 'settlement_pending',
    transaction: '0xabc',
    network: 'eip155:84532',
  };
  /** Says that nothing was sent, and so it is: the wallet has been emptied since it was verified. */
  const refusal =
    (errorReason: string): NonNullable<GateOptions['settle']> =>
    async (_, { payload }) => {
      await emptyWallet(chain, (payload as { authorization: { from: Address } }).authorization.from);
      return { ...pending, transaction: '', errorReason, errorMessage: 'internals' };
    };
  /** How the facilitator answers after it has settled, or without having settled. */
  const answers: Readonly<Record<string, () => Promise<SettleResponse>>> = {
    'a reset connection': () => Promise.reject(new Error('socket hang up')),
    settlement_pending: async () => pending,
    nonce_already_used: async () => ({
      ...pending,
      transaction: '',
      errorReason: 'invalid_exact_evm_nonce_already_used',
    }),
    transaction_failed: async () => ({
      ...pending,
      transaction: '',
      errorReason: 'invalid_exact_evm_transaction_failed',
    }),
    'success without a transaction': async () => ({ ...pending, success: true, transaction: '' }),
    'success with an invented transaction': async () => ({
      ...pending,
      success: true,
      transaction: `0x${'ab'.repeat(32)}`,
    }),
    'no funds, which is not true': async () => ({
      ...pending,
      transaction: '',
      errorReason: 'invalid_exact_evm_insufficient_balance',
    }),
    'no reason at all': async () => ({ success: false, transaction: '', network: 'eip155:84532' }),
  };

  it.each(Object.entries(answers))(
    'after the transfer went through: %s is found on the chain and answered',
    async (_, answer) => {
      const { call, counts, payTo } = await setUp({
        settle: async (real, ...rest) => {
          await real(...rest);
          return answer();
        },
      });
      const payment = await signedPayment(call, 10n * PRICE);
      const first = await call(payment);
      expect(first).toMatchObject({
        kind: 'answered',
        settlement: { success: true, transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
      });
      expect(textOf(await call(payment))).toBe(textOf(first));
      expect(counts.runs).toBe(1);
      expect(await balanceOf(payTo)).toBe(PRICE);
    },
  );

  it.each(Object.entries(answers))(
    'before any transfer: %s is unknown, never 402, and a resend settles once',
    async (_, answer) => {
      let broken = true;
      const { call, counts, payTo } = await setUp({
        settle: async (real, ...rest) => (broken ? answer() : real(...rest)),
      });
      const payment = await signedPayment(call, 10n * PRICE);
      expect(codeOf(await call(payment))).toBe('settlement_unknown');
      expect(codeOf(await call(payment))).toBe('settlement_unknown');
      expect(codeOf(await call(payment, { n: 2 }))).toBe('payment_reused');
      broken = false;
      expect(codeOf(await call(payment))).toBe('answered');
      expect(codeOf(await call(payment))).toBe('answered');
      expect(counts.runs).toBe(1);
      expect(await balanceOf(payTo)).toBe(PRICE);
    },
  );

  it('stays unknown while neither facilitator nor chain can be asked', async () => {
    let down = true;
    const view = createChainView({ rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: chain.usdc });
    const { call, payTo } = await setUp({
      settle: async (real, ...rest) => {
        const settled = await real(...rest);
        return down ? Promise.reject(new Error('timeout')) : settled;
      },
      chain: {
        authorizationState: (...ask) => (down ? Promise.reject(new Error('down')) : view.authorizationState(...ask)),
      },
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('settlement_unknown');
    expect(codeOf(await call(payment))).toBe('settlement_unknown');
    down = false;
    expect(codeOf(await call(payment))).toBe('answered');
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('is a definite failure only where nothing can have been sent; then the payment is dead', async () => {
    const { call, counts, payTo } = await setUp({
      settle: refusal('invalid_exact_evm_insufficient_balance'),
    });
    const payment = await signedPayment(call);
    const answer = await call(payment);
    expect(answer).toMatchObject({
      kind: 'refused',
      challenge: { x402Version: 2 },
      problem: { code: 'payment_failed' },
      settlement: { success: false },
    });
    expect(codeOf(await call(payment))).toBe('payment_failed');
    expect(counts).toMatchObject({ runs: 1, settles: 1 });
    expect(await balanceOf(payTo)).toBe(0n);
  });

  it('is decided by the chain when the facilitator never answers', async () => {
    const { call, gate, counts, payTo } = await setUp({
      facilitatorTimeoutMs: 300,
      settle: async (real, ...rest) => {
        await real(...rest);
        return new Promise<never>(() => {});
      },
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('answered');
    await gate.idle();
    expect(counts).toMatchObject({ runs: 1, settles: 1, errors: ['settlement_unanswered r1'] });
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('stays unknown where it failed by a word, and the chain cannot be asked any more', async () => {
    let down = false;
    const view = createChainView({ rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: chain.usdc });
    const { call } = await setUp({
      settle: refusal('invalid_exact_evm_insufficient_balance'),
      chain: {
        authorizationState: (...ask) => (down ? Promise.reject(new Error('down')) : view.authorizationState(...ask)),
      },
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('payment_failed');
    down = true;
    expect(codeOf(await call(payment))).toBe('settlement_unknown');
  });

  it('tells of a failure the reason’s name, not the facilitator’s message', async () => {
    const { call } = await setUp({ settle: refusal('invalid_exact_evm_signature') });
    const answer = await call(await signedPayment(call));
    expect(codeOf(answer)).toBe('payment_failed');
    expect(JSON.stringify(answer)).not.toContain('internals');
  });

  it('is never a failure by a facilitator’s word once an attempt was left open', async () => {
    const words = [
      'invalid_exact_evm_insufficient_balance',
      'invalid_exact_evm_payload_authorization_valid_before',
      'invalid_exact_evm_signature',
    ];
    for (const errorReason of words) {
      let attempt = 0;
      const { call, payTo } = await setUp({
        settle: async (real, ...rest) => {
          attempt += 1;
          if (attempt === 1) return Promise.reject(new Error('timeout'));
          return attempt <= 3 ? { ...pending, transaction: '', errorReason } : real(...rest);
        },
      });
      const payment = await signedPayment(call);
      expect(codeOf(await call(payment))).toBe('settlement_unknown');
      expect(codeOf(await call(payment))).toBe('settlement_unknown');
      expect(codeOf(await call(payment))).toBe('settlement_unknown');
      expect(codeOf(await call(payment))).toBe('answered');
      expect(await balanceOf(payTo)).toBe(PRICE);
    }
  });

  it('is no failure either where the SDK asked twice by itself and was put off first', async () => {
    let attempt = 0;
    const { call, counts } = await setUp({
      settle: async () => {
        attempt += 1;
        if (attempt === 1) return pending;
        return { ...pending, transaction: '', errorReason: 'invalid_exact_evm_insufficient_balance' };
      },
    });
    expect(codeOf(await call(await signedPayment(call)))).toBe('settlement_unknown');
    expect(counts.settles).toBe(2);
  });

  it('goes on from a stored answer that was never sent to be settled', async () => {
    let broken = true;
    const { call, counts, payTo } = await setUp({
      ledger: (real) => ({
        ...real,
        advance: async (...step) => {
          if (broken && step[2].state === 'settling') throw new Error('disk full');
          return real.advance(...step);
        },
      }),
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('settlement_unknown');
    expect(counts.settles).toBe(0);
    broken = false;
    expect(codeOf(await call(payment))).toBe('answered');
    expect(counts).toMatchObject({ runs: 1, settles: 1 });
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('frees the payment where the answer could not be stored', async () => {
    let broken = true;
    const { call, counts, payTo } = await setUp({
      ledger: (real) => ({
        ...real,
        advance: async (...step) => {
          if (broken && step[2].state === 'computed') throw new Error('disk full');
          return real.advance(...step);
        },
      }),
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('internal_error');
    broken = false;
    expect(codeOf(await call(payment, { n: 2 }))).toBe('answered');
    expect(counts.settles).toBe(1);
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('says unknown, not "nothing charged", where the ledger breaks after the settlement', async () => {
    let broken = true;
    const { call, counts, payTo } = await setUp({
      ledger: (real) => ({
        ...real,
        advance: async (...step) => {
          if (broken && step[2].state === 'settled') throw new Error('disk full');
          return real.advance(...step);
        },
      }),
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('settlement_unknown');
    broken = false;
    expect(codeOf(await call(payment))).toBe('answered');
    expect(counts).toMatchObject({ runs: 1, settles: 1 });
    expect(await balanceOf(payTo)).toBe(PRICE);
  });
});

describe('a facilitator that is down', () => {
  it('is 503 at start and heals', async () => {
    let down = true;
    const { call } = await setUp({
      supported: () => (down ? Promise.reject(new Error('down')) : (undefined as unknown as Promise<never>)),
    });
    expect(codeOf(await call(undefined))).toBe('facilitator_unavailable');
    down = false;
    expect(codeOf(await call(await signedPayment(call)))).toBe('answered');
  });

  it('is 503 at verification, takes no row and does not run', async () => {
    let down = true;
    const { call, counts } = await setUp({
      verify: (real, ...rest) => (down ? Promise.reject(new Error('down')) : real(...rest)),
    });
    const payment = await signedPayment(call);
    expect(codeOf(await call(payment))).toBe('facilitator_unavailable');
    expect(counts.runs).toBe(0);
    down = false;
    expect(codeOf(await call(payment, { n: 2 }))).toBe('answered');
  });

  it('never asks for a second signature for an authorization that the chain has already seen used', async () => {
    const first = await setUp();
    const payment = await signedPayment(first.call, 10n * PRICE);
    expect(codeOf(await first.call(payment))).toBe('answered');
    // The same authorization before a ledger that knows nothing of it, as after a lost store.
    await first.ledger.sweep(Number.MAX_SAFE_INTEGER);
    for (const value of [{ n: 1 }, { n: 2 }]) {
      expect(await first.call(payment, value)).toMatchObject({
        problem: { code: 'payment_spent', transaction: expect.stringMatching(/^0x/) },
      });
    }
  });

  it('is 503 where it never answers a verification', async () => {
    const { call, counts } = await setUp({ facilitatorTimeoutMs: 100, verify: () => new Promise<never>(() => {}) });
    expect(codeOf(await call(await signedPayment(call)))).toBe('facilitator_unavailable');
    expect(counts.runs).toBe(0);
  });

  it('says unknown where it calls the nonce used and the chain calls it unused', async () => {
    const invalidReason = 'invalid_exact_evm_nonce_already_used';
    const { call } = await setUp({ verify: async () => ({ isValid: false, invalidReason }) });
    expect(codeOf(await call(await signedPayment(call)))).toBe('settlement_unknown');
  });

  it('says unknown where verification fails and the chain cannot be asked why', async () => {
    const { call } = await setUp({ chain: { authorizationState: () => Promise.reject(new Error('down')) } });
    expect(codeOf(await call(await signedPayment(call, 0n)))).toBe('settlement_unknown');
  });

  it('looks at the ledger again when verification fails: a sibling may be the reason', async () => {
    let sibling: (() => Promise<GateAnswer>) | undefined;
    const { call, counts, payTo } = await setUp({
      verify: async (real, ...rest) => {
        const first = sibling;
        sibling = undefined;
        await first?.(); // it is admitted, answered and settled between our look-up and our verification
        return real(...rest);
      },
    });
    const payment = await signedPayment(call, 10n * PRICE);
    sibling = () => call(payment, { n: 1 });
    expect(codeOf(await call(payment, { n: 2 }))).toBe('payment_reused');
    expect(counts.runs).toBe(1);
    expect(await balanceOf(payTo)).toBe(PRICE);
  });
});
