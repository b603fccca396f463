/** What an operation is run with: the operator's settings as they are when the call begins, or as an earlier answer names them. */
import type { CatalogEntry } from '../engines/model-catalog.ts';
import { deterministicSummarizer } from '../engines/summary.ts';
import type { RunContext } from '../operation.ts';
import { isJsonObject } from '../provenance/canonical.ts';
import { CONTEXT_DEFAULTS, type ContextInForce } from './context-config.ts';
import { type LeaseDependencies, leasesFor, noLeases } from './leases.ts';

/** What holds where an operator has decided nothing; nobody is kept waiting. */
export const DEFAULT_CONTEXT: RunContext = {
  ...CONTEXT_DEFAULTS,
  summarizer: deterministicSummarizer,
  leases: noLeases,
};

/** The context of a call by this payer or API-key id; of a sample, which waits for nobody, without one. */
export type ContextFor = (caller?: string) => RunContext;

/** @param inForce is asked at each call, as an operator may change it at any time. */
export function createContextFor(inForce: () => ContextInForce, leases: LeaseDependencies): ContextFor {
  return (caller) => ({
    ...DEFAULT_CONTEXT,
    ...inForce(),
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
