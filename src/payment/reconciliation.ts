/**
 * Closes what calls have left open, from the chain alone: it holds no payment and no answer, asks no facilitator, and leaves open
 * what the chain cannot decide yet.
 */
import type { ChainView } from './chain.ts';
import { OPEN_STATES, type Ledger, type RowState } from './ledger.ts';
import { dated } from './offer-receipt.ts';
import { reconcile, type Settlement } from './settlement.ts';

const PAGE_ROWS = 100;

/** What the chain has proven may be written over any of these, also over what a facilitator said. A receipt is given once. */
const PROVABLE: readonly RowState[] = [...OPEN_STATES, 'failed'];

/** One round over all open rows, until it is told to stop; answers how many were closed. Rejects where the ledger does. */
export async function reconcileOpenRows(
  ledger: Ledger,
  chain: ChainView,
  report: (event: string, error: unknown) => void,
  stop?: AbortSignal,
): Promise<number> {
  let closed = 0;
  // A chain that is silent would be waited for at every row.
  if (!(await chain.reachable())) return closed;
  for (let after: string | undefined = ''; after !== undefined;) {
    const page = await ledger.open(after, PAGE_ROWS);
    for (const { key, row } of page) {
      if (stop?.aborted) return closed;
      const { payer, nonce, validBefore, requirements, fromBlock } = row;
      const authorization = { payer, nonce, validBefore };
      const proven = await reconcile({ chain, authorization, requirements, fromBlock, report });
      if (proven === 'unused' || proven.kind === 'unknown') continue;
      const { kind, response } = proven;
      const outcome = kind === 'settled' ? { kind, response: dated(response, Date.now() / 1_000) } : proven;
      if (await writeDown(ledger, key, outcome)) closed += 1;
    }
    after = page.length < PAGE_ROWS ? undefined : page.at(-1)?.key;
  }
  return closed;
}

/** Writes the outcome of a settlement down; false where the row is another's by now, or already says more. */
export async function writeDown(ledger: Ledger, key: string, settlement: Settlement): Promise<boolean> {
  switch (settlement.kind) {
    case 'settled':
      return ledger.advance(key, PROVABLE, { state: 'settled', settlement: settlement.response });
    case 'failed':
      return ledger.advance(key, OPEN_STATES, { state: 'failed', settlement: settlement.response });
    case 'unknown':
      return ledger.advance(key, ['settling', 'unknown'], { state: 'unknown' });
  }
}
