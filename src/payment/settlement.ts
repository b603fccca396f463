/**
 * Settles one payment and says what is certain: settled, failed, or unknown. Success is what the chain shows for this very
 * authorization, never a facilitator's word. Its word counts as failure only at the first attempt, and only where its
 * reason proves that nothing was broadcast; whatever is left is unknown, and never guessed.
 */
import type { FacilitatorClient, x402ResourceServer } from '@x402/core/server';
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Address } from 'viem';
import type { AuthorizationState, ChainView } from './chain.ts';
import type { Payment } from './payload.ts';

export type Settlement =
  | { readonly kind: 'settled'; readonly response: SettleResponse }
  | { readonly kind: 'failed'; readonly response: SettleResponse }
  | { readonly kind: 'unknown' };

export interface SettlementContext {
  readonly server: x402ResourceServer;
  readonly chain: ChainView;
  readonly payment: Payment;
  /** What we asked for, not what the payload says was accepted. */
  readonly requirements: PaymentRequirements;
  /** How long a facilitator may take; after that the chain is asked instead. */
  readonly timeoutMs: number;
  /** Told of every answer that could not be had. */
  readonly report: (event: string, error: unknown) => void;
}

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

const provesNothingSent = ({ success, transaction, errorReason = '' }: SettleResponse): boolean =>
  !success && !transaction && NOTHING_WAS_SENT.has(errorReason);

/** Payloads of which some settle call was left open: an earlier transaction of theirs may be on its way. */
const doubtful = new WeakSet<object>();

/** The SDK asks a second time within one call and shows the last answer only; this remembers how the first one ended. */
export function rememberDoubts(facilitator: FacilitatorClient): FacilitatorClient {
  return {
    verify: (...call) => facilitator.verify(...call),
    getSupported: () => facilitator.getSupported(),
    settle: async (payload, requirements) => {
      const doubted = doubtful.has(payload);
      doubtful.add(payload);
      const answer = await facilitator.settle(payload, requirements);
      if (!doubted && (answer.success || provesNothingSent(answer))) doubtful.delete(payload);
      return answer;
    },
  };
}

/** The first attempt. Never rejects. */
export async function settle(context: SettlementContext): Promise<Settlement> {
  const { server, payment, requirements, timeoutMs, report } = context;
  let answer: SettleResponse | undefined;
  try {
    answer = await withDeadline(server.settlePayment(payment.payload, requirements), timeoutMs);
  } catch (error) {
    report('settlement_unanswered', error); // time-out, reset, 5xx or nonsense: the transaction may be on its way
  }
  const proven = await reconcile(context);
  if (proven !== 'unused') return proven;
  return answer && provesNothingSent(answer) && !doubtful.has(payment.payload)
    ? failure(context, answer.errorReason)
    : { kind: 'unknown' };
}

/** Rejects after `ms` where nobody has answered by then; the late answer is not waited for. */
export function withDeadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** What the caller is told of a failure: our own words and the reason's name, not a facilitator's message. */
function failure({ payment, requirements }: SettlementContext, errorReason = 'settlement_failed'): Settlement {
  const { network } = requirements;
  const { payer } = payment.authorization;
  return { kind: 'failed', response: { success: false, transaction: '', errorReason, payer, network } };
}

/**
 * Every later attempt. Verification is skipped, as it fails for an authorization that was spent, which is just what is to be
 * found out; and no facilitator's word is a failure any more, since an earlier transaction may still be mined. Never rejects.
 */
export async function settleAgain(context: SettlementContext): Promise<Settlement> {
  const proven = await reconcile(context);
  if (proven !== 'unused') return proven;
  doubtful.add(context.payment.payload);
  return settle(context);
}

/** The chain's verdict; `unused` where the authorization can still be settled. Never rejects. */
export async function reconcile(context: SettlementContext): Promise<Settlement | 'unused'> {
  const { chain, payment, requirements, report } = context;
  const { payTo, amount, network } = requirements;
  const { authorization } = payment;
  let state: AuthorizationState;
  try {
    state = await chain.authorizationState(authorization, { payTo: payTo as Address, amount: BigInt(amount) });
  } catch (error) {
    report('chain_unanswered', error);
    return { kind: 'unknown' };
  }
  switch (state.kind) {
    case 'unused':
      return state.expired ? failure(context, AUTHORIZATION_EXPIRED) : 'unused';
    case 'spent_elsewhere':
      return failure(context, 'authorization_spent_elsewhere');
    case 'settled': {
      const { transaction } = state;
      return { kind: 'settled', response: { success: true, transaction, network, payer: authorization.payer } };
    }
  }
}

export const AUTHORIZATION_EXPIRED = 'authorization_expired';
