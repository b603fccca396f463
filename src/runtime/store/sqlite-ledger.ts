/**
 * The ledger in one SQLite file: every step is one transaction that is on the disk when it is answered (WAL, synchronous FULL).
 * It refuses a file of a newer schema, and one that another process of an older version still uses.
 */
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import { closeSync, openSync } from 'node:fs';
import Database from 'libsql';
import type { Address, Hex } from 'viem';
import {
  judge,
  OPEN_STATES,
  type Change,
  type Claim,
  type KeyedRow,
  type Ledger,
  type LedgerRow,
  type Names,
  type RowState,
} from '../../payment/ledger.ts';
import type { Accounts } from '../../payment/accounts.ts';
import { ACCOUNTS_SCHEMA, accountsOn, END_CALL_LEASES } from './sqlite-accounts.ts';

export interface SqliteLedger extends Ledger {
  /** Of API keys, in the same file. */
  readonly accounts: Accounts;
  close(): void;
}

/** What a writer waits for another; a transaction here takes less than a millisecond. */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * One step per version, in order: what is at index n takes a file of version n to n + 1. Steps are never changed, only added.
 * Times are Unix seconds. `mac`, `probe` and `identifier` are HMACs; `sealed_answer` opens only with the caller's own request.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE payment (
    key TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    payer TEXT NOT NULL,
    nonce TEXT NOT NULL,
    valid_before INTEGER NOT NULL,
    mac TEXT NOT NULL,
    probe TEXT,
    identifier TEXT,
    requirements TEXT NOT NULL,
    from_block INTEGER NOT NULL,
    holder TEXT NOT NULL,
    lease_until REAL NOT NULL,
    releases INTEGER NOT NULL,
    sealed_answer BLOB,
    settlement TEXT
  ) STRICT;
  CREATE INDEX payment_payer ON payment (payer);
  CREATE INDEX payment_probe ON payment (probe) WHERE probe IS NOT NULL;
  CREATE INDEX payment_identifier ON payment (identifier) WHERE identifier IS NOT NULL;
  CREATE INDEX payment_valid_before ON payment (valid_before);
  CREATE TABLE owner (secret TEXT NOT NULL) STRICT;
  CREATE INDEX payment_open ON payment (key) WHERE state IN ('computed', 'settling', 'unknown');`,
  ACCOUNTS_SCHEMA,
];

const IN_MEMORY = ':memory:';

/**
 * Opens the ledger, makes or migrates it, and, where no other process has it open, ends the leases that dead processes left.
 *
 * @param path of the file, whose folder exists; `:memory:` for one that ends with the process.
 * @param secretMac stands for the secret that answers are sealed under.
 * @param pepperMac stands for the secret that API keys are known by, where they are in use.
 * @throws Error where the file is no ledger, of another version, or of other secrets: no answer in it could be opened, or no key known.
 */
export function openSqliteLedger(path: string, secretMac = '', pepperMac?: string): SqliteLedger {
  const presence = path === IN_MEMORY ? undefined : new Database(`${path}.lock`, { timeout: 0 });
  const alone = presence === undefined || succeeds(() => presence.exec('BEGIN EXCLUSIVE'));
  if (presence && !alone) stay(presence);
  // Who paid when is nobody else's business; what SQLite puts beside the file has the file's mode.
  if (presence) closeSync(openSync(path, 'a', 0o600));
  const database = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    if (alone) {
      for (const setting of ['journal_mode = WAL', 'synchronous = FULL']) database.exec(`PRAGMA ${setting}`);
      migrate(database);
      database.exec(`UPDATE payment SET lease_until = 0 WHERE state = 'reserved'`);
      database.exec(END_CALL_LEASES);
    }
    database.exec('PRAGMA synchronous = FULL');
    if (versionOf(database) !== MIGRATIONS.length) throw new Error(OTHER_VERSION);
    if (secretOf(database, secretMac) !== secretMac) throw new Error(OTHER_SECRET);
    if (pepperMac !== undefined && pepperOf(database, pepperMac) !== pepperMac) throw new Error(OTHER_PEPPER);
  } catch (error) {
    database.close();
    leave(presence);
    throw error;
  }
  if (presence && alone) {
    presence.exec('COMMIT');
    stay(presence);
  }
  const ledger = ledgerOn(database);
  return {
    ...ledger,
    accounts: accountsOn(database),
    close: () => {
      database.close();
      leave(presence);
    },
  };
}

const OTHER_VERSION = 'the ledger is in use by, or was written by, another version of this service';

const OTHER_SECRET = 'STORE_SECRET: the ledger was written under another one, so no answer in it could be fetched';

/** Of the first who opened it. */
function secretOf(database: Database.Database, secretMac: string): string | undefined {
  database.prepare('INSERT INTO owner (secret) SELECT ? WHERE NOT EXISTS (SELECT * FROM owner)').run(secretMac);
  const [owner] = database.prepare('SELECT secret FROM owner').all() as { secret: string }[];
  return owner?.secret;
}

const OTHER_PEPPER =
  'KEY_PEPPER: the API keys in the ledger were made under another one, so none of them would be known';

/** Of the first who opened it with one. */
function pepperOf(database: Database.Database, pepperMac: string): string | undefined {
  database.prepare('UPDATE owner SET pepper = ? WHERE pepper IS NULL').run(pepperMac);
  const [owner] = database.prepare('SELECT pepper FROM owner').all() as { pepper: string }[];
  return owner?.pepper;
}

/** A shared lock for as long as this process lives; the kernel ends it on any death. Whoever gets the exclusive one is alone. */
function stay(presence: Database.Database): void {
  presence.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  presence.exec('BEGIN');
  presence.prepare('SELECT count(*) FROM sqlite_schema').all();
}

/** A closed connection would keep its locks until its statements are collected. */
function leave(presence: Database.Database | undefined): void {
  presence?.exec('ROLLBACK');
  presence?.close();
}

function succeeds(step: () => void): boolean {
  try {
    step();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return false;
    throw error;
  }
}

function versionOf(database: Database.Database): number {
  const [row] = database.prepare('SELECT user_version FROM pragma_user_version').all() as { user_version: number }[];
  return row?.user_version ?? 0;
}

function migrate(database: Database.Database): void {
  const version = versionOf(database);
  if (version > MIGRATIONS.length) throw new Error(OTHER_VERSION);
  MIGRATIONS.slice(version).forEach((step, index) => {
    database.exec(`BEGIN IMMEDIATE; ${step} PRAGMA user_version = ${version + index + 1}; COMMIT`);
  });
}

interface Stored {
  readonly key: string;
  readonly state: RowState;
  readonly payer: Address;
  readonly nonce: Hex;
  readonly valid_before: number;
  readonly mac: string;
  readonly probe: string | null;
  readonly identifier: string | null;
  readonly requirements: string;
  readonly from_block: number;
  readonly holder: string;
  readonly lease_until: number;
  readonly releases: number;
  readonly sealed_answer: ArrayBuffer | null;
  readonly settlement: string | null;
}

const toRow = (stored: Stored): LedgerRow => ({
  state: stored.state,
  payer: stored.payer,
  nonce: stored.nonce,
  validBefore: stored.valid_before,
  mac: stored.mac,
  ...(stored.probe !== null && { probe: stored.probe }),
  ...(stored.identifier !== null && { identifier: stored.identifier }),
  requirements: JSON.parse(stored.requirements) as PaymentRequirements,
  fromBlock: stored.from_block,
  holder: stored.holder,
  leaseUntil: stored.lease_until,
  releases: stored.releases,
  ...(stored.sealed_answer && { sealedAnswer: new Uint8Array(stored.sealed_answer) }),
  ...(stored.settlement !== null && { settlement: JSON.parse(stored.settlement) as SettleResponse }),
});

const keyed = (stored: Stored): KeyedRow => ({ key: stored.key, row: toRow(stored) });

const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

function ledgerOn(database: Database.Database): Ledger {
  const states = OPEN_STATES.map((state) => `'${state}'`).join(', ');
  const byKey = database.prepare('SELECT * FROM payment WHERE key = ?');
  const byName = database.prepare(
    'SELECT * FROM payment WHERE probe = ? UNION SELECT * FROM payment WHERE identifier = ?',
  );
  const uncharged = database.prepare(
    `SELECT coalesce(sum(releases + (state = 'failed')), 0) AS uncharged, min(valid_before) AS valid_before
     FROM payment WHERE payer = ? AND releases + (state = 'failed') > 0`,
  );
  const insert = database.prepare(
    `INSERT OR REPLACE INTO payment (key, state, payer, nonce, valid_before, mac, probe, identifier, requirements,
       from_block, holder, lease_until, releases) VALUES (?, 'reserved', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const change = database.prepare(
    `UPDATE payment SET state = ?, releases = coalesce(?, releases), lease_until = coalesce(?, lease_until),
       sealed_answer = coalesce(?, sealed_answer), settlement = coalesce(?, settlement)
     WHERE key = ? AND state IN (SELECT value FROM json_each(?)) AND holder = coalesce(?, holder)`,
  );
  const open = database.prepare(`SELECT * FROM payment WHERE state IN (${states}) AND key > ? ORDER BY key LIMIT ?`);
  const sweep = database.prepare('DELETE FROM payment WHERE valid_before < ?');

  const find = (key: string): LedgerRow | undefined => (byKey.all(key) as Stored[]).map(toRow)[0];
  const findNamed = ({ probe, identifier }: Names): KeyedRow[] =>
    (byName.all(probe ?? null, identifier ?? null) as Stored[]).map(keyed);
  const store = (key: string, claim: Claim, releases: number): void => {
    const { payer, nonce, validBefore, mac, probe, identifier, requirements, fromBlock, holder, leaseUntil } = claim;
    const names = [mac, probe ?? null, identifier ?? null, json(requirements)];
    insert.run(key, payer, nonce, validBefore, ...names, fromBlock, holder, leaseUntil, releases);
  };
  const reserve = database.transaction((...[key, claim, limits]: Parameters<Ledger['reserve']>) => {
    const [sum] = uncharged.all(claim.payer) as { uncharged: number; valid_before: number | null }[];
    const reservation = judge(key, claim, limits, {
      row: find(key),
      named: findNamed(claim),
      uncharged: sum?.uncharged ?? 0,
      unchargedValidBefore: sum?.valid_before ?? limits.now,
    });
    if (reservation.reserved) store(key, claim, reservation.releases);
    return reservation;
  });
  const advance = (key: string, from: readonly RowState[], to: Change, holder?: string): boolean => {
    const { state, releases = null, leaseUntil = null, sealedAnswer = null, settlement } = to;
    const values = [state, releases, leaseUntil, sealedAnswer, json(settlement)];
    return change.run(...values, key, JSON.stringify(from), holder ?? null).changes === 1;
  };

  // What breaks in a step has to reject, not throw.
  return {
    find: async (key) => find(key),
    findNamed: async (names) => findNamed(names),
    reserve: async (...call) => reserve.immediate(...call),
    advance: async (...call) => advance(...call),
    open: async (after, limit) => (open.all(after, limit) as Stored[]).map(keyed),
    sweep: async (validBefore) => sweep.run(validBefore).changes,
  };
}
