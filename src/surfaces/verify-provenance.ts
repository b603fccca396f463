/**
 * `POST /api/v1/verify-provenance`: checks a saved answer against this service's own DID and, with the input, runs the
 * operation again. It fetches nothing, and of a re-run it says equal or different, never the value.
 */
import { rerun } from '../operations/rerun.ts';
import type { ContextFor } from '../operations/run-context.ts';
import type { Operation } from '../operation.ts';
import { jsonPointer, problemResponse, type Problem, type Result } from '../problem.ts';
import { isJsonObject } from '../json.ts';
import type { DidDocument } from '../provenance/did.ts';
import { conclude, readEnvelope, verifyEnvelope, type Checks } from '../provenance/verify.ts';
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
    const again = await rerun({ checks, envelope: read.envelope, input, operations, contextFor, take: takeRerun });
    const { credentialSubject: subject } = read.envelope._provenance.credential;
    const verdict = { ...conclude({ ...checks, rerun: again }), ...(isOurs(checks) && { about: aboutOf(subject) }) };
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
