/** What every ledger must hold to: the same list runs on memory and on SQLite. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openSqliteLedger } from '../runtime/store/sqlite-ledger.ts';
import { createMemoryLedger, isOpen, type Claim, type Ledger, type Limits, type RowState } from './ledger.ts';

const claim: Claim = {
  payer: '0xa',
  nonce: '0x1',
  mac: 'a',
  validBefore: 1_000,
  fromBlock: 7,
  holder: 'h',
  leaseUntil: 500,
  requirements: {
    scheme: 'exact',
    network: 'eip155:84532',
    asset: '0x0',
    amount: '1',
    payTo: '0x0',
    maxTimeoutSeconds: 1,
    extra: {},
  },
};
const limits: Limits = { now: 100, maxReleases: 3, maxUncharged: 20 };

const folder = mkdtempSync(join(tmpdir(), 'context-evidence-kit-ledger-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const ledgers: [string, () => Ledger][] = [
  ['memory', createMemoryLedger],
  ['SQLite', () => openSqliteLedger(join(folder, `${(files += 1)}.db`))],
];

describe.each(ledgers)('%s ledger', (_, create) => {
  it('gives a payment to one of many who reserve it at once', async () => {
    const ledger = create();
    const claims = Array.from({ length: 50 }, (__, index) => ({ ...claim, mac: String(index) }));
    const reservations = await Promise.all(claims.map((each) => ledger.reserve('k', each, limits)));
    expect(reservations.filter(({ reserved }) => reserved)).toHaveLength(1);
    const winner = reservations.findIndex(({ reserved }) => reserved);
    for (const reservation of reservations) {
      if (!reservation.reserved)
        expect(reservation).toMatchObject({ because: 'taken', row: { state: 'reserved', mac: String(winner) } });
    }
  });

  it('keeps a row as it was given, and advances it from the states named only, once', async () => {
    const ledger = create();
    const named = { ...claim, probe: 'p', identifier: 'i' };
    expect(await ledger.advance('k', ['reserved'], { state: 'computed' })).toBe(false);
    await ledger.reserve('k', named, limits);
    expect(await ledger.find('k')).toEqual({ ...named, state: 'reserved', releases: 0 });
    expect(await ledger.advance('k', ['settling', 'failed'], { state: 'settled' })).toBe(false);
    const sealedAnswer = Uint8Array.of(1, 2);
    const steps = await Promise.all(
      [1, 2].map(() => ledger.advance('k', ['unknown', 'reserved'], { state: 'computed', sealedAnswer })),
    );
    expect(steps.toSorted()).toEqual([false, true]);
    expect(await ledger.find('k')).toEqual({ ...named, state: 'computed', releases: 0, sealedAnswer });
    const settlement = { success: true, transaction: '0x9', network: claim.requirements.network };
    expect(await ledger.advance('k', ['computed'], { state: 'settled', settlement })).toBe(true);
    expect(await ledger.find('k')).toEqual({ ...named, state: 'settled', releases: 0, sealedAnswer, settlement });
    expect(await ledger.find('other')).toBeUndefined();
  });

  it('lets a released payment be reserved anew until it was released often enough, and starts clean', async () => {
    const ledger = create();
    for (const releases of [1, 2, 3]) {
      expect(await ledger.reserve('k', claim, limits)).toEqual({ reserved: true, releases: releases - 1 });
      await ledger.advance('k', ['reserved'], { state: 'released', releases, sealedAnswer: Uint8Array.of(1) });
    }
    expect(await ledger.reserve('k', claim, limits)).toMatchObject({
      reserved: false,
      because: 'taken',
      row: { state: 'released', releases: 3 },
    });
    await ledger.reserve('k', claim, { ...limits, maxReleases: 4 });
    expect(await ledger.find('k')).toEqual({ ...claim, state: 'reserved', releases: 3 });
  });

  it('lets anyone take over a reserved row whose lease has ended, and the former holder write nothing any more', async () => {
    const ledger = create();
    await ledger.reserve('k', claim, limits);
    const other = { ...claim, mac: 'b', holder: 'other', leaseUntil: 900 };
    expect(await ledger.reserve('k', other, { ...limits, now: 499 })).toMatchObject({ reserved: false });
    expect(await ledger.reserve('k', other, { ...limits, now: 500 })).toEqual({ reserved: true, releases: 0 });
    expect(await ledger.find('k')).toEqual({ ...other, state: 'reserved', releases: 0 });
    expect(await ledger.advance('k', ['reserved'], { state: 'computed' }, 'h')).toBe(false);
    expect(await ledger.advance('k', ['reserved'], { state: 'computed' }, 'other')).toBe(true);
    expect(await ledger.reserve('k', claim, { ...limits, now: 5_000 })).toMatchObject({ because: 'taken' });
  });

  it('takes one payment of a payer under one name, until that was released or failed', async () => {
    for (const name of [{ probe: 'p' }, { identifier: 'i' }]) {
      const ledger = create();
      const [first, second] = [
        { ...claim, ...name },
        { ...claim, ...name, nonce: '0x2' as const },
      ];
      await ledger.reserve('k1', first, limits);
      expect(await ledger.findNamed(name)).toEqual([{ key: 'k1', row: { ...first, state: 'reserved', releases: 0 } }]);
      expect(await ledger.findNamed({ probe: 'other' })).toEqual([]);
      const states: [RowState, boolean][] = [
        ['computed', false],
        ['settling', false],
        ['unknown', false],
        ['settled', false],
        ['failed', true],
        ['released', true],
      ];
      for (const [state, free] of states) {
        await ledger.advance('k1', states.map(([each]) => each).concat('reserved'), { state });
        const reservation = await ledger.reserve('k2', second, limits);
        expect(reservation).toMatchObject(free ? { reserved: true } : { because: 'twin', row: { state, ...name } });
        await ledger.sweep(0);
        if (free) await ledger.advance('k2', ['reserved'], { state: 'released' });
      }
      await ledger.advance('k1', ['released'], { state: 'settled' });
      expect(await ledger.reserve('k3', { ...second, payer: '0xb' }, limits)).toMatchObject({ reserved: true });
    }
  });

  it('takes no more of a payer who had too many answers for nothing, and of that payer only', async () => {
    const ledger = create();
    for (let n = 0; n < 4; n += 1) {
      await ledger.reserve(`k${n}`, { ...claim, validBefore: 1_000 + n }, limits);
      await ledger.advance(
        `k${n}`,
        ['reserved'],
        n === 0 ? { state: 'settled' } : { state: n === 1 ? 'failed' : 'released', releases: n - 1 },
      );
    }
    // A failure, and 1 + 2 releases.
    const of = (payer: Claim['payer'], maxUncharged: number) =>
      ledger.reserve('k', { ...claim, payer }, { ...limits, maxUncharged });
    expect(await of('0xa', 4)).toEqual({ reserved: false, because: 'uncharged', validBefore: 1_001 });
    expect(await of('0xb', 4)).toMatchObject({ reserved: true });
    const races = Array.from({ length: 5 }, (__, n) => ledger.reserve(`r${n}`, claim, { ...limits, maxUncharged: 5 }));
    expect((await Promise.all(races)).every(({ reserved }) => reserved)).toBe(true);
    expect(await ledger.sweep(1_004)).toBe(10);
    await ledger.reserve('k', claim, { ...limits, maxUncharged: 1 });
    expect(await ledger.find('k')).toMatchObject({ state: 'reserved' });
  });

  it('lists what only the chain can decide, page by page', async () => {
    const ledger = create();
    const states: RowState[] = ['reserved', 'computed', 'settling', 'unknown', 'settled', 'failed', 'released'];
    for (const state of states) {
      await ledger.reserve(state, claim, limits);
      await ledger.advance(state, ['reserved'], { state });
    }
    const first = await ledger.open('', 2);
    expect(first.map(({ key, row }) => [key, row.state])).toEqual([
      ['computed', 'computed'],
      ['settling', 'settling'],
    ]);
    expect((await ledger.open('settling', 2)).map(({ key }) => key)).toEqual(['unknown']);
    for (const state of states) {
      const row = await ledger.find(state);
      expect(row && isOpen(row, 100)).toBe(['reserved', 'computed', 'settling', 'unknown'].includes(state));
    }
  });

  it('forgets what ended before a time, and no more', async () => {
    const ledger = create();
    await ledger.reserve('old', { ...claim, validBefore: 10 }, limits);
    await ledger.reserve('new', { ...claim, validBefore: 20 }, limits);
    expect(await ledger.sweep(20)).toBe(1);
    expect(await ledger.find('old')).toBeUndefined();
    expect(await ledger.find('new')).toBeDefined();
  });
});
