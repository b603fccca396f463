/** Providers' own messages over HTTP: paid for, answered in the same format, taken by the provider, and computed again. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FORMATS } from '../../src/transcript/formats/list.ts';
import { operations } from '../../src/operations/list.ts';
import { nativesOf } from '../native-conversations.ts';
import {
  balanceOf,
  freshPayment,
  newKey,
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
let key: string;
beforeAll(async () => {
  service = await startTestService();
  wallet = await newWallet(service);
  key = await newKey(service, 10_000_000n);
});
afterAll(() => service.close());

type Json = Record<string, unknown>;
const jsonOf = async (response: Response): Promise<Json> => (await response.json()) as Json;
const urlOf = (operation: string): string => `${service.url}/api/v1/${operation}`;
const keyed = (name?: string): Record<string, string> => ({
  'X-API-KEY': key,
  ...(name !== undefined && { 'Idempotency-Key': name }),
});
const verdictOn = async (answer: Json, input: unknown): Promise<Json> =>
  jsonOf(await postJson(urlOf('verify-provenance'), { ...answer, input }));
const check = (body: object | string): Promise<Response> => postJson(urlOf('check'), body);
const VERIFIED = { verified: true, checks: { input_digest: { result: 'pass' }, rerun: { result: 'pass' } } };

const { messages: transcript, system_prompt } = readTranscript('13-swe-agent-function-calling');
const natives = nativesOf(transcript, system_prompt);
const model = { id: 'gpt-5', limits: { context_window: 3_000, max_output_tokens: 100 } };
const OPTIONS: Readonly<Record<string, object>> = {
  count: { model },
  prune: { model, options: { protect_recent_tokens: 0, min_free_tokens: 0, max_output_chars: 10 } },
  compact: { model, options: { preserve_recent_tokens: 400, summary_tokens: 128 } },
  assemble: { model, options: { reserved_tokens: 0 } },
  'conversation-prune': { cacheBreakpoint: 0, targetTokens: 500, keepRecent: 2 },
};

describe.each(natives)('$format', ({ format, messages, system }) => {
  const inputOf = (operation: string): Json => ({
    format,
    messages,
    ...(system !== undefined && { system }),
    ...OPTIONS[operation],
  });

  it.each(operations.map(({ id }) => id))('is answered by %s in its own terms, and can be run again', async (id) => {
    const input = inputOf(id);
    const response = await postJson(urlOf(id), input, keyed());
    expect(response.status).toBe(200);
    const answer = await jsonOf(response);
    const { messages: left } = answer['data'] as { messages?: object[] };
    if (id !== 'count') {
      const accepted = { format, accepted: true, faults: [], open_calls: [] };
      expect(await jsonOf(await check({ format, messages: left ?? [] }))).toEqual(accepted);
      const supplied = new Set(messages.map((message) => JSON.stringify(message)));
      const made = (left ?? []).filter((message) => !supplied.has(JSON.stringify(message)));
      // Results are another text after prune, and where the format has no other place a summary is an instruction.
      if (id === 'conversation-prune') expect(made).toEqual([]);
    }
    expect(await verdictOn(answer, input)).toMatchObject(VERIFIED);
  });

  it('is refused with its pointer, before anybody pays', async () => {
    const payment = await freshPayment(service, wallet, urlOf('count'));
    const before = await balanceOf(service.chain, wallet.account.address);
    for (const [odd, path] of [
      [[...messages, 7], `/messages/${messages.length}`],
      [[...messages, { role: 'nobody', content: '' }], new RegExp(`^/messages/${messages.length}`)],
    ] as const) {
      const refused = await postJson(urlOf('count'), { ...inputOf('count'), messages: odd }, payWith(payment));
      const problem = await jsonOf(refused);
      expect([refused.status, problem['code'], problem['charged']]).toEqual([400, 'context/invalid_request', false]);
      expect(problem['path']).toEqual(typeof path === 'string' ? path : expect.stringMatching(path));
      expect(problem['error']).not.toContain('nobody');
    }
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before);
    // The payment is good still.
    expect((await postJson(urlOf('count'), inputOf('count'), payWith(payment))).status).toBe(200);
  });
});

describe('half a surrogate pair', () => {
  const raw = (more = '', content = '"half \\ud83d"'): string =>
    `{"format":"openai-chat","messages":[{"role":"user","content":${content}}],"cacheBreakpoint":-1,"targetTokens":100${more}}`;
  const url = (): string => urlOf('conversation-prune');

  it('is refused where nobody asked for repair', async () => {
    for (const body of [raw(), raw(',"repair":false'), raw(',"repair":null')]) {
      const response = await postJson(url(), body, keyed());
      expect([response.status, await jsonOf(response)]).toMatchObject([
        400,
        { code: 'invalid_unicode', path: '/messages/0/content', charged: false },
      ]);
    }
  });

  it.each(['a payment', 'a key'])('is mended with %s, told, charged once, and verified as it was sent', async (by) => {
    const body = raw(',"repair":true');
    const headers = by === 'a key' ? keyed('half') : payWith(await freshPayment(service, wallet, url()));
    const before = await balanceOf(service.chain, wallet.account.address);
    const [first, again] = [await postJson(url(), body, headers), await postJson(url(), body, headers)];
    expect([first.status, again.status]).toEqual([200, 200]);
    const text = await first.text();
    expect(await again.text()).toBe(text);
    expect(before - (await balanceOf(service.chain, wallet.account.address))).toBe(by === 'a key' ? 0n : 5_000n);
    const answer = JSON.parse(text) as Json;
    expect(answer['data']).toMatchObject({
      messages: [{ role: 'user', content: 'half \ufffd' }],
      repairs: [{ path: '/messages/0/content', fault: 'split-surrogate' }],
    });
    const verify = await postJson(urlOf('verify-provenance'), `${text.slice(0, -1)},"input":${body}}`);
    expect(await jsonOf(verify)).toMatchObject(VERIFIED);
    const other = await postJson(
      urlOf('verify-provenance'),
      `${text.slice(0, -1)},"input":${raw(',"repair":true', '"whole"')}}`,
    );
    expect(await jsonOf(other)).toMatchObject({ verified: false, checks: { input_digest: { result: 'fail' } } });
  });

  it('is refused in a name, and in an answer', async () => {
    const named = await postJson(url(), raw(',"repair":true,"a\\ud83d":1'), keyed());
    expect([named.status, (await jsonOf(named))['code']]).toEqual([400, 'invalid_unicode']);
    const answer = await postJson(
      urlOf('verify-provenance'),
      `{"data":"\\ud83d","_provenance":{},"input":${raw(',"repair":true')}}`,
    );
    expect([answer.status, (await jsonOf(answer))['code']]).toEqual([400, 'invalid_unicode']);
  });
});

describe('POST /api/v1/check', () => {
  it('says what the provider would refuse, where, and which calls are to be answered', async () => {
    const messages = [
      { role: 'user', content: '' },
      { role: 'tool', tool_call_id: 'x', content: 'ok' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
    ];
    const response = await check({ format: 'openai-chat', messages });
    expect(response.headers.get('Cache-Control')).toBe('no-store');
    expect(await jsonOf(response)).toMatchObject({
      accepted: false,
      faults: [{ path: '/messages/1', rule: 'orphan-result' }],
      open_calls: ['/messages/2/tool_calls/0'],
    });
  });

  it.each<[string, object | string, number, string]>([
    ['an unknown format', { format: 'mail', messages: [] }, 400, '/format'],
    ['no format', { messages: [] }, 400, '/format'],
    ['no messages', { format: 'openai-chat' }, 400, '/messages'],
    ['a message that is none', { format: 'ai-sdk', messages: [null] }, 400, '/messages/0'],
    ['an option of an operation', { format: 'ai-sdk', messages: [], repair: true }, 400, '/repair'],
    ['no JSON', '{', 400, ''],
    ['no body', '', 400, ''],
  ])('refuses %s', async (_, body, status, path) => {
    const response = await check(body);
    expect([response.status, await jsonOf(response)]).toMatchObject([status, { path, charged: false }]);
  });

  it('is there for POST alone, for pages of all origins', async () => {
    const got = await fetch(urlOf('check'));
    expect([got.status, got.headers.get('Allow')]).toEqual([405, 'POST']);
    const asked = await fetch(urlOf('check'), {
      method: 'OPTIONS',
      headers: { Origin: 'https://a.example', 'Access-Control-Request-Method': 'POST' },
    });
    expect([asked.status, asked.headers.get('Access-Control-Allow-Origin')]).toEqual([204, '*']);
  });

  it('answers so many a minute for all together, and says when it answers again', async () => {
    const own = await startTestService();
    const statuses: number[] = [];
    let last: Response | undefined;
    for (let calls = 0; calls < 200 && last?.status !== 429; calls += 1) {
      last = await postJson(`${own.url}/api/v1/check`, {
        format: 'openai-chat',
        messages: [{ role: 'user', content: 'a' }],
      });
      statuses.push(last.status);
    }
    expect(statuses.length).toBeGreaterThanOrEqual(121);
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set([200]));
    expect([last?.status, last?.headers.get('Retry-After')]).toEqual([429, '30']);
    expect(await last?.json()).toMatchObject({ code: 'rate_limited', charged: false });
    await own.close();
  });
});

it('every format is tried here', () => {
  expect(natives.map(({ format }) => format).toSorted()).toEqual(FORMATS.map(({ id }) => id).toSorted());
});
