import { describe, expect, it } from 'vitest';
import { resolveModel, type ResolvedModel, usableTokens } from './budget.ts';
import { DEFAULT_CONFIG } from './config.ts';
import { createCatalog } from './model-catalog.ts';

const limitsOf = (context_window: number, max_output_tokens: number, input_limit?: number): ResolvedModel => ({
  resolved: 'inline',
  limits: { context_window, max_output_tokens, ...(input_limit !== undefined && { input_limit }) },
});

describe('usable tokens', () => {
  // The first five are the contract's own examples.
  it.each([
    [200_000, 8_000, undefined, {}, 172_000],
    [32_000, 16_000, undefined, {}, 12_800],
    [10_000, 1_000, undefined, {}, 8_000],
    [8_192, 1_024, undefined, {}, 6_349],
    [1_000, 2_000, undefined, {}, 0],
    [400_000, 128_000, 272_000, {}, 252_000],
    [10_000, 1_000, 0, {}, 0],
    [10_000, 1_000, undefined, { reserved_tokens: 0 }, 9_000],
    [10_000, 1_000, undefined, { reserved_tokens: 20_000 }, 0],
    [10_000, 1_000, undefined, { reserved_tokens: null, thinking_level: 'high' as const }, 8_000],
    [0, 0, undefined, {}, 0],
  ])('of %i less %i out, input limit %s, %j are %i', (window, output, input, reserve, expected) => {
    expect(usableTokens(limitsOf(window, output, input), DEFAULT_CONFIG, reserve)).toBe(expected);
  });

  it('are less by the thinking budget that the catalogue declares for the level, and by no other', () => {
    const entry = { id: 'm', context_window: 10_000, max_output_tokens: 1_000, thinking_budgets: { high: 3_000 } };
    const model: ResolvedModel = {
      resolved: 'router',
      limits: { context_window: 10_000, max_output_tokens: 1_000 },
      entry,
    };
    expect(usableTokens(model, DEFAULT_CONFIG, { thinking_level: 'high' })).toBe(5_000);
    expect(usableTokens(model, DEFAULT_CONFIG, { thinking_level: 'low' })).toBe(8_000);
    expect(usableTokens(model, DEFAULT_CONFIG)).toBe(8_000);
  });

  it('follow the configuration', () => {
    const config = { ...DEFAULT_CONFIG, reserved_pct: 50, reserved_tokens_cap: 4_000 };
    expect(usableTokens(limitsOf(10_000, 1_000), config)).toBe(5_000);
  });
});

describe('the limits of a model', () => {
  const entry = { id: 'known', context_window: 5, max_output_tokens: 2, thinking_budgets: { low: 1 } };
  const catalog = createCatalog({ as_of: '2026-11-20', models: [entry] });
  const limits = { context_window: 9, max_output_tokens: 3, input_limit: null };

  it('are the request’s, else the catalogue’s, else a small model’s', () => {
    const inline = { resolved: 'inline', limits: { context_window: 9, max_output_tokens: 3 } };
    expect(resolveModel({ id: 'known', limits }, catalog, DEFAULT_CONFIG)).toEqual(inline);
    expect(resolveModel({ id: 'known', limits: null }, catalog, DEFAULT_CONFIG)).toEqual({
      resolved: 'router',
      limits: { context_window: 5, max_output_tokens: 2 },
      entry: { ...entry, as_of: '2026-11-20' },
    });
    expect(resolveModel({ id: 'other' }, catalog, DEFAULT_CONFIG)).toEqual({
      resolved: 'fallback',
      limits: { context_window: 8_192, max_output_tokens: 1_024 },
    });
  });

  it('are not guessed where the operator forbids it', () => {
    const config = { ...DEFAULT_CONFIG, allow_fallback_limits: false };
    expect(resolveModel({ id: 'other' }, catalog, config)).toBeUndefined();
    expect(resolveModel({ id: 'other', limits }, catalog, config)?.resolved).toBe('inline');
  });
});
