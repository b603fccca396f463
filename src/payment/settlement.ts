/**
 * Settles one payment and says what is certain: settled, failed, or unknown. A facilitator's word counts as failure only
 * where its reason proves that nothing was broadcast; whatever is left is asked of the chain, and never guessed.
 */
import type { x402ResourceServer } from '@x402/core/server';
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Address } from 'viem';
import type { ChainView } from './chain.ts';
import type { Payment } from './payload.ts';

export type Settlement =
  | { readonly kind: 'settled'; readonly response: SettleResponse }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'unknown' };

/**
 * Reasons of the exact scheme that are found before a transaction is sent. `nonce_already_used` and
 * `transaction_failed` are not among them: both may speak of a transfer of our own that went through.
 */
const NOTHING_WAS_SENT: ReadonlySet<string> = new Set([
  'invalid_exact_evm_insufficient_balance',
  'invalid_exact_evm_signature',
  'invalid_exact_evm_failed_to_parse_signature',
  'invalid_exact_evm_authorization_value',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_recipient_mismatch',
  'invalid_exact_evm_network_mismatch',
  'invalid_exact_evm_scheme',
]);

/** Asks the facilitator to settle, and the chain where its answer proves nothing. Never rejects. */
export async function settle(
  server: x402ResourceServer,
  chain: ChainView,
  payment: Payment,
  requirements: PaymentRequirements,
): Promise<Settlement> {
  const answer = await settleOnce(server, payment, requirements);
  if (answer?.success && answer.transaction) return { kind: 'settled', response: answer };
  const proven = await reconcile(chain, payment, requirements);
  if (proven !== 'unused') return proven;
  const reason = answer?.errorReason ?? '';
  return answer && !answer.transaction && NOTHING_WAS_SENT.has(reason)
    ? { kind: 'failed', reason }
    : { kind: 'unknown' };
}

/** The chain's verdict; `unused` where the authorization can still be settled. Never rejects. */
export async function reconcile(
  chain: ChainView,
  payment: Payment,
  { payTo, amount, network }: PaymentRequirements,
): Promise<Settlement | 'unused'> {
  const { authorization } = payment;
  try {
    const state = await chain.authorizationState(authorization, { payTo: payTo as Address, amount: BigInt(amount) });
    switch (state.kind) {
      case 'unused':
        return 'unused';
      case 'spent_elsewhere':
        return { kind: 'failed', reason: 'authorization_spent_elsewhere' };
      case 'settled': {
        const { transaction } = state;
        return { kind: 'settled', response: { success: true, transaction, network, payer: authorization.payer } };
      }
    }
  } catch {
    return { kind: 'unknown' }; // the chain did not answer
  }
}

async function settleOnce(
  server: x402ResourceServer,
  { payload }: Payment,
  requirements: PaymentRequirements,
): Promise<SettleResponse | undefined> {
  try {
    return await server.settlePayment(payload, requirements);
  } catch {
    return undefined; // timeout, reset, 5xx or nonsense: the transaction may be on its way
  }
}
