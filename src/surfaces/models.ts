/** `GET /api/v1/models`: the limits of models that the context operations go by, with the day of each. Free. */
import type { ContextInForce } from '../operations/context-config.ts';
import { problemResponse } from '../problem.ts';

/** All models, or with `id` (and `provider`) the one that an operation would take for it; 404 where that is none. */
export function answerModels(
  catalog: ContextInForce['catalog'],
  { id, provider }: Readonly<Record<string, string | undefined>>,
): Response {
  const { as_of, source } = catalog;
  const found = id === undefined ? undefined : catalog.find(id, provider);
  if (id !== undefined && !found) return problemResponse({ code: 'not_found' });
  const models = found ? [found] : catalog.models;
  return Response.json({ as_of, source, models }, { headers: { 'Cache-Control': 'no-cache' } });
}
