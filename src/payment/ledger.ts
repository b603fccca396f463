/**
 * The ledger's port, the one rule by which a payment is reserved, and the ledger that lives in memory. A row is what the service
 * remembers of one payment: it stands before the engine runs and decides every later copy. It holds nothing that opens an answer.
 */
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Address, Hex } from 'viem';

/**
 * reserved: the engine may be running, until the lease ends. computed: the sealed answer is stored and nothing was sent to be
 * settled. settling: the facilitator may have been asked. settled, failed: decided. unknown: asked, and no answer could be
 * trusted. released: an uncharged answer freed the payment for any request.
 */
export type RowState = 'reserved' | 'computed' | 'settling' | 'settled' | 'failed' | 'unknown' | 'released';

/** What a payment is reserved with. All names are HMACs: none shows what a caller sent, and none can be guessed. */
export interface Claim {
  readonly payer: Address;
  readonly nonce: Hex;
  /** Unix seconds of the authorization's own end. */
  readonly validBefore: number;
  /** Of the request, what opens its answer, and the payment: binds one to the other. */
  readonly mac: string;
  /** Of the caller's Idempotency-Key and the request: tells an unpaid probe that an earlier payment is open. */
  readonly probe?: string;
  /** Of the payer and the id of its payment-identifier. */
  readonly identifier?: string;
  /** What we asked for when the payment was verified; a resend is settled and judged by this, never by what it says itself. */
  readonly requirements: PaymentRequirements;
  /** The newest block before anything could be settled: no transfer of this payment is below it. */
  readonly fromBlock: number;
  /** Whose run this is; a run that was overtaken can write nothing any more. */
  readonly holder: string;
  /** Unix seconds until which nobody else may take a reserved row over. */
  readonly leaseUntil: number;
}

export interface LedgerRow extends Claim {
  readonly state: RowState;
  /** How often an uncharged answer released this payment. */
  readonly releases: number;
  /** From computed on. */
  readonly sealedAnswer?: Uint8Array;
  /** Of a settled or failed row. */
  readonly settlement?: SettleResponse;
}

export interface KeyedRow {
  readonly key: string;
  readonly row: LedgerRow;
}

/** A row outlives its authorization by this long, so that a lost answer can be fetched. */
export const ROW_GRACE_SECONDS = 24 * 3_600;

export interface Limits {
  /** Unix seconds. */
  readonly now: number;
  /** Of one payment. */
  readonly maxReleases: number;
  /** Of all live rows of one payer: releases and failures together. */
  readonly maxUncharged: number;
}

export type Reservation =
  | { readonly reserved: true; readonly releases: number }
  /** The payment is another claim's, or was released too often. */
  | { readonly reserved: false; readonly because: 'taken'; readonly row: LedgerRow }
  /** Another payment of this payer goes by the same name. */
  | { readonly reserved: false; readonly because: 'twin'; readonly row: LedgerRow }
  /** The payer has had too many answers that were not charged; the first of those rows ends at `validBefore`. */
  | { readonly reserved: false; readonly because: 'uncharged'; readonly validBefore: number };

export type Names = Pick<Claim, 'probe' | 'identifier'>;

/** Every method is one atomic step, so that several processes can share one store. */
export interface Ledger {
  find(key: string): Promise<LedgerRow | undefined>;
  /** Rows that go by one of these names, at most a few. */
  findNamed(names: Names): Promise<readonly KeyedRow[]>;
  /** Creates the row, or takes over a free one; see `judge`. */
  reserve(key: string, claim: Claim, limits: Limits): Promise<Reservation>;
  /** Applies `change` if the row is in one of the states `from`, and still `holder`'s where one is given; else false, and nothing changed. */
  advance(key: string, from: readonly RowState[], change: Change, holder?: string): Promise<boolean>;
  /** Rows that only the chain can decide, in the order of their keys, those after `after`. */
  open(after: string, limit: number): Promise<readonly KeyedRow[]>;
  /** Deletes rows whose authorization ended before `validBefore` (Unix seconds); answers how many. */
  sweep(validBefore: number): Promise<number>;
}

export type Change = Pick<LedgerRow, 'state'> &
  Partial<Pick<LedgerRow, 'releases' | 'leaseUntil' | 'sealedAnswer' | 'settlement'>>;

/** Nothing was charged and nobody works on it: any request may take the payment. */
export const isFree = ({ state, leaseUntil }: LedgerRow, now: number): boolean =>
  state === 'released' || (state === 'reserved' && leaseUntil <= now);

/** Money may be moving, or may begin to: a second signature could be a second charge. */
export const isOpen = (row: LedgerRow, now: number): boolean =>
  OPEN_STATES.includes(row.state) || (row.state === 'reserved' && !isFree(row, now));

/** What reconciliation looks at. A computed row is among them, so that it ends with its authorization at the latest. */
export const OPEN_STATES: readonly RowState[] = ['computed', 'settling', 'unknown'];

/** What the store has found in the same step. */
export interface Seen {
  readonly row: LedgerRow | undefined;
  readonly named: readonly KeyedRow[];
  /** Releases and failures over the payer's rows. */
  readonly uncharged: number;
  /** The earliest end among those rows. */
  readonly unchargedValidBefore: number;
}

/** Whether `claim` may have the payment. The one rule of every store. */
export function judge(key: string, claim: Claim, { now, maxReleases, maxUncharged }: Limits, seen: Seen): Reservation {
  const { row, named, uncharged, unchargedValidBefore } = seen;
  const releases = row?.releases ?? 0;
  if (row && !(isFree(row, now) && releases < maxReleases)) return { reserved: false, because: 'taken', row };
  const twin = twinOf(key, claim, named, now);
  if (twin) return { reserved: false, because: 'twin', row: twin };
  if (uncharged >= maxUncharged) {
    return { reserved: false, because: 'uncharged', validBefore: unchargedValidBefore };
  }
  return { reserved: true, releases };
}

/** Another payment of the same payer that goes by one of the claim's names and is open or has been charged. */
export const twinOf = (
  key: string,
  { payer }: Pick<Claim, 'payer'>,
  named: readonly KeyedRow[],
  now: number,
): LedgerRow | undefined =>
  named.find(
    (other) =>
      other.key !== key && other.row.payer === payer && (isOpen(other.row, now) || other.row.state === 'settled'),
  )?.row;

/** For tests, and where no file is to be had: it ends with the process. */
export function createMemoryLedger(): Ledger {
  const rows = new Map<string, LedgerRow>();
  const select = (wanted: (row: LedgerRow, key: string) => boolean): KeyedRow[] =>
    [...rows].filter(([key, row]) => wanted(row, key)).map(([key, row]) => ({ key, row }));
  const named = ({ probe, identifier }: Names): KeyedRow[] =>
    select(
      (row) =>
        (probe !== undefined && row.probe === probe) || (identifier !== undefined && row.identifier === identifier),
    );
  return {
    find: async (key) => rows.get(key),
    findNamed: async (names) => named(names),
    reserve: async (key, claim, limits) => {
      const free = select(({ payer, releases, state }) => payer === claim.payer && releases + failures(state) > 0);
      const reservation = judge(key, claim, limits, {
        row: rows.get(key),
        named: named(claim),
        uncharged: free.reduce((sum, { row }) => sum + row.releases + failures(row.state), 0),
        unchargedValidBefore: Math.min(...free.map(({ row }) => row.validBefore)),
      });
      if (reservation.reserved) rows.set(key, { ...claim, state: 'reserved', releases: reservation.releases });
      return reservation;
    },
    advance: async (key, from, change, holder) => {
      const row = rows.get(key);
      if (!row || !from.includes(row.state) || (holder !== undefined && row.holder !== holder)) return false;
      rows.set(key, { ...row, ...change });
      return true;
    },
    open: async (after, limit) =>
      select(({ state }, key) => key > after && OPEN_STATES.includes(state))
        .toSorted((a, b) => (a.key < b.key ? -1 : 1))
        .slice(0, limit),
    sweep: async (validBefore) => {
      const ended = select((row) => row.validBefore < validBefore);
      for (const { key } of ended) rows.delete(key);
      return ended.length;
    },
  };
}

const failures = (state: RowState): number => (state === 'failed' ? 1 : 0);
