import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PaidFetchError } from './failure.ts';
import { atomicUnits, createBudget, type PaymentStore } from './budget.ts';

describe('atomicUnits', () => {
  it.each<[string | bigint, bigint]>([
    ['0.005', 5_000n],
    ['1', 1_000_000n],
    ['0.000001', 1n],
    ['0', 0n],
    ['12.5', 12_500_000n],
    [5_000n, 5_000n],
    [0n, 0n],
  ])('%s', (amount, units) => {
    expect(atomicUnits(amount)).toBe(units);
  });

  it.each(['', '.5', '5.', '-1', '+1', '1e3', '0x1', '0.0000001', ' 1', '1,5', 'NaN', '1 USDC', -1n])(
    'refuses %s',
    (amount) => {
      expect(() => atomicUnits(amount)).toThrow(RangeError);
    },
  );
});

/** Answers late and in the order of asking, as a store across a network does. */
function lateStore(): PaymentStore {
  const map = new Map<string, string>();
  const late = async <T>(answer: () => T): Promise<T> => {
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    return answer();
  };
  return {
    get: (key) => late(() => map.get(key)),
    set: (key, value) => late(() => map.set(key, value)),
    delete: (key) => late(() => map.delete(key)),
  };
}

describe('budget', () => {
  it('never lets more be signed than its total, whatever is asked for at once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.bigInt({ min: 1n, max: 50n })),
        fc.bigInt({ min: 0n, max: 200n }),
        async (asked, total) => {
          const budget = createBudget(lateStore(), 40n, total);
          const taken = await Promise.allSettled(asked.map((amount) => budget.take(amount)));
          const sum = asked.reduce(
            (all, amount, index) => all + (taken[index]?.status === 'fulfilled' ? amount : 0n),
            0n,
          );
          expect(sum).toBeLessThanOrEqual(total);
          expect(asked.every((amount, index) => amount <= 40n || taken[index]?.status === 'rejected')).toBe(true);
          await expect(budget.take(total - sum + 1n)).rejects.toBeInstanceOf(PaidFetchError);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('goes on after a store that failed once', async () => {
    const map = new Map<string, string>();
    let broken = true;
    const store: PaymentStore = {
      get: (key) => map.get(key),
      set: (key, value) => (broken ? Promise.reject(new Error('disk full')) : map.set(key, value)),
      delete: (key) => map.delete(key),
    };
    const budget = createBudget(store, 10n, 10n);
    await expect(budget.take(10n)).rejects.toThrow('disk full');
    broken = false;
    await budget.take(10n);
    await expect(budget.take(1n)).rejects.toMatchObject({ code: 'over_total_limit' });
    await budget.giveBack(4n);
    await budget.take(4n);
  });
});
