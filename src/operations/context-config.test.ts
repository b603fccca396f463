import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_CONFIG } from '../engines/config.ts';
import { parseContextConfig, parseModelTable } from './context-config.ts';

const configFaults = (value: unknown): string[] => faultsOf(parseContextConfig(textOf(value)));
const modelFaults = (value: unknown): string[] => faultsOf(parseModelTable(textOf(value)));
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const faultsOf = (parsed: ReturnType<typeof parseContextConfig> | ReturnType<typeof parseModelTable>): string[] =>
  parsed.ok ? [] : parsed.faults.map(({ path, detail }) => `${path}: ${detail}`);

describe('the configuration', () => {
  it('takes any fields, and what is left out is as it was', () => {
    expect(parseContextConfig('{}')).toEqual({ ok: true, value: DEFAULT_CONFIG });
    expect(
      parseContextConfig(new TextEncoder().encode('\ufeff{"tail_turns": 0, "allow_fallback_limits": false}')),
    ).toEqual({
      ok: true,
      value: { ...DEFAULT_CONFIG, tail_turns: 0, allow_fallback_limits: false },
    });
    expect(parseContextConfig(JSON.stringify(DEFAULT_CONFIG))).toEqual({ ok: true, value: DEFAULT_CONFIG });
  });

  it.each<[unknown, string]>([
    [{ reserved_pct: 101 }, '/reserved_pct: at most 100'],
    [{ reserved_pct: -1 }, '/reserved_pct: at least 0'],
    [{ reserved_pct: 12.5 }, '/reserved_pct: expected an integer'],
    [{ tail_turns: '2' }, '/tail_turns: expected a number'],
    [{ tail_turns: null }, '/tail_turns: expected a number'],
    [{ lease_ttl_secs: 0 }, '/lease_ttl_secs: at least 1'],
    [{ lease_ttl_secs: 86_401 }, '/lease_ttl_secs: at most 86400'],
    [{ summarizer_timeout_ms: 2 ** 31 }, '/summarizer_timeout_ms: at most 2147483647'],
    [{ allow_fallback_limits: 1 }, '/allow_fallback_limits: expected true or false'],
    [{ Tail_turns: 1 }, '/Tail_turns: no field of this name is known here'],
    ['{"__proto__": {"tail_turns": 1}}', '/__proto__: no field of this name is known here'],
    [[], ': expected an object'],
    ['null', ': expected an object'],
    ['', ': invalid_json at offset 0'],
    ['{"tail_turns": 2', '/tail_turns: invalid_json at offset 16'],
    ['{"tail_turns": 2, "tail_turns": 2}', '/tail_turns: duplicate_key'],
    ['{"tail_turns": 99999999999999999999}', '/tail_turns: unsafe_number'],
  ])('%j is refused: %s', (value, fault) => {
    expect(configFaults(value)).toEqual([fault]);
  });

  it('lists all that is wrong, in any order, and no value', () => {
    const faults = configFaults({ reserved_pct: 'x7q', tail_turns: -77, other: 'x7q', another: 1 });
    expect(faults.toSorted()).toEqual([
      '/another: no field of this name is known here',
      '/other: no field of this name is known here',
      '/reserved_pct: expected a number',
      '/tail_turns: at least 0',
    ]);
  });

  it('refuses what is no UTF-8', () => {
    expect(faultsOf(parseContextConfig(new Uint8Array([0x7b, 0xff, 0x7d])))).toEqual([': invalid_utf8']);
  });
});

describe('the table of models', () => {
  const model = { id: 'm', context_window: 10, max_output_tokens: 4 };
  const table = (...models: unknown[]): object => ({ as_of: '2026-12-01', models });

  it('takes what is needed alone, and all there is', () => {
    const full = {
      ...model,
      id: 'n',
      provider: 'acme',
      input_limit: 10,
      thinking_budgets: { low: 0, xhigh: 5 },
      supports_vision: false,
    };
    expect(parseModelTable(JSON.stringify(table(model, full)))).toEqual({ ok: true, value: table(model, full) });
    expect(modelFaults(table())).toEqual([]);
    expect(modelFaults(table(model, { ...model, provider: 'a' }, { ...model, provider: 'b' }))).toEqual([]);
  });

  it.each<[unknown, string]>([
    [{ models: [] }, '/as_of: this field is required'],
    [{ as_of: '2026-12-01' }, '/models: this field is required'],
    [{ as_of: '2026-02-30', models: [] }, '/as_of: expected the form date'],
    [{ as_of: '01.12.2026', models: [] }, '/as_of: expected the form date'],
    [{ ...table(), source: 'me' }, '/source: no field of this name is known here'],
    [table({ ...model, id: '' }), '/models/0/id: at least 1 characters'],
    [table({ ...model, id: 'x'.repeat(201) }), '/models/0/id: at most 200 characters'],
    [table({ ...model, as_of: '2026-12-01' }), '/models/0/as_of: no field of this name is known here'],
    [table({ ...model, max_output_tokens: 0 }), '/models/0/max_output_tokens: at least 1'],
    [table(model, { ...model, id: 'n', context_window: 3 }), '/models/1/max_output_tokens: at most context_window'],
    [table({ ...model, input_limit: 11 }), '/models/0/input_limit: at most context_window'],
    [
      table({ ...model, thinking_budgets: { max: 1 } }),
      '/models/0/thinking_budgets/max: no field of this name is known here',
    ],
    [table({ ...model, thinking_budgets: { low: -1 } }), '/models/0/thinking_budgets/low: at least 0'],
    [table({ ...model, provider: null }), '/models/0/provider: expected text'],
    [table(model, { ...model, id: 'M' }), '/models/1: this id and provider are there already'],
    [
      table({ ...model, provider: 'A' }, { ...model, provider: 'a' }),
      '/models/1: this id and provider are there already',
    ],
    [
      table(...Array.from({ length: 10_001 }, (_, index) => ({ ...model, id: String(index) }))),
      '/models: at most 10000 items',
    ],
  ])('%j is refused: %s', (value, fault) => {
    expect(modelFaults(value)).toEqual([fault]);
  });

  it('lists no more faults than anyone mends', () => {
    expect(modelFaults(table(...Array.from({ length: 500 }, () => ({}))))).toHaveLength(20);
  });
});

describe('garbage', () => {
  it('is refused, and said without its values', () => {
    const secret = 'x7q-secret';
    const value = fc.oneof(fc.jsonValue(), fc.constant(secret));
    const fields = fc.dictionary(fc.constantFrom(...Object.keys(DEFAULT_CONFIG)), value);
    const models = fc.record(
      { as_of: value, models: fc.array(fc.dictionary(fc.constantFrom('id', 'provider', 'context_window'), value)) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fields.map(textOf), models.map(textOf)), (text) => {
        for (const parsed of [parseContextConfig(text), parseModelTable(text)]) {
          if (parsed.ok) continue;
          expect(parsed.faults.length).toBeGreaterThan(0);
          expect(JSON.stringify(parsed.faults.map(({ detail }) => detail))).not.toContain(secret);
        }
      }),
    );
  });
});
