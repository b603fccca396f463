/**
 * Runs an operation and wraps its answer in signed evidence: the one way from an input to an envelope, for paid calls and
 * samples alike. What was charged follows from the outcome's billable field and from nothing else.
 */
import type { Operation, RunContext } from '../operation.ts';
import type { Problem } from '../problem.ts';
import type { Payment } from '../provenance/credential.ts';
import { issueEnvelope, type Envelope, type Issuer } from '../provenance/envelope.ts';
import type { SoftwareAgent } from '../provenance/manifest.ts';

/** Who signs, and whence time and ids come. */
export interface AnswerIssuer extends Issuer {
  readonly generator: SoftwareAgent;
  readonly environment?: 'local';
  readonly now: () => Date;
  /** A fresh UUID. */
  readonly newId: () => string;
}

export interface ExecutionContext {
  readonly run: RunContext;
  readonly issuer: AnswerIssuer;
  /** See `requestDigest`: of this operation and this input. */
  readonly inputDigest: string;
  /** What a billable answer costs; without it nothing is charged. Prepaid credits have no payment to name. */
  readonly charge?: { readonly amount: string; readonly payment?: Payment };
  readonly sample?: true;
}

export type Execution =
  | { readonly kind: 'answer'; readonly billable: boolean; readonly envelope: Envelope<unknown> }
  | { readonly kind: 'problem'; readonly billable: false; readonly problem: Problem };

/** `input` must have passed the operation's input schema. Rejects only where the engine or the signing broke. */
export async function execute(operation: Operation, input: unknown, context: ExecutionContext): Promise<Execution> {
  const outcome = await operation.run(input, context.run);
  if (outcome.kind === 'problem') return outcome;
  const { billable, reproducible = true, data } = outcome;
  const { issuer, inputDigest, charge, sample } = context;
  const { generator, environment, now, newId } = issuer;
  const envelope = await issueEnvelope({
    issuer,
    operation: operation.id,
    operationVersion: operation.version,
    title: operation.title,
    versions: data.versions,
    deterministic: reproducible,
    generator,
    inputDigest,
    data,
    now: now(),
    newId,
    charged: '0',
    // An answer that costs nothing names no payment: the authorization stays unspent.
    ...(billable && charge && { charged: charge.amount, ...(charge.payment && { payment: charge.payment }) }),
    ...(environment && { environment }),
    ...(sample && { sample }),
  });
  return { kind: 'answer', billable, envelope };
}
