/**
 * A fetch that pays. It keeps a signed payment until its fate is proven, so that neither its own retries nor the caller's
 * ever sign twice for one call; it signs nothing that it was not told to, and hands over no paid answer that it has not
 * verified. For browsers and Node alike.
 */
import { BASE_SEPOLIA_USDC, BASE_USDC } from '../payment/networks.ts';
import { sha256, toHex, type JsonObject } from '../provenance/canonical.ts';
import { atomicUnits, createBudget, type Amount, type PaymentStore } from './budget.ts';
import { checkEvidence } from './evidence.ts';
import { exchange, problemCode, takeDown, type Answer, type Call, type RetryPolicy } from './exchange.ts';
import { PaidFetchError } from './failure.ts';
import { createIssuers } from './issuer.ts';
import { chooseOffer, readChallenge, sameAddress, type Challenge, type Offer, type PayableToken } from './offer.ts';
import { PAYMENT_HEADER, readPayment, signPayment, type SignedPayment, type Wallet } from './payment.ts';
import { createShared, type RunState } from './shared.ts';
import { isOver, judge } from './verdict.ts';

export { PaidFetchError } from './failure.ts';
export type { Charged, PaidFetchFailure } from './failure.ts';
export type { Amount, PaymentStore } from './budget.ts';
export type { PayableToken } from './offer.ts';
export type { Wallet } from './payment.ts';

export interface PaidFetchOptions {
  /** The most that may ever be signed for, over all calls and, with a `store` that lasts, over all runs. */
  readonly maxTotal: Amount;
  /** The most that one call may cost; 0.05 USDC. */
  readonly maxPerCall?: Amount;
  /** What may be paid with; USDC on Base and on Base Sepolia. */
  readonly tokens?: readonly PayableToken[];
  /** The one address that may be paid: everywhere, or by origin (`{'https://api.example': '0x...'}`). Any, where none is given. */
  readonly payTo?: string | Readonly<Record<string, string>>;
  /**
   * Whose answers are believed: a DID (did:key or did:web) or a DID document. By default whoever the service names at
   * `/.well-known/did.json`, asked once.
   */
  readonly issuer?: string | JsonObject;
  /** Where payments are kept until their fate is proven; by default in memory. For one process at a time. */
  readonly store?: PaymentStore;
  /** How often a request is sent again after an unknown outcome; 4. */
  readonly retries?: number;
  /** The longest pause before a retry; a service that wants more is asked no more. 30000. */
  readonly maxDelayMs?: number;
  /** How long an attempt may take; 90000, as a settlement may take a minute. */
  readonly attemptTimeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly now?: () => Date;
}

export interface PaidFetch {
  /**
   * As `fetch`. Status 200 after a payment means a verified answer. Problems are handed over as they came, 503 after the last retry
   * included; the payment stays kept then, and the same call sends it again.
   *
   * @throws PaidFetchError; the signal's reason where it is aborted; what the store throws.
   */
  (input: RequestInfo | URL, init?: RequestInit): Promise<Response>;
  /** Gives up the payment that is kept for this call, if there is one: the next such call signs anew, and may be a second charge. */
  forget(input: RequestInfo | URL, init?: RequestInit): Promise<void>;
}

const MAX_PER_CALL = '0.05';
const RETRIES = 4;
const MAX_DELAY_MS = 30_000;
const ATTEMPT_TIMEOUT_MS = 90_000;

/** @throws RangeError for an amount or an issuer that is none. */
export function createPaidFetch(wallet: Wallet, options: PaidFetchOptions): PaidFetch {
  const { tokens = [BASE_USDC, BASE_SEPOLIA_USDC], store = new Map<string, string>() } = options;
  const { fetch = globalThis.fetch.bind(globalThis), now = () => new Date() } = options;
  const { retries = RETRIES, maxDelayMs = MAX_DELAY_MS, attemptTimeoutMs = ATTEMPT_TIMEOUT_MS } = options;
  const policy: RetryPolicy = { fetch, now, retries, maxDelayMs, attemptTimeoutMs };
  const budget = createBudget(store, atomicUnits(options.maxPerCall ?? MAX_PER_CALL), atomicUnits(options.maxTotal));
  const issuers = createIssuers(options.issuer, (url) =>
    fetch(url, { signal: AbortSignal.timeout(attemptTimeoutMs), redirect: 'error' }),
  );
  const shared = createShared<Answer>();

  const sendUnpaid = (call: Call, { signal }: RunState): Promise<Answer> =>
    exchange(call, {}, policy, {
      signal,
      charged: false,
      isFinal: (answer) => judge(answer.status, problemCode(answer), false) !== 'ask_again',
    });

  const verdictOn = (answer: Answer, payment: SignedPayment) =>
    judge(answer.status, problemCode(answer), isOver(payment, now()));

  const sendPaid = (call: Call, payment: SignedPayment, { signal }: RunState): Promise<Answer> =>
    exchange(call, { [PAYMENT_HEADER]: payment.header }, policy, {
      signal,
      charged: 'unknown',
      isFinal: (answer) => verdictOn(answer, payment) !== 'ask_again',
    });

  /** @throws PaidFetchError `answer_unverified`, and the payment stays kept: what cannot be verified proves nothing. */
  const verify = async (call: Call, answer: Answer, payment: SignedPayment | undefined): Promise<bigint> => {
    const { url, body } = call;
    const named = call.headers.has('Idempotency-Key');
    const toCheck = { url, request: body, answer: answer.bytes, payment, named };
    let evidence = await checkEvidence({ ...toCheck, trusted: await issuers.documentFor(url), now: now() });
    if (!evidence.ok && evidence.verification?.outcome === 'unverifiable') {
      const fresh = await issuers.refresh(url);
      if (fresh) evidence = await checkEvidence({ ...toCheck, trusted: fresh, now: now() });
    }
    if (evidence.ok) return evidence.charged;
    const { reason, verification } = evidence;
    throw new PaidFetchError(
      { code: 'answer_unverified', reason, response: answer.toResponse(), ...(verification && { verification }) },
      { charged: payment ? 'unknown' : false },
    );
  };

  /** Ends the purchase where the answer is verified or the payment void; leaves the payment kept otherwise. */
  const conclude = async (key: string, call: Call, payment: SignedPayment, answer: Answer, state: RunState) => {
    const verdict = verdictOn(answer, payment);
    if (verdict === 'answered') {
      const charged = await verify(call, answer, payment);
      state.commit();
      if (charged === 0n) await budget.giveBack(payment.amount);
    }
    if (verdict === 'answered' || verdict === 'void') await store.delete(key);
    return verdict;
  };

  /** Every reason not to sign comes before the signature, and the signature is kept before it is sent. */
  const sign = async (key: string, call: Call, challenge: Challenge): Promise<SignedPayment> => {
    const offer = chooseOffer(challenge, tokens);
    checkPayee(offer, pinnedFor(options.payTo, call.url));
    await issuers.documentFor(call.url);
    await issuers.checkPublished(call.url);
    await budget.take(offer.amount);
    try {
      const payment = await signPayment(wallet, challenge, offer, now());
      await store.set(key, payment.header);
      return payment;
    } catch (error) {
      await budget.giveBack(offer.amount); // nobody has seen a signature
      throw error;
    }
  };

  const run = async (key: string, call: Call, state: RunState): Promise<Answer> => {
    const kept = await store.get(key);
    let asked: Answer;
    if (kept === undefined) {
      asked = await sendUnpaid(call, state);
    } else {
      const payment = readPayment(kept);
      if (!payment) throw new PaidFetchError({ code: 'store_broken', reason: 'a payment cannot be read' });
      asked = await sendPaid(call, payment, state);
      if ((await conclude(key, call, payment, asked, state)) !== 'void') return asked;
    }
    if (asked.status !== 402) {
      if (asked.status === 200 && call.headers.has('X-API-KEY')) await verify(call, asked, undefined);
      return asked;
    }
    const challenge = readChallenge(asked.headers.get('PAYMENT-REQUIRED'), asked.json);
    if (!challenge) throw new PaidFetchError(UNREADABLE);
    if (challenge.bodyRefused) return asked;
    state.signal.throwIfAborted();
    const payment = await sign(key, call, challenge);
    const answer = await sendPaid(call, payment, state);
    await conclude(key, call, payment, answer, state);
    return answer;
  };

  const paidFetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const call = await takeDown(input, init);
    const key = await keyOf(call);
    const answer = await shared(key, call.signal, (state) => run(key, call, state));
    return answer.toResponse();
  };
  const forget: PaidFetch['forget'] = async (input, init) => {
    await store.delete(await keyOf(await takeDown(input, init)));
  };
  return Object.assign(paidFetch, { forget });
}

const UNREADABLE = { code: 'no_acceptable_offer', reason: 'the 402 holds no challenge of x402 version 2' } as const;

/** What makes two calls the same purchase. An Idempotency-Key is the caller's own word that it is another one. */
async function keyOf({ method, url, headers, body }: Call): Promise<string> {
  const bodyHash = toHex(await sha256(body));
  return `payment:${toHex(await sha256(JSON.stringify([method, url.href, headers.get('Idempotency-Key'), bodyHash])))}`;
}

function pinnedFor(payTo: PaidFetchOptions['payTo'], { origin }: URL): string | undefined {
  if (payTo === undefined || typeof payTo === 'string') return payTo;
  return Object.hasOwn(payTo, origin) ? payTo[origin] : undefined;
}

/** @throws PaidFetchError `payee_not_pinned` */
function checkPayee({ payTo }: Offer, pinned: string | undefined): void {
  if (pinned === undefined || sameAddress(pinned, payTo)) return;
  throw new PaidFetchError({ code: 'payee_not_pinned', pinned, offered: payTo });
}
