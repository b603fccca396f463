/** The limits of models over HTTP: what is served, how it is cached, and that an operator changes it while the service runs. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MODEL_TABLE } from '../../src/engines/model-catalog.generated.ts';
import { startTestService, type TestService } from '../service.ts';

interface Listing {
  readonly as_of: string;
  readonly source: string;
  readonly models: readonly { readonly id: string; readonly as_of: string; readonly context_window: number }[];
}

let folder: string;
let config: string;
let models: string;
let service: TestService;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-models-'));
  config = join(folder, 'context.json');
  models = join(folder, 'models.json');
  await writeFile(config, '{}');
  await writeFile(models, tableOf(1_000));
  service = await startTestService({ CONTEXT_CONFIG: config, MODEL_CATALOG: models });
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

const tableOf = (context_window: number): string =>
  JSON.stringify({ as_of: '2027-01-02', models: [{ id: 'House-Model', context_window, max_output_tokens: 1 }] });
const get = (query = '', headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${service.url}/api/v1/models${query}`, { headers });
const listing = async (query = ''): Promise<Listing> => (await (await get(query)).json()) as Listing;
const windowOf = async (id: string): Promise<number | undefined> =>
  (await listing(`?id=${encodeURIComponent(id)}`)).models[0]?.context_window;
const eventually = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 5_000, interval: 20 });

describe('GET /api/v1/models', () => {
  it('lists every model once, sorted, each with its day', async () => {
    const { as_of, source, models: all } = await listing();
    expect([as_of, source]).toEqual([MODEL_TABLE.as_of, MODEL_TABLE.source]);
    expect(all).toHaveLength(MODEL_TABLE.models.length + 1);
    const ids = all.map(({ id }) => id.toLowerCase());
    expect(ids).toEqual(ids.toSorted());
    for (const model of all) expect(model.as_of).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(all.find(({ id }) => id === 'House-Model')).toEqual({
      id: 'House-Model',
      context_window: 1_000,
      max_output_tokens: 1,
      as_of: '2027-01-02',
    });
  });

  it('takes one model for an id as the operations do', async () => {
    expect((await listing('?id=openrouter/anthropic/Claude-Sonnet-4-5@20250929')).models).toEqual([
      expect.objectContaining({ id: 'claude-sonnet-4-5', context_window: 200_000, max_output_tokens: 64_000 }),
    ]);
    expect((await listing('?id=gpt-6.1-sol&provider=openai-codex')).models).toEqual([
      expect.objectContaining({ provider: 'openai-codex' }),
    ]);
  });

  it.each(['?id=nothing', '?id=', '?id=gpt-5&provider=anthropic', '?id=__proto__', `?id=${'/'.repeat(5_000)}`])(
    'has none for %s',
    async (query) => {
      const response = await get(query);
      expect(response.status).toBe(404);
      expect(response.headers.get('ETag')).toBeNull();
      expect(await response.json()).toMatchObject({ code: 'not_found', charged: false });
    },
  );

  it.each(['', '?id=gpt-5'])('is asked about again, cheaply (%j)', async (query) => {
    const first = await get(query);
    const tag = first.headers.get('ETag') ?? '';
    expect(tag).toMatch(/^"[^"]+"$/);
    expect(first.headers.get('Cache-Control')).toBe('no-cache');
    for (const match of [tag, `"other", W/${tag}`, '*']) {
      const again = await get(query, { 'If-None-Match': match });
      expect([again.status, await again.text()]).toEqual([304, '']);
      expect(again.headers.get('ETag')).toBe(tag);
      expect(again.headers.get('Cache-Control')).toBe('no-cache');
      expect(again.headers.get('X-Request-Id')).toBeTruthy();
    }
    expect((await get(query, { 'If-None-Match': '"other"' })).status).toBe(200);
    const head = await fetch(first.url, { method: 'HEAD' });
    expect([head.status, head.headers.get('ETag'), await head.text()]).toEqual([200, tag, '']);
  });

  it('is what the index links to, and takes nothing but GET', async () => {
    const index = (await (await fetch(service.url)).json()) as { links: { models: string } };
    expect(index.links.models).toBe(`${service.url}/api/v1/models`);
    const posted = await fetch(index.links.models, { method: 'POST' });
    expect([posted.status, posted.headers.get('Allow')]).toEqual([405, 'GET, HEAD']);
  });
});

describe('while the service runs', () => {
  it('a changed file is taken, a broken one refused, and a mended one taken again', async () => {
    const tag = (await get()).headers.get('ETag') ?? '';
    await writeFile(models, tableOf(2_000));
    await eventually(async () => expect(await windowOf('house-model')).toBe(2_000));
    expect((await get('', { 'If-None-Match': tag })).status).toBe(200);
    expect(service.errors).toEqual([]);

    await writeFile(models, tableOf(3_000).slice(0, -1));
    await writeFile(config, '{"tail_turns": -1}');
    await eventually(() => expect(service.errors).toEqual(['setting_refused', 'setting_refused']));
    expect(await windowOf('house-model')).toBe(2_000);

    await writeFile(`${models}.new`, tableOf(4_000));
    await rename(`${models}.new`, models);
    await eventually(async () => expect(await windowOf('house-model')).toBe(4_000));
    expect(service.errors).toHaveLength(2);
  });
});

it('a file that is no good stops the start', async () => {
  const bad = join(folder, 'bad.json');
  await writeFile(bad, '{"tail_turns": "x7q"}');
  const started = startTestService({ CONTEXT_CONFIG: bad, MODEL_CATALOG: join(folder, 'none.json') });
  await expect(started).rejects.toMatchObject({
    faults: ['CONTEXT_CONFIG: /tail_turns: expected a number', 'MODEL_CATALOG: the file cannot be read (ENOENT)'],
  });
});
