/** Reads a request's JSON body for every route that takes one. The size limit stands in front of it, in app.ts. */
import { BODY_REQUIRED, refusedInput } from '../operation.ts';
import type { Result } from '../problem.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';

/** RFC 6839 suffixes count: `application/ld+json` is JSON too. */
const JSON_MEDIA_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** Undefined where there is no body at all. Never rejects: a caller who breaks off is told so, if he still listens. */
export async function readJsonBody(request: Request): Promise<Result<unknown> | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await request.arrayBuffer());
  } catch {
    return { ok: false, problem: { code: 'invalid_request', path: '', detail: 'the body did not arrive whole' } };
  }
  if (bytes.length === 0) return undefined;
  const { headers } = request;
  const encoded = (headers.get('Content-Encoding') ?? 'identity') !== 'identity';
  if (encoded || !JSON_MEDIA_TYPE.test(headers.get('Content-Type') ?? '')) {
    return { ok: false, problem: { code: 'unsupported_media_type' } };
  }
  return parseStrictJson(bytes);
}

const MISSING = refusedInput({}, '', BODY_REQUIRED);

/** For routes that can do nothing without a body. */
export async function requireJsonBody(request: Request): Promise<Result<unknown>> {
  return (await readJsonBody(request)) ?? { ok: false, problem: MISSING };
}
