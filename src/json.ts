/** What a JSON object is, for every room. */

/** A parsed JSON object: neither null nor an array. */
export type JsonObject = { readonly [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
