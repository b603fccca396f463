/**
 * `POST /api/v1/verify-provenance`: checks a saved answer against this service's own DID and, with the input, runs the
 * operation again. It fetches nothing, and of a re-run it says equal or different, never the value.
 */
import { contextOf, type ContextFor } from '../operations/run-context.ts';
import { validate } from '../operations/validate.ts';
import type { Operation } from '../operation.ts';
import { jsonPointer, problemResponse, type Problem, type Result } from '../problem.ts';
import { digest, isJsonObject } from '../provenance/canonical.ts';
import type { DidDocument } from '../provenance/did.ts';
import { executionOf } from '../provenance/manifest.ts';
import { conclude, readEnvelope, verifyEnvelope, type Check, type Checks } from '../provenance/verify.ts';
import { createRateLimit } from './rate-limit.ts';

export interface VerifyDependencies {
  readonly operations: readonly Operation[];
  readonly contextFor: ContextFor;
  readonly didDocument: DidDocument;
  readonly now: () => Date;
}

/** Re-runs are free, so they are few: enough for an auditor, too few to use the engines with. */
const RERUNS_PER_MINUTE = 60;

/** Answers 200 with a verdict, whatever the verdict; 400 where there is nothing to verify. */
export function createVerifyHandler(dependencies: VerifyDependencies): (body: Result<unknown>) => Promise<Response> {
  const { operations, contextFor, didDocument, now } = dependencies;
  const takeRerun = createRateLimit(RERUNS_PER_MINUTE, now);
  return async (body) => {
    if (!body.ok) return problemResponse(body.problem);
    if (!isJsonObject(body.value)) return problemResponse(NO_OBJECT);
    const { input, ...envelope } = body.value;
    const [foreign] = Object.keys(envelope).filter((name) => name !== 'data' && name !== '_provenance');
    if (foreign !== undefined) return problemResponse(notSigned(foreign));
    const read = readEnvelope(envelope);
    if (!read.ok) return problemResponse(read.problem);
    const { checks } = await verifyEnvelope({ envelope, input, trusted: didDocument, now: now() });
    const { manifest, credential } = read.envelope._provenance;
    const { credentialSubject: subject } = credential;
    const rerun = await runAgain({ checks, subject, manifest, input, operations, contextFor, takeRerun });
    const verdict = { ...conclude({ ...checks, rerun }), ...(isOurs(checks) && { about: aboutOf(subject) }) };
    return Response.json(verdict, { headers: { 'Cache-Control': 'no-store' } });
  };
}

const NO_OBJECT: Problem = { code: 'invalid_request', path: '', detail: 'expected an object' };

const notSigned = (name: string): Problem => ({
  code: 'invalid_request',
  path: jsonPointer([name]),
  detail: 'only data, _provenance and input are looked at, and nothing vouches for anything else',
});

const isOurs = ({ signature, issuer }: Checks): boolean => signature.result === 'pass' && issuer.result === 'pass';

/** What the signed credential says the answer is, so that a sample is not taken for a paid answer. */
function aboutOf(subject: unknown): object {
  if (!isJsonObject(subject)) return {};
  const { operation, operationVersion, charged, sample = false, environment = 'production' } = subject;
  return { operation, operationVersion, charged, sample, environment };
}

interface Rerun {
  readonly checks: Checks;
  readonly subject: unknown;
  readonly manifest: unknown;
  readonly input: unknown;
  readonly operations: readonly Operation[];
  readonly contextFor: ContextFor;
  readonly takeRerun: (input: unknown) => boolean;
}

/** Only what this service signed for just this input is run again: nothing else is owed an engine's time. */
async function runAgain({
  checks,
  subject,
  manifest,
  input,
  operations,
  contextFor,
  takeRerun,
}: Rerun): Promise<Check> {
  if (input === undefined) return notChecked('Send the input along to have the answer computed again.');
  if (!isOurs(checks) || checks.input_digest.result !== 'pass' || !isJsonObject(subject)) {
    return notChecked('Only an answer that this service signed for this very input is computed again.');
  }
  const operation = operations.find(({ id }) => id === subject['operation']);
  if (!operation || operation.version !== subject['operationVersion']) {
    return notChecked('The version of the operation that gave this answer is not part of this build.');
  }
  const { deterministic, versions } = executionOf(manifest) ?? {};
  if (deterministic !== true) return notChecked('This answer does not follow from its input alone.');
  const valid = validate(operation, input);
  if (!valid.ok) return notChecked('The input is not one that this build accepts.');
  if (!takeRerun(input))
    return notChecked('Too many answers are being computed again just now; try again in a minute.');
  const outcome = await operation.run(valid.value, contextOf(versions, contextFor()));
  const equal = outcome.kind === 'answer' && (await digest(outcome.data)) === subject['dataDigest'];
  if (equal) return { result: 'pass', reason: 'Computed again from the input, the answer is the one that was signed.' };
  if (operation.dependsOnKeyOrder) {
    return notChecked(
      'Computed again, another answer came out. It may depend on the order of keys, which the digest of the input does not hold; send the input just as it was.',
    );
  }
  return { result: 'fail', reason: 'Computed again from the input, the answer is not the one that was signed.' };
}

const notChecked = (reason: string): Check => ({ result: 'not_checked', reason });
