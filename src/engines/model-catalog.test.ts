import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MODEL_TABLE } from './model-catalog.generated.ts';
import { createCatalog, THINKING_LEVELS, type ModelEntry, type ModelTable } from './model-catalog.ts';

const catalog = createCatalog(MODEL_TABLE);

describe('the limits of well-known models', () => {
  // As the providers' own pages have them.
  it.each<[id: string, window: number, output: number, input?: number]>([
    ['gpt-3.5-turbo', 16_385, 4_096],
    ['gpt-4', 8_192, 8_192, 8_192],
    ['gpt-4-turbo', 128_000, 4_096],
    ['gpt-4o', 128_000, 16_384],
    ['gpt-4o-mini', 128_000, 16_384],
    ['gpt-4o-2024-05-13', 128_000, 4_096],
    ['gpt-4.1', 1_047_576, 32_768],
    ['o3', 200_000, 100_000],
    ['o4-mini', 200_000, 100_000],
    ['gpt-5', 400_000, 128_000, 272_000],
    ['gpt-5-mini', 400_000, 128_000, 272_000],
    ['gpt-5-chat-latest', 128_000, 16_384],
    ['gpt-5.4', 1_050_000, 128_000, 922_000],
    ['gpt-6.1-sol', 1_050_000, 128_000, 922_000],
    ['claude-3-5-sonnet-20241022', 200_000, 8_192],
    ['claude-sonnet-4-20250514', 200_000, 64_000],
    ['claude-opus-4-1-20250805', 200_000, 32_000],
    ['claude-sonnet-4-5', 200_000, 64_000],
    ['claude-haiku-4-5-20251001', 200_000, 64_000],
    ['claude-sonnet-4-6', 1_000_000, 128_000],
    ['claude-sonnet-5', 1_000_000, 128_000],
    ['gemini-2.5-pro', 1_048_576, 65_536, 1_048_576],
    ['gemini-2.5-flash', 1_048_576, 65_536, 1_048_576],
    ['grok-4', 256_000, 64_000],
    ['deepseek-v4-pro', 1_000_000, 384_000],
  ])('%s', (id, context_window, max_output_tokens, input_limit) => {
    const entry = catalog.find(id);
    expect(entry).toMatchObject({ id, context_window, max_output_tokens });
    expect(entry?.input_limit).toBe(input_limit);
  });

  it('say what a level may think where somebody has said so, and nothing elsewhere', () => {
    expect(catalog.find('gemini-2.5-flash')?.thinking_budgets).toEqual({
      minimal: 1_024,
      low: 1_024,
      medium: 8_192,
      high: 24_576,
    });
    expect(catalog.find('claude-sonnet-4-5')?.thinking_budgets).toMatchObject({ low: 2_048, high: 16_384 });
    for (const id of ['gpt-5', 'o3', 'claude-sonnet-4-6', 'claude-opus-5', 'gemini-3.5-flash', 'grok-4.5']) {
      expect(catalog.find(id)).toBeDefined();
      expect(catalog.find(id)?.thinking_budgets).toBeUndefined();
    }
  });

  it('bear the day of their own source', () => {
    expect(catalog).toMatchObject({ as_of: '2026-11-20', source: '@earendil-works/pi-ai 1.6.0' });
    expect(catalog.find('gpt-5')?.as_of).toBe('2026-11-20');
    expect(catalog.find('claude-sonnet-4-20250514')?.as_of).toBe('2026-05-08');
  });
});

describe('the table', () => {
  it('names each model of a provider once', () => {
    const keys = MODEL_TABLE.models.map(({ id, provider }) => `${id} ${provider}`.toLowerCase());
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('has no limits that contradict each other or leave no room for input', () => {
    const wrong = MODEL_TABLE.models.filter((model) => {
      const { context_window, max_output_tokens, input_limit } = model;
      const input = input_limit ?? context_window - max_output_tokens;
      const numbers = [context_window, max_output_tokens, input, ...Object.values(model.thinking_budgets ?? {})];
      return (
        numbers.some((number) => !Number.isSafeInteger(number) || number < 1) ||
        input > context_window ||
        max_output_tokens > context_window ||
        input < context_window / 5
      );
    });
    expect(wrong).toEqual([]);
  });

  it('has budgets that grow with the level', () => {
    for (const { id, thinking_budgets } of MODEL_TABLE.models) {
      const budgets = THINKING_LEVELS.flatMap((level) => thinking_budgets?.[level] ?? []);
      expect(budgets, id).toEqual(budgets.toSorted((a, b) => a - b));
    }
  });

  it('is found whole, each model by its own name', () => {
    for (const model of MODEL_TABLE.models) expect(catalog.find(model.id, model.provider)).toMatchObject(model);
  });
});

describe('find', () => {
  it.each<[asked: string, found: string]>([
    ['GPT-5', 'gpt-5'],
    ['openai/gpt-5', 'gpt-5'],
    ['openrouter/anthropic/Claude-Sonnet-4-5', 'claude-sonnet-4-5'],
    ['ft:gpt-4o-mini-2024-07-18:acme::abc123', 'gpt-4o-mini'],
    ['openai/ft:gpt-4.1:acme:suffix:id', 'gpt-4.1'],
    ['gpt-5-2025-08-07', 'gpt-5'],
    ['gpt-4.1-2025-04-14', 'gpt-4.1'],
    ['o3-2025-04-16', 'o3'],
    ['claude-opus-4-6-20260205', 'claude-opus-4-6'],
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5-20250929'],
    // Without a date, or with one that the table lacks: the newest of that name.
    ['claude-sonnet-4', 'claude-sonnet-4-20250514'],
    ['anthropic/claude-3-5-sonnet-latest', 'claude-3-5-sonnet-20241022'],
    ['gpt-5-chat-latest', 'gpt-5-chat-latest'],
    ['gpt-5-chat', 'gpt-5-chat-latest'],
    ['codex/gpt-5', 'gpt-5'],
  ])('takes %s for %s', (asked, found) => {
    expect(catalog.find(asked)?.id).toBe(found);
  });

  it.each([
    '',
    '/',
    'ft:',
    'ft::',
    'gpt',
    'gpt-5-20250807-extra',
    'gpt-55',
    'gpt-5/',
    ' gpt-5',
    'latest',
    '-latest',
    '__proto__',
    'constructor',
    'toString',
    'undefined',
  ])('does not know %j', (id) => {
    expect(catalog.find(id)).toBeUndefined();
  });

  it('goes by the provider where it makes models, and past it where it resells them', () => {
    expect(catalog.find('gpt-5', 'OpenAI')?.id).toBe('gpt-5');
    expect(catalog.find('gpt-5', 'anthropic')).toBeUndefined();
    expect(catalog.find('gpt-5', null)?.provider).toBe('openai');
    expect(catalog.find('openai/gpt-5', 'openrouter')?.provider).toBe('openai');
    expect(catalog.find('gpt-6.1-sol', 'openai-codex')).toMatchObject({ context_window: 500_000 });
    expect(catalog.find('gpt-6.1-sol')).toMatchObject({ provider: 'openai' });
  });

  it('never fails, and takes no account of case', () => {
    const id = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(...MODEL_TABLE.models.map((model) => model.id)),
    );
    fc.assert(
      fc.property(id, fc.option(fc.string()), (asked, provider) => {
        const found = catalog.find(asked, provider);
        expect(catalog.find(asked.toLowerCase(), provider?.toLowerCase() ?? null)).toBe(found);
      }),
    );
  });
});

describe('an operator’s table', () => {
  const model = (id: string, context_window: number, provider?: string): ModelEntry => ({
    id,
    context_window,
    max_output_tokens: 1,
    ...(provider !== undefined && { provider }),
  });
  const over = (...models: ModelEntry[]): ReturnType<typeof createCatalog> =>
    createCatalog(MODEL_TABLE, { as_of: '2027-01-02', models });

  it('adds models and replaces them, whole, with its own day', () => {
    const mine = over(model('house-model', 7), model('GPT-5', 9, 'OpenAI'));
    expect(mine.find('acme/house-model')).toEqual({ ...model('house-model', 7), as_of: '2027-01-02' });
    expect(mine.find('gpt-5-2025-08-07')).toEqual({ ...model('GPT-5', 9, 'OpenAI'), as_of: '2027-01-02' });
    expect(mine.find('gpt-5-mini')).toEqual(catalog.find('gpt-5-mini'));
    expect(mine.models).toHaveLength(catalog.models.length + 1);
    expect(mine.as_of).toBe(MODEL_TABLE.as_of);
  });

  it('speaks of one provider, or of the model whoever sells it', () => {
    const one = over(model('gpt-5', 9, 'openrouter'));
    expect(one.find('gpt-5', 'openrouter')?.context_window).toBe(9);
    expect(one.find('openai/gpt-5', 'openrouter')?.context_window).toBe(9);
    expect(one.find('gpt-5')?.context_window).toBe(400_000);
    expect(one.find('gpt-5', 'azure')?.context_window).toBe(400_000);
    // Its word on one model of a reseller's takes none of the others away.
    expect(one.find('gpt-4o', 'openrouter')?.context_window).toBe(128_000);
    const whoever = over(model('gpt-5', 9));
    expect(whoever.find('gpt-5', 'openai')?.context_window).toBe(9);
    expect(whoever.models).toHaveLength(catalog.models.length);
    const all = over(model('gpt-5', 9), model('gpt-5', 8, 'openai'));
    expect(all.find('gpt-5')?.context_window).toBe(9);
    expect(all.find('gpt-5', 'azure')?.context_window).toBe(9);
    expect(all.find('gpt-5', 'openai')?.context_window).toBe(8);
    expect(over(model('gpt-5', 8, 'openai'), model('gpt-5', 9)).models).toEqual(all.models);
  });

  it('may stand on a table that names no providers', () => {
    const base: ModelTable = { as_of: '2027-01-01', models: [model('a', 1), model('b', 2, 'acme')] };
    const found = createCatalog(base);
    const ids = [found.find('a'), found.find('a', 'acme'), found.find('b'), found.find('b', 'other')].map(
      (entry) => entry?.id,
    );
    expect(ids).toEqual(['a', 'a', 'b', 'b']);
  });

  it('is found whole, in any order, and lists what it holds once', () => {
    const entry = fc.record({
      id: fc.constantFrom('a', 'A', 'b', 'b-20250101', 'b-latest', 'c/a'),
      provider: fc.constantFrom('x', 'X', 'y'),
      context_window: fc.nat(),
      max_output_tokens: fc.nat(),
    });
    const key = ({ id, provider }: ModelEntry): string => `${id} ${provider}`.toLowerCase();
    const table = fc
      .uniqueArray(entry, { selector: key })
      .map((models): ModelTable => ({ as_of: '2027-01-01', models }));
    fc.assert(
      fc.property(table, table, (base, overrides) => {
        const both = createCatalog(base, overrides);
        for (const each of overrides.models) expect(both.find(each.id, each.provider)).toMatchObject(each);
        const overridden = new Set(overrides.models.map(key));
        for (const each of base.models) {
          if (!overridden.has(key(each))) expect(both.find(each.id, each.provider)).toMatchObject(each);
        }
        const keys = both.models.map(key);
        expect(keys).toEqual([...new Set(keys)].toSorted());
        expect(createCatalog({ ...base, models: base.models.toReversed() }, overrides).models).toEqual(both.models);
      }),
    );
  });
});
