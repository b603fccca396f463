/**
 * Bounds what can ever leave the wallet: a limit for each call and one for all that is signed. It counts signatures, not what
 * a service says it took, so that no answer of a service can raise it, but for a signed one that says it was free.
 */
import { PaidFetchError } from './failure.ts';

/** Where signed payments and the total are kept. A `Map` is one; so is anything that lasts longer. */
export interface PaymentStore {
  get(key: string): string | undefined | Promise<string | undefined>;
  /** Resolves when the value would survive whatever the store is meant to survive. */
  set(key: string, value: string): unknown;
  delete(key: string): unknown;
}

/** Atomic units as a bigint, or USDC as a decimal text: `5000n` is `'0.005'`. */
export type Amount = bigint | string;

export interface Budget {
  /** @throws PaidFetchError `over_call_limit`, `over_total_limit` */
  take(amount: bigint): Promise<void>;
  giveBack(amount: bigint): Promise<void>;
}

const USDC_DECIMALS = 6;
const DECIMAL = /^(\d{1,12})(?:\.(\d{1,6}))?$/;
const TOTAL_KEY = 'total';

/** @throws RangeError for a text that is no amount of USDC, or a negative amount. */
export function atomicUnits(amount: Amount): bigint {
  if (typeof amount === 'bigint') {
    if (amount < 0n) throw new RangeError('an amount cannot be negative');
    return amount;
  }
  const [, whole, fraction = ''] = DECIMAL.exec(amount) ?? [];
  if (whole === undefined) throw new RangeError('an amount of USDC is a decimal text such as "0.005"');
  return BigInt(whole + fraction.padEnd(USDC_DECIMALS, '0'));
}

export function createBudget(store: PaymentStore, perCall: bigint, total: bigint): Budget {
  let last: Promise<unknown> = Promise.resolve();
  /** One change after the other: calls run side by side, and a store has no counters. */
  const change = (by: (signed: bigint) => bigint): Promise<void> => {
    const turn = last.then(async () => {
      const text = (await store.get(TOTAL_KEY)) ?? '0';
      if (!/^\d+$/.test(text)) throw new PaidFetchError({ code: 'store_broken', reason: 'the total is no number' });
      await store.set(TOTAL_KEY, String(by(BigInt(text))));
    });
    last = turn.catch(() => undefined);
    return turn;
  };
  return {
    take: (amount) =>
      change((signed) => {
        if (amount > perCall) throw new PaidFetchError({ code: 'over_call_limit', amount, limit: perCall });
        if (signed + amount > total) {
          throw new PaidFetchError({ code: 'over_total_limit', amount, signed, limit: total });
        }
        return signed + amount;
      }),
    giveBack: (amount) => change((signed) => (signed > amount ? signed - amount : 0n)),
  };
}
