/** The paid operations prune, compact and assemble over HTTP, on a real conversation: charges, equal bytes, refusals, re-runs. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { assemble } from '../../src/operations/assemble.ts';
import { compact } from '../../src/operations/compact.ts';
import { prune } from '../../src/operations/prune.ts';
import { referenceMessage, referenceText } from '../reference-count.ts';
import {
  balanceOf,
  freshPayment,
  newWallet,
  payWith,
  postJson,
  startTestService,
  type TestService,
  type Wallet,
} from '../service.ts';
import { readTranscript } from '../transcripts.ts';

let service: TestService;
let wallet: Wallet;
beforeAll(async () => {
  service = await startTestService();
  wallet = await newWallet(service);
});
afterAll(() => service.close());

type Json = Record<string, unknown>;
const { messages, system_prompt = '' } = readTranscript('01-pi-large-session');
const model = { id: 'gpt-5', limits: { context_window: 40_000, max_output_tokens: 4_000 } };

async function pay(
  id: string,
  body: unknown,
  at = service,
): Promise<{ response: Response; answer: Json; spent: bigint }> {
  const endpoint = `${at.url}/api/v1/${id}`;
  const payment = await freshPayment(at, at === service ? wallet : undefined, endpoint);
  const before = await balanceOf(service.chain, wallet.account.address);
  const response = await postJson(endpoint, body, payWith(payment));
  const spent = before - (await balanceOf(service.chain, wallet.account.address));
  return { response, answer: (await response.json()) as Json, spent };
}

const REQUESTS = [
  [prune, { model: { id: 'gpt-5' }, messages, options: { protect_recent_tokens: 10_000, min_free_tokens: 1_000 } }],
  [compact, { model, messages, options: null }],
  [assemble, { model, messages, system_prompt, tools: null, options: { max_result_tokens: 2_000 } }],
] as const;

describe.each(REQUESTS.map(([operation, input]) => ({ ...operation, input })))('a paid $id', ({ id, price, input }) => {
  it('is charged each time, answers the same bytes each time, and can be run again', async () => {
    const first = await pay(id, input);
    const second = await pay(id, input);
    expect([first.response.status, first.spent, second.spent]).toEqual([200, BigInt(price), BigInt(price)]);
    expect(JSON.stringify(second.answer['data'])).toBe(JSON.stringify(first.answer['data']));
    const verdict = await postJson(`${service.url}/api/v1/verify-provenance`, { ...first.answer, input });
    expect(await verdict.json()).toMatchObject({ verified: true, checks: { rerun: { result: 'pass' } } });
  });
});

describe('assemble', () => {
  it('fits, by a count of its own', async () => {
    const { answer } = await pay('assemble', REQUESTS[2][1]);
    const data = answer['data'] as { messages: object[]; system_prompt: string; token_count: number; usable: number };
    const recount = data.messages.reduce<number>((total, each) => total + referenceMessage(each, 'o200k_base'), 2);
    expect(data.token_count).toBe(recount + referenceText(data.system_prompt, 'o200k_base'));
    expect(data.token_count).toBeLessThanOrEqual(data.usable);
    expect(data).toMatchObject({ usable: 32_000, applied: { compacted: true }, model_resolved: 'inline' });
  });

  it('that cannot fit is 422 with the figures, and costs nothing', async () => {
    const tiny = { ...model, limits: { context_window: 300, max_output_tokens: 100 } };
    const { response, answer, spent } = await pay('assemble', { model: tiny, messages, system_prompt });
    expect([response.status, spent]).toEqual([422, 0n]);
    expect(answer).toMatchObject({ code: 'context/overflow', usable: 170, charged: false });
    expect(answer['token_count']).toBeGreaterThan(170);
    expect(answer).not.toHaveProperty('messages');
  });
});

describe('compact', () => {
  it('of nothing is an answer that costs nothing', async () => {
    const { response, answer, spent } = await pay('compact', { model, messages: [] });
    expect([response.status, spent, response.headers.get('PAYMENT-RESPONSE')]).toEqual([200, 0n, null]);
    expect(answer).toMatchObject({
      data: { status: 'empty' },
      _provenance: { credential: { credentialSubject: { charged: '0' } } },
    });
  });
});

it.each([
  ['prune', { messages: null }, '/messages', 'messages is required'],
  ['prune', { messages, options: { protect_recent: 1 } }, '/options/protect_recent', 'no field of this name'],
  ['compact', { model, messages, options: { summary_tokens: 127 } }, '/options/summary_tokens', 'at least 128'],
  ['compact', { messages }, '/model', 'required'],
  ['assemble', { model, messages, options: { cache_breakpoint: 326 } }, '/options/cache_breakpoint', 'no message'],
  ['assemble', { model, messages, options: { thinking_level: 'max' } }, '/options/thinking_level', 'expected'],
  ['assemble', { model: { ...model, size: 1 }, messages }, '/model/size', 'no field of this name'],
])('%s refuses %#, names the place and charges nothing', async (id, body, path, says) => {
  const { response, answer, spent } = await pay(id, body);
  expect([response.status, spent]).toEqual([400, 0n]);
  expect(answer).toMatchObject({ code: 'context/invalid_request', path, charged: false });
  expect(answer['error']).toContain(says);
});

describe('the operator’s files', () => {
  let folder: string;
  let operated: TestService;
  const write = (name: string, content: unknown): Promise<void> =>
    writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  const house = { id: 'house-model', context_window: 50_000, max_output_tokens: 5_000 };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-files-'));
    await write('config.json', { reserved_pct: 0 });
    await write('models.json', { as_of: '2027-01-02', models: [house] });
    const files = { CONTEXT_CONFIG: join(folder, 'config.json'), MODEL_CATALOG: join(folder, 'models.json') };
    operated = await startTestService(files);
  });
  afterAll(async () => {
    await operated.close();
    await rm(folder, { recursive: true });
  });

  const input = { model: { id: 'house-model' }, messages, system_prompt };
  const assembled = async (): Promise<Json> => (await pay('assemble', input, operated)).answer;
  const usable = async (): Promise<unknown> => ((await assembled())['data'] as Json)['usable'];
  const unknown = { ...input, model: { id: 'nobody-knows-it' } };

  it('decide what is usable, are taken while it runs, and leave earlier answers true', async () => {
    const first = await assembled();
    expect(first['data']).toMatchObject({ usable: 45_000, model_resolved: 'router' });
    await write('config.json', { reserved_pct: 20 });
    await vi.waitFor(async () => expect(await usable()).toBe(35_000), 5_000);
    await write('models.json', { as_of: '2027-01-03', models: [{ ...house, input_limit: 30_000 }] });
    await vi.waitFor(async () => expect(await usable()).toBe(20_000), 5_000);
    const verdict = await postJson(`${operated.url}/api/v1/verify-provenance`, { ...first, input });
    expect(await verdict.json()).toMatchObject({ verified: true, checks: { rerun: { result: 'pass' } } });
  });

  it('are refused when broken, and what held goes on holding', async () => {
    await write('config.json', '{"reserved_pct": 200, "no_such_field": 1}');
    await vi.waitFor(() => expect(operated.errors).toContain('setting_refused'), 5_000);
    expect(await usable()).toBe(20_000);
  });

  it('can forbid the fallback, and then an unknown model is 422 and costs nothing', async () => {
    expect((await pay('assemble', unknown, operated)).answer).toMatchObject({
      data: { model_resolved: 'fallback', usable: 5_530 },
    });
    await write('config.json', { allow_fallback_limits: false });
    await vi.waitFor(async () => {
      const { response, answer } = await pay('assemble', unknown, operated);
      expect([response.status, answer['code'], answer['charged']]).toEqual([422, 'context/model_unresolved', false]);
      expect(answer['error']).toContain('could not resolve model limits');
    }, 5_000);
  });
});
