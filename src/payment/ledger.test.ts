/** What every ledger must hold to; the ones on disk run the same list. */
import { describe, expect, it } from 'vitest';
import { createMemoryLedger, type Claim, type Ledger } from './ledger.ts';

const claim: Claim = {
  mac: 'a',
  validBefore: 1_000,
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

describe.each<[string, () => Ledger]>([['memory', createMemoryLedger]])('%s ledger', (_, create) => {
  it('gives a payment to one of many who reserve it at once', async () => {
    const ledger = create();
    const claims = Array.from({ length: 50 }, (__, index) => ({ ...claim, mac: String(index) }));
    const reservations = await Promise.all(claims.map((each) => ledger.reserve('k', each, 3)));
    expect(reservations.filter(({ reserved }) => reserved)).toHaveLength(1);
    const winner = reservations.findIndex(({ reserved }) => reserved);
    for (const reservation of reservations) {
      if (!reservation.reserved) expect(reservation.row).toMatchObject({ state: 'reserved', mac: String(winner) });
    }
  });

  it('advances a row from the states named only, once', async () => {
    const ledger = create();
    expect(await ledger.advance('k', ['reserved'], { state: 'computed' })).toBe(false);
    await ledger.reserve('k', claim, 3);
    expect(await ledger.advance('k', ['settling'], { state: 'settled' })).toBe(false);
    const sealedAnswer = Uint8Array.of(1, 2);
    const steps = await Promise.all(
      [1, 2].map(() => ledger.advance('k', ['reserved'], { state: 'computed', sealedAnswer })),
    );
    expect(steps.toSorted()).toEqual([false, true]);
    expect(await ledger.find('k')).toEqual({ ...claim, state: 'computed', releases: 0, sealedAnswer });
    expect(await ledger.find('other')).toBeUndefined();
  });

  it('lets a released payment be reserved anew until it was released often enough, and starts clean', async () => {
    const ledger = create();
    for (const releases of [1, 2, 3]) {
      expect(await ledger.reserve('k', claim, 3)).toEqual({ reserved: true, releases: releases - 1 });
      await ledger.advance('k', ['reserved'], { state: 'released', releases, sealedAnswer: Uint8Array.of(1) });
    }
    expect(await ledger.reserve('k', claim, 3)).toMatchObject({
      reserved: false,
      row: { state: 'released', releases: 3 },
    });
    await ledger.reserve('k', claim, 4);
    expect(await ledger.find('k')).toEqual({ ...claim, state: 'reserved', releases: 3 });
  });

  it('forgets what ended before a time, and no more', async () => {
    const ledger = create();
    await ledger.reserve('old', { ...claim, validBefore: 10 }, 3);
    await ledger.reserve('new', { ...claim, validBefore: 20 }, 3);
    expect(await ledger.sweep(20)).toBe(1);
    expect(await ledger.find('old')).toBeUndefined();
    expect(await ledger.find('new')).toBeDefined();
  });
});
