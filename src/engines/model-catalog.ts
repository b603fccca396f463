/** The limits of models, as a table with the day that it was made, and how a request's model is found in it. Pure; it fetches nothing. */

/** Tokens everywhere. */
export interface ModelEntry {
  readonly id: string;
  readonly provider?: string;
  readonly context_window: number;
  readonly max_output_tokens: number;
  /** Where the provider bounds the input apart from the window. */
  readonly input_limit?: number;
  /** What a reasoning level may spend on thinking. */
  readonly thinking_budgets?: Readonly<Partial<Record<ThinkingLevel, number>>>;
  readonly supports_vision?: boolean;
}

export const THINKING_LEVELS = ['minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

export interface ModelTable {
  /** ISO 8601 date. */
  readonly as_of: string;
  readonly models: readonly ModelEntry[];
}

export interface ModelCatalog extends ModelTable {
  find(id: string, provider?: string | null): ModelEntry | undefined;
}
