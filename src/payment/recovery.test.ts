/** What outlives a process that was cut down at any step: over the ledger on disk, and a gate that finds what another one left. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Address } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf, paidTo, PRICE, setUpGate, signedPayment, textOf, type GateOptions } from '../../test/payment-gate.ts';
import { startLocalChain, type LocalChain } from '../runtime/local-chain.ts';
import { openSqliteLedger } from '../runtime/store/sqlite-ledger.ts';
import type { Ledger } from './ledger.ts';
import { reconcileOpenRows } from './reconciliation.ts';
import { createSealer } from './seal.ts';

let chain: LocalChain;
const folder = mkdtempSync(join(tmpdir(), 'context-evidence-kit-recovery-'));
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(async () => {
  await chain.stop();
  rmSync(folder, { recursive: true });
});
let files = 0;
const newPath = (): string => join(folder, `${(files += 1)}.db`);
const never = (): Promise<never> => new Promise(() => {});
const balanceOf = (owner: Address): Promise<bigint> => paidTo(chain, owner);

/** A ledger whose process dies at one write: before it reaches the disk, or behind it, before anybody is told. */
function dying(real: Ledger, at: string, when: 'before' | 'after', died: () => void): Ledger {
  const die = async <T>(step: string, write: () => Promise<T>): Promise<T> => {
    if (step !== at) return write();
    if (when === 'after') await write();
    died();
    return never();
  };
  return {
    ...real,
    reserve: (...call) => die('reserved', () => real.reserve(...call)),
    advance: (...call) => die(call[2].state, () => real.advance(...call)),
  };
}

describe('a crash', () => {
  const POINTS = ['reserved', 'computed', 'settling', 'settled'].flatMap((at) =>
    (['before', 'after'] as const).map((when) => ({ at, when })),
  );
  it.each([...POINTS, { at: 'settlement', when: 'before' }, { at: 'settlement', when: 'after' }] as const)(
    '$when the row is $at: the same request gets one answer for one charge, another one gets nothing that was paid for',
    async ({ at, when }) => {
      const path = newPath();
      const store = openSqliteLedger(path);
      let die: () => void = () => {};
      const death = new Promise<void>((resolve) => {
        die = resolve;
      });
      const options: GateOptions = {
        legacy: { ledger: store },
        ledger: (real) => dying(real, at, when, die),
        settle: async (real, ...call) => {
          if (at !== 'settlement') return real(...call);
          if (when === 'after') await real(...call);
          die();
          return never();
        },
      };
      const first = await setUpGate(chain, options);
      const payment = await signedPayment(chain, first.call, 10n * PRICE);
      void first.call(payment);
      await death;
      store.close();

      const ledger = openSqliteLedger(path);
      const { sealer, payTo } = first;
      const second = await setUpGate(chain, { legacy: { ledger, sealer, payTo } });
      const found = (await ledger.find([...keyOf(payment.authorization)].join('|')))?.state;
      // Whatever ran before, nobody has been answered: the payment is free only where nothing could be charged.
      const isFree = found === undefined || found === 'reserved';
      const other = await second.call(payment, { n: 'other' });
      expect(codeOf(other)).toBe(isFree ? 'answered' : 'payment_reused');
      const same = await second.call(payment);
      expect(codeOf(same)).toBe(isFree ? 'payment_reused' : 'answered');
      const request = isFree ? { n: 'other' } : { n: 1 };
      expect(textOf(await second.call(payment, request))).toBe(textOf(isFree ? other : same));
      expect(await balanceOf(payTo)).toBe(PRICE);
      expect(first.counts.runs + second.counts.runs).toBe(isFree && at !== 'reserved' ? 2 : 1);
      ledger.close();
    },
  );

  const keyOf = ({ payer, nonce }: { payer: string; nonce: string }): string[] => [
    'eip155:84532',
    chain.usdc.toLowerCase(),
    payer,
    nonce,
  ];
});

describe('reconciliation', () => {
  const open = async (moved: boolean) => {
    const first = await setUpGate(chain, {
      settle: async (real, ...call) => {
        if (moved) await real(...call);
        return Promise.reject(new Error('reset'));
      },
      chain: { authorizationState: () => Promise.reject(new Error('down')) },
    });
    const payment = await signedPayment(chain, first.call, 10n * PRICE);
    expect(codeOf(await first.call(payment))).toBe('settlement_unknown');
    const { ledger, sealer, payTo } = first;
    return { first, payment, ledger, sealer, payTo };
  };
  const errors: string[] = [];
  const report = (event: string): void => void errors.push(event);

  it('finds a transfer, and the answer is given without facilitator or engine', async () => {
    const { first, payment, ledger, sealer, payTo } = await open(true);
    expect(await reconcileOpenRows(ledger, first.chainView, report)).toBe(1);
    expect(await ledger.open('', 10)).toEqual([]);
    const second = await setUpGate(chain, { legacy: { ledger, sealer, payTo }, supported: never });
    expect(await second.call(payment)).toMatchObject({ kind: 'answered', settlement: { success: true } });
    expect(second.counts).toMatchObject({ runs: 0, settles: 0 });
    expect(await balanceOf(payTo)).toBe(PRICE);
  });

  it('leaves open what may still move, and what nobody can say', async () => {
    const { first, ledger } = await open(false);
    expect(await reconcileOpenRows(ledger, first.chainView, report)).toBe(0);
    const authorizationState = () => Promise.reject(new Error('down'));
    expect(await reconcileOpenRows(ledger, { ...first.chainView, authorizationState }, report)).toBe(0);
    expect(errors).toEqual(['chain_unanswered']);
    const silent = { ...first.chainView, authorizationState, reachable: async () => false };
    expect(await reconcileOpenRows(ledger, silent, report)).toBe(0);
    const asked = { ...first.chainView, authorizationState };
    expect(await reconcileOpenRows(ledger, asked, report, AbortSignal.abort())).toBe(0);
    expect(errors).toEqual(['chain_unanswered']);
    expect((await ledger.open('', 10)).map(({ row }) => row.state)).toEqual(['unknown']);
  });

  it('closes as failed what the chain’s own clock has ended; then, and not before, a challenge is given', async () => {
    const { first, payment, ledger, sealer, payTo } = await open(false);
    const second = await setUpGate(chain, {
      legacy: { ledger, sealer, payTo },
      settle: async () => Promise.reject(new Error('reset')),
    });
    expect(codeOf(await second.call(payment))).toBe('settlement_unknown');
    const over = { ...first.chainView, authorizationState: async () => ({ kind: 'unused', expired: true }) as const };
    expect(await reconcileOpenRows(ledger, over, report)).toBe(1);
    const third = await setUpGate(chain, { legacy: { ledger, sealer, payTo }, chain: over });
    expect(await third.call(payment)).toMatchObject({
      problem: { code: 'payment_failed', reason: 'authorization_expired' },
      challenge: { x402Version: 2 },
    });
    expect(await balanceOf(payTo)).toBe(0n);
  });

  it('leaves the receipt to the first copy that asks for it; every process and every later copy gives the same', async () => {
    const { payment, ledger, sealer, payTo, ...others } = await open(true);
    const seed = new Uint8Array(32).fill(7);
    expect(await reconcileOpenRows(ledger, others.first.chainView, report)).toBe(1);
    const gates = await Promise.all([1, 2].map(() => setUpGate(chain, { seed, legacy: { ledger, sealer, payTo } })));
    const answers = await Promise.all(gates.map(({ call }) => call(payment)));
    expect(answers[0]).toMatchObject({
      kind: 'answered',
      settlement: { extensions: { 'offer-receipt': { info: { receipt: { format: 'jws' } } } } },
    });
    const later = await setUpGate(chain, { legacy: { ledger, sealer, payTo } });
    expect([...answers, await later.call(payment)]).toEqual([answers[0], answers[0], answers[0]]);
  });

  it('that two processes do at once gives one receipt, whatever their clocks say', async () => {
    const { payment, ledger, sealer, payTo } = await open(true);
    const gates = await Promise.all(
      [0, 20_000].map((ahead) =>
        setUpGate(chain, { legacy: { ledger, sealer, payTo }, now: () => Date.now() + ahead }),
      ),
    );
    const answers = await Promise.all(gates.map(({ call }) => call(payment)));
    expect(answers[0]).toMatchObject({ kind: 'answered', settlement: { success: true } });
    expect(answers[1]).toEqual(answers[0]);
    for (const { call } of gates) expect(await call(payment)).toEqual(answers[0]);
  });

  it('does not disturb a call that it overtakes', async () => {
    const gate = await setUpGate(chain, {
      settle: async (real, ...call) => {
        const answer = await real(...call);
        await reconcileOpenRows(gate.ledger, gate.chainView, report);
        return answer;
      },
    });
    const payment = await signedPayment(chain, gate.call);
    const answer = await gate.call(payment);
    expect(codeOf(answer)).toBe('answered');
    expect(await gate.call(payment)).toEqual(answer);
    expect(gate.counts.errors).toEqual([]);
  });
});

describe('what is stored', () => {
  it('opens with the file and the server’s secret only for who has the request and its name or its payment', async () => {
    const path = newPath();
    const ledger = openSqliteLedger(path);
    const secret = new Uint8Array(32).fill(9);
    const words = 'the caller’s very own words';
    const idempotencyKey = 'the-callers-own-key';
    const gate = await setUpGate(chain, {
      legacy: { ledger, sealer: await createSealer(secret) },
      outcome: () => ({ kind: 'answer', billable: true, data: { versions: { words }, ran: 1 } }),
    });
    const payment = await signedPayment(chain, gate.call);
    const answer = await gate.call(payment, { words }, { idempotencyKey });
    expect(textOf(answer)).toContain(words);

    const sealer = await createSealer(secret);
    const row = await ledger.find(['eip155:84532', chain.usdc.toLowerCase(), ...payerAndNonce(payment)].join('|'));
    const sealed = row?.sealedAnswer ?? new Uint8Array();
    const { inputDigest } = (
      JSON.parse(textOf(answer)) as {
        _provenance: { credential: { credentialSubject: { inputDigest: string } } };
      }
    )._provenance.credential.credentialSubject;
    const open = (requestDigest: string, callerSecret: string, with_ = sealer) =>
      with_.open(sealed, { requestDigest, callerSecret });
    const callerSecret = JSON.stringify([idempotencyKey, null]);
    expect(Buffer.from((await open(inputDigest, callerSecret)) ?? []).toString()).toBe(textOf(answer));
    // Payer, nonce and signature are public once they are settled.
    expect(await open(inputDigest, payment.fingerprint)).toBeUndefined();
    expect(await open(inputDigest, JSON.stringify([null, null]))).toBeUndefined();
    expect(await open(inputDigest.replace(/.$/, '_'), callerSecret)).toBeUndefined();
    const otherServer = await createSealer(new Uint8Array(32).fill(8));
    expect(await open(inputDigest, callerSecret, otherServer)).toBeUndefined();

    // While it is open, all of it is in the write-ahead log; nothing of it may be readable there either.
    const traces = [words, idempotencyKey, inputDigest, inputDigest.slice('sha256:'.length), payment.fingerprint];
    const { signature } = payment.payload.payload as { signature: string };
    const read = (): string[] =>
      readdirSync(folder)
        .filter((name) => join(folder, name).startsWith(path))
        .map((name) => readFileSync(join(folder, name), 'latin1'));
    const whileOpen = read();
    expect(whileOpen.join('')).toContain(payment.authorization.nonce);
    ledger.close();
    for (const text of [...whileOpen, ...read()]) {
      for (const trace of [...traces, signature, signature.slice(2)]) {
        expect(text.includes(Buffer.from(trace).toString('latin1'))).toBe(false);
      }
    }
  });

  const payerAndNonce = ({ authorization: { payer, nonce } }: { authorization: { payer: string; nonce: string } }) => [
    payer,
    nonce,
  ];
});
