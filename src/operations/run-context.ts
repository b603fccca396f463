/** What an operation is run with: the operator's settings as they are when the call begins, or as an earlier answer names them. */
import { DEFAULT_CONFIG } from '../engines/config.ts';
import { type CatalogEntry, createCatalog } from '../engines/model-catalog.ts';
import { MODEL_TABLE } from '../engines/model-catalog.generated.ts';
import { deterministicSummarizer } from '../engines/summary.ts';
import type { RunContext } from '../operation.ts';
import { isJsonObject } from '../provenance/canonical.ts';
import { type LeaseDependencies, leasesFor, noLeases } from './leases.ts';

/** What holds where an operator has decided nothing; nobody is kept waiting. */
export const DEFAULT_CONTEXT: RunContext = {
  config: DEFAULT_CONFIG,
  catalog: createCatalog(MODEL_TABLE),
  summarizer: deterministicSummarizer,
  leases: noLeases,
};

/** What the operator has decided by now. */
export type ContextSettings = Pick<RunContext, 'config' | 'catalog'>;

/** The context of a call by this payer or API-key id; of a sample, which waits for nobody, without one. */
export type ContextFor = (caller?: string) => RunContext;

/** @param settings is asked at each call, as an operator may change them at any time. */
export function createContextFor(settings: () => ContextSettings, leases: LeaseDependencies): ContextFor {
  return (caller) => ({
    ...DEFAULT_CONTEXT,
    ...settings(),
    ...(caller !== undefined && { leases: leasesFor(caller, leases) }),
  });
}

/**
 * The context in which an answer with these versions was given: its own configuration, and of the catalogue the one row that it
 * used. What versions do not say stays as it is.
 *
 * @param versions of a manifest that this service signed.
 */
export function contextOf(versions: unknown, current: RunContext): RunContext {
  const { config, model } = isJsonObject(versions) ? versions : {};
  const entry = isJsonObject(model) ? model['entry'] : undefined;
  return {
    ...current,
    ...(isJsonObject(config) && { config: { ...current.config, ...config } }),
    ...(isJsonObject(model) && { catalog: { ...current.catalog, find: () => entry as CatalogEntry | undefined } }),
    leases: noLeases,
  };
}
