/**
 * A request as it is understood, from its text. Who asks for repair may send half surrogate pairs too, for which no digest exists:
 * what is digested, answered and verified is the request without them, which says where they were.
 */
import { isJsonObject } from './json.ts';
import type { JsonPointer, Result } from './problem.ts';
import { type JsonLimits, parseMending, parseStrictJson } from './provenance/strict-json.ts';

/** The field that says where half surrogate pairs were. */
export const SPLIT_SURROGATES = 'split_surrogates';

/** As `parseStrictJson`, whose problems it has; half surrogate pairs are one only where no repair was asked for. */
export function parseRequest(source: Uint8Array, limits?: JsonLimits): Result<unknown> {
  return parseWith(source, limits, noteSplits);
}

/** The same of a saved answer beside its request, `input`. */
export function parseAnswerWithRequest(source: Uint8Array, limits?: JsonLimits): Result<unknown> {
  return parseWith(source, limits, (value, mended) => {
    if (!isJsonObject(value)) return undefined;
    const inside = mended.flatMap((path) => (path.startsWith('/input/') ? [path.slice('/input'.length)] : []));
    const input = inside.length === mended.length ? noteSplits(value['input'], inside) : undefined;
    return input && { ...value, input };
  });
}

function parseWith(
  source: Uint8Array,
  limits: JsonLimits | undefined,
  note: (value: unknown, mended: readonly JsonPointer[]) => unknown,
): Result<unknown> {
  const strict = parseStrictJson(source, limits);
  if (strict.ok || strict.problem.code !== 'invalid_unicode') return strict;
  const mending = parseMending(source, limits);
  if (!mending.ok) return mending;
  const value = note(mending.value.value, mending.value.mended);
  return value === undefined ? strict : { ok: true, value };
}

function noteSplits(request: unknown, mended: readonly JsonPointer[]): unknown {
  return isJsonObject(request) && request['repair'] === true ? { ...request, [SPLIT_SURROGATES]: mended } : undefined;
}
