/**
 * Reads a request's JSON body for every route that takes one, up to a bound. A body over it is read to its end and thrown away
 * before it is refused: whoever is cut off in the middle of writing sees a broken pipe, and never our answer.
 */
import { BODY_REQUIRED, refusedInput } from '../operation.ts';
import type { Problem, Result } from '../problem.ts';
import { pause } from '../operations/pause.ts';
import type { JsonLimits } from '../provenance/strict-json.ts';
import { parseRequest } from '../request-json.ts';

/** What a body may be; `json` is a request's by default. */
export interface BodyLimits {
  readonly bytes: number;
  readonly json?: JsonLimits;
  /** How it is read; as a request by default. */
  readonly parse?: (source: Uint8Array, limits?: JsonLimits) => Result<unknown>;
}

/** RFC 6839 suffixes count: `application/ld+json` is JSON too. */
const JSON_MEDIA_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** A longer body takes milliseconds to read, and many may have come at once. */
const PAUSE_BEFORE_BYTES = 65_536;

/** Undefined where there is no body at all. Never rejects: a caller who breaks off is told so, if he still listens. */
export async function readJsonBody(request: Request, limits: BodyLimits): Promise<Result<unknown> | undefined> {
  const read = await readBytes(request, limits.bytes);
  if (!read.ok) return read;
  if (read.value.length === 0) return undefined;
  const { headers } = request;
  const encoded = (headers.get('Content-Encoding') ?? 'identity') !== 'identity';
  if (encoded || !JSON_MEDIA_TYPE.test(headers.get('Content-Type') ?? '')) {
    return { ok: false, problem: { code: 'unsupported_media_type' } };
  }
  if (read.value.length > PAUSE_BEFORE_BYTES) await pause();
  return (limits.parse ?? parseRequest)(read.value, limits.json);
}

const MISSING = refusedInput({}, '', BODY_REQUIRED);

/** For routes that can do nothing without a body. */
export async function requireJsonBody(request: Request, limits: BodyLimits): Promise<Result<unknown>> {
  return (await readJsonBody(request, limits)) ?? { ok: false, problem: MISSING };
}

const BROKEN_OFF = refusedInput({}, '', 'the body did not arrive whole');

/** What is read for nothing; more ends the connection. */
const DISCARDED_MAX_BYTES = 64 * 1_024 * 1_024;

async function readBytes(request: Request, limit_bytes: number): Promise<Result<Uint8Array>> {
  const refuse = (problem: Problem): Result<Uint8Array> => ({ ok: false, problem });
  try {
    if (declaredBytes(request.headers) <= limit_bytes) {
      return { ok: true, value: new Uint8Array(await request.arrayBuffer()) };
    }
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    for await (const chunk of request.body ?? []) {
      bytes += chunk.length;
      if (bytes <= limit_bytes) chunks.push(chunk);
      else chunks.length = 0;
      if (bytes > limit_bytes + DISCARDED_MAX_BYTES) break;
    }
    if (bytes > limit_bytes) return refuse({ code: 'payload_too_large', limit_bytes });
    return { ok: true, value: new Uint8Array(await new Blob(chunks).arrayBuffer()) };
  } catch {
    return refuse(BROKEN_OFF);
  }
}

/** Infinity where the length is not said beforehand (RFC 9112 section 6.3: Transfer-Encoding overrides Content-Length). */
function declaredBytes(headers: Headers): number {
  const length = headers.get('Content-Length');
  return length === null || headers.has('Transfer-Encoding') ? Infinity : Number(length);
}
