/** The limits of a request's model, and how an answer names them so that it can be computed again without any look-up. */
import { resolveModel, type ResolvedModel } from '../engines/budget.ts';
import type { ContextConfig } from '../engines/config.ts';
import type { ModelInput } from '../engines/count.ts';
import type { ModelCatalog } from '../engines/model-catalog.ts';
import type { Outcome } from '../operation.ts';

/** The model's limits, or the outcome where nobody knows them. */
export function resolveModelOr422(
  model: ModelInput,
  catalog: ModelCatalog,
  config: ContextConfig,
): ResolvedModel | (Outcome<never> & { kind: 'problem' }) {
  return (
    resolveModel(model, catalog, config) ?? {
      kind: 'problem',
      billable: false,
      problem: { code: 'context/model_unresolved' },
    }
  );
}

/** What an answer says of the limits that it went by; of the catalogue, the whole row. */
export function modelVersions({ resolved, limits, entry }: ResolvedModel): Readonly<Record<string, unknown>> {
  return { resolved, limits, ...(entry && { entry }) };
}
