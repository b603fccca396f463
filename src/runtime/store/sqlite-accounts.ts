/** The accounts of API keys in the ledger's database: every step is one transaction, exact to the last unit. It opens no file. */
import type Database from 'libsql';
import {
  countUncharged,
  CREDITS_MAX,
  judgeCall,
  type Account,
  type Accounts,
  type CallRow,
  type CallState,
  type Standing,
} from '../../payment/accounts.ts';

/** Part of the ledger's migrations. Amounts are atomic USDC units, times Unix seconds, `key_mac`, `id` of a named call and `mac` HMACs. */
export const ACCOUNTS_SCHEMA = `CREATE TABLE account (
    id TEXT PRIMARY KEY,
    key_mac TEXT NOT NULL UNIQUE,
    name TEXT,
    created_at REAL NOT NULL,
    revoked_at REAL,
    topped_up INTEGER NOT NULL,
    balance INTEGER NOT NULL CHECK (balance >= 0),
    captured INTEGER NOT NULL DEFAULT 0,
    uncharged INTEGER NOT NULL DEFAULT 0,
    uncharged_until REAL NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE keyed_call (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    state TEXT NOT NULL,
    mac TEXT NOT NULL,
    price INTEGER NOT NULL,
    holder TEXT NOT NULL,
    until REAL NOT NULL,
    sealed_answer BLOB
  ) STRICT;
  CREATE INDEX keyed_call_until ON keyed_call (until);
  CREATE INDEX keyed_call_reserved ON keyed_call (until) WHERE state = 'reserved';
  ALTER TABLE owner ADD COLUMN pepper TEXT;`;

/** Ends the leases that dead processes left. */
export const END_CALL_LEASES = `UPDATE keyed_call SET until = 0 WHERE state = 'reserved'`;

interface StoredAccount {
  readonly id: string;
  readonly name: string | null;
  readonly created_at: number;
  readonly revoked_at: number | null;
  readonly topped_up: bigint;
  readonly balance: bigint;
  readonly reserved: bigint;
  readonly captured: bigint;
}

interface StoredCall {
  readonly id: string;
  readonly account: string;
  readonly state: CallState;
  readonly mac: string;
  readonly price: bigint;
  readonly holder: string;
  readonly until: number;
  readonly sealed_answer: ArrayBuffer | null;
}

const toAccount = (stored: StoredAccount): Account => ({
  id: stored.id,
  ...(stored.name !== null && { name: stored.name }),
  createdAt: stored.created_at,
  ...(stored.revoked_at !== null && { revokedAt: stored.revoked_at }),
  toppedUp: stored.topped_up,
  balance: stored.balance,
  reserved: stored.reserved,
  captured: stored.captured,
});

const toRow = ({ sealed_answer: sealed, ...stored }: StoredCall): CallRow => ({
  ...stored,
  ...(sealed && { sealedAnswer: new Uint8Array(sealed) }),
});

export function accountsOn(database: Database.Database): Accounts {
  /** Integers as bigint: a double would round amounts past 2^53. */
  const prepare = (sql: string): Database.Statement => database.prepare(sql).safeIntegers(true);
  const insert = prepare(
    'INSERT INTO account (id, key_mac, name, created_at, topped_up, balance) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const all = prepare(
    `SELECT *, (SELECT coalesce(sum(price), 0) FROM keyed_call WHERE account = account.id AND state = 'reserved') AS reserved
     FROM account ORDER BY rowid`,
  );
  const byMac = prepare('SELECT id FROM account WHERE key_mac = ? AND revoked_at IS NULL');
  const byId = prepare('SELECT balance, uncharged, uncharged_until FROM account WHERE id = ?');
  const liveById = prepare(
    'SELECT balance, uncharged, uncharged_until FROM account WHERE id = ? AND revoked_at IS NULL',
  );
  const add = prepare(
    `UPDATE account SET topped_up = topped_up + ?, balance = balance + ? WHERE id = ? AND revoked_at IS NULL AND topped_up <= ?`,
  );
  const revoke = prepare('UPDATE account SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');
  const debit = prepare('UPDATE account SET balance = balance - ? WHERE id = ?');
  const credit = prepare('UPDATE account SET balance = balance + ? WHERE id = ?');
  const charge = prepare('UPDATE account SET captured = captured + ?, uncharged = max(0, uncharged - 1) WHERE id = ?');
  const count = prepare('UPDATE account SET uncharged = ?, uncharged_until = ? WHERE id = ?');
  const callById = prepare('SELECT * FROM keyed_call WHERE id = ?');
  const insertCall = prepare(
    'INSERT INTO keyed_call (id, account, state, mac, price, holder, until) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const endCall = prepare(`UPDATE keyed_call SET state = 'captured', until = ?, sealed_answer = ? WHERE id = ?`);
  const dropCall = prepare('DELETE FROM keyed_call WHERE id = ?');
  const dead = prepare(`SELECT * FROM keyed_call WHERE state = 'reserved' AND until <= ?`);
  const forget = prepare(`DELETE FROM keyed_call WHERE until <= ? AND state <> 'reserved'`);

  const standingOf = (statement: Database.Statement, id: string): Standing | undefined =>
    (statement.all(id) as { balance: bigint; uncharged: bigint; uncharged_until: number }[]).map((found) => ({
      balance: found.balance,
      uncharged: Number(found.uncharged),
      unchargedUntil: found.uncharged_until,
    }))[0];
  const findCall = (id: string): CallRow | undefined => (callById.all(id) as StoredCall[]).map(toRow)[0];
  const held = (id: string, holder: string): CallRow | undefined => {
    const row = findCall(id);
    return row?.state === 'reserved' && row.holder === holder ? row : undefined;
  };
  const giveBack = ({ id, account, price }: Pick<CallRow, 'id' | 'account' | 'price'>): void => {
    credit.run(price, account);
    dropCall.run(id);
  };
  const giveBackDead = (now: number): number => {
    const rows = dead.all(now) as StoredCall[];
    rows.forEach(giveBack);
    return rows.length;
  };

  const steps = {
    topUp: (id: string, credits: bigint): bigint | undefined => {
      if (add.run(credits, credits, id, CREDITS_MAX - credits).changes !== 1) return undefined;
      return standingOf(byId, id)?.balance;
    },
    reserve: (...[claim, limits]: Parameters<Accounts['reserve']>) => {
      giveBackDead(limits.now);
      const { id, account, mac, price, holder, until, passUntil } = claim;
      const row = findCall(id);
      const reservation = judgeCall(claim, limits, { account: standingOf(liveById, account), row });
      if (reservation.kind === 'reserved') {
        debit.run(price, account);
        insertCall.run(id, account, 'reserved', mac, price, holder, until);
      }
      if (reservation.kind === 'passed' && !row) {
        insertCall.run(id, account, 'passed', mac, 0n, holder, passUntil ?? until);
      }
      return reservation;
    },
    capture: (...[id, holder, { until, sealedAnswer }]: Parameters<Accounts['capture']>) => {
      const row = held(id, holder);
      if (!row) return undefined;
      endCall.run(until, sealedAnswer ?? null, id);
      charge.run(row.price, row.account);
      return standingOf(byId, row.account)?.balance;
    },
    release: (...[id, holder, now]: Parameters<Accounts['release']>) => {
      const row = held(id, holder);
      const account = row && standingOf(byId, row.account);
      if (!account) return undefined;
      const { uncharged, unchargedUntil } = countUncharged(account, now);
      count.run(uncharged, unchargedUntil, row.account);
      giveBack(row);
      return account.balance + row.price;
    },
    sweep: (now: number) => forget.run(now).changes + giveBackDead(now),
  };
  const atomic = <Args extends unknown[], T>(step: (...args: Args) => T): ((...args: Args) => Promise<T>) => {
    const transaction = database.transaction(step);
    // What breaks in a step has to reject, not throw.
    return async (...args) => transaction.immediate(...args);
  };

  return {
    create: async ({ id, keyMac, name, createdAt, credits }) => {
      if (credits > CREDITS_MAX) return false;
      insert.run(id, keyMac, name ?? null, createdAt, credits, credits);
      return true;
    },
    list: async () => (all.all() as StoredAccount[]).map(toAccount),
    topUp: atomic(steps.topUp),
    revoke: async (id, now) => revoke.run(now, id).changes === 1,
    identify: async (keyMac) => (byMac.all(keyMac) as { id: string }[])[0]?.id,
    reserve: atomic(steps.reserve),
    capture: atomic(steps.capture),
    release: atomic(steps.release),
    sweep: atomic(steps.sweep),
  };
}
