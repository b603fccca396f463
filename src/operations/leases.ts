/**
 * Leases: who works on a conversation keeps others of the same caller from doing it at the same time. The store behind them
 * makes each claim in one atomic step; a store that cannot be reached counts as held, so that an outage never lets everyone in.
 */
import type { CompactRequest } from '../engines/compact.ts';
import type { Leases } from '../operation.ts';
import { digest } from '../provenance/canonical.ts';

/** Who holds a key, told apart by a nonce. */
export interface LeaseClaim {
  readonly nonce: string;
  /** Milliseconds since the epoch, when the claim was made or last renewed. */
  readonly time: number;
}

export interface LeaseStore {
  /** One atomic step: the key is `claim`'s now, unless another claim holds it that was made less than `ttlMs` before. */
  acquire(key: string, claim: LeaseClaim, ttlMs: number): Promise<boolean>;
  /** Moves the time of a claim that still has this nonce; false where it has not. */
  renew(key: string, claim: LeaseClaim): Promise<boolean>;
  /** Frees the key if the nonce still holds it. */
  release(key: string, nonce: string): Promise<void>;
}

/** For one process. Keys whose time is over are forgotten as others come. */
export function createMemoryLeaseStore(): LeaseStore {
  const claims = new Map<string, LeaseClaim & { readonly until: number }>();
  const forgetEnded = (now: number): void => {
    // In the order in which they were made, so the first that has not ended ends the search.
    for (const [key, { until }] of claims) {
      if (until > now) return;
      claims.delete(key);
    }
  };
  return {
    acquire: async (key, claim, ttlMs) => {
      forgetEnded(claim.time);
      const held = claims.get(key);
      if (held && held.until > claim.time) return false;
      claims.delete(key);
      claims.set(key, { ...claim, until: claim.time + ttlMs });
      return true;
    },
    renew: async (key, claim) => {
      const held = claims.get(key);
      if (held?.nonce !== claim.nonce) return false;
      claims.delete(key);
      claims.set(key, { ...claim, until: claim.time + held.until - held.time });
      return true;
    },
    release: async (key, nonce) => {
      if (claims.get(key)?.nonce === nonce) claims.delete(key);
    },
  };
}

/** As the request names it, else the digest of its messages. */
export async function leaseKeyOf({ messages, options }: Pick<CompactRequest, 'messages' | 'options'>): Promise<string> {
  return options?.lease_key ?? (await digest(messages));
}

export interface LeaseDependencies {
  readonly store: LeaseStore;
  readonly now: () => Date;
  /** Told when the store cannot be reached. */
  readonly report: (event: string, error: unknown) => void;
}

/** A holder that still works renews its claim this often per time to live. */
const RENEWALS_PER_TTL = 3;

/** @param caller payer or API-key id: strangers that use the same key do not meet. */
export function leasesFor(caller: string, { store, now, report }: LeaseDependencies): Leases {
  return {
    hold: async (leaseKey, ttlSeconds, work) => {
      const key = await digest([caller, leaseKey]);
      const nonce = crypto.randomUUID();
      const ttlMs = ttlSeconds * 1_000;
      const claim = (): LeaseClaim => ({ nonce, time: now().getTime() });
      const isOurs = await store.acquire(key, claim(), ttlMs).catch((error: unknown) => {
        report('lease_store_unavailable', error);
        return false;
      });
      if (!isOurs) return undefined;
      const failed = (error: unknown): void => report('lease_store_unavailable', error);
      const renewal = setInterval(() => {
        store.renew(key, claim()).catch(failed);
      }, ttlMs / RENEWALS_PER_TTL);
      try {
        return await work();
      } finally {
        clearInterval(renewal);
        await store.release(key, nonce).catch(failed);
      }
    },
  };
}

/** For samples and re-runs, which keep nobody waiting. */
export const noLeases: Leases = { hold: (_key, _ttlSeconds, work) => work() };
