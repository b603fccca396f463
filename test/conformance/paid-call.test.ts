/** One paid call over HTTP as its three kinds of users see it: the payer, the developer with a sample, the auditor. */
import { readFile } from 'node:fs/promises';
import type { PaymentRequired } from '@x402/core/types';
import { decodePaymentResponseHeader } from '@x402/fetch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operations } from '../../src/operations/list.ts';
import {
  balanceOf,
  EXAMPLE,
  freshPayment,
  newWallet,
  payWith,
  postJson,
  PRICE,
  startTestService,
  type TestService,
} from '../service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const verify = async (evidence: unknown, path = '/api/v1/verify-provenance'): Promise<Record<string, unknown>> => {
  const response = await postJson(service.url + path, evidence);
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
};

interface Answer {
  data: Record<string, unknown>;
  _provenance: {
    credential: { credentialSubject: Record<string, unknown> } & Record<string, unknown>;
    manifest: object;
  };
}
const answerOf = async (response: Response): Promise<Answer> => (await response.json()) as Answer;

describe('the payer', () => {
  it('is challenged without a payment: of v2 in PAYMENT-REQUIRED, of v1 in the body', async () => {
    const response = await postJson(service.endpoint, EXAMPLE);
    expect(response.status).toBe(402);
    const header = JSON.parse(atob(response.headers.get('PAYMENT-REQUIRED') ?? '')) as PaymentRequired;
    expect(header).toMatchObject({
      x402Version: 2,
      resource: { url: service.endpoint },
      accepts: [
        {
          scheme: 'exact',
          network: 'eip155:84532',
          amount: String(PRICE),
          asset: service.chain.usdc,
          payTo: service.chain.payTo,
          extra: { name: 'USDC', version: '2' },
        },
      ],
    });
    const { accepts, ...body } = (await response.json()) as { accepts: Record<string, unknown>[] };
    const { error, extensions } = header;
    expect(body).toEqual({ x402Version: 1, error, code: 'payment_required', charged: false, extensions });
    const { scheme, asset, payTo, maxTimeoutSeconds, extra } = header.accepts[0] ?? {};
    expect(accepts).toMatchObject([
      { scheme, asset, payTo, maxTimeoutSeconds, extra, network: 'base-sepolia', maxAmountRequired: String(PRICE) },
    ]);
    expect(response.headers.get('Cache-Control')).toContain('no-store');
    expect(JSON.stringify([...response.headers]).length).toBeLessThan(8_000);
  });

  it.each([
    ['an empty body', '', undefined],
    ['a good body', EXAMPLE, undefined],
    ['a body that would be refused', { ...EXAMPLE, cacheBreakpoint: 'x' }, '/cacheBreakpoint'],
    ['no JSON', '{', undefined],
  ])('is challenged whatever the body says: %s', async (name, body, path) => {
    const response = await postJson(service.endpoint, body);
    expect(response.status).toBe(402);
    const text = (await response.json()) as { error: string; refused?: { path: string; code: string } };
    expect('refused' in text).toBe(path !== undefined || name === 'no JSON');
    if (path !== undefined) expect([text.refused?.path, text.error]).toEqual([path, expect.stringContaining(path)]);
  });

  it('pays with the official client, unmodified, and is served; 0.005 USDC moves, once', async () => {
    const wallet = await newWallet(service);
    const before = await Promise.all(
      [wallet.account.address, service.chain.payTo].map((owner) => balanceOf(service.chain, owner)),
    );
    const response = await wallet.fetch(service.endpoint, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(EXAMPLE),
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('Cache-Control')).toBe('private, no-store');
    const receipt = decodePaymentResponseHeader(response.headers.get('PAYMENT-RESPONSE') ?? '');
    expect(receipt).toMatchObject({
      success: true,
      network: 'eip155:84532',
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    const after = await Promise.all(
      [wallet.account.address, service.chain.payTo].map((owner) => balanceOf(service.chain, owner)),
    );
    expect(after).toEqual([(before[0] ?? 0n) - PRICE, (before[1] ?? 0n) + PRICE]);

    const answer = await answerOf(response);
    expect(answer.data).toMatchObject({ status: 'pass', keep: [0, 1, 4, 5], tokensBefore: 6485, tokensAfter: 455 });
    expect(answer._provenance.credential.credentialSubject).toMatchObject({
      operation: 'conversation-prune',
      charged: String(PRICE),
      environment: 'local',
      payment: { network: 'eip155:84532', payer: wallet.account.address.toLowerCase() },
    });
    expect(await verify({ ...answer, input: EXAMPLE })).toMatchObject({
      verified: true,
      outcome: 'verified',
      checks: { rerun: { result: 'pass' } },
      about: { operation: 'conversation-prune', charged: String(PRICE), sample: false, environment: 'local' },
    });
  });

  it('gets equal bytes for 20 concurrent copies and for later ones, and is charged once', async () => {
    const wallet = await newWallet(service);
    const payment = await freshPayment(service, wallet);
    const before = await balanceOf(service.chain, wallet.account.address);
    const copies = await Promise.all(
      Array.from({ length: 20 }, () => postJson(service.endpoint, EXAMPLE, payWith(payment))),
    );
    const later = await postJson(service.endpoint, EXAMPLE, payWith(payment));
    const all = [...copies, later];
    expect(all.map(({ status }) => status)).toEqual(all.map(() => 200));
    expect(new Set(await Promise.all(all.map((response) => response.text()))).size).toBe(1);
    expect(new Set(all.map(({ headers }) => headers.get('PAYMENT-RESPONSE'))).size).toBe(1);
    expect(new Set(all.map(({ headers }) => headers.get('X-Request-Id'))).size).toBe(21);
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before - PRICE);
  });

  it('gets the stored answer for the same JSON in another spelling, and 409 for another request', async () => {
    const payment = await freshPayment(service);
    const first = await postJson(service.endpoint, EXAMPLE, payWith(payment));
    const reordered = Object.fromEntries(Object.entries(EXAMPLE).toReversed());
    const second = await postJson(service.endpoint, JSON.stringify(reordered, null, 3), payWith(payment));
    expect(await second.text()).toBe(await first.text());
    const other = await postJson(service.endpoint, { ...EXAMPLE, targetTokens: 1 }, payWith(payment));
    expect(other.status).toBe(409);
    expect(await other.json()).toMatchObject({ code: 'payment_reused', charged: false, payment: 'used' });
  });

  it('keeps the payment when the body is refused, and when the answer is not charged', async () => {
    const wallet = await newWallet(service);
    const payment = await freshPayment(service, wallet);
    const before = await balanceOf(service.chain, wallet.account.address);
    const refused = await postJson(service.endpoint, { ...EXAMPLE, targetTokens: -1 }, payWith(payment));
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ code: 'invalid_request', path: '/targetTokens', charged: false }),
    ]);
    const unknown = await postJson(
      service.endpoint,
      { ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 },
      payWith(payment),
    );
    expect(unknown.status).toBe(200);
    expect(unknown.headers.get('PAYMENT-RESPONSE')).toBeNull();
    const answer = await answerOf(unknown);
    expect(answer.data['status']).toBe('unknown');
    expect(answer._provenance.credential.credentialSubject).toMatchObject({ charged: '0' });
    expect(answer._provenance.credential.credentialSubject).not.toHaveProperty('payment');
    expect(await verify(answer)).toMatchObject({ verified: true });
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before);
    expect((await postJson(service.endpoint, EXAMPLE, payWith(payment))).status).toBe(200);
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before - PRICE);
  });

  it('is served 500 messages and 400,000 characters', async () => {
    const messages = Array.from({ length: 500 }, (_, index) => ({
      role: 'user',
      content: `message ${index} `.padEnd(800, 'text and more '),
      droppable: true,
    }));
    const request = { messages, cacheBreakpoint: 10, targetTokens: 40_000 };
    const response = await postJson(service.endpoint, request, payWith(await freshPayment(service)));
    expect(response.status).toBe(200);
    const answer = await answerOf(response);
    expect(answer.data).toMatchObject({ status: 'pass', targetMet: true });
    expect(await verify({ ...answer, input: request })).toMatchObject({
      verified: true,
      checks: { rerun: { result: 'pass' } },
    });
    const over = { ...request, messages: [...messages, messages[0]] };
    const refused = await postJson(service.endpoint, over, payWith(await freshPayment(service)));
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ path: '/messages', error: expect.stringContaining('500') }),
    ]);
  });
});

describe('the developer', () => {
  it.each(operations)('gets a free sample of $id, signed as a sample, as it is committed', async ({ id }) => {
    const response = await fetch(`${service.url}/api/v1/samples/${id}`);
    expect(response.status).toBe(200);
    const { request, response: answer } = (await response.json()) as { request: unknown; response: Answer };
    const committed = new URL(`../../samples/${id}.json`, import.meta.url);
    expect({ request, data: answer.data }).toEqual(JSON.parse(await readFile(committed, 'utf8')));
    expect(answer._provenance.credential.credentialSubject).toMatchObject({ sample: true, charged: '0' });
    expect(await verify({ ...answer, input: request })).toMatchObject({
      verified: true,
      checks: { rerun: { result: 'pass' } },
      about: { sample: true, charged: '0' },
    });
  });

  it('finds operations, prices and links at /', async () => {
    const index = (await (await fetch(service.url)).json()) as Record<string, unknown>;
    expect(index).toMatchObject({
      name: 'context-evidence-kit',
      payment: { protocol: 'x402', network: 'eip155:84532', payTo: service.chain.payTo },
      operations: operations.map(({ id, title, price }) => ({
        id,
        title,
        price: { atomic: price, currency: 'USDC', failedCallsCharged: false },
        url: `${service.url}/api/v1/${id}`,
        sample: `${service.url}/api/v1/samples/${id}`,
      })),
    });
    expect(index['operations']).toContainEqual(
      expect.objectContaining({ id: 'conversation-prune', price: expect.objectContaining({ amount: '0.005' }) }),
    );
  });

  it('is told health, readiness and what does not exist', async () => {
    for (const path of ['/healthz', '/readyz']) expect((await fetch(service.url + path)).status).toBe(200);
    const missing = await fetch(`${service.url}/nothing`);
    expect([missing.status, await missing.json()]).toEqual([
      404,
      expect.objectContaining({ code: 'not_found', charged: false }),
    ]);
    expect(missing.headers.get('X-Request-Id')).toBeTruthy();
  });
});

describe('the auditor', () => {
  const sample = async (): Promise<{ request: unknown; answer: Answer }> => {
    const { request, response } = (await (await fetch(`${service.url}/api/v1/samples/conversation-prune`)).json()) as {
      request: unknown;
      response: Answer;
    };
    return { request, answer: response };
  };

  it('finds the issuer of every answer in did.json', async () => {
    const document = (await (await fetch(`${service.url}/.well-known/did.json`)).json()) as { id: string };
    const { answer } = await sample();
    expect(answer._provenance.credential).toMatchObject({ issuer: document.id });
    expect(document.id).toBe(service.did);
  });

  it('is told of a changed digit, a changed input and a foreign issuer', async () => {
    const { request, answer } = await sample();
    expect(await verify(answer, '/verify-provenance')).toMatchObject({
      outcome: 'verified',
      checks: { rerun: { result: 'not_checked' } },
    });
    const changed = { ...answer, data: { ...answer.data, tokensAfter: 456 } };
    expect(await verify(changed)).toMatchObject({
      verified: false,
      outcome: 'contradicted',
      checks: { data_digest: { result: 'fail' } },
    });
    const otherInput = await verify({ ...answer, input: { ...(request as object), targetTokens: 999 } });
    expect(otherInput).toMatchObject({
      outcome: 'contradicted',
      checks: { input_digest: { result: 'fail' }, rerun: { result: 'not_checked' } },
    });

    const stranger = await startTestService();
    const theirs = (await (await fetch(`${stranger.url}/api/v1/samples/conversation-prune`)).json()) as {
      response: Answer;
    };
    await stranger.close();
    expect(await verify({ ...theirs.response, input: request })).toMatchObject({
      verified: false,
      outcome: 'unverifiable',
      checks: { signature: { result: 'pass' }, issuer: { result: 'not_checked' }, rerun: { result: 'not_checked' } },
    });
  });

  it('gets no more than a minute’s worth of re-runs', async () => {
    const { request, answer } = await sample();
    const results = new Set<unknown>();
    for (let run = 0; run < 70; run += 1) {
      const verdict = await verify({ ...answer, input: request });
      results.add((verdict['checks'] as { rerun: { result: string } }).rerun.result);
      expect(verdict['verified']).toBe(true);
    }
    expect(results).toEqual(new Set(['pass', 'not_checked']));
  });
});

describe('the log', () => {
  it('has no error of all this', () => {
    expect(service.errors).toEqual([]);
  });
});
