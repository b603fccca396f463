/**
 * The payment gate: from a validated request and a payment to an answer that is settled once. It knows no transport; adapters hand
 * it what they decoded and obey what it answers. It never settles without a stored answer, never answers without a
 * ledger row, and never asks for a second signature while the first may still be taken.
 */
import { x402ResourceServer, type FacilitatorClient } from '@x402/core/server';
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import type { Address } from 'viem';
import { execute, type AnswerIssuer, type Execution } from '../operations/execute.ts';
import type { ContextFor } from '../operations/run-context.ts';
import { BODY_REQUIRED, refusedInput, type Operation } from '../operation.ts';
import { toWire, type Problem, type Result } from '../problem.ts';
import { requestDigest } from '../provenance/canonical.ts';
import type { JwsKey } from '../provenance/jws.ts';
import type { Discovery } from './bazaar.ts';
import type { ChainView } from './chain.ts';
import { isFree, isOpen, ROW_GRACE_SECONDS, twinOf, type Claim, type Ledger, type LedgerRow } from './ledger.ts';
import type { Usdc } from './networks.ts';
import { dated, declareOffers, withReceipt } from './offer-receipt.ts';
import { declarePaymentIdentifier, PAYMENT_IDENTIFIER, type Payment } from './payload.ts';
import { writeDown } from './reconciliation.ts';
import type { SealBinding, Sealer } from './seal.ts';
import {
  AUTHORIZATION_EXPIRED,
  heedful,
  reconcile,
  settle,
  settleAgain,
  withDeadline,
  type Settlement,
  type SettlementContext,
} from './settlement.ts';

export interface GateDependencies {
  readonly facilitator: FacilitatorClient;
  readonly chain: ChainView;
  readonly ledger: Ledger;
  readonly sealer: Sealer;
  /** Its clock is also the gate's. */
  readonly issuer: AnswerIssuer;
  readonly contextFor: ContextFor;
  /** Signs offers and receipts; see `createOfferKey`. */
  readonly offerKey: JwsKey;
  readonly discovery: Discovery;
  readonly usdc: Usdc;
  readonly payTo: Address;
  readonly facilitatorTimeoutMs?: number;
  /** Whether a payment has to carry the id of a payment-identifier. */
  readonly identifierRequired?: boolean;
  readonly report: Report;
}

/** Something broke in the call of that request id. It may be logged: no content, key or signature is in an event's name. */
export type Report = (event: string, error: unknown, requestId: string) => void;

export interface GateCall {
  readonly requestId: string;
  readonly operation: Operation;
  /** Public URL of the operation, as the challenge names it. */
  readonly resourceUrl: string;
  /** The validated input; undefined where the caller sent none. */
  readonly input: Result<unknown> | undefined;
  readonly payment: Payment | undefined;
  /** The caller's own name for this call. It opens a stored answer, and by itself it means nothing. */
  readonly idempotencyKey?: string;
  /** Read by the gate of keyed.ts only. */
  readonly apiKey?: string;
  /** Why a payment is asked for all the same. */
  readonly because?: Problem;
}

export type GateAnswer =
  /** `settlement` is absent where nothing was charged, or a key was: `credits` says what that has left. */
  | {
      readonly kind: 'answered';
      readonly body: Uint8Array<ArrayBuffer>;
      readonly settlement?: SettleResponse;
      readonly credits?: string;
    }
  /** With a challenge the answer is 402: nothing was taken, and what to sign next. */
  | {
      readonly kind: 'refused';
      readonly problem: Problem;
      readonly challenge?: PaymentRequired;
      readonly settlement?: SettleResponse;
    };

export interface Gate {
  /** Never rejects. */
  admit(call: GateCall): Promise<GateAnswer>;
  /** Resolves when no paid call is running, whether or not its caller still listens. */
  idle(): Promise<void>;
}

/** How long a signed authorization stays valid by default; x402 clients copy it into validBefore. */
export const MAX_TIMEOUT_SECONDS = 300;
/** What validBefore must leave: for an engine a second, for a settlement its retries, and the 6 s that facilitators want over. */
const NEEDED_SECONDS = 30;
/** Bounds how long a row can live: validBefore is the caller's to choose. */
export const VALID_BEFORE_MAX_SECONDS = 24 * 3_600;
/** So that an answer that is not charged is no free service: of one payment, and of one payer until the rows end (a day). */
const MAX_RELEASES = 3;
export const MAX_UNCHARGED = 100;
/** Longer than the slowest engine, whose summariser may take five minutes. A run that is overtaken all the same can write nothing. */
export const LEASE_SECONDS = 600;
export const RETRY_AFTER_SECONDS = 2;
/** As long as a facilitator may wait for a receipt. */
const FACILITATOR_TIMEOUT_MS = 60_000;
const NONCE_USED = 'invalid_exact_evm_nonce_already_used';

export function createGate(dependencies: GateDependencies): Gate {
  const { facilitator, chain, ledger, sealer, issuer, contextFor, offerKey, discovery, usdc, payTo, report } =
    dependencies;
  const { facilitatorTimeoutMs: timeoutMs = FACILITATOR_TIMEOUT_MS, identifierRequired = false } = dependencies;
  const server = new x402ResourceServer(heedful(facilitator)).register(usdc.caip2, new ExactEvmScheme());

  let initialised: Promise<void> | undefined;
  /** A facilitator that is down now may be up at the next call, so a failure is not kept. */
  const initialise = (): Promise<void> =>
    (initialised ??= server.initialize().catch((error: unknown) => {
      initialised = undefined;
      throw error;
    }));

  const requirementsOf = async ({ price }: Operation): Promise<PaymentRequirements> => {
    await initialise();
    const [requirements] = await server.buildPaymentRequirements({
      scheme: 'exact',
      network: usdc.caip2,
      payTo,
      // The asset form skips money parsing; the EIP-712 domain must then be given too.
      price: { asset: usdc.address, amount: price, extra: { name: usdc.name, version: usdc.version } },
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    });
    if (!requirements) throw new Error('the facilitator does not support our network');
    return requirements;
  };

  const challenge = async (call: GateCall, problem: Problem, settlement?: SettleResponse): Promise<GateAnswer> => {
    const { operation, resourceUrl } = call;
    const resource = { url: resourceUrl, description: operation.description, mimeType: 'application/json' };
    const accepts = [await requirementsOf(operation)];
    const { error } = toWire(problem).body;
    const extensions = {
      ...declarePaymentIdentifier(identifierRequired),
      ...(await declareOffers(offerKey, resourceUrl, accepts, nowInSeconds())),
      ...(await discovery(operation, resourceUrl)),
    };
    const required = await server.createPaymentRequiredResponse(accepts, resource, error, extensions);
    return { kind: 'refused', problem, challenge: required, ...(settlement && { settlement }) };
  };

  /** Nothing before the reservation can cost the caller anything. */
  const admitPaid = async (run: Run): Promise<GateAnswer> => {
    const { call, key, payment, names } = run;
    const { authorization } = payment;
    const row = await ledger.find(key);
    if (row && !isFree(row, nowInSeconds())) return resume(run, row);
    const over = authorization.validBefore <= nowInSeconds();
    if (row && row.releases >= MAX_RELEASES && !over) return exhausted(run);
    // Before it is verified: whoever signs again after a lost answer may have no money for a second payment.
    const twin = twinOf(key, authorization, await ledger.findNamed(names), nowInSeconds());
    if (twin) return resumeTwin(run, twin);

    let requirements: PaymentRequirements;
    let refusal: Problem | undefined;
    let fromBlock: number;
    try {
      requirements = await requirementsOf(call.operation);
      [refusal, fromBlock] = await Promise.all([findRefusal(payment, requirements), chain.head()]);
    } catch (error) {
      report('facilitator_unavailable', error, call.requestId);
      return refuse(FACILITATOR_UNAVAILABLE);
    }
    if (refusal) {
      // A copy may have taken the payment since, and be the very reason why it is refused.
      const taken = await ledger.find(key);
      if (taken && !isFree(taken, nowInSeconds())) return resume(run, taken);
      return challengeUnlessSpent(run, requirements, refusal);
    }
    // Only now: before, a stranger who guessed a nonce could have taken the row.
    const now = nowInSeconds();
    const lease = { holder: crypto.randomUUID(), leaseUntil: now + LEASE_SECONDS };
    const claim: Claim = { ...authorization, ...names, ...lease, mac: run.mac, requirements, fromBlock };
    const limits = { now, maxReleases: MAX_RELEASES, maxUncharged: MAX_UNCHARGED };
    const reservation = await ledger.reserve(key, claim, limits);
    if (reservation.reserved) return compute(run, claim, reservation.releases);
    switch (reservation.because) {
      case 'taken':
        return resume(run, reservation.row);
      case 'twin':
        return resumeTwin(run, reservation.row);
      case 'uncharged':
        return refuse({
          code: 'payer_exhausted',
          retry_after_seconds: Math.ceil(reservation.validBefore + ROW_GRACE_SECONDS - now),
        });
    }
  };

  /** Why this payment cannot be taken; our own rules first, as they cost nobody a look at the chain. */
  const findRefusal = async (
    { payload, authorization }: Payment,
    requirements: PaymentRequirements,
  ): Promise<Problem | undefined> => {
    const invalid = (reason: string): Problem => ({ code: 'payment_invalid', reason });
    if (!server.findMatchingRequirements([requirements], payload)) return invalid('no_matching_requirements');
    const secondsLeft = authorization.validBefore - nowInSeconds();
    if (secondsLeft < NEEDED_SECONDS) return { code: 'payment_expires_too_soon', needed_seconds: NEEDED_SECONDS };
    if (secondsLeft > VALID_BEFORE_MAX_SECONDS) return invalid('valid_before_too_far_ahead');
    const verdict = await withDeadline(server.verifyPayment(payload, requirements), timeoutMs);
    if (!verdict.isValid) return invalid(verdict.invalidReason ?? 'invalid_payment');
    // A facilitator that verified somebody else's signature has verified another payment than this one.
    const samePayer = verdict.payer === undefined || verdict.payer.toLowerCase() === authorization.payer;
    return samePayer ? undefined : invalid('payer_mismatch');
  };

  /** A spent authorization is refused for some reason too, and a second signature would then be a second charge. */
  const challengeUnlessSpent = async (
    run: Run,
    requirements: PaymentRequirements,
    problem: Problem,
  ): Promise<GateAnswer> => {
    const proven = await reconcile(settlementOf(run, { requirements }));
    // Facilitator and chain contradict each other: one of them lags.
    const contested = 'reason' in problem && problem.reason === NONCE_USED;
    if (proven === 'unused') return contested ? refuse(SETTLEMENT_UNKNOWN) : challenge(run.call, problem);
    switch (proven.kind) {
      case 'settled':
        return refuse({ code: 'payment_spent', transaction: proven.response.transaction });
      case 'failed':
        return proven.response.errorReason === AUTHORIZATION_EXPIRED
          ? challenge(run.call, problem)
          : refuse({ code: 'payment_spent' });
      case 'unknown':
        return refuse(SETTLEMENT_UNKNOWN);
    }
  };

  /** Runs the engine and stores the answer before anything is settled. */
  const compute = async (run: Run, claim: Claim, releases: number): Promise<GateAnswer> => {
    const { key, binding } = run;
    const release = (): Promise<void> =>
      advance(key, ['reserved', 'computed'], { state: 'released', releases: releases + 1 }, claim.holder);
    let execution: Execution;
    try {
      execution = await runEngine(run);
      if (execution.billable) {
        const sealedAnswer = await sealer.seal(toBytes(execution.envelope), binding);
        await advance(key, ['reserved'], { state: 'computed', sealedAnswer }, claim.holder);
      }
    } catch (error) {
      report('engine_failed', error, run.call.requestId);
      await release();
      return refuse({ code: 'internal_error' });
    }
    if (execution.billable) return settleOnce(run, claim, toBytes(execution.envelope));
    await release();
    return execution.kind === 'answer'
      ? { kind: 'answered', body: toBytes(execution.envelope) }
      : refuse(execution.problem);
  };

  const runEngine = ({ call, payment, input, binding }: Run): Promise<Execution> => {
    const { payer, nonce } = payment.authorization;
    const charge = { amount: call.operation.price, payment: { network: usdc.caip2, payer, nonce } };
    const run = contextFor(payer);
    return execute(call.operation, input, { run, inputDigest: binding.requestDigest, issuer, charge });
  };

  const settleOnce = async (run: Run, asked: Asked, body: Body): Promise<GateAnswer> => {
    await advance(run.key, ['computed'], { state: 'settling' });
    return conclude(run, await settle(settlementOf(run, asked)), body);
  };

  /** Writes the settlement's outcome down and hands over the answer only where the money is certain. */
  const conclude = async (run: Run, settlement: Settlement, body: Body): Promise<GateAnswer> => {
    if (settlement.kind === 'settled') {
      const response = await withReceipt(offerKey, run.call.resourceUrl, dated(settlement.response, nowInSeconds()));
      await writeDown(ledger, run.key, { kind: 'settled', response });
      // Where somebody else was first, his receipt is the one that every copy gets.
      const row = await ledger.find(run.key);
      const ours = row?.state === 'settled' && row.mac === run.mac;
      return ours ? deliver(run, row, body) : refuse(SETTLEMENT_UNKNOWN);
    }
    if ((await writeDown(ledger, run.key, settlement)) && settlement.kind === 'failed') {
      return failed(run, settlement.response);
    }
    // Not known, or somebody else has found out more meanwhile: the next copy will see.
    return refuse(SETTLEMENT_UNKNOWN);
  };

  /** The answer that a settled row holds. What was settled by the chain's word alone gets its receipt now, once and for all. */
  const deliver = async ({ call }: Run, row: LedgerRow, body: Body): Promise<GateAnswer> => {
    if (!row.settlement) return { kind: 'answered', body };
    const settlement = await withReceipt(offerKey, call.resourceUrl, row.settlement);
    if (settlement !== row.settlement) await ledger.advance(keyOf(row), ['settled'], { state: 'settled', settlement });
    return { kind: 'answered', body, settlement };
  };

  /** The payment is known already: the same request gets its answer, any other is refused. */
  const resume = async (run: Run, row: LedgerRow): Promise<GateAnswer> => {
    if (row.state === 'released') return exhausted(run);
    if (row.mac !== run.mac) return refuse({ code: 'payment_reused' });
    const { sealedAnswer } = row;
    const body = sealedAnswer && (await sealer.open(sealedAnswer, run.binding));
    if (!body) return refuse(SETTLEMENT_UNKNOWN); // another process is still computing it
    switch (row.state) {
      case 'settled':
        return deliver(run, row, body);
      case 'failed': {
        // Where it failed by a facilitator's word, the chain may know better by now.
        const proven = await reconcile(settlementOf(run, row));
        if (proven === 'unused' || proven.kind === 'failed') return failed(run, row.settlement);
        return conclude(run, proven, body);
      }
      case 'reserved':
      case 'computed':
        return settleOnce(run, row, body);
      case 'settling':
      case 'unknown':
        return conclude(run, await settleAgain(settlementOf(run, row)), body);
    }
  };

  /**
   * The payer has signed again under a name that stands for another payment: this one is left alone. The id of a payment-identifier
   * is bound to its payment by its specification; an Idempotency-Key with the same request gets the answer that was paid for.
   */
  const resumeTwin = async (run: Run, twin: LedgerRow): Promise<GateAnswer> => {
    const { identifier, state, sealedAnswer } = twin;
    if (identifier !== undefined && identifier === run.names.identifier) {
      return refuse({ code: 'payment_identifier_reused' });
    }
    const body = state === 'settled' && sealedAnswer && (await sealer.open(sealedAnswer, run.binding));
    return body ? deliver(run, twin, body) : refuse(SETTLEMENT_UNKNOWN);
  };

  const failed = (run: Run, settlement?: SettleResponse): Promise<GateAnswer> =>
    challenge(run.call, { code: 'payment_failed', reason: settlement?.errorReason ?? 'settlement_failed' }, settlement);

  const exhausted = ({ payment }: Run): GateAnswer => {
    const secondsLeft = Math.ceil(payment.authorization.validBefore - nowInSeconds());
    return refuse({ code: 'payment_exhausted', retry_after_seconds: Math.max(1, secondsLeft) });
  };

  const settlementOf = ({ call, payment }: Run, { requirements, fromBlock }: Asked): SettlementContext => ({
    server,
    chain,
    payment,
    authorization: payment.authorization,
    requirements,
    ...(fromBlock !== undefined && { fromBlock }),
    timeoutMs,
    report: (event, error) => report(event, error, call.requestId),
  });

  /** A row that is not where this call left it belongs to somebody else: stop before money moves. */
  const advance: (...step: Parameters<Ledger['advance']>) => Promise<void> = async (...step) => {
    if (!(await ledger.advance(...step))) throw new Error('the ledger row changed under a running call');
  };

  /** Of our own chain and token, whatever the payload says was accepted: an authorization can be spent once on them. */
  const keyOf = ({ payer, nonce }: Pick<Claim, 'payer' | 'nonce'>): string =>
    [usdc.caip2, usdc.address.toLowerCase(), payer, nonce].join('|');

  const nowInSeconds = (): number => issuer.now().getTime() / 1_000;

  /** Copies of one paid request that arrive together share one run; later ones find the ledger's row. */
  const inFlight = new Map<string, Promise<GateAnswer>>();
  const admitOnce = async (call: GateCall, payment: Payment, input: unknown): Promise<GateAnswer> => {
    const { fingerprint, identifier, authorization } = payment;
    const { payer } = authorization;
    const digest = await requestDigest(call.operation.id, input);
    const callerSecret = secretOf(call, payment);
    const mac = await sealer.mac('request', digest, callerSecret, fingerprint);
    const names = {
      ...(await probeOf(call, digest)),
      ...(identifier !== undefined && { identifier: await sealer.mac('identifier', payer, identifier) }),
    };
    const binding: SealBinding = { requestDigest: digest, callerSecret };
    const run: Run = { call, key: keyOf(authorization), payment, input, binding, mac, names };
    const running = inFlight.get(mac) ?? admitPaid(run).finally(() => inFlight.delete(mac));
    inFlight.set(mac, running);
    return running;
  };

  const probeOf = async ({ idempotencyKey }: GateCall, digest: string): Promise<Pick<Claim, 'probe'>> =>
    idempotencyKey === undefined ? {} : { probe: await sealer.mac('probe', idempotencyKey, digest) };

  /** Whether a payment for this very call is open: then a challenge would ask for a second one. */
  const isUnderWay = async (call: GateCall, input: unknown): Promise<boolean> => {
    if (call.idempotencyKey === undefined) return false;
    const rows = await ledger.findNamed(await probeOf(call, await requestDigest(call.operation.id, input)));
    return rows.some(({ row }) => isOpen(row, nowInSeconds()));
  };

  return {
    admit: async (call) => {
      const { payment, input, requestId } = call;
      try {
        if (payment && identifierRequired && payment.identifier === undefined) return refuse(IDENTIFIER_REQUIRED);
        if (payment && input?.ok) return await admitOnce(call, payment, input.value);
        const refused = input?.ok === false ? input.problem : undefined;
        if (payment) return refuse(refused ?? refusedInput(call.operation, '', BODY_REQUIRED));
        if (input?.ok && (await isUnderWay(call, input.value))) return refuse(SETTLEMENT_UNKNOWN);
        return await challenge(call, call.because ?? { code: 'payment_required', ...(refused && { refused }) });
      } catch (error) {
        report('gate_failed', error, requestId);
        // With a payment in hand, a store that broke leaves open whether it was taken, now or by an earlier copy.
        return refuse(payment ? SETTLEMENT_UNKNOWN : FACILITATOR_UNAVAILABLE);
      }
    },
    idle: async () => {
      while (inFlight.size > 0) await Promise.allSettled(inFlight.values());
    },
  };
}

type Body = Uint8Array<ArrayBuffer>;

/** One paid call on its way. */
interface Run {
  readonly call: GateCall;
  /** Of the ledger's row. */
  readonly key: string;
  readonly payment: Payment;
  readonly input: unknown;
  readonly binding: SealBinding;
  readonly mac: string;
  readonly names: Pick<Claim, 'probe' | 'identifier'>;
}

/** What a settlement is judged by: of the row, or of the claim that will be one. */
type Asked = Pick<Claim, 'requirements'> & Partial<Pick<Claim, 'fromBlock'>>;

/** What opens the answer beside the request: the names that the caller gave, which are on no chain, else the payment. */
function secretOf({ idempotencyKey }: GateCall, { identifier, fingerprint }: Payment): string {
  const named = idempotencyKey !== undefined || identifier !== undefined;
  return named ? JSON.stringify([idempotencyKey ?? null, identifier ?? null]) : fingerprint;
}

const IDENTIFIER_REQUIRED: Problem = {
  code: 'malformed_payment',
  detail: `it carries no id of the extension ${PAYMENT_IDENTIFIER}, which is required here`,
};

const SETTLEMENT_UNKNOWN: Problem = { code: 'settlement_unknown', retry_after_seconds: RETRY_AFTER_SECONDS };
const FACILITATOR_UNAVAILABLE: Problem = { code: 'facilitator_unavailable', retry_after_seconds: RETRY_AFTER_SECONDS };

export const toBytes = (envelope: unknown): Body => new TextEncoder().encode(JSON.stringify(envelope));
export const refuse = (problem: Problem): GateAnswer => ({ kind: 'refused', problem });
