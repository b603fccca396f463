/** Runs a saved answer's operation again: the strongest proof that there is. It says equal or different, and never the value. */
import type { Operation } from '../operation.ts';
import { digest, isJsonObject } from '../provenance/canonical.ts';
import { executionOf } from '../provenance/manifest.ts';
import type { Check, Checks } from '../provenance/verify.ts';
import { contextOf, type ContextFor } from './run-context.ts';
import { validate } from './validate.ts';

export interface Rerun {
  /** What was checked before. */
  readonly checks: Checks;
  /** An envelope whose parts are there; see `readEnvelope`. */
  readonly envelope: { readonly _provenance: { readonly manifest: unknown; readonly credential: unknown } };
  readonly input: unknown;
  readonly operations: readonly Operation[];
  readonly contextFor: ContextFor;
  /** Whether there is time for this input now; always by default. */
  readonly take?: (input: unknown) => boolean;
}

/** Only what the named issuer signed for just this input is run again: nothing else is owed an engine's time. */
export async function rerun({ checks, envelope, input, operations, contextFor, take }: Rerun): Promise<Check> {
  const { manifest, credential } = envelope._provenance;
  const subject = isJsonObject(credential) ? credential['credentialSubject'] : undefined;
  if (input === undefined) return notChecked('Send the input along to have the answer computed again.');
  const isSigned = [checks.signature, checks.issuer, checks.input_digest].every(({ result }) => result === 'pass');
  if (!isSigned || !isJsonObject(subject)) {
    return notChecked('Only an answer that the named issuer signed for this very input is computed again.');
  }
  const { operation: id, operationVersion: version, dataDigest } = subject;
  const operation = operations.find((each) => each.id === id);
  if (!operation) return notChecked('The operation that gave this answer is not part of this build.');
  if (operation.version !== version) {
    return notChecked(
      `The answer is of version ${String(version)} of the operation, and this build has ${operation.version}.`,
    );
  }
  const { deterministic, versions } = executionOf(manifest) ?? {};
  if (deterministic !== true) return notChecked('This answer does not follow from its input alone.');
  const valid = validate(operation, input);
  if (!valid.ok) return notChecked('The input is not one that this build accepts.');
  if (take && !take(input)) {
    return notChecked('Too many answers are being computed again just now; try again in a minute.');
  }
  const outcome = await operation.run(valid.value, contextOf(versions, contextFor()));
  if (outcome.kind === 'answer' && (await digest(outcome.data)) === dataDigest) {
    return { result: 'pass', reason: 'Computed again from the input, the answer is the one that was signed.' };
  }
  const [other] = outcome.kind === 'answer' ? differing(versions, outcome.data) : [];
  if (other !== undefined) {
    return notChecked(
      `Computed again, another answer came out: this build has another ${other} than the answer was made with.`,
    );
  }
  if (operation.dependsOnKeyOrder) {
    return notChecked(
      'Computed again, another answer came out. It may depend on the order of keys, which the digest of the input does not hold; send the input just as it was.',
    );
  }
  return { result: 'fail', reason: 'Computed again from the input, the answer is not the one that was signed.' };
}

/** The versions and table digests that are not what they were, by name. */
function differing(signed: unknown, data: unknown): readonly string[] {
  const now = isJsonObject(data) ? data['versions'] : undefined;
  if (!isJsonObject(signed) || !isJsonObject(now)) return [];
  return Object.keys(signed).filter((name) => typeof signed[name] === 'string' && signed[name] !== now[name]);
}

const notChecked = (reason: string): Check => ({ result: 'not_checked', reason });
