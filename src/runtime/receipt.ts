/**
 * Waits for a transaction's receipt. viem's own way looks again at every new block only; on a chain that makes one per transaction the last one's
 * receipt may come a moment after its block, and then no block follows.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { TransactionReceiptNotFoundError, type Hex, type PublicClient, type TransactionReceipt } from 'viem';

/** As long as the gate waits for a facilitator. */
const RECEIPT_TIMEOUT_MS = 60_000;

/** Rejects where there is none in time, or the chain cannot be asked. */
export async function receiptOf(
  client: Pick<PublicClient, 'getTransactionReceipt'>,
  hash: Hex,
  intervalMs: number,
  timeoutMs = RECEIPT_TIMEOUT_MS,
): Promise<TransactionReceipt> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await client.getTransactionReceipt({ hash });
    } catch (error) {
      if (!(error instanceof TransactionReceiptNotFoundError) || performance.now() >= end) throw error;
    }
    await delay(intervalMs);
  }
}
