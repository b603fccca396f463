/**
 * Every failure that the service can name, as a tagged union with its evidence, and the one exhaustive map from a
 * problem to status and body. No I/O, no echo: nothing here ever carries text that a caller sent, except JSON pointers.
 */

/** RFC 6901. Keys of the caller's own JSON may stand in it, cut to POINTER_KEY_MAX_CHARS. */
export type JsonPointer = string;

export type Problem =
  // The request as text
  | { readonly code: 'invalid_json'; readonly offset: number }
  | { readonly code: 'invalid_utf8' }
  | { readonly code: 'duplicate_key'; readonly path: JsonPointer }
  | { readonly code: 'nesting_too_deep'; readonly path: JsonPointer; readonly limit: number }
  | { readonly code: 'invalid_unicode'; readonly path: JsonPointer }
  | { readonly code: 'unsafe_number'; readonly path: JsonPointer }
  // The request as a value
  | { readonly code: 'invalid_request'; readonly path: JsonPointer; readonly detail: string }
  | { readonly code: 'context/invalid_request'; readonly path: JsonPointer; readonly detail: string }
  /** The body, or with `path` one text in it. */
  | { readonly code: 'payload_too_large'; readonly limit_bytes: number; readonly path?: JsonPointer }
  | { readonly code: 'unsupported_media_type' }
  | { readonly code: 'not_found' }
  | { readonly code: 'method_not_allowed'; readonly allow: readonly string[] }
  | { readonly code: 'forbidden_origin' }
  // Payment
  | { readonly code: 'malformed_payment'; readonly detail: string }
  | { readonly code: 'payment_required'; readonly refused?: Problem }
  | { readonly code: 'payment_invalid'; readonly reason: string }
  | { readonly code: 'payment_expires_too_soon'; readonly needed_seconds: number }
  | { readonly code: 'payment_failed'; readonly reason: string }
  | { readonly code: 'payment_reused' }
  | { readonly code: 'payment_exhausted'; readonly retry_after_seconds: number }
  | { readonly code: 'settlement_unknown'; readonly retry_after_seconds: number }
  | { readonly code: 'facilitator_unavailable'; readonly retry_after_seconds: number }
  // Ours
  | { readonly code: 'internal_error' };

/** A value, or what was wrong with it. */
export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

export type ProblemCode = Problem['code'];

/** What an operation may call an input that it refuses. */
export type InvalidRequestCode = 'invalid_request' | 'context/invalid_request';

export interface ProblemBody {
  /** What happened and why, for a person. */
  readonly error: string;
  /** Stable, for a program. */
  readonly code: ProblemCode;
  /** About this call: `false` nothing was taken, `"unknown"` the settlement's outcome is not known yet. */
  readonly charged: false | 'unknown';
  readonly [evidence: string]: unknown;
}

export interface WireProblem {
  readonly status: 400 | 402 | 403 | 404 | 405 | 409 | 413 | 415 | 429 | 500 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ProblemBody;
}

/** The one map from a problem to what goes over the wire. */
export function toWire(problem: Problem): WireProblem {
  const { status, error, headers = {}, evidence = {}, charged = false } = describe(problem);
  return { status, headers, body: { error, charged, ...evidence, code: problem.code } };
}

/** The same as an HTTP response. Never cached: a problem is about its moment. */
export function problemResponse(problem: Problem): Response {
  const { status, headers, body } = toWire(problem);
  return Response.json(body, { status, headers: { 'Cache-Control': 'no-store', ...headers } });
}

interface Description {
  readonly status: WireProblem['status'];
  readonly error: string;
  readonly headers?: Record<string, string>;
  readonly evidence?: Record<string, unknown>;
  readonly charged?: 'unknown';
}

const FREE = 'Nothing was charged.';

function describe(problem: Problem): Description {
  switch (problem.code) {
    case 'invalid_json':
      return badRequest(`The body is not JSON: it breaks off or goes wrong at character ${problem.offset}.`, problem);
    case 'invalid_utf8':
      return badRequest('The body is not UTF-8 text.', problem);
    case 'duplicate_key':
      return badRequest(`The name of ${at(problem.path)} is used twice in its object; send each name once.`, problem);
    case 'nesting_too_deep':
      return badRequest(`The JSON at ${at(problem.path)} is nested deeper than ${problem.limit} levels.`, problem);
    case 'invalid_unicode':
      return badRequest(
        `The text at ${at(problem.path)} has half a surrogate pair, which has no UTF-8 form; cut between characters.`,
        problem,
      );
    case 'unsafe_number':
      return badRequest(
        `The number at ${at(problem.path)} cannot be read exactly (over 2^53 - 1, or out of range); send it as a string.`,
        problem,
      );
    case 'invalid_request':
    case 'context/invalid_request':
      return badRequest(`The value at ${at(problem.path)} is not accepted: ${problem.detail}.`, problem);
    case 'malformed_payment':
      return badRequest(
        `The payment could not be read: ${problem.detail}. It was not sent to the facilitator.`,
        problem,
      );
    case 'payload_too_large':
      return {
        status: 413,
        error: `${textAt(problem.path)} is larger than ${problem.limit_bytes} bytes. ${FREE}`,
        evidence: { limit_bytes: problem.limit_bytes, ...(problem.path !== undefined && { path: problem.path }) },
      };
    case 'unsupported_media_type':
      return { status: 415, error: `Send the request as application/json. ${FREE}` };
    case 'not_found':
      return { status: 404, error: `Nothing is served under this path; GET / lists what is. ${FREE}` };
    case 'method_not_allowed':
      return {
        status: 405,
        error: `This path takes ${problem.allow.join(', ')} only. ${FREE}`,
        headers: { Allow: problem.allow.join(', ') },
        evidence: { allow: problem.allow },
      };
    case 'forbidden_origin':
      return { status: 403, error: `Local routes answer only to a loopback Host and Origin. ${FREE}` };
    case 'payment_required':
      return {
        status: 402,
        error: problem.refused
          ? `Payment required, but this body would be refused, so do not sign yet: ${toWire(problem.refused).body.error}`
          : `Payment required. ${FREE}`,
        evidence: problem.refused ? { refused: toWire(problem.refused).body } : {},
      };
    case 'payment_invalid':
      return {
        status: 402,
        error: `The payment was refused (${problem.reason}). ${FREE}`,
        evidence: { reason: problem.reason },
      };
    case 'payment_expires_too_soon':
      return {
        status: 402,
        error: `The payment expires before the answer could be settled; sign one that is valid for at least ${problem.needed_seconds} seconds. ${FREE}`,
        evidence: { needed_seconds: problem.needed_seconds },
      };
    case 'payment_failed':
      return {
        status: 402,
        error: `The payment could not be settled (${problem.reason}), so the answer is withheld. ${FREE}`,
        evidence: { reason: problem.reason },
      };
    case 'payment_reused':
      return {
        status: 409,
        error: `This payment already belongs to another request; sign a new one for this request. ${FREE}`,
        evidence: { payment: 'used' },
      };
    case 'payment_exhausted':
      return {
        status: 429,
        error: `This payment bought several answers that were not charged; it is refused until it expires. ${FREE}`,
        ...retryAfter(problem.retry_after_seconds),
      };
    case 'settlement_unknown':
      return {
        status: 503,
        error:
          'The outcome of the settlement is not known yet. Send the same request with the same payment again to learn it; do not sign a new one.',
        charged: 'unknown',
        ...retryAfter(problem.retry_after_seconds),
      };
    case 'facilitator_unavailable':
      return {
        status: 503,
        error: `Payments cannot be checked right now. ${FREE} Send the same payment again later.`,
        ...retryAfter(problem.retry_after_seconds),
      };
    case 'internal_error':
      return { status: 500, error: `The service failed; quote X-Request-Id when you report it. ${FREE}` };
  }
}

function badRequest(error: string, evidence: object): Description {
  return { status: 400, error: `${error} ${FREE}`, evidence: { ...evidence } };
}

function retryAfter(seconds: number): Pick<Description, 'headers' | 'evidence'> {
  return { headers: { 'Retry-After': String(seconds) }, evidence: { retry_after_seconds: seconds } };
}

const at = (path: JsonPointer): string => path || 'the top level';
const textAt = (path: JsonPointer | undefined): string => (path === undefined ? 'The body' : `The text at ${at(path)}`);

const POINTER_KEY_MAX_CHARS = 64;

/** RFC 6901 pointer of a path of keys and indices; a long key of the caller's is cut, so that errors stay short. */
export function jsonPointer(segments: readonly PropertyKey[]): JsonPointer {
  return segments.map((segment) => `/${cut(String(segment)).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function cut(key: string): string {
  return key.length > POINTER_KEY_MAX_CHARS
    ? `${key.slice(0, POINTER_KEY_MAX_CHARS).toWellFormed()}…`
    : key.toWellFormed();
}
