/**
 * The payment gate: from a validated request and a payment to an answer that is settled once. It knows no transport; adapters hand
 * it what they decoded and obey what it answers. It never settles without a stored answer, never answers without a
 * ledger row, and never asks for a second signature while the first may still be taken.
 */
import type { x402ResourceServer } from '@x402/core/server';
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Address } from 'viem';
import { execute, type AnswerIssuer, type Execution } from '../operations/execute.ts';
import { BODY_REQUIRED, refusedInput, type Operation } from '../operation.ts';
import type { Problem, Result } from '../problem.ts';
import { requestDigest } from '../provenance/canonical.ts';
import type { ChainView } from './chain.ts';
import type { Ledger, LedgerRow, RowState } from './ledger.ts';
import type { Usdc } from './networks.ts';
import type { Payment } from './payload.ts';
import type { SealBinding, Sealer } from './seal.ts';
import { reconcile, settle, type Settlement } from './settlement.ts';

export interface GateDependencies {
  /** With the exact scheme registered for `usdc.caip2`; initialised by the gate on first use. */
  readonly server: x402ResourceServer;
  readonly chain: ChainView;
  readonly ledger: Ledger;
  readonly sealer: Sealer;
  readonly issuer: AnswerIssuer;
  readonly usdc: Usdc;
  readonly payTo: Address;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** An engine or store broke; only the name of what happened, never content. */
  readonly onError: (event: string, error: unknown) => void;
}

export interface GateCall {
  readonly operation: Operation;
  /** Public URL of the operation, as the challenge names it. */
  readonly resourceUrl: string;
  /** The validated input; undefined where the caller sent none. */
  readonly input: Result<unknown> | undefined;
  readonly payment: Payment | undefined;
}

export type GateAnswer =
  /** `settlement` is absent where nothing was charged. */
  | { readonly kind: 'answered'; readonly body: Uint8Array<ArrayBuffer>; readonly settlement?: SettleResponse }
  /** 402: nothing was taken. `challenge.error` is the problem's own sentence, filled in by the adapter. */
  | {
      readonly kind: 'challenged';
      readonly problem: Problem;
      readonly challenge: PaymentRequired;
      readonly settlement?: SettleResponse;
    }
  | { readonly kind: 'refused'; readonly problem: Problem };

export interface Gate {
  /** Never rejects. */
  admit(call: GateCall): Promise<GateAnswer>;
}

/** How long a signed authorization stays valid by default; x402 clients copy it into validBefore. */
const MAX_TIMEOUT_SECONDS = 300;
/** What validBefore must leave: the engine's deadline, a facilitator's time-out and a block's clock skew. */
const NEEDED_SECONDS = 30;
/** Bounds how long a row can live: validBefore is the caller's to choose. */
const VALID_BEFORE_MAX_SECONDS = 24 * 3_600;
/** So that an answer that is not charged is no free service. */
const MAX_RELEASES = 3;
const RETRY_AFTER_SECONDS = 2;

export function createGate(dependencies: GateDependencies): Gate {
  const { server, chain, ledger, sealer, issuer, usdc, payTo, now, onError } = dependencies;

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
    const required = await server.createPaymentRequiredResponse([await requirementsOf(operation)], resource);
    return { kind: 'challenged', problem, challenge: required, ...(settlement && { settlement }) };
  };

  /** Nothing before the reservation can cost the caller anything. */
  const admitPaid = async (run: Run): Promise<GateAnswer> => {
    const { call, payment } = run;
    const row = await ledger.find(payment.key);
    if (row && row.state !== 'released') return resume(run, row);
    if (row && row.releases >= MAX_RELEASES) return exhausted(payment);

    const requirements = await requirementsOf(call.operation).catch(unavailable);
    if (!requirements) return refuse(FACILITATOR_UNAVAILABLE);
    const refusal = await findRefusal(payment, requirements).catch(unavailable);
    if (!refusal) return refuse(FACILITATOR_UNAVAILABLE);
    if (refusal !== 'none') return challengeUnlessSpent(run, requirements, refusal);

    // Only now: before, a stranger who guessed a nonce could have taken the row.
    const claim = { mac: run.mac, requirements, validBefore: payment.authorization.validBefore };
    const reservation = await ledger.reserve(payment.key, claim, MAX_RELEASES);
    return reservation.reserved ? runAndSettle(run, requirements) : resume(run, reservation.row);
  };

  /** Why this payment cannot be taken; our own rules first, as they cost nobody a look at the chain. */
  const findRefusal = async (payment: Payment, requirements: PaymentRequirements): Promise<Problem | 'none'> => {
    const invalid = (reason: string): Problem => ({ code: 'payment_invalid', reason });
    if (!server.findMatchingRequirements([requirements], payment.payload)) return invalid('no_matching_requirements');
    const secondsLeft = payment.authorization.validBefore - now() / 1_000;
    if (secondsLeft < NEEDED_SECONDS) return { code: 'payment_expires_too_soon', needed_seconds: NEEDED_SECONDS };
    if (secondsLeft > VALID_BEFORE_MAX_SECONDS) return invalid('valid_before_too_far_ahead');
    const verdict = await server.verifyPayment(payment.payload, requirements);
    return verdict.isValid ? 'none' : invalid(verdict.invalidReason ?? 'invalid_payment');
  };

  /** A spent authorization is refused for some reason too, and a second signature would then be a second charge. */
  const challengeUnlessSpent = async (
    { call, payment }: Run,
    requirements: PaymentRequirements,
    problem: Problem,
  ): Promise<GateAnswer> => {
    const proven = await reconcile(chain, payment, requirements);
    if (proven === 'unused') return challenge(call, problem);
    return refuse(proven.kind === 'unknown' ? FACILITATOR_UNAVAILABLE : { code: 'payment_reused' });
  };

  const runAndSettle = async (run: Run, requirements: PaymentRequirements): Promise<GateAnswer> => {
    const { payment, binding } = run;
    const execution = await runEngine(run);
    if (!execution.billable) {
      await advance(payment.key, ['reserved'], { state: 'released', releases: await nextRelease(payment.key) });
      return execution.kind === 'answer'
        ? { kind: 'answered', body: toBytes(execution.envelope) }
        : refuse(execution.problem);
    }
    const body = toBytes(execution.envelope);
    const sealedAnswer = await sealer.seal(body, binding);
    await advance(payment.key, ['reserved'], { state: 'computed', sealedAnswer });
    await advance(payment.key, ['computed'], { state: 'settling' });
    return conclude(run, await settle(server, chain, payment, requirements), body);
  };

  const runEngine = async ({ call, payment, input, binding }: Run): Promise<Execution> => {
    const { payer, nonce } = payment.authorization;
    const charge = { amount: call.operation.price, payment: { network: usdc.caip2, payer, nonce } };
    try {
      return await execute(call.operation, input, { inputDigest: binding.requestDigest, issuer, charge });
    } catch (error) {
      onError('engine_failed', error);
      return { kind: 'problem', billable: false, problem: { code: 'internal_error' } };
    }
  };

  /** Writes the settlement's outcome down and hands over the answer only where the money is certain. */
  const conclude = async (run: Run, settlement: Settlement, body: Uint8Array<ArrayBuffer>): Promise<GateAnswer> => {
    const { key } = run.payment;
    switch (settlement.kind) {
      case 'settled':
        await advance(key, OPEN, { state: 'settled', settlement: settlement.response });
        return { kind: 'answered', body, settlement: settlement.response };
      case 'failed':
        await advance(key, OPEN, { state: 'failed', failure: settlement.reason });
        return failed(run, settlement.reason);
      case 'unknown':
        await advance(key, OPEN, { state: 'unknown' });
        return refuse(SETTLEMENT_UNKNOWN);
    }
  };

  /** The payment is known already: the same request gets its answer, any other is refused. */
  const resume = async (run: Run, row: LedgerRow): Promise<GateAnswer> => {
    if (row.state === 'released') return exhausted(run.payment);
    if (row.mac !== run.mac) return refuse({ code: 'payment_reused' });
    const body = row.sealedAnswer && (await sealer.open(row.sealedAnswer, run.binding));
    if (!body) return refuse(SETTLEMENT_UNKNOWN); // another process is still computing it
    switch (row.state) {
      case 'settled':
        return { kind: 'answered', body, ...(row.settlement && { settlement: row.settlement }) };
      case 'failed':
        return failed(run, row.failure ?? 'settlement_failed');
      case 'settling':
      case 'unknown':
        return conclude(run, await settleAgain(run.payment, row.requirements), body);
      case 'reserved':
      case 'computed':
        return refuse(SETTLEMENT_UNKNOWN);
    }
  };

  /** Verification is skipped: it fails for an authorization that was spent, which is just what is to be found out. */
  const settleAgain = async (payment: Payment, requirements: PaymentRequirements): Promise<Settlement> => {
    const proven = await reconcile(chain, payment, requirements);
    return proven === 'unused' ? settle(server, chain, payment, requirements) : proven;
  };

  const failed = (run: Run, reason: string): Promise<GateAnswer> => {
    const settlement: SettleResponse = { success: false, errorReason: reason, transaction: '', network: usdc.caip2 };
    return challenge(run.call, { code: 'payment_failed', reason }, settlement);
  };

  const nextRelease = async (key: string): Promise<number> => ((await ledger.find(key))?.releases ?? 0) + 1;

  const exhausted = ({ authorization }: Payment): GateAnswer => {
    const retry_after_seconds = Math.max(1, Math.ceil(authorization.validBefore - now() / 1_000));
    return refuse({ code: 'payment_exhausted', retry_after_seconds });
  };

  /** A row that is not where this call left it belongs to somebody else: stop before money moves. */
  const advance: (...step: Parameters<Ledger['advance']>) => Promise<void> = async (...step) => {
    if (!(await ledger.advance(...step))) throw new Error('the ledger row changed under a running call');
  };

  const unavailable = (error: unknown): undefined => {
    onError('facilitator_unavailable', error);
    return undefined;
  };

  /** Copies of one paid request that arrive together share one run; later ones find the ledger's row. */
  const inFlight = new Map<string, Promise<GateAnswer>>();
  const admitOnce = async (call: GateCall, payment: Payment, input: unknown): Promise<GateAnswer> => {
    const digest = await requestDigest(call.operation.id, input);
    const binding: SealBinding = { requestDigest: digest, callerSecret: payment.fingerprint };
    const mac = await sealer.mac(binding);
    const running =
      inFlight.get(mac) ?? admitPaid({ call, payment, input, binding, mac }).finally(() => inFlight.delete(mac));
    inFlight.set(mac, running);
    return running;
  };

  return {
    admit: async (call) => {
      const { payment, input } = call;
      try {
        if (payment && input?.ok) return await admitOnce(call, payment, input.value);
        const refused = input?.ok === false ? input.problem : undefined;
        if (payment) return refuse(refused ?? refusedInput(call.operation, '', BODY_REQUIRED));
        return await challenge(call, { code: 'payment_required', ...(refused && { refused }) });
      } catch (error) {
        onError('gate_failed', error);
        // With a payment in hand, a store that broke leaves open whether it was taken, now or by an earlier copy.
        return refuse(payment ? SETTLEMENT_UNKNOWN : FACILITATOR_UNAVAILABLE);
      }
    },
  };
}

/** One paid call on its way. */
interface Run {
  readonly call: GateCall;
  readonly payment: Payment;
  readonly input: unknown;
  readonly binding: SealBinding;
  readonly mac: string;
}

/** A settlement may have been asked for. */
const OPEN: readonly RowState[] = ['settling', 'unknown'];

const SETTLEMENT_UNKNOWN: Problem = { code: 'settlement_unknown', retry_after_seconds: RETRY_AFTER_SECONDS };
const FACILITATOR_UNAVAILABLE: Problem = { code: 'facilitator_unavailable', retry_after_seconds: RETRY_AFTER_SECONDS };

const toBytes = (envelope: unknown): Uint8Array<ArrayBuffer> => new TextEncoder().encode(JSON.stringify(envelope));
const refuse = (problem: Problem): GateAnswer => ({ kind: 'refused', problem });
