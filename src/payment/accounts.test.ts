/** What every store of accounts must hold to: the same list runs on memory and on SQLite. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { openSqliteLedger } from '../runtime/store/sqlite-ledger.ts';
import { createMemoryAccounts, CREDITS_MAX, UNCHARGED_SECONDS, type Accounts, type CallClaim } from './accounts.ts';

const folder = mkdtempSync(join(tmpdir(), 'context-evidence-kit-accounts-'));
const open: { close(): void }[] = [];
afterAll(() => {
  for (const ledger of open) ledger.close();
  rmSync(folder, { recursive: true });
});
const sqlite = (): Accounts => {
  const ledger = openSqliteLedger(join(folder, `${open.length}.db`));
  open.push(ledger);
  return ledger.accounts;
};

const NOW = 1_000;
const LEASE_END = NOW + 600;
const LATER = 100_000;
const limits = { now: NOW, maxUncharged: 2 };
const claim = (more: Partial<CallClaim> = {}): CallClaim => ({
  id: 'c1',
  account: 'a',
  mac: 'm',
  price: 5n,
  holder: 'h',
  until: LEASE_END,
  ...more,
});

async function withAccount(create: () => Accounts, credits = 12n): Promise<Accounts> {
  const accounts = create();
  await accounts.create({ id: 'a', keyMac: 'k', createdAt: 1.5, credits });
  return accounts;
}

const money = async (accounts: Accounts, id = 'a') => {
  const { toppedUp, balance, reserved, captured } =
    (await accounts.list()).find((account) => account.id === id) ?? expect.fail('no account');
  return { toppedUp, balance, reserved, captured };
};

describe.each([
  ['memory', createMemoryAccounts],
  ['SQLite', sqlite],
])('accounts in %s', (_, create) => {
  it('are made, identified by their key, listed in order, topped up and revoked', async () => {
    const accounts = await withAccount(create);
    await accounts.create({ id: 'b', keyMac: 'l', name: 'second', createdAt: 2, credits: 0n });
    expect(await accounts.identify('k')).toBe('a');
    expect(await accounts.identify('other')).toBeUndefined();
    expect(await accounts.topUp('b', 7n)).toBe(7n);
    expect(await accounts.topUp('c', 7n)).toBeUndefined();
    expect(await accounts.revoke('a', 9)).toBe(true);
    expect(await accounts.revoke('a', 10)).toBe(false);
    expect(await accounts.revoke('c', 10)).toBe(false);
    expect(await accounts.identify('k')).toBeUndefined();
    expect(await accounts.topUp('a', 1n)).toBeUndefined();
    expect(await accounts.reserve(claim(), limits)).toEqual({ kind: 'unknown' });
    expect(await accounts.reserve(claim({ account: 'c' }), limits)).toEqual({ kind: 'unknown' });
    expect(await accounts.list()).toEqual([
      { id: 'a', createdAt: 1.5, revokedAt: 9, toppedUp: 12n, balance: 12n, reserved: 0n, captured: 0n },
      { id: 'b', name: 'second', createdAt: 2, toppedUp: 7n, balance: 7n, reserved: 0n, captured: 0n },
    ]);
  });

  it('hold amounts past 2^53 to the unit, up to a bound', async () => {
    const accounts = await withAccount(create, 2n ** 53n + 1n);
    expect(await accounts.topUp('a', 2n)).toBe(2n ** 53n + 3n);
    expect(await accounts.reserve(claim({ price: 2n ** 53n }), limits)).toEqual({ kind: 'reserved', balance: 3n });
    expect(await accounts.capture('c1', 'h', { until: LATER })).toBe(3n);
    expect(await money(accounts)).toMatchObject({ captured: 2n ** 53n, toppedUp: 2n ** 53n + 3n });
    expect(await accounts.topUp('a', CREDITS_MAX - (await money(accounts)).toppedUp + 1n)).toBeUndefined();
    expect(await accounts.topUp('a', CREDITS_MAX - (await money(accounts)).toppedUp)).toBeGreaterThan(0n);
    expect(await accounts.create({ id: 'b', keyMac: 'l', createdAt: 2, credits: CREDITS_MAX + 1n })).toBe(false);
    expect(await accounts.reserve(claim({ id: 'c2', price: 10n ** 30n }), limits)).toMatchObject({ kind: 'spent' });
  });

  it('take a price off, once per name, and let no more in than the balance pays for', async () => {
    const accounts = await withAccount(create);
    const names = ['c1', 'c1', 'c2', 'c3'];
    const came = await Promise.all(names.map((id) => accounts.reserve(claim({ id }), limits)));
    const { passUntil: __, ...row } = claim({ passUntil: 0 });
    expect(came).toEqual([
      { kind: 'reserved', balance: 7n },
      { kind: 'taken', row: { ...row, state: 'reserved' }, balance: 7n },
      { kind: 'reserved', balance: 2n },
      { kind: 'spent', balance: 2n },
    ]);
    expect(await money(accounts)).toEqual({ toppedUp: 12n, balance: 2n, reserved: 10n, captured: 0n });
    await accounts.create({ id: 'b', keyMac: 'l', createdAt: 2, credits: 9n });
    expect(await accounts.reserve(claim({ id: 'c4', account: 'b' }), limits)).toEqual({
      kind: 'reserved',
      balance: 4n,
    });
    expect([(await money(accounts)).reserved, (await money(accounts, 'b')).reserved]).toEqual([10n, 5n]);
  });

  it('capture with the answer, for the holder only, and once', async () => {
    const accounts = await withAccount(create);
    await accounts.reserve(claim(), limits);
    const end = { until: LATER, sealedAnswer: new Uint8Array([1, 2, 3]) };
    expect(await accounts.capture('c1', 'other', end)).toBeUndefined();
    expect(await accounts.capture('c2', 'h', end)).toBeUndefined();
    expect(await accounts.capture('c1', 'h', end)).toBe(7n);
    expect(await accounts.capture('c1', 'h', end)).toBeUndefined();
    expect(await accounts.release('c1', 'h', NOW)).toBeUndefined();
    expect(await accounts.reserve(claim({ mac: 'other' }), { ...limits, now: LEASE_END })).toEqual({
      kind: 'taken',
      row: { ...claim(), ...end, state: 'captured' },
      balance: 7n,
    });
    expect(await money(accounts)).toEqual({ toppedUp: 12n, balance: 7n, reserved: 0n, captured: 5n });
  });

  it('capture what was let in before the key was revoked', async () => {
    const accounts = await withAccount(create);
    await accounts.reserve(claim(), limits);
    await accounts.revoke('a', NOW);
    expect(await accounts.capture('c1', 'h', { until: LATER })).toBe(7n);
  });

  it('give back what is released, and the name with it', async () => {
    const accounts = await withAccount(create);
    await accounts.reserve(claim(), limits);
    expect(await accounts.release('c1', 'other', NOW)).toBeUndefined();
    expect(await accounts.release('c1', 'h', NOW)).toBe(12n);
    expect(await accounts.release('c1', 'h', NOW)).toBeUndefined();
    expect(await accounts.reserve(claim({ mac: 'other' }), limits)).toEqual({ kind: 'reserved', balance: 7n });
  });

  it('give back what a dead call holds when its lease has ended, and not before', async () => {
    const accounts = await withAccount(create, 5n);
    await accounts.reserve(claim(), limits);
    const next = claim({ id: 'c2', holder: 'i', until: LEASE_END + 600 });
    expect(await accounts.reserve(next, { ...limits, now: LEASE_END - 1 })).toMatchObject({ kind: 'spent' });
    expect(await accounts.reserve(next, { ...limits, now: LEASE_END })).toMatchObject({ kind: 'reserved' });
    expect(await accounts.capture('c1', 'h', { until: LATER })).toBeUndefined();
    expect(await accounts.sweep(LEASE_END)).toBe(0);
    expect(await accounts.sweep(LEASE_END + 600)).toBe(1);
    expect(await money(accounts)).toEqual({ toppedUp: 5n, balance: 5n, reserved: 0n, captured: 0n });
  });

  it('leave a call to its payment where the credits are spent, and remember it through a top-up', async () => {
    const accounts = await withAccount(create, 4n);
    expect(await accounts.reserve(claim({ passUntil: LATER }), limits)).toEqual({ kind: 'passed' });
    await accounts.topUp('a', 100n);
    for (const passUntil of [{}, { passUntil: LATER + 1 }]) {
      expect(await accounts.reserve(claim(passUntil), limits)).toEqual({ kind: 'passed' });
    }
    expect(await accounts.reserve(claim({ mac: 'other' }), limits)).toMatchObject({ kind: 'taken' });
    expect(await money(accounts)).toMatchObject({ balance: 104n, reserved: 0n });
    await accounts.sweep(LATER - 1);
    expect(await accounts.reserve(claim(), limits)).toEqual({ kind: 'passed' });
    await accounts.sweep(LATER);
    expect(await accounts.reserve(claim({ until: LATER + 600 }), { ...limits, now: LATER })).toMatchObject({
      kind: 'reserved',
    });
  });

  it('take no more for a while after too many answers that were not charged; each that is charged takes one off', async () => {
    const accounts = await withAccount(create);
    const uncharged = async (id: string, now = NOW): Promise<string> => {
      const { kind } = await accounts.reserve(claim({ id }), { ...limits, now });
      await accounts.release(id, 'h', now);
      return kind;
    };
    expect([await uncharged('u1'), await uncharged('u2')]).toEqual(['reserved', 'reserved']);
    const until = NOW + UNCHARGED_SECONDS;
    expect(await accounts.reserve(claim(), { ...limits, now: until - 1 })).toEqual({ kind: 'uncharged', until });
    const end = until + 600;
    expect(await accounts.reserve(claim({ until: end }), { ...limits, now: until })).toMatchObject({
      kind: 'reserved',
    });
    expect(await accounts.release('c1', 'h', until)).toBe(12n);
    expect(await accounts.reserve(claim({ until: end }), { ...limits, now: until })).toMatchObject({
      kind: 'reserved',
    });
    await accounts.capture('c1', 'h', { until: LATER * 2 });
    await accounts.reserve(claim({ id: 'c2', until: end }), { ...limits, now: until });
    await accounts.release('c2', 'h', until);
    await accounts.topUp('a', 100n);
    expect(await accounts.reserve(claim({ id: 'c3' }), { ...limits, now: until })).toMatchObject({ kind: 'reserved' });
  });

  it('forget ended calls in time, and keep the totals', async () => {
    const accounts = await withAccount(create);
    await accounts.reserve(claim(), limits);
    await accounts.capture('c1', 'h', { until: LATER });
    expect(await accounts.sweep(LATER - 1)).toBe(0);
    expect(await accounts.sweep(LATER)).toBe(1);
    expect(await money(accounts)).toEqual({ toppedUp: 12n, balance: 7n, reserved: 0n, captured: 5n });
  });

  it('neither lose nor make a credit, whatever happens in which order', async () => {
    const id = fc.integer({ min: 0, max: 4 }).map(String);
    const step = fc.oneof(
      fc.record({ do: fc.constant('reserve'), id, price: fc.bigInt(1n, 9n), pass: fc.boolean() }),
      fc.record({ do: fc.constantFrom('capture', 'release'), id, stale: fc.boolean() }),
      fc.record({ do: fc.constant('topUp'), credits: fc.bigInt(0n, 20n) }),
      // A kill: nobody ends the call, and time passes, past its lease or not.
      fc.record({ do: fc.constantFrom('wait', 'sweep'), seconds: fc.constantFrom(1, 700, 100_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const accounts = await withAccount(create, 20n);
        /** What the test itself knows: who runs, and what was charged. */
        const running = new Map<string, { holder: string; price: bigint; until: number }>();
        let [now, holders, toppedUp, captured] = [NOW, 0, 20n, 0n];
        for (const next of steps) {
          if ('price' in next) {
            const holder = String((holders += 1));
            const more = { id: next.id, price: next.price, holder, until: now + 600 };
            const { kind } = await accounts.reserve(claim({ ...more, ...(next.pass && { passUntil: now + 1_000 }) }), {
              now,
              maxUncharged: 1_000,
            });
            if (kind === 'reserved') running.set(next.id, more);
          } else if ('stale' in next) {
            const run = running.get(next.id);
            const holder = next.stale ? 'nobody' : (run?.holder ?? 'nobody');
            const done =
              next.do === 'capture'
                ? await accounts.capture(next.id, holder, { until: now + 1_000 })
                : await accounts.release(next.id, holder, now);
            if (done !== undefined) {
              expect(run?.holder).toBe(holder);
              if (next.do === 'capture') captured += run?.price ?? 0n;
              running.delete(next.id);
            }
          } else if ('credits' in next) {
            toppedUp += next.credits;
            await accounts.topUp('a', next.credits);
          } else {
            now += next.seconds;
            if (next.do === 'sweep') await accounts.sweep(now);
          }
          const seen = await money(accounts);
          expect(seen.balance + seen.reserved + seen.captured).toBe(toppedUp);
          expect([seen.toppedUp, seen.captured]).toEqual([toppedUp, captured]);
          expect(seen.balance).toBeGreaterThanOrEqual(0n);
        }
        await accounts.sweep(now + 1_000_000);
        expect(await money(accounts)).toEqual({ toppedUp, balance: toppedUp - captured, reserved: 0n, captured });
      }),
      { numRuns: create === sqlite ? 25 : 200 },
    );
  });
});

describe('accounts in one file', () => {
  it('outlive the process, give back what it held, and are shared by two who draw at once', async () => {
    const path = join(folder, 'shared.db');
    const first = openSqliteLedger(path);
    await first.accounts.create({ id: 'a', keyMac: 'k', createdAt: 1, credits: 100n });
    await first.accounts.reserve(claim({ id: 'captured' }), limits);
    await first.accounts.capture('captured', 'h', { until: LATER, sealedAnswer: new Uint8Array([9]) });
    await first.accounts.reserve(claim({ id: 'killed' }), limits);
    first.close();
    const both = [openSqliteLedger(path), openSqliteLedger(path)];
    const [{ accounts } = expect.fail('none')] = both;
    const came = await Promise.all(
      Array.from({ length: 40 }, (__, n) =>
        both.map((ledger) => ledger.accounts.reserve(claim({ id: String(n) }), limits)),
      ).flat(),
    );
    expect(came.filter(({ kind }) => kind === 'reserved')).toHaveLength(19);
    expect(await money(accounts)).toEqual({ toppedUp: 100n, balance: 0n, reserved: 95n, captured: 5n });
    expect(await accounts.reserve(claim({ id: 'captured' }), limits)).toMatchObject({
      kind: 'taken',
      row: { state: 'captured', sealedAnswer: new Uint8Array([9]) },
    });
    for (const ledger of both) ledger.close();
  });

  it('belong to one pepper, from the first that opens them with one', () => {
    const path = join(folder, 'pepper.db');
    openSqliteLedger(path).close();
    openSqliteLedger(path, '', 'p').close();
    expect(() => openSqliteLedger(path, '', 'q')).toThrow('KEY_PEPPER');
    openSqliteLedger(path).close();
    openSqliteLedger(path, '', 'p').close();
  });
});
