/** How many tokens of a model's window a request may take: where the limits come from, and what is set aside. Pure. */
import type { ContextConfig } from './config.ts';
import type { ModelInput } from './count.ts';
import type { ModelCatalog, ModelEntry, ThinkingLevel } from './model-catalog.ts';

/** In tokens. */
export type Limits = {
  readonly context_window: number;
  readonly max_output_tokens: number;
  readonly input_limit?: number;
};

export interface ResolvedModel {
  /** From the request, from the catalogue, or from FALLBACK_LIMITS. */
  readonly resolved: 'inline' | 'router' | 'fallback';
  readonly limits: Limits;
  /** The row of the catalogue, where it was used. */
  readonly entry?: ModelEntry;
}

/** What the smallest models in use can take. */
export const FALLBACK_LIMITS: Limits = { context_window: 8_192, max_output_tokens: 1_024 };

/** Undefined where nobody knows the model and the configuration allows no fallback. */
export function resolveModel(
  { id, provider, limits }: ModelInput,
  catalog: ModelCatalog,
  config: ContextConfig,
): ResolvedModel | undefined {
  if (limits) return { resolved: 'inline', limits: toLimits(limits) };
  const entry = catalog.find(id, provider);
  if (entry) return { resolved: 'router', limits: toLimits(entry), entry };
  return config.allow_fallback_limits ? { resolved: 'fallback', limits: FALLBACK_LIMITS } : undefined;
}

function toLimits({ context_window, max_output_tokens, input_limit }: NonNullable<ModelInput['limits']>): Limits {
  return { context_window, max_output_tokens, ...(typeof input_limit === 'number' && { input_limit }) };
}

export interface Reserve {
  /** Instead of the configured share of the window. */
  readonly reserved_tokens?: number | null;
  readonly thinking_level?: ThinkingLevel | null;
}

/** The tokens that the input of a request may take; each subtraction stops at 0. */
export function usableTokens(
  { limits, entry }: ResolvedModel,
  { reserved_tokens_cap, reserved_pct }: ContextConfig,
  { reserved_tokens, thinking_level }: Reserve = {},
): number {
  const { context_window, max_output_tokens, input_limit } = limits;
  const reserved = reserved_tokens ?? Math.min(reserved_tokens_cap, Math.floor((context_window * reserved_pct) / 100));
  const thinking = (thinking_level && entry?.thinking_budgets?.[thinking_level]) ?? 0;
  const input = input_limit ?? less(context_window, max_output_tokens);
  return less(less(input, reserved), thinking);
}

const less = (from: number, tokens: number): number => Math.max(0, from - tokens);
