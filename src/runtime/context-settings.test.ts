import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CONTEXT_DEFAULTS } from '../operations/context-config.ts';
import { openContextSettings, type ContextSettings } from './context-settings.ts';
import { SettingsError } from './env.ts';

let folder: string;
let config: string;
let models: string;
let open: ContextSettings | undefined;
let events: [level: string, event: string, fields: object][];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-context-'));
  config = join(folder, 'context.json');
  models = join(folder, 'models.json');
  events = [];
});
afterEach(async () => {
  open?.close();
  await rm(folder, { recursive: true });
});

const log = (level: string, event: string, fields: object = {}): void => void events.push([level, event, fields]);
const start = async (): Promise<ContextSettings> =>
  (open = await openContextSettings({ CONTEXT_CONFIG: config, MODEL_CATALOG: models }, log));
const tableOf = (context_window: number): string =>
  JSON.stringify({ as_of: '2027-01-02', models: [{ id: 'house-model', context_window, max_output_tokens: 1 }] });
const has = (expected: unknown[]): Promise<void> =>
  vi.waitFor(() => expect(events).toEqual(expected), { timeout: 5_000, interval: 10 });

describe('context settings', () => {
  it('are the defaults where no file is named', async () => {
    open = await openContextSettings({}, log);
    expect(open.current().config).toEqual(CONTEXT_DEFAULTS.config);
    expect(open.current().catalog.models).toEqual(CONTEXT_DEFAULTS.catalog.models);
  });

  it('stop the start with all that is wrong with both files', async () => {
    await writeFile(config, '{"tail_turns": -5, "lease": 1}');
    const faults = async (): Promise<unknown> => {
      try {
        await start();
        return undefined;
      } catch (error) {
        return error instanceof SettingsError ? error.faults : error;
      }
    };
    const wrong = [
      'CONTEXT_CONFIG: /tail_turns: at least 0',
      'CONTEXT_CONFIG: /lease: no field of this name is known here',
    ];
    expect(await faults()).toEqual([...wrong, 'MODEL_CATALOG: the file cannot be read (ENOENT)']);
    await writeFile(models, '{"as_of": "2027-01-02", "models": [');
    expect(await faults()).toEqual([...wrong, 'MODEL_CATALOG: /models/0: invalid_json at offset 35']);
  });

  it('change with their files; a snapshot that was taken does not', async () => {
    await writeFile(config, '{"tail_turns": 7}');
    await writeFile(models, tableOf(1_000));
    const settings = await start();
    const before = settings.current();
    expect(before.config).toEqual({ ...CONTEXT_DEFAULTS.config, tail_turns: 7 });
    expect(before.catalog.find('house-model')?.context_window).toBe(1_000);

    await writeFile(config, '{"tail_turns": 8}');
    await has([['info', 'setting_reloaded', { setting: 'CONTEXT_CONFIG' }]]);
    expect(settings.current().config.tail_turns).toBe(8);
    expect(settings.current().catalog).toBe(before.catalog);
    await writeFile(models, tableOf(2_000));
    await vi.waitFor(() => expect(settings.current().catalog).not.toBe(before.catalog), { timeout: 5_000 });
    expect(settings.current().catalog.find('house-model')?.context_window).toBe(2_000);
    expect(before.config.tail_turns).toBe(7);
    expect(before.catalog.find('house-model')?.context_window).toBe(1_000);
  });

  it('stay as they were when a file breaks, say why without its values, and change when it is mended', async () => {
    await writeFile(config, '{"tail_turns": 7}');
    await writeFile(models, tableOf(1_000));
    const settings = await start();
    const before = settings.current();
    await writeFile(config, '{"tail_turns": "x7q", "reserved_pct": 777}');
    const refused = [
      'error',
      'setting_refused',
      { setting: 'CONTEXT_CONFIG', faults: '/reserved_pct: at most 100; /tail_turns: expected a number' },
    ];
    await has([refused]);
    // The handlers take what was last accepted, and so does a change of the other file.
    expect(settings.onConfigChange({ id: 'context' })).toEqual({ ok: true });
    expect(settings.onModelsChanged({ provider: null })).toEqual({ ok: true });
    expect(settings.current().config).toEqual(before.config);
    expect(settings.current().catalog).not.toBe(before.catalog);
    expect(settings.current().catalog.models).toEqual(before.catalog.models);
    await writeFile(config, '{"tail_turns": 9}');
    await has([refused, ['info', 'setting_reloaded', { setting: 'CONTEXT_CONFIG' }]]);
    expect(settings.current().config.tail_turns).toBe(9);
  });
});
