/**
 * What an answer says of the payment that was sent with it: the one rule for when a signature is done with. Only a proof
 * ends it, and whatever is no proof leaves it as it is. No I/O.
 */

export type Verdict =
  /** The answer that was asked for, if it can be verified. */
  | 'answered'
  /** The payment was not taken and cannot be taken any more: another one may be signed. */
  | 'void'
  /** Nobody knows yet, or the service cannot say: the same request again, with the same payment. */
  | 'ask_again'
  /** The call is over, the payment may be good still: kept for the caller's next try. */
  | 'kept';

/**
 * @param code of the problem in the body; undefined where there is none, as from a proxy.
 * @param over the authorization's validBefore is past, with a margin for clocks and chains that lag.
 */
export function judge(status: number, code: unknown, over: boolean): Verdict {
  switch (status) {
    case 200:
      return 'answered';
    case 402:
      // The service says 402 to `payment_failed` when the settlement definitely failed and is never tried again. The other two say
      // only that this payment was not taken: while it is valid, an earlier copy that is still on its way might be.
      if (code === 'payment_failed') return 'void';
      return over && (code === 'payment_invalid' || code === 'payment_expires_too_soon') ? 'void' : 'kept';
    case 502:
    case 504:
      return 'ask_again';
    case 503:
      // Each `busy` uses up one of the few answers that a payment may bring without being charged.
      return code === 'busy' ? 'kept' : 'ask_again';
    default:
      return 'kept';
  }
}

/** Nodes lag behind the chain by seconds, clocks by some more. */
const MARGIN_SECONDS = 60;

export function isOver({ validBefore }: { readonly validBefore: number }, now: Date): boolean {
  return now.getTime() / 1_000 > validBefore + MARGIN_SECONDS;
}
