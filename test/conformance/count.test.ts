/** The paid operation count over HTTP: what it counts with, what it refuses and how, and that its answers can be run again. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { count } from '../../src/operations/count.ts';
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

const MIB = 1_048_576;
let service: TestService;
let endpoint: string;
let wallet: Wallet;
let payment: string;
beforeAll(async () => {
  service = await startTestService();
  endpoint = `${service.url}/api/v1/count`;
  wallet = await newWallet(service);
  payment = await freshPayment(service, wallet, endpoint);
});
afterAll(() => service.close());

type Json = Record<string, unknown>;
const jsonOf = async (response: Response): Promise<Json> => (await response.json()) as Json;
const post = (body: unknown, headers: Record<string, string>): Promise<Response> => postJson(endpoint, body, headers);
const pay = async (body: unknown): Promise<Response> =>
  post(body, payWith(await freshPayment(service, wallet, endpoint)));

const text = (value: string): object => ({ type: 'text', text: value });
const user = (...content: object[]): object => ({ role: 'user', content, timestamp: 1 });
const model = { id: 'gpt-5' };
const holding = (...messages: unknown[]): object => ({ model, messages });

describe('a paid count', () => {
  const transcript = readTranscript('25-anthropic-parallel-tool-calls');
  const { messages, system_prompt = '' } = transcript;

  it.each([
    ['gpt-5', 'tokenizer', 'o200k_base', 2],
    ['gpt-4', 'tokenizer', 'cl100k_base', 2],
    ['claude-sonnet-4', 'heuristic', 'heuristic', 0],
  ] as const)('for %s is by the %s (%s), for 0.001 USDC, and can be run again', async (id, estimator, by, priming) => {
    const input = { model: { id }, messages, system_prompt, options: null };
    const before = await balanceOf(service.chain, wallet.account.address);
    const response = await pay(input);
    expect(response.status).toBe(200);
    expect(response.headers.get('PAYMENT-RESPONSE')).toBeTruthy();
    expect(before - (await balanceOf(service.chain, wallet.account.address))).toBe(1_000n);

    const answer = await jsonOf(response);
    const expected = messages.reduce((total, message) => total + referenceMessage(message, by), 0);
    const prompt = referenceText(system_prompt, by);
    expect(answer['data']).toMatchObject({
      tokens: expected + prompt + priming,
      estimator,
      breakdown: { system_prompt_tokens: prompt, reply_priming_tokens: priming, estimator },
    });
    const verdict = await jsonOf(await postJson(`${service.url}/api/v1/verify-provenance`, { ...answer, input }));
    expect(verdict).toMatchObject({ verified: true, checks: { rerun: { result: 'pass' } } });
    const other = { ...input, messages: messages.slice(1) };
    const contradicted = await jsonOf(
      await postJson(`${service.url}/api/v1/verify-provenance`, { ...answer, input: other }),
    );
    expect(contradicted).toMatchObject({ verified: false, checks: { input_digest: { result: 'fail' } } });
  });

  it('is not called contradicted where the keys of an argument come in another order', async () => {
    const calling = (args: object) =>
      holding({
        role: 'assistant',
        content: [{ type: 'function_call', id: 'c', function_id: 'f', arguments: args }],
        timestamp: 1,
        model: 'm',
        provider: 'p',
        stop_reason: 'function_call',
      });
    const answer = await jsonOf(await pay(calling({ path: 'src/a.ts', 'x y z': 12, 中文: true })));
    const input = calling({ 中文: true, 'x y z': 12, path: 'src/a.ts' });
    const verdict = await jsonOf(await postJson(`${service.url}/api/v1/verify-provenance`, { ...answer, input }));
    expect(verdict).toMatchObject({ outcome: 'verified', checks: { input_digest: { result: 'pass' } } });
    expect(verdict).not.toMatchObject({ checks: { rerun: { result: 'fail' } } });
  });

  it('of 500 messages and 400,000 characters is counted whole', async () => {
    const line = 'src/shop/cart.ts:42: the total is computed twice for gift cards. ';
    const many = Array.from({ length: 500 }, (_, index) => user(text(`${index}: ${line.repeat(13)}`.slice(0, 800))));
    const answer = await jsonOf(await pay(holding(...many)));
    const expected = many.reduce((total: number, message) => total + referenceMessage(message, 'o200k_base'), 2);
    expect(answer['data']).toMatchObject({ tokens: expected, by_role: { user: expected - 2 } });
  });

  it('of nothing is an answer', async () => {
    const answer = await jsonOf(await pay(holding()));
    expect(answer['data']).toMatchObject({ tokens: 0, by_role: { user: 0 }, breakdown: { reply_priming_tokens: 0 } });
  });
});

describe('a body that is refused', () => {
  const BODIES: Readonly<
    Record<string, readonly [body: unknown, status: number, code: string, path: string, says: string]>
  > = {
    'no body': ['', 400, 'context/invalid_request', '', 'a JSON body is required'],
    'a list': [[], 400, 'context/invalid_request', '', 'an object'],
    'no messages': [{ model }, 400, 'context/invalid_request', '/messages', 'messages is required'],
    'null messages': [{ model, messages: null }, 400, 'context/invalid_request', '/messages', 'messages is required'],
    'no model': [{ messages: [] }, 400, 'context/invalid_request', '/model', 'required'],
    'a wrong role': [
      holding(user(), { role: 'tool', content: [], timestamp: 1 }),
      400,
      'context/invalid_request',
      '/messages/1/role',
      'function_result',
    ],
    'a wrong block': [
      holding(user({ type: 'tool_use', id: 'x' })),
      400,
      'context/invalid_request',
      '/messages/0/content/0/type',
      'function_call',
    ],
    'a text for content': [
      holding({ role: 'user', content: 'hi', timestamp: 1 }),
      400,
      'context/invalid_request',
      '/messages/0/content',
      'a list',
    ],
    'an unknown field': [{ ...holding(), stream: true }, 400, 'context/invalid_request', '/stream', 'no field'],
    'an unknown option': [
      { ...holding(), options: { tail_turns: 2 } },
      400,
      'context/invalid_request',
      '/options/tail_turns',
      'no field',
    ],
    'an unknown field of the model': [
      { messages: [], model: { ...model, name: 'x' } },
      400,
      'context/invalid_request',
      '/model/name',
      'no field',
    ],
    'an unknown estimator': [
      { ...holding(), options: { estimator: 'p50k_base' } },
      400,
      'context/invalid_request',
      '/options/estimator',
      'o200k_base',
    ],
    'half a surrogate pair': [
      '{"model":{"id":"gpt-5"},"messages":[{"role":"user","content":[{"type":"text","text":"cut \\ud83d"}],"timestamp":1}]}',
      400,
      'invalid_unicode',
      '/messages/0/content/0/text',
      'surrogate',
    ],
    'a text over the bound': [
      holding(user(text('a'.repeat(MIB)), text('a'))),
      413,
      'payload_too_large',
      '/messages/0',
      `${MIB} bytes`,
    ],
  };

  it.each(Object.entries(BODIES))(
    '%s: with a payment, which stays good',
    async (_, [body, status, code, path, says]) => {
      const response = await post(body, payWith(payment));
      const problem = await jsonOf(response);
      expect([response.status, problem['code'], problem['path'], problem['charged']]).toEqual([
        status,
        code,
        path,
        false,
      ]);
      expect(problem['error']).toContain(says);
      expect(problem['error']).toContain('Nothing was charged.');
      if (status === 413) expect(problem['limit_bytes']).toBe(MIB);
    },
  );

  it.each(Object.entries(BODIES).filter(([, [body]]) => body !== ''))(
    '%s: in the challenge, before anybody signs',
    async (_, [body, , code, path, says]) => {
      const response = await post(body, {});
      const challenge = await jsonOf(response);
      expect([response.status, challenge['code']]).toEqual([402, 'payment_required']);
      expect(challenge['refused']).toMatchObject({ code, path, error: expect.stringContaining(says) });
      expect(challenge['error']).toContain(says);
    },
  );

  it('left the payment good: it still buys an answer', async () => {
    expect((await post(count.example, payWith(payment))).status).toBe(200);
  });

  it('over the body limit: 413 with the limit', async () => {
    const small = await startTestService({ BODY_LIMIT_BYTES: '10000' });
    const url = `${small.url}/api/v1/count`;
    const response = await postJson(
      url,
      holding(user(text('a'.repeat(10_000)))),
      payWith(await freshPayment(small, undefined, url)),
    );
    await small.close();
    expect([response.status, await jsonOf(response)]).toEqual([
      413,
      expect.objectContaining({ code: 'payload_too_large', limit_bytes: 10_000, charged: false }),
    ]);
  });
});

describe('the log', () => {
  it('has no error of all this', () => {
    expect(service.errors).toEqual([]);
  });
});
