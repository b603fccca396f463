/** The gate for keys over the real chain: what a crash, a top-up or a second process in the wrong moment must not do. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  challengeOf,
  codeOf,
  paidTo,
  PRICE,
  setUpGate,
  signedPayment,
  textOf,
  type GateOptions,
} from '../../test/payment-gate.ts';
import { startLocalChain, type LocalChain } from '../runtime/local-chain.ts';
import { createMemoryAccounts, type Accounts } from './accounts.ts';
import { createKeyMac, issueKey } from './api-keys.ts';

let chain: LocalChain;
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(() => chain.stop());

/** A gate whose only key has so many prices in credits. */
async function setUp(prices: bigint, options: GateOptions = {}, wrap = (real: Accounts): Accounts => real) {
  const real = createMemoryAccounts();
  const keys = { accounts: wrap(real), macOf: await createKeyMac(new Uint8Array(32)) };
  const issued = await issueKey(keys, { credits: prices * PRICE, now: new Date() });
  if (!issued) throw new Error('no key');
  const rig = await setUpGate(chain, { keys, ...options });
  const money = async () => {
    const [account = expect.fail('no account')] = await real.list();
    const { balance, reserved, captured, toppedUp } = account;
    expect(balance + reserved + captured).toBe(toppedUp);
    return { balance: balance / PRICE, reserved: reserved / PRICE, captured: captured / PRICE };
  };
  return { ...rig, ...issued, apiKey: issued.key, keys, accounts: real, money };
}

/** Another process over the same stores. */
const another = ({ ledger, sealer, payTo, keys }: Awaited<ReturnType<typeof setUp>>, options: GateOptions = {}) =>
  setUpGate(chain, { keys, legacy: { ledger, sealer, payTo }, ...options });

const never = new Promise<never>(() => {});

describe('a crash', () => {
  it('while the engine runs costs nothing: the credits come back, and the same request is answered', async () => {
    let now = Date.now();
    const dead = await setUp(1n, { outcome: () => never, now: () => now });
    const more = { apiKey: dead.apiKey, idempotencyKey: 'i' };
    void dead.call(undefined, {}, more);
    const alive = await another(dead, { now: () => now });
    await expect.poll(dead.money).toEqual({ balance: 0n, reserved: 1n, captured: 0n });
    const waiting = await alive.call(undefined, {}, more);
    expect(waiting).toMatchObject({ problem: { code: 'debit_unknown', retry_after_seconds: 2 } });
    expect(codeOf(await alive.call(undefined, { n: 2 }, more))).toBe('idempotency_key_reused');
    expect(codeOf(await alive.call(undefined, {}, { apiKey: dead.apiKey }))).toBe('credits_spent');
    now += 600_000;
    expect(codeOf(await alive.call(undefined, {}, more))).toBe('answered');
    expect(await dead.money()).toEqual({ balance: 0n, reserved: 0n, captured: 1n });
  });

  it('behind the capture costs it once: the stored bytes are delivered', async () => {
    const first = await setUp(1n);
    const more = { apiKey: first.apiKey, idempotencyKey: 'i' };
    const text = textOf(await first.call(undefined, {}, more));
    const alive = await another(first);
    expect(textOf(await alive.call(undefined, {}, more))).toBe(text);
    expect(alive.counts.runs).toBe(0);
    expect(await first.money()).toMatchObject({ captured: 1n });
  });

  it('of the store says that nobody knows, and the retry is debited once', async () => {
    let [now, broken] = [Date.now(), true];
    const rig = await setUp(2n, { now: () => now }, (real) => ({
      ...real,
      capture: (...call) => (broken ? Promise.reject(new Error('disk full')) : real.capture(...call)),
    }));
    const more = { apiKey: rig.apiKey, idempotencyKey: 'i' };
    expect(codeOf(await rig.call(undefined, {}, more))).toBe('debit_unknown');
    expect(rig.counts.errors).toEqual(['keys_failed r1']);
    broken = false;
    now += 600_000;
    expect(codeOf(await rig.call(undefined, {}, more))).toBe('answered');
    expect(await rig.money()).toEqual({ balance: 1n, reserved: 0n, captured: 1n });
  });

  it('of the engine gives the price back', async () => {
    const rig = await setUp(1n, { outcome: () => Promise.reject(new Error('boom')) });
    expect(codeOf(await rig.call(undefined, {}, { apiKey: rig.apiKey }))).toBe('internal_error');
    expect(await rig.money()).toEqual({ balance: 1n, reserved: 0n, captured: 0n });
  });

  it('that was only a pause: the run that was overtaken is neither charged nor answered', async () => {
    let now = Date.now();
    let goOn: (() => void) | undefined;
    const pause = new Promise<void>((resolve) => (goOn = resolve));
    const data = { versions: {}, ran: 1 };
    const outcome = () => pause.then(() => ({ kind: 'answer' as const, billable: true, data }));
    const slow = await setUp(1n, { outcome, now: () => now });
    const answer = slow.call(undefined, {}, { apiKey: slow.apiKey });
    await expect.poll(slow.money).toMatchObject({ reserved: 1n });
    now += 600_000;
    const other = await another(slow, { now: () => now });
    expect(codeOf(await other.call(undefined, {}, { apiKey: slow.apiKey }))).toBe('answered');
    goOn?.();
    expect(codeOf(await answer)).toBe('debit_unknown');
    expect(await slow.money()).toEqual({ balance: 0n, reserved: 0n, captured: 1n });
  });
});

describe('a key', () => {
  it('that was revoked, is unknown, or is sent where there are none, is refused, whatever lies beside it', async () => {
    const rig = await setUp(9n);
    const more = { apiKey: rig.apiKey, idempotencyKey: 'i' };
    const payment = await signedPayment(chain, rig.call);
    await rig.call(undefined, {}, more);
    await rig.accounts.revoke(rig.id, 1);
    const off = await setUpGate(chain);
    for (const answer of [
      await rig.call(undefined, {}, more),
      await rig.call(payment, {}, { apiKey: rig.apiKey }),
      await rig.call(payment, {}, { apiKey: `${rig.apiKey}x` }),
      await rig.call(payment, {}, { apiKey: rig.id }),
    ]) {
      expect(answer).toMatchObject({ problem: { code: 'invalid_api_key', reason: 'unknown' } });
    }
    expect(await off.call(payment, {}, more)).toMatchObject({ problem: { code: 'invalid_api_key', reason: 'off' } });
    expect([rig.counts.settles, off.counts.verifies, rig.counts.runs]).toEqual([0, 0, 1]);
  });

  it('revoked in the middle of a call still pays for that one', async () => {
    const rig = await setUp(1n, { outcome: () => rig.accounts.revoke(rig.id, 1).then(() => undefined as never) });
    expect(codeOf(await rig.call(undefined, {}, { apiKey: rig.apiKey }))).toBe('answered');
    expect(await rig.money()).toMatchObject({ captured: 1n });
  });

  it('is needed to open a stored answer: the name and the request alone do not', async () => {
    const rig = await setUp(1n);
    const named = { idempotencyKey: 'i' };
    await rig.call(undefined, {}, { ...named, apiKey: rig.apiKey });
    const other = await issueKey(rig.keys, { credits: 0n, now: new Date() });
    expect(codeOf(await rig.call(undefined, {}, named))).toBe('payment_required');
    expect(codeOf(await rig.call(undefined, {}, { ...named, apiKey: other?.key ?? '' }))).toBe('credits_spent');
  });
});

describe('never both', () => {
  it('a payment whose outcome is not known stays the one that pays, when the key is topped up meanwhile', async () => {
    let lost = true;
    const rig = await setUp(0n, {
      settle: async (real, ...call) => {
        const settled = await real(...call);
        if (lost) throw new Error('the answer was lost');
        return settled;
      },
      chain: { authorizationState: () => Promise.reject(new Error('no view')) },
    });
    const more = { apiKey: rig.apiKey, idempotencyKey: 'i' };
    const payment = await signedPayment(chain, rig.call);
    expect(codeOf(await rig.call(payment, {}, more))).toBe('settlement_unknown');
    await rig.accounts.topUp(rig.id, 5n * PRICE);
    expect(codeOf(await rig.call(undefined, {}, more))).toBe('settlement_unknown');
    lost = false;
    const sighted = await another(rig);
    const answer = await sighted.call(payment, {}, more);
    expect(answer).toMatchObject({ kind: 'answered', settlement: { success: true } });
    expect(textOf(await sighted.call(payment, {}, more))).toBe(textOf(answer));
    // Without the payment it is asked for one, and not debited; a new one is not taken.
    expect(codeOf(await sighted.call(undefined, {}, more))).toBe('left_to_payment');
    expect(await rig.money()).toEqual({ balance: 5n, reserved: 0n, captured: 0n });
    expect(await paidTo(chain, rig.payTo)).toBe(PRICE);
  });

  it('without a name, the payment is the name', async () => {
    const rig = await setUp(0n);
    const payment = await signedPayment(chain, rig.call);
    const first = await rig.call(payment, {}, { apiKey: rig.apiKey });
    await rig.accounts.topUp(rig.id, 5n * PRICE);
    expect(textOf(await rig.call(payment, {}, { apiKey: rig.apiKey }))).toBe(textOf(first));
    expect(codeOf(await rig.call(payment, { n: 2 }, { apiKey: rig.apiKey }))).toBe('idempotency_key_reused');
    expect(await rig.money()).toMatchObject({ balance: 5n, captured: 0n });
  });

  it('two processes, copies with and without the payment, and a top-up, in any order: one charge, one answer', async () => {
    const step = fc.constantFrom('first', 'second', 'first, unpaid', 'second, unpaid', 'top up', 'wait');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 10 }), fc.boolean(), async (steps, isNamed) => {
        const rig = await setUp(0n);
        const rigs = { first: rig, second: await another(rig) };
        const payment = await signedPayment(chain, rig.call);
        const more = { apiKey: rig.apiKey, ...(isNamed && { idempotencyKey: 'i' }) };
        const texts = new Set<string>();
        const running: Promise<unknown>[] = [];
        const send = async (process: 'first' | 'second', paid: boolean): Promise<void> => {
          const answer = await rigs[process].call(paid ? payment : undefined, {}, more);
          if (answer.kind === 'answered') texts.add(textOf(answer));
        };
        for (const next of steps) {
          if (next === 'top up') running.push(rig.accounts.topUp(rig.id, PRICE));
          else if (next === 'wait') await Promise.all(running.splice(0));
          else if (isNamed && next.endsWith('unpaid'))
            running.push(send(next.startsWith('f') ? 'first' : 'second', false));
          else running.push(send(next.startsWith('f') ? 'first' : 'second', true));
        }
        await Promise.all(running);
        await send('first', true);
        const charges = (await paidTo(chain, rig.payTo)) / PRICE + (await rig.money()).captured;
        expect([charges, texts.size]).toEqual([1n, 1]);
      }),
      { numRuns: 15 },
    );
  });

  it('an engine that runs for both copies at once is no way around it', async () => {
    const rig = await setUp(1n);
    const payment = await signedPayment(chain, rig.call);
    const more = { apiKey: rig.apiKey, idempotencyKey: 'i' };
    const answers = await Promise.all([rig.call(payment, {}, more), rig.call(undefined, {}, more)]);
    expect(answers.map(codeOf).filter((code) => !['answered', 'debit_unknown'].includes(code))).toEqual([]);
    expect([await paidTo(chain, rig.payTo), (await rig.money()).captured]).toEqual([0n, 1n]);
  });

  it('asks for a payment in words that say why', async () => {
    const rig = await setUp(0n);
    const challenge = await challengeOf(() => rig.call(undefined, {}, { apiKey: rig.apiKey }));
    expect(challenge.error).toContain('credits of this API key are spent');
  });
});
