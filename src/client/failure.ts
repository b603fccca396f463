/**
 * Why a paid fetch gave no answer: a tagged union with its evidence, and the one exception that carries it. Answers of the
 * service itself, problems included, are no failures: they are handed over as responses.
 */
import type { Verification } from '../provenance/verify.ts';

export type PaidFetchFailure =
  /** Nothing that the challenge offers is a payment that this client was told to make. */
  | { readonly code: 'no_acceptable_offer'; readonly reason: string }
  | { readonly code: 'payee_not_pinned'; readonly pinned: string; readonly offered: string }
  /** In atomic units. */
  | { readonly code: 'over_call_limit'; readonly amount: bigint; readonly limit: bigint }
  | { readonly code: 'over_total_limit'; readonly amount: bigint; readonly signed: bigint; readonly limit: bigint }
  /** The wallet did not sign. */
  | { readonly code: 'signing_failed' }
  /** Without the issuer's keys no answer could be checked, so none was paid for. */
  | { readonly code: 'issuer_unavailable'; readonly reason: string }
  /** What came back is not shown to be the answer to this call. `response` is what it was. */
  | {
      readonly code: 'answer_unverified';
      readonly reason: string;
      readonly response: Response;
      readonly verification?: Verification;
    }
  | { readonly code: 'network_failed'; readonly attempts: number }
  /** A payment must not follow a redirection to somebody else. */
  | { readonly code: 'redirected' }
  | { readonly code: 'store_broken'; readonly reason: string };

/** Like the service's own problems: `'unknown'` where a payment is out, and kept for the next call. */
export type Charged = false | 'unknown';

/** Thrown by a paid fetch; an abort is thrown as `fetch` throws it. */
export class PaidFetchError extends Error {
  override readonly name = 'PaidFetchError';
  readonly failure: PaidFetchFailure;
  readonly charged: Charged;

  constructor(failure: PaidFetchFailure, options: { readonly charged?: Charged; readonly cause?: unknown } = {}) {
    super(describe(failure), 'cause' in options ? { cause: options.cause } : undefined);
    this.failure = failure;
    this.charged = options.charged ?? false;
  }

  get code(): PaidFetchFailure['code'] {
    return this.failure.code;
  }
}

function describe(failure: PaidFetchFailure): string {
  switch (failure.code) {
    case 'no_acceptable_offer':
      return `not paid: ${failure.reason}`;
    case 'payee_not_pinned':
      return `not paid: the service asks to pay ${failure.offered}, and ${failure.pinned} is pinned`;
    case 'over_call_limit':
      return `not paid: ${failure.amount} atomic units are more than the ${failure.limit} that a call may cost`;
    case 'over_total_limit':
      return `not paid: with ${failure.amount} more, the ${failure.signed} atomic units signed so far would pass the total of ${failure.limit}`;
    case 'signing_failed':
      return 'not paid: the wallet did not sign';
    case 'issuer_unavailable':
      return `not paid: the issuer's keys are not to be had: ${failure.reason}`;
    case 'answer_unverified':
      return `the answer is not verified: ${failure.reason}`;
    case 'network_failed':
      return `no answer, asked ${failure.attempts} times`;
    case 'redirected':
      return 'the service redirects, and a payment does not follow';
    case 'store_broken':
      return `the store does not hold what was put there: ${failure.reason}`;
  }
}
