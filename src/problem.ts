/**
 * Every failure that the service can name, as a tagged union with its evidence, and the one exhaustive map from a
 * problem to status and body. No I/O, no echo: nothing here ever carries text that a caller sent, except JSON pointers.
 */

/** RFC 6901. Keys of the caller's own JSON may stand in it, cut to POINTER_KEY_MAX_CHARS. */
export type JsonPointer = string;

export type Problem =
  // The request as text; `path` is how far the reader came
  | { readonly code: 'invalid_json'; readonly path: JsonPointer; readonly offset: number }
  | { readonly code: 'invalid_utf8'; readonly path: JsonPointer }
  | { readonly code: 'duplicate_key'; readonly path: JsonPointer }
  | { readonly code: 'nesting_too_deep'; readonly path: JsonPointer; readonly limit: number }
  | { readonly code: 'too_many_values'; readonly path: JsonPointer; readonly limit: number }
  | { readonly code: 'invalid_unicode'; readonly path: JsonPointer }
  | { readonly code: 'unsafe_number'; readonly path: JsonPointer }
  // The request as a value
  | { readonly code: 'invalid_request'; readonly path: JsonPointer; readonly detail: string }
  | { readonly code: 'context/invalid_request'; readonly path: JsonPointer; readonly detail: string }
  // The request as a task
  /** In tokens: what the request comes to after all that may be done, and what it may come to. */
  | {
      readonly code: 'context/overflow';
      readonly token_count: number;
      readonly usable: number;
      /** Of the count, what no step may change: prompt, tools and overhead, and a cached prefix if there is one. */
      readonly fixed_tokens: number;
      readonly prefix_tokens?: number;
    }
  | { readonly code: 'context/model_unresolved' }
  | { readonly code: 'busy'; readonly retry_after_seconds: number }
  | { readonly code: 'rate_limited'; readonly retry_after_seconds: number }
  /** The body, or with `path` one text in it. */
  | { readonly code: 'payload_too_large'; readonly limit_bytes: number; readonly path?: JsonPointer }
  | { readonly code: 'unsupported_media_type' }
  | { readonly code: 'not_found' }
  | { readonly code: 'method_not_allowed'; readonly allow: readonly string[] }
  | { readonly code: 'forbidden_origin' }
  | { readonly code: 'unauthorized' }
  // Payment
  | { readonly code: 'malformed_payment'; readonly detail: string }
  | { readonly code: 'payment_required'; readonly refused?: Problem }
  | { readonly code: 'payment_invalid'; readonly reason: string }
  | { readonly code: 'payment_expires_too_soon'; readonly needed_seconds: number }
  | { readonly code: 'payment_failed'; readonly reason: string }
  | { readonly code: 'payment_reused' }
  | { readonly code: 'payment_spent'; readonly transaction?: string }
  | { readonly code: 'payment_exhausted'; readonly retry_after_seconds: number }
  /** The id of a payment-identifier stands for one payment and one request. */
  | { readonly code: 'payment_identifier_reused' }
  | { readonly code: 'payer_exhausted'; readonly retry_after_seconds: number }
  | { readonly code: 'settlement_unknown'; readonly retry_after_seconds: number }
  | { readonly code: 'facilitator_unavailable'; readonly retry_after_seconds: number }
  // API keys
  /** Unknown or revoked; or there are none here. */
  | { readonly code: 'invalid_api_key'; readonly reason: 'unknown' | 'off' }
  /** In atomic USDC units: what is left, and what the call costs. */
  | { readonly code: 'credits_spent'; readonly credits: string; readonly price: string }
  /** It came with a payment when the credits were spent, and that payment may have been taken. */
  | { readonly code: 'left_to_payment' }
  | { readonly code: 'idempotency_key_reused' }
  | { readonly code: 'key_exhausted'; readonly retry_after_seconds: number }
  | { readonly code: 'debit_unknown'; readonly retry_after_seconds: number }
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
  readonly status: 400 | 401 | 402 | 403 | 404 | 405 | 409 | 413 | 415 | 422 | 429 | 500 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ProblemBody;
}

/** The one map from a problem to what goes over the wire: the problem's own members are the evidence. */
export function toWire(problem: Problem): WireProblem {
  const { status, error, charged = false, evidence = {}, headers = {} } = describe(problem);
  const { code, ...members } = problem;
  const wait = 'retry_after_seconds' in problem ? { 'Retry-After': String(problem.retry_after_seconds) } : {};
  return { status, headers: { ...wait, ...headers }, body: { error, charged, ...members, ...evidence, code } };
}

/** The same as an HTTP response. Never cached: a problem is about its moment. */
export function problemResponse(problem: Problem): Response {
  const { status, headers, body } = toWire(problem);
  return Response.json(body, { status, headers: { 'Cache-Control': 'no-store', ...headers } });
}

interface Description {
  readonly status: WireProblem['status'];
  readonly error: string;
  readonly charged?: 'unknown';
  /** Beside, or instead of, the problem's own members. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const FREE = 'Nothing was charged.';
const USED = { payment: 'used' } as const;

function describe(problem: Problem): Description {
  switch (problem.code) {
    case 'invalid_json':
      return refused(`The body is not JSON: it breaks off or goes wrong at character ${problem.offset}.`);
    case 'invalid_utf8':
      return refused('The body is not UTF-8 text.');
    case 'duplicate_key':
      return refused(`The name of ${at(problem.path)} is used twice in its object; send each name once.`);
    case 'nesting_too_deep':
      return refused(`The JSON at ${at(problem.path)} is nested deeper than ${problem.limit} levels.`);
    case 'too_many_values':
      return refused(`The JSON has more than ${problem.limit} members and items.`);
    case 'invalid_unicode':
      return refused(`The text at ${at(problem.path)} has half a surrogate pair, which has no UTF-8 form.`);
    case 'unsafe_number':
      return refused(
        `The number at ${at(problem.path)} cannot be read exactly (over 2^53 - 1, or out of range); send it as a string.`,
      );
    case 'invalid_request':
    case 'context/invalid_request':
      return refused(`The value at ${at(problem.path)} is not accepted: ${problem.detail}.`);
    case 'malformed_payment':
      return refused(`The payment could not be read: ${problem.detail}. It was not sent to the facilitator.`);
    case 'payload_too_large':
      return { status: 413, error: `${textAt(problem.path)} is larger than ${problem.limit_bytes} bytes. ${FREE}` };
    case 'context/overflow':
      return {
        status: 422,
        error: `The context cannot be made to fit: it comes to ${problem.token_count} tokens, and ${problem.usable} are usable. Of it, ${problem.fixed_tokens} are prompt, tools and overhead${problem.prefix_tokens ? `, and ${problem.prefix_tokens} the cached prefix, on account of which nothing is summarised` : ''}. ${FREE}`,
      };
    case 'context/model_unresolved':
      return {
        status: 422,
        error: `could not resolve model limits: the catalogue does not know this model; send model.limits. ${FREE}`,
      };
    case 'busy':
      return {
        status: 503,
        error: `This conversation is being compacted by another call; send the same request again later. ${FREE}`,
      };
    case 'rate_limited':
      return { status: 429, error: `There were too many free calls just now; send this one again later. ${FREE}` };
    case 'unsupported_media_type':
      return { status: 415, error: `Send the request as application/json, not packed. ${FREE}` };
    case 'not_found':
      return { status: 404, error: `Nothing is served under this path; GET / lists what is. ${FREE}` };
    case 'method_not_allowed': {
      const allow = problem.allow.join(', ');
      return { status: 405, error: `This path takes ${allow} only. ${FREE}`, headers: { Allow: allow } };
    }
    case 'forbidden_origin':
      return { status: 403, error: `Local routes answer only to a loopback Host and Origin. ${FREE}` };
    case 'unauthorized':
      return {
        status: 401,
        error: `This needs a token or key that is known here. ${FREE}`,
        headers: { 'WWW-Authenticate': 'Bearer' },
      };
    case 'payment_required': {
      if (!problem.refused) return { status: 402, error: `Payment required. ${FREE}` };
      const body = toWire(problem.refused).body;
      const error = `Payment required, but this body would be refused, so do not sign yet: ${body.error}`;
      return { status: 402, error, evidence: { refused: body } };
    }
    case 'payment_invalid':
      return { status: 402, error: `The payment was refused (${problem.reason}). ${FREE}` };
    case 'payment_expires_too_soon':
      return {
        status: 402,
        error: `The payment expires before the answer could be settled; sign one that is valid for at least ${problem.needed_seconds} seconds. ${FREE}`,
      };
    case 'payment_failed':
      return {
        status: 402,
        error: `The payment could not be settled (${problem.reason}), so the answer is withheld. ${FREE}`,
      };
    case 'payment_reused':
      return {
        status: 409,
        error: `This payment belongs to another request; sign a new one for this request. ${FREE}`,
        evidence: USED,
      };
    case 'payment_spent':
      return {
        status: 409,
        error: problem.transaction
          ? `This payment was settled before (${problem.transaction}), by no request that is still known here; do not send it again. By this call: ${FREE}`
          : `This payment was spent or cancelled outside this service. ${FREE}`,
        evidence: USED,
      };
    case 'payment_exhausted':
      return {
        status: 429,
        error: `This payment bought several answers that were not charged; it is refused until it expires. ${FREE}`,
      };
    case 'payment_identifier_reused':
      return {
        status: 409,
        error: `The payment-identifier of this payment belongs to another payment; send that one again with its request, or use another id. ${FREE}`,
      };
    case 'payer_exhausted':
      return {
        status: 429,
        error: `This payer had too many answers that were not charged, or whose payment failed; no more payments of it are taken for now. ${FREE}`,
      };
    case 'settlement_unknown':
      return {
        status: 503,
        error:
          'The outcome of the settlement is not known yet. Send the same request with the same payment again to learn it; do not sign a new one.',
        charged: 'unknown',
      };
    case 'facilitator_unavailable':
      return {
        status: 503,
        error: `Payments cannot be checked right now. ${FREE} Send the same payment again later.`,
      };
    case 'invalid_api_key': {
      const error =
        problem.reason === 'off'
          ? 'API keys are not in use here; call without X-API-KEY and pay by x402.'
          : 'This API key is unknown here, or was revoked.';
      return { status: 401, error: `${error} ${FREE}`, headers: { 'WWW-Authenticate': 'ApiKey header="X-API-KEY"' } };
    }
    case 'credits_spent':
      return {
        status: 402,
        error: `The credits of this API key are spent: ${problem.credits} are left and the call costs ${problem.price}. Have them topped up, or pay for this call. ${FREE}`,
      };
    case 'left_to_payment':
      return {
        status: 402,
        error: `This call came with a payment when the credits of its API key were spent, so no copy of it is charged to the key. Send it with its payment again, or use another Idempotency-Key. ${FREE}`,
      };
    case 'idempotency_key_reused':
      return {
        status: 409,
        error: `This Idempotency-Key stands for another request of this API key; use another for this request. ${FREE}`,
      };
    case 'key_exhausted':
      return {
        status: 429,
        error: `This API key had too many answers that were not charged; it is refused for a while. ${FREE}`,
      };
    case 'debit_unknown':
      return {
        status: 503,
        error:
          'It is not known yet whether this call was charged. Send the same request with the same key and Idempotency-Key again: it is charged once.',
        charged: 'unknown',
      };
    case 'internal_error':
      return { status: 500, error: `The service failed; quote X-Request-Id when you report it. ${FREE}` };
  }
}

const refused = (error: string): Description => ({ status: 400, error: `${error} ${FREE}` });

const at = (path: JsonPointer): string => path || 'the top level';
const textAt = (path: JsonPointer | undefined): string => (path === undefined ? 'The body' : `The text at ${at(path)}`);

const POINTER_KEY_MAX_CHARS = 64;
const POINTER_MAX_CHARS = 512;

/** RFC 6901 pointer of a path of keys and indices. Long keys and deep paths are cut, so that errors fit into a header. */
export function jsonPointer(segments: readonly PropertyKey[]): JsonPointer {
  let pointer = '';
  for (const segment of segments) {
    const next = `${pointer}/${cut(String(segment)).replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (next.length > POINTER_MAX_CHARS) return pointer;
    pointer = next;
  }
  return pointer;
}

function cut(key: string): string {
  return key.length > POINTER_KEY_MAX_CHARS
    ? `${key.slice(0, POINTER_KEY_MAX_CHARS).toWellFormed()}…`
    : key.toWellFormed();
}
