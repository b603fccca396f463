import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Leases } from '../operation.ts';
import { createMemoryLeaseStore, type LeaseStore, leaseKeyOf, leasesFor } from './leases.ts';

const TTL_MS = 300_000;

/** What every store has to hold to. */
describe.each<[string, () => LeaseStore]>([['memory', createMemoryLeaseStore]])('a %s store', (_, create) => {
  it('gives a key to one of many that come at once', async () => {
    const store = create();
    const claims = Array.from({ length: 50 }, (__, index) => ({ nonce: String(index), time: 0 }));
    const won = await Promise.all(claims.map((claim) => store.acquire('k', claim, TTL_MS)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await store.acquire('other', { nonce: 'x', time: 0 }, TTL_MS)).toBe(true);
  });

  it.each([
    [299_999, false],
    [300_000, true],
  ])('frees a claim of five minutes after %i ms: %s', async (time, free) => {
    const store = create();
    await store.acquire('k', { nonce: 'a', time: 0 }, TTL_MS);
    expect(await store.acquire('k', { nonce: 'b', time }, TTL_MS)).toBe(free);
  });

  it('lets only the holder’s nonce release and renew', async () => {
    const store = create();
    await store.acquire('k', { nonce: 'a', time: 0 }, TTL_MS);
    await store.release('k', 'b');
    expect(await store.renew('k', { nonce: 'b', time: 200_000 })).toBe(false);
    expect(await store.acquire('k', { nonce: 'b', time: 1 }, TTL_MS)).toBe(false);
    expect(await store.renew('k', { nonce: 'a', time: 200_000 })).toBe(true);
    expect(await store.acquire('k', { nonce: 'b', time: 499_999 }, TTL_MS)).toBe(false);
    await store.release('k', 'a');
    expect(await store.acquire('k', { nonce: 'b', time: 1 }, TTL_MS)).toBe(true);
  });

  it('does not let one who was late take back what another holds by now', async () => {
    const store = create();
    await store.acquire('k', { nonce: 'a', time: 0 }, TTL_MS);
    await store.acquire('k', { nonce: 'b', time: TTL_MS }, TTL_MS);
    expect(await store.renew('k', { nonce: 'a', time: TTL_MS })).toBe(false);
    await store.release('k', 'a');
    expect(await store.acquire('k', { nonce: 'c', time: TTL_MS + 1 }, TTL_MS)).toBe(false);
  });
});

describe('a lease', () => {
  let store: LeaseStore;
  const reported: string[] = [];
  const of = (caller: string): Leases =>
    leasesFor(caller, { store, now: () => new Date(), report: (event) => reported.push(event) });
  beforeEach(() => {
    vi.useFakeTimers();
    store = createMemoryLeaseStore();
    reported.length = 0;
  });
  afterEach(() => vi.useRealTimers());

  /** Work under a lease that has begun, and ends when it is told to. */
  const holding = async (): Promise<{ held: Promise<string | undefined>; end: () => void }> => {
    const calls = new EventTarget();
    const said = (what: string): Promise<void> =>
      new Promise((resolve) => calls.addEventListener(what, () => resolve(), { once: true }));
    const begun = said('begun');
    const held = of('alice').hold('k', 300, async () => {
      const ended = said('ended');
      calls.dispatchEvent(new Event('begun'));
      await ended;
      return 'done';
    });
    await begun;
    return { held, end: () => calls.dispatchEvent(new Event('ended')) };
  };

  it('is one caller’s, under one key, until the work ends', async () => {
    const { held, end } = await holding();
    expect(await of('alice').hold('k', 300, async () => 'second')).toBeUndefined();
    expect(await of('alice').hold('other', 300, async () => 'second')).toBe('second');
    expect(await of('bob').hold('k', 300, async () => 'bob’s')).toBe('bob’s');
    end();
    expect(await held).toBe('done');
    expect(await of('alice').hold('k', 300, async () => 'second')).toBe('second');
  });

  it('lasts as long as the work, by renewal at a third of its time', async () => {
    const renew = vi.spyOn(store, 'renew');
    const { held, end } = await holding();
    await vi.advanceTimersByTimeAsync(99_999);
    expect(renew).toHaveBeenCalledTimes(0);
    await vi.advanceTimersByTimeAsync(900_001);
    expect(renew).toHaveBeenCalledTimes(10);
    expect(await of('alice').hold('k', 300, async () => 'second')).toBeUndefined();
    end();
    await held;
    await vi.advanceTimersByTimeAsync(900_000);
    expect(renew).toHaveBeenCalledTimes(10);
  });

  it('is freed when the work throws', async () => {
    const failing = of('alice').hold('k', 300, () => Promise.reject(new Error('work')));
    await expect(failing).rejects.toThrow('work');
    expect(await of('alice').hold('k', 300, async () => 'again')).toBe('again');
  });

  it('is nobody’s while the store cannot be reached, and whoever keeps the store is told', async () => {
    const down = (): Promise<never> => Promise.reject(new Error('down'));
    const work = vi.fn(async () => 'done');
    vi.spyOn(store, 'acquire').mockImplementationOnce(down);
    expect(await of('alice').hold('k', 300, work)).toBeUndefined();
    expect([work.mock.calls.length, reported]).toEqual([0, ['lease_store_unavailable']]);
    vi.spyOn(store, 'release').mockImplementationOnce(down);
    expect(await of('alice').hold('k', 300, work)).toBe('done');
    expect(reported).toHaveLength(2);
  });
});

it('goes by the key of the request, else by its messages', async () => {
  const messages = [{ role: 'user', content: [], timestamp: 1 }] as const;
  expect(await leaseKeyOf({ messages, options: { lease_key: 'mine' } })).toBe('mine');
  const byDefault = await leaseKeyOf({ messages, options: null });
  expect(byDefault).toMatch(/^sha256:/);
  expect(await leaseKeyOf({ messages: [{ timestamp: 1, content: [], role: 'user' }] })).toBe(byDefault);
  expect(await leaseKeyOf({ messages: [] })).not.toBe(byDefault);
});
