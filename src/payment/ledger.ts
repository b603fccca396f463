/**
 * The ledger's port, and the ledger that lives in memory. A row is what the service remembers of one payment: it stands
 * before the engine runs and decides every later copy of the same payment. It holds nothing that opens an answer.
 */
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';

/**
 * reserved: the engine may be running. computed: the sealed answer is stored and nothing was sent to be settled. settling: the
 * facilitator may have been asked. settled, failed: decided. unknown: asked, and no answer could be trusted. released: an
 * uncharged answer freed the payment for any request. A row that a dead process left at reserved stays so; a ledger
 * that outlives its process has to give such rows a lease.
 */
export type RowState = 'reserved' | 'computed' | 'settling' | 'settled' | 'failed' | 'unknown' | 'released';

export interface LedgerRow {
  readonly state: RowState;
  /** HMAC of the request digest and the payment: binds one to the other without showing a digest that could be guessed. */
  readonly mac: string;
  /** What we asked for when the payment was verified; a resend is settled and judged by this, never by what it says itself. */
  readonly requirements: PaymentRequirements;
  /** Unix seconds of the authorization's own end. */
  readonly validBefore: number;
  /** How often an uncharged answer released this payment. */
  readonly releases: number;
  /** From computed on. */
  readonly sealedAnswer?: Uint8Array;
  /** Of a settled or failed row. */
  readonly settlement?: SettleResponse;
}

/** A row outlives its authorization by this long, so that a lost answer can be fetched. */
export const ROW_GRACE_SECONDS = 24 * 3_600;

export type Claim = Pick<LedgerRow, 'mac' | 'requirements' | 'validBefore'>;
export type Reservation =
  | { readonly reserved: true; readonly releases: number }
  | { readonly reserved: false; readonly row: LedgerRow };

/** Every method is one atomic step, so that several processes can share one store. */
export interface Ledger {
  find(key: string): Promise<LedgerRow | undefined>;
  /** Creates the row, or takes over a released one that has fewer than `maxReleases` releases. */
  reserve(key: string, claim: Claim, maxReleases: number): Promise<Reservation>;
  /** Applies `change` if the row is in one of the states `from`; false where it is not, and nothing changed. */
  advance(
    key: string,
    from: readonly RowState[],
    change: Partial<LedgerRow> & Pick<LedgerRow, 'state'>,
  ): Promise<boolean>;
  /** Deletes rows whose authorization ended before `validBefore` (Unix seconds); answers how many. */
  sweep(validBefore: number): Promise<number>;
}

/** For local mode and tests: it ends with the process, as the practice chain does. */
export function createMemoryLedger(): Ledger {
  const rows = new Map<string, LedgerRow>();
  return {
    find: async (key) => rows.get(key),
    reserve: async (key, claim, maxReleases) => {
      const row = rows.get(key);
      if (row && (row.state !== 'released' || row.releases >= maxReleases)) return { reserved: false, row };
      const releases = row?.releases ?? 0;
      rows.set(key, { ...claim, state: 'reserved', releases });
      return { reserved: true, releases };
    },
    advance: async (key, from, change) => {
      const row = rows.get(key);
      if (!row || !from.includes(row.state)) return false;
      rows.set(key, { ...row, ...change });
      return true;
    },
    sweep: async (validBefore) => {
      const ended = [...rows].filter(([, row]) => row.validBefore < validBefore);
      for (const [key] of ended) rows.delete(key);
      return ended.length;
    },
  };
}
