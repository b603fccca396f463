/** Reads a request's JSON body for every route that takes one. The size limit stands in front of it, in app.ts. */
import type { Result } from '../problem.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';

/** RFC 6839 suffixes count: `application/ld+json` is JSON too. */
const JSON_MEDIA_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** Undefined where there is no body at all. */
export async function readJsonBody(request: Request): Promise<Result<unknown> | undefined> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.length === 0) return undefined;
  const { headers } = request;
  const encoded = (headers.get('Content-Encoding') ?? 'identity') !== 'identity';
  if (encoded || !JSON_MEDIA_TYPE.test(headers.get('Content-Type') ?? '')) {
    return { ok: false, problem: { code: 'unsupported_media_type' } };
  }
  return parseStrictJson(bytes);
}
