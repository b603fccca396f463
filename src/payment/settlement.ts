/**
 * Settles one payment and says what is certain: settled, failed, or unknown. Success is what the chain shows for this very
 * authorization, never a facilitator's word. Its word counts as failure only at the first attempt, only where its reason is
 * one from before any broadcast, and only where the chain agrees that the transfer cannot be made; whatever is left is
 * unknown, and never guessed.
 */
import type { FacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { SettleError, VerifyError, type PaymentRequirements, type SettleResponse } from '@x402/core/types';
import type { Address } from 'viem';
import type { AuthorizationState, ChainView } from './chain.ts';
import type { Authorization, Payment } from './payload.ts';

export type Settlement =
  | { readonly kind: 'settled'; readonly response: SettleResponse }
  | { readonly kind: 'failed'; readonly response: SettleResponse }
  /** `pending`: the chain shows it, in a block that may still be undone. */
  | { readonly kind: 'unknown'; readonly pending: boolean };

/** What the chain is asked about. */
export interface Case {
  readonly chain: ChainView;
  readonly authorization: Authorization;
  /** What we asked for, not what the payload says was accepted. */
  readonly requirements: PaymentRequirements;
  /** See `ChainView`; of the ledger's row, where there is one. */
  readonly fromBlock?: number;
  /** Told of every answer that could not be had. */
  readonly report: (event: string, error: unknown) => void;
}

export interface SettlementContext extends Case {
  readonly server: x402ResourceServer;
  readonly payment: Payment;
  /** How long a facilitator may take; after that the chain is asked instead. */
  readonly timeoutMs: number;
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

/**
 * The facilitator as the gate wants it. A refusal counts as one whatever its status below 500: some answer 400 with it, which the SDK
 * throws. And since the SDK asks a second time within one call and shows the last answer only, it is remembered how the first one ended.
 */
export function heedful(facilitator: FacilitatorClient): FacilitatorClient {
  return {
    verify: async (...call) => {
      try {
        return await facilitator.verify(...call);
      } catch (error) {
        if (!(error instanceof VerifyError) || !isAnswer(error)) throw error;
        const { invalidReason, payer } = error;
        return { isValid: false, ...(invalidReason && { invalidReason }), ...(payer && { payer }) };
      }
    },
    getSupported: () => facilitator.getSupported(),
    settle: async (payload, requirements) => {
      const doubted = doubtful.has(payload);
      doubtful.add(payload);
      const answer = await facilitator.settle(payload, requirements).catch(refusalOf);
      if (!doubted && (answer.success || provesNothingSent(answer))) doubtful.delete(payload);
      return answer;
    },
  };
}

const SERVER_ERROR = 500;

/** Whether what the SDK has thrown is a facilitator's answer, which is no, and not the lack of one. */
export const isAnswer = (error: unknown): boolean =>
  (error instanceof VerifyError || error instanceof SettleError) && error.statusCode < SERVER_ERROR;

function refusalOf(error: unknown): SettleResponse {
  if (!(error instanceof SettleError) || !isAnswer(error)) throw error;
  const { errorReason, transaction, network } = error;
  return { success: false, transaction, network, ...(errorReason && { errorReason }) };
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
  const proven = await reconcilePatiently(context, answer?.success === true);
  if (proven !== 'unused') return proven;
  const refused = answer && provesNothingSent(answer) && !doubtful.has(payment.payload);
  return refused && (await isImpossible(context)) ? failure(context, answer?.errorReason) : UNKNOWN;
}

/** Whether the token itself would refuse the transfer: only then can nobody make it behind a failure that was reported. */
async function isImpossible({ chain, payment, report }: SettlementContext): Promise<boolean> {
  try {
    return !(await chain.isExecutable(payment.transfer));
  } catch (error) {
    report('chain_unanswered', error);
    return false;
  }
}

/** Rejects after `ms` where nobody has answered by then; the late answer is not waited for. */
export function withDeadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const UNKNOWN: Settlement = { kind: 'unknown', pending: false };

/** What the caller is told of a failure: our own words and the reason's name, not a facilitator's message. */
function failure({ authorization, requirements }: Case, errorReason = 'settlement_failed'): Settlement {
  const { network } = requirements;
  return {
    kind: 'failed',
    response: { success: false, transaction: '', errorReason, payer: authorization.payer, network },
  };
}

/**
 * Every later attempt. Verification is skipped, as it fails for an authorization that was spent, which is just what is to be
 * found out; and no facilitator's word is a failure any more, since an earlier transaction may still be mined. Never rejects.
 */
export async function settleAgain(context: SettlementContext): Promise<Settlement> {
  const proven = await reconcilePatiently(context, false);
  if (proven !== 'unused') return proven;
  doubtful.add(context.payment.payload);
  return settle(context);
}

export type Verdict = Settlement | 'unused';

/** Waits a while for a transfer that is on the chain but not deep enough, or that was `reported` and is not seen yet. */
async function reconcilePatiently(context: Case, reported: boolean): Promise<Verdict> {
  const end = performance.now() + context.chain.patienceMs;
  for (;;) {
    const proven = await reconcile(context);
    const mayChange = proven === 'unused' ? reported : proven.kind === 'unknown' && proven.pending;
    if (!mayChange || performance.now() >= end) return proven;
    await new Promise((resolve) => {
      setTimeout(resolve, CHAIN_POLLING_INTERVAL_MS);
    });
  }
}

/** A quarter of the time between two blocks of Base. */
const CHAIN_POLLING_INTERVAL_MS = 500;

/** The chain's verdict; `unused` where the authorization can still be settled. Never rejects. */
export async function reconcile(context: Case): Promise<Verdict> {
  const { chain, authorization, requirements, fromBlock, report } = context;
  const { payTo, amount, network } = requirements;
  let state: AuthorizationState;
  try {
    const transfer = { payTo: payTo as Address, amount: BigInt(amount) };
    state = await chain.authorizationState(authorization, transfer, fromBlock);
  } catch (error) {
    report('chain_unanswered', error);
    return UNKNOWN;
  }
  switch (state.kind) {
    case 'unused':
      return state.expired ? failure(context, AUTHORIZATION_EXPIRED) : 'unused';
    case 'pending':
      return { kind: 'unknown', pending: true };
    case 'spent_elsewhere':
      return failure(context, 'authorization_spent_elsewhere');
    case 'settled': {
      const { transaction } = state;
      return { kind: 'settled', response: { success: true, transaction, network, payer: authorization.payer } };
    }
  }
}

export const AUTHORIZATION_EXPIRED = 'authorization_expired';
