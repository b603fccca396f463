/**
 * The gate for callers with an API key: a call takes its price off prepaid credits before the engine runs, and is charged or given it back
 * after. Where the credits are spent it is left to the gate behind, which asks for a payment; no call, and no copy of one, is charged by both.
 */
import { BODY_REQUIRED, refusedInput } from '../operation.ts';
import { execute, type AnswerIssuer, type Execution } from '../operations/execute.ts';
import type { ContextFor } from '../operations/run-context.ts';
import type { Problem } from '../problem.ts';
import { requestDigest } from '../provenance/canonical.ts';
import type { Accounts, CallClaim, CallRow } from './accounts.ts';
import type { ApiKeys } from './api-keys.ts';
import {
  LEASE_SECONDS,
  MAX_UNCHARGED,
  refuse,
  RETRY_AFTER_SECONDS,
  toBytes,
  VALID_BEFORE_MAX_SECONDS,
  type Gate,
  type GateAnswer,
  type GateCall,
  type Report,
} from './gate.ts';
import { ROW_GRACE_SECONDS } from './ledger.ts';
import type { SealBinding, Sealer } from './seal.ts';

export interface KeyedDependencies {
  /** Absent where the operator has set up none. */
  readonly keys: ApiKeys | undefined;
  readonly sealer: Sealer;
  /** Its clock is also that of the leases. */
  readonly issuer: AnswerIssuer;
  readonly contextFor: ContextFor;
  readonly report: Report;
}

/** How long a charged answer can be had again. */
const ANSWER_KEPT_SECONDS = 24 * 3_600;
/** A call that is left to its payment outlives whatever the ledger may remember of that. */
const PASS_SECONDS = VALID_BEFORE_MAX_SECONDS + ROW_GRACE_SECONDS;

/** @param gate takes the calls without a key, and those whose credits are spent. */
export function withApiKeys(gate: Gate, { keys, sealer, issuer, contextFor, report }: KeyedDependencies): Gate {
  const admitKeyed = async (call: GateCall, apiKey: string): Promise<GateAnswer> => {
    if (!keys) return refuse({ code: 'invalid_api_key', reason: 'off' });
    const account = await keys.accounts.identify(await keys.macOf(apiKey));
    if (account === undefined) return refuse(UNKNOWN_KEY);
    const { operation, input } = call;
    if (!input?.ok) return refuse(input?.problem ?? refusedInput(operation, '', BODY_REQUIRED));

    const digest = await requestDigest(operation.id, input.value);
    const name = nameOf(call, apiKey);
    const id = name === undefined ? crypto.randomUUID() : await sealer.mac('call', name);
    const mac = await sealer.mac('request', digest, name ?? id);
    const binding: SealBinding = { requestDigest: digest, callerSecret: name ?? id };
    const { accounts } = keys;
    const run: Run = {
      call,
      accounts,
      apiKey,
      account,
      id,
      mac,
      binding,
      input: input.value,
      isNamed: name !== undefined,
    };
    // A copy with a payment may go on where one without is told to bring one.
    const flight = JSON.stringify([id, mac, call.payment?.fingerprint]);
    const running = inFlight.get(flight) ?? draw(run).finally(() => inFlight.delete(flight));
    inFlight.set(flight, running);
    return running;
  };

  const draw = async (run: Run): Promise<GateAnswer> => {
    const { call, accounts, id, account, mac } = run;
    const now = nowInSeconds();
    const claim: CallClaim = {
      id,
      account,
      mac,
      price: BigInt(call.operation.price),
      holder: crypto.randomUUID(),
      until: now + LEASE_SECONDS,
      ...(call.payment && { passUntil: now + PASS_SECONDS }),
    };
    const reservation = await accounts.reserve(claim, { now, maxUncharged: MAX_UNCHARGED });
    switch (reservation.kind) {
      case 'reserved':
        return compute(run, claim);
      case 'taken':
        return resume(run, reservation.row, reservation.balance);
      case 'passed':
        return gate.admit({ ...withoutKey(run), because: { code: 'left_to_payment' } });
      case 'spent': {
        const [credits, { price }] = [String(reservation.balance), call.operation];
        return gate.admit({ ...withoutKey(run), because: { code: 'credits_spent', credits, price } });
      }
      case 'uncharged':
        return refuse({ code: 'key_exhausted', retry_after_seconds: Math.ceil(reservation.until - now) });
      case 'unknown':
        return refuse(UNKNOWN_KEY);
    }
  };

  /** Runs the engine; what it comes to is stored and charged in one step, so that a kill leaves both or neither. */
  const compute = async (run: Run, { holder }: CallClaim): Promise<GateAnswer> => {
    const { call, accounts, account, id, binding, input } = run;
    const release = (): Promise<bigint | undefined> => accounts.release(id, holder, nowInSeconds());
    let execution: Execution;
    let sealedAnswer: Uint8Array | undefined;
    try {
      const charge = { amount: call.operation.price };
      const context = { run: contextFor(account), inputDigest: binding.requestDigest, issuer, charge };
      execution = await execute(call.operation, input, context);
      if (execution.billable && run.isNamed) sealedAnswer = await sealer.seal(toBytes(execution.envelope), binding);
    } catch (error) {
      report('engine_failed', error, call.requestId);
      await release();
      return refuse({ code: 'internal_error' });
    }
    if (!execution.billable) {
      const balance = await release();
      return execution.kind === 'answer' ? answered(toBytes(execution.envelope), balance) : refuse(execution.problem);
    }
    const body = toBytes(execution.envelope);
    const end = { until: nowInSeconds() + ANSWER_KEPT_SECONDS, ...(sealedAnswer && { sealedAnswer }) };
    const balance = await accounts.capture(id, holder, end);
    // Overtaken: the price was given back, and a copy may be running.
    return balance === undefined ? refuse(DEBIT_UNKNOWN) : answered(body, balance);
  };

  /** The name stands for a call already: the same request gets its answer, any other is refused. */
  const resume = async ({ mac, binding }: Run, row: CallRow, balance: bigint): Promise<GateAnswer> => {
    if (row.mac !== mac) return refuse({ code: 'idempotency_key_reused' });
    const body = row.sealedAnswer && (await sealer.open(row.sealedAnswer, binding));
    return body ? answered(body, balance) : refuse(DEBIT_UNKNOWN); // another process is still computing it
  };

  const nowInSeconds = (): number => issuer.now().getTime() / 1_000;

  /** Copies of one call that arrive together share one run; later ones find its row. */
  const inFlight = new Map<string, Promise<GateAnswer>>();

  return {
    admit: async (call) => {
      const { apiKey, requestId } = call;
      if (apiKey === undefined) return gate.admit(call);
      try {
        return await admitKeyed(call, apiKey);
      } catch (error) {
        report('keys_failed', error, requestId);
        return refuse(DEBIT_UNKNOWN);
      }
    },
    idle: async () => {
      while (inFlight.size > 0) await Promise.allSettled(inFlight.values());
      await gate.idle();
    },
  };
}

/** One call on its way. */
interface Run {
  readonly call: GateCall;
  readonly accounts: Accounts;
  readonly apiKey: string;
  readonly account: string;
  readonly id: string;
  readonly mac: string;
  readonly binding: SealBinding;
  readonly input: unknown;
  /** Whether a copy can be told from another call: only then is the answer kept. */
  readonly isNamed: boolean;
}

/** What tells copies of a call from other calls: the caller's own name for it, else the payment that lies at hand. It belongs to the key. */
function nameOf({ idempotencyKey, payment }: GateCall, apiKey: string): string | undefined {
  if (idempotencyKey !== undefined) return scoped(apiKey, idempotencyKey);
  return payment && JSON.stringify([apiKey, 'payment', payment.fingerprint]);
}

const scoped = (apiKey: string, idempotencyKey: string): string => JSON.stringify([apiKey, idempotencyKey]);

/** For the gate behind, to which the caller's name is still one of this key: nobody else can ask for what was paid under it. */
function withoutKey({ call, apiKey }: Run): GateCall {
  const { requestId, operation, resourceUrl, input, payment, idempotencyKey } = call;
  const name = idempotencyKey !== undefined && { idempotencyKey: scoped(apiKey, idempotencyKey) };
  return { requestId, operation, resourceUrl, input, payment, ...name };
}

const UNKNOWN_KEY: Problem = { code: 'invalid_api_key', reason: 'unknown' };
const DEBIT_UNKNOWN: Problem = { code: 'debit_unknown', retry_after_seconds: RETRY_AFTER_SECONDS };

const answered = (body: Uint8Array<ArrayBuffer>, balance: bigint | undefined): GateAnswer => ({
  kind: 'answered',
  body,
  ...(balance !== undefined && { credits: String(balance) }),
});
