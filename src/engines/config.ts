/** What an operator decides about the context operations, and what holds where nobody has decided. Values only; no I/O. */

export interface ContextConfig {
  /** The reserve for what a request grows by: reserved_pct of the context window, at most so many tokens. */
  readonly reserved_tokens_cap: number;
  readonly reserved_pct: number;
  /** Newest whole turns that compaction keeps. */
  readonly tail_turns: number;
  /** Newest tokens of function results that pruning leaves alone. */
  readonly protect_recent_tokens: number;
  /** Pruning that would free less than so many tokens does not happen. */
  readonly min_free_tokens: number;
  /** Code points; a result of no more is never pruned. */
  readonly max_output_chars: number;
  readonly lease_ttl_secs: number;
  /** Whether a model that nobody knows is taken for FALLBACK_LIMITS. */
  readonly allow_fallback_limits: boolean;
  readonly summarizer_timeout_ms: number;
}

export const DEFAULT_CONFIG: ContextConfig = {
  reserved_tokens_cap: 20_000,
  reserved_pct: 10,
  tail_turns: 2,
  protect_recent_tokens: 40_000,
  min_free_tokens: 20_000,
  max_output_chars: 2_000,
  lease_ttl_secs: 300,
  allow_fallback_limits: true,
  summarizer_timeout_ms: 320_000,
};
