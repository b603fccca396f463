/** What only the ledger on disk has to hold to: it outlives its process, and knows whose rows it finds. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, describe, expect, it } from 'vitest';
import type { Claim, Limits } from '../../payment/ledger.ts';
import { openSqliteLedger } from './sqlite-ledger.ts';

const folder = mkdtempSync(join(tmpdir(), 'context-evidence-kit-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newPath = (): string => join(folder, `${(files += 1)}.db`);

const claim: Claim = {
  payer: '0xa',
  nonce: '0x1',
  mac: 'a',
  validBefore: 1_000,
  fromBlock: 0,
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

describe('the file', () => {
  it('is written through to the disk, and keeps its rows', async () => {
    const path = newPath();
    const ledger = openSqliteLedger(path);
    await ledger.reserve('k', claim, limits);
    await ledger.advance('k', ['reserved'], { state: 'computed', sealedAnswer: new Uint8Array(100_000).fill(7) });
    const before = await ledger.find('k');
    const modes = readdirSync(folder)
      .filter((name) => join(folder, name).startsWith(path) && !name.endsWith('.lock'))
      .map((name) => statSync(join(folder, name)).mode & 0o777);
    expect(new Set(modes)).toEqual(new Set([0o600]));
    ledger.close();
    const again = openSqliteLedger(path);
    expect(await again.find('k')).toEqual(before);
    again.close();
    const raw = new Database(path);
    expect(raw.prepare('SELECT journal_mode FROM pragma_journal_mode').all()).toEqual([{ journal_mode: 'wal' }]);
    raw.close();
  });

  it('ends the leases of the dead when it is opened alone, and of nobody who lives', async () => {
    const path = newPath();
    const first = openSqliteLedger(path);
    await first.reserve('k', claim, limits);
    const second = openSqliteLedger(path);
    expect(await second.find('k')).toMatchObject({ leaseUntil: 500 });
    expect(await second.reserve('k', { ...claim, holder: 'i' }, limits)).toMatchObject({ because: 'taken' });
    first.close();
    const third = openSqliteLedger(path);
    expect(await third.find('k')).toMatchObject({ leaseUntil: 500 });
    second.close();
    third.close();
    const alone = openSqliteLedger(path);
    expect(await alone.find('k')).toMatchObject({ state: 'reserved', leaseUntil: 0 });
    expect(await alone.reserve('k', { ...claim, holder: 'i' }, limits)).toMatchObject({ reserved: true });
    alone.close();
  });

  it('is shared by two who write at once: each payment is taken by one', async () => {
    const path = newPath();
    const ledgers = [openSqliteLedger(path), openSqliteLedger(path)];
    const keys = Array.from({ length: 40 }, (_, index) => String(index));
    const taken = await Promise.all(
      keys.flatMap((key) => ledgers.map((ledger) => ledger.reserve(key, claim, { ...limits, now: 1 }))),
    );
    expect(taken.filter(({ reserved }) => reserved)).toHaveLength(keys.length);
    for (const ledger of ledgers) ledger.close();
  });

  it('is refused where a newer version wrote it, or where it is no ledger', () => {
    const path = newPath();
    openSqliteLedger(path).close();
    const raw = new Database(path);
    raw.exec('PRAGMA user_version = 99');
    raw.close();
    expect(() => openSqliteLedger(path)).toThrow('another version');
    expect(() => openSqliteLedger(import.meta.filename)).toThrow('not a database');
    expect(() => openSqliteLedger(join(folder, 'nowhere', 'x.db'))).toThrow();
  });

  it('is refused under another secret than that of its answers', () => {
    const path = newPath();
    openSqliteLedger(path, 'a').close();
    expect(() => openSqliteLedger(path, 'b')).toThrow('STORE_SECRET');
    openSqliteLedger(path, 'a').close();
  });

  it('of an older version is brought up to date, step by step', async () => {
    const path = newPath();
    new Database(path).close();
    const ledger = openSqliteLedger(path, 's');
    expect(await ledger.reserve('k', claim, limits)).toEqual({ reserved: true, releases: 0 });
    ledger.close();
    // What version 1 was: payments, and no API keys.
    const raw = new Database(path);
    raw.exec(
      'DROP TABLE account; DROP TABLE keyed_call; ALTER TABLE owner DROP COLUMN pepper; PRAGMA user_version = 1',
    );
    raw.close();
    const migrated = openSqliteLedger(path, 's', 'p');
    expect(await migrated.find('k')).toMatchObject({ state: 'reserved', mac: claim.mac });
    expect(await migrated.accounts.list()).toEqual([]);
    migrated.close();
  });
});
