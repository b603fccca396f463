/**
 * The port behind API keys: accounts of prepaid credits and the calls that draw on them, the one rule by which a call is let in, and the
 * accounts that live in memory. A price is taken off before the engine runs, and captured or given back after it. No key is in here, only HMACs.
 */

export interface Account {
  /** Names the account in lists; it opens nothing. */
  readonly id: string;
  readonly name?: string;
  /** Unix seconds, as all times here. */
  readonly createdAt: number;
  readonly revokedAt?: number;
  /** Atomic USDC units: what was ever topped up is always `balance` + `reserved` + `captured`. */
  readonly toppedUp: bigint;
  readonly balance: bigint;
  /** Of calls that are running. */
  readonly reserved: bigint;
  readonly captured: bigint;
}

/** What an account is made with. */
export interface NewAccount extends Pick<Account, 'id' | 'name' | 'createdAt'> {
  /** HMAC of its key, which is kept nowhere. */
  readonly keyMac: string;
  readonly credits: bigint;
}

/** Of one account, over its life: fits 64 bits with room to spare, as every price does. */
export const CREDITS_MAX = 10n ** 18n - 1n;

/**
 * reserved: the price is off the balance and the engine may be running. captured: it was charged. passed: the credits were spent, so the
 * call was left to the payment that it came with; whatever is topped up later, no copy of it draws on credits.
 */
export type CallState = 'reserved' | 'captured' | 'passed';

export interface CallClaim {
  /** HMAC of the key and the caller's name for the call, or random where it has none. */
  readonly id: string;
  readonly account: string;
  /** Of the request: another one under the same name has another. */
  readonly mac: string;
  readonly price: bigint;
  /** Whose run this is; one that was overtaken can write nothing any more. */
  readonly holder: string;
  /** The lease's end: from then on the price is given back. */
  readonly until: number;
  /** Where a payment lies at hand: spent credits leave the call to it, and this is remembered until then. */
  readonly passUntil?: number;
}

export interface CallRow extends Omit<CallClaim, 'passUntil'> {
  readonly state: CallState;
  /** Of a captured call that has a name. */
  readonly sealedAnswer?: Uint8Array;
}

export interface CallLimits {
  readonly now: number;
  readonly maxUncharged: number;
}

/** `balance` is what is left now. */
export type CallReservation =
  | { readonly kind: 'reserved'; readonly balance: bigint }
  /** The name stands for a call already. */
  | { readonly kind: 'taken'; readonly row: CallRow; readonly balance: bigint }
  | { readonly kind: 'passed' }
  | { readonly kind: 'spent'; readonly balance: bigint }
  /** Too many answers were not charged; they are forgotten at `until`. */
  | { readonly kind: 'uncharged'; readonly until: number }
  /** No such account, or it was revoked. */
  | { readonly kind: 'unknown' };

/** Every method is one atomic step, so that several processes can share one store. */
export interface Accounts {
  /** @returns false where the credits are over CREDITS_MAX. */
  create(account: NewAccount): Promise<boolean>;
  /** In the order in which they were made. */
  list(): Promise<readonly Account[]>;
  /** @returns the new balance; undefined where the account is revoked or unknown, or would exceed CREDITS_MAX. */
  topUp(id: string, credits: bigint): Promise<bigint | undefined>;
  /** @returns false where no account of that id is live. */
  revoke(id: string, now: number): Promise<boolean>;
  /** The id of the live account with this key. */
  identify(keyMac: string): Promise<string | undefined>;
  /** Gives back what dead calls hold, then lets the call in or says why not; see `judgeCall`. */
  reserve(claim: CallClaim, limits: CallLimits): Promise<CallReservation>;
  /** Ends a reserved call as charged; `until` is when it may be forgotten. @returns the balance, or undefined where it is not `holder`'s any more. */
  capture(id: string, holder: string, end: CallEnd): Promise<bigint | undefined>;
  /** Ends a reserved call that is not charged, and gives its price back. @returns as `capture`. */
  release(id: string, holder: string, now: number): Promise<bigint | undefined>;
  /** Gives back what dead calls hold and forgets ended ones; @returns how many. */
  sweep(now: number): Promise<number>;
}

export type CallEnd = Pick<CallRow, 'until' | 'sealedAnswer'>;

/** Answers that were not charged are counted for this long; each that is charged takes one off. */
export const UNCHARGED_SECONDS = 24 * 3_600;

/** What a store has found in the same step. */
export interface SeenCall {
  /** Of a live account. */
  readonly account: Standing | undefined;
  readonly row: CallRow | undefined;
}

export interface Standing extends Uncharged {
  readonly balance: bigint;
}

export interface Uncharged {
  readonly uncharged: number;
  /** When the count starts anew. */
  readonly unchargedUntil: number;
}

/** Whether a call may draw on its account. The one rule of every store. */
export function judgeCall(
  { mac, price, passUntil }: CallClaim,
  { now, maxUncharged }: CallLimits,
  { account, row }: SeenCall,
): CallReservation {
  if (!account) return { kind: 'unknown' };
  const { balance, uncharged, unchargedUntil } = account;
  if (row) return row.state === 'passed' && row.mac === mac ? { kind: 'passed' } : { kind: 'taken', row, balance };
  if (balance < price) return passUntil === undefined ? { kind: 'spent', balance } : { kind: 'passed' };
  if (uncharged >= maxUncharged && now < unchargedUntil) return { kind: 'uncharged', until: unchargedUntil };
  return { kind: 'reserved', balance: balance - price };
}

/** The count after one more answer that was not charged. */
export const countUncharged = ({ uncharged, unchargedUntil }: Uncharged, now: number): Uncharged =>
  now < unchargedUntil
    ? { uncharged: uncharged + 1, unchargedUntil }
    : { uncharged: 1, unchargedUntil: now + UNCHARGED_SECONDS };

type Kept = Omit<Account, 'reserved'>;

/** For tests, and where no file is to be had: they end with the process. */
export function createMemoryAccounts(): Accounts {
  const accounts = new Map<string, Kept>();
  const keys = new Map<string, string>();
  const counts = new Map<string, Uncharged>();
  const calls = new Map<string, CallRow>();
  const live = (id: string): Kept | undefined => {
    const account = accounts.get(id);
    return account?.revokedAt === undefined ? account : undefined;
  };
  const select = (wanted: (row: CallRow) => boolean): CallRow[] => [...calls.values()].filter(wanted);

  const update = (id: string, change: (account: Kept) => Partial<Kept>): bigint | undefined => {
    const account = accounts.get(id);
    if (!account) return undefined;
    const changed = { ...account, ...change(account) };
    accounts.set(id, changed);
    return changed.balance;
  };
  const countOf = (id: string): Uncharged => counts.get(id) ?? { uncharged: 0, unchargedUntil: 0 };
  const standingOf = (id: string): Standing | undefined => {
    const account = live(id);
    return account && { balance: account.balance, ...countOf(id) };
  };
  const giveBack = ({ id, account, price }: CallRow): bigint | undefined => {
    calls.delete(id);
    return update(account, ({ balance }) => ({ balance: balance + price }));
  };
  const giveBackDead = (now: number): number => {
    const dead = select(({ state, until }) => state === 'reserved' && until <= now);
    dead.forEach(giveBack);
    return dead.length;
  };
  const held = (id: string, holder: string): CallRow | undefined => {
    const row = calls.get(id);
    return row?.state === 'reserved' && row.holder === holder ? row : undefined;
  };
  const reservedOf = (id: string): bigint =>
    select(({ account, state }) => account === id && state === 'reserved').reduce((sum, { price }) => sum + price, 0n);

  return {
    create: async ({ keyMac, credits, ...account }) => {
      if (credits > CREDITS_MAX) return false;
      keys.set(keyMac, account.id);
      accounts.set(account.id, { ...account, toppedUp: credits, balance: credits, captured: 0n });
      return true;
    },
    list: async () => [...accounts.values()].map((account) => ({ ...account, reserved: reservedOf(account.id) })),
    topUp: async (id, credits) => {
      const account = live(id);
      if (!account || account.toppedUp + credits > CREDITS_MAX) return undefined;
      return update(id, ({ toppedUp, balance }) => ({ toppedUp: toppedUp + credits, balance: balance + credits }));
    },
    revoke: async (id, revokedAt) => {
      if (!live(id)) return false;
      update(id, () => ({ revokedAt }));
      return true;
    },
    identify: async (keyMac) => live(keys.get(keyMac) ?? '')?.id,
    reserve: async (claim, limits) => {
      giveBackDead(limits.now);
      const { passUntil, ...call } = claim;
      const row = calls.get(claim.id);
      const reservation = judgeCall(claim, limits, { account: standingOf(claim.account), row });
      if (reservation.kind === 'reserved') {
        calls.set(claim.id, { ...call, state: 'reserved' });
        update(claim.account, () => ({ balance: reservation.balance }));
      }
      if (reservation.kind === 'passed' && !row) {
        calls.set(claim.id, { ...call, price: 0n, until: passUntil ?? call.until, state: 'passed' });
      }
      return reservation;
    },
    capture: async (id, holder, end) => {
      const row = held(id, holder);
      if (!row) return undefined;
      calls.set(id, { ...row, ...end, state: 'captured' });
      const { uncharged, unchargedUntil } = countOf(row.account);
      counts.set(row.account, { uncharged: Math.max(0, uncharged - 1), unchargedUntil });
      return update(row.account, ({ captured }) => ({ captured: captured + row.price }));
    },
    release: async (id, holder, now) => {
      const row = held(id, holder);
      if (!row) return undefined;
      counts.set(row.account, countUncharged(countOf(row.account), now));
      return giveBack(row);
    },
    sweep: async (now) => {
      const ended = select(({ state, until }) => state !== 'reserved' && until <= now);
      for (const { id } of ended) calls.delete(id);
      return ended.length + giveBackDead(now);
    },
  };
}
