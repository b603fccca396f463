/** API keys over HTTP: what is charged to the credits, what to a payment beside them, and never to both. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compact } from '../../src/operations/compact.ts';
import {
  balanceOf,
  EXAMPLE,
  freshPayment,
  newKey,
  newWallet,
  payWith,
  postJson,
  PRICE,
  startTestService,
} from '../service.ts';
import type { TestService } from '../service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const withKey = (key: string, idempotencyKey?: string): Record<string, string> => ({
  'X-API-KEY': key,
  ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
});
const call = (headers: Record<string, string>, body: unknown = EXAMPLE) => postJson(service.endpoint, body, headers);
const left = (response: Response): string | null => response.headers.get('X-Credits-Remaining');

async function expectProblem(response: Response, status: number, code: string): Promise<Record<string, unknown>> {
  const body = (await response.json()) as Record<string, unknown>;
  expect([response.status, body['code'], body['charged']]).toEqual([status, code, status === 503 ? 'unknown' : false]);
  return body;
}

describe('a keyed call', () => {
  it('is charged its price in credits, and the evidence says so', async () => {
    const key = await newKey(service, 3n * PRICE);
    const response = await call(withKey(key));
    expect([response.status, left(response)]).toEqual([200, String(2n * PRICE)]);
    expect(response.headers.get('PAYMENT-RESPONSE')).toBeNull();
    expect(response.headers.get('Cache-Control')).toBe('private, no-store');
    const text = await response.text();
    const answer = JSON.parse(text) as { _provenance: { credential: { credentialSubject: object } } };
    expect(answer._provenance.credential.credentialSubject).toMatchObject({ charged: String(PRICE) });
    expect(answer._provenance.credential.credentialSubject).not.toHaveProperty('payment');
    expect(text).not.toMatch(/key_|cek_/);
    const verdict = await postJson(`${service.url}/api/v1/verify-provenance`, { ...answer, input: EXAMPLE });
    expect(await verdict.json()).toMatchObject({ verified: true, checks: { rerun: { result: 'pass' } } });
    // Without a name each call is one of its own.
    expect(left(await call(withKey(key)))).toBe(String(PRICE));
  });

  it('is validated before anything is taken off', async () => {
    const key = await newKey(service, PRICE);
    await expectProblem(await call(withKey(key), { ...EXAMPLE, targetTokens: -1 }), 400, 'invalid_request');
    await expectProblem(await call(withKey(key), ''), 400, 'invalid_request');
    expect(left(await call(withKey(key)))).toBe('0');
  });

  it.each([
    ['an unknown key', `cek_${'1'.repeat(44)}`],
    ['no key at all', ''],
    ['a long one', 'x'.repeat(5_000)],
  ])('with %s is 401, whatever the body is, and a payment beside it is left alone', async (_, key) => {
    const wallet = await newWallet(service);
    const before = await balanceOf(service.chain, wallet.account.address);
    for (const body of [EXAMPLE, '', '{']) {
      const response = await call({ ...withKey(key), ...payWith(await freshPayment(service, wallet)) }, body);
      await expectProblem(response, 401, 'invalid_api_key');
      expect(response.headers.get('WWW-Authenticate')).toContain('X-API-KEY');
    }
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before);
  });

  it('gives the price back where the answer is not charged', async () => {
    const key = await newKey(service, 20_000n);
    const unknown = await call(withKey(key), { ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 });
    expect([unknown.status, left(unknown)]).toEqual([200, '20000']);
    expect(await unknown.json()).toMatchObject({
      data: { status: 'unknown' },
      _provenance: { credential: { credentialSubject: { charged: '0' } } },
    });
    const messages = [{ role: 'user', timestamp: 1, content: [{ type: 'text', text: 'hello' }] }];
    const empty = await postJson(
      `${service.url}/api/v1/compact`,
      { ...(compact.example as object), messages },
      withKey(key),
    );
    expect([empty.status, left(empty)]).toEqual([200, '20000']);
    const tiny = { id: 'tiny', limits: { context_window: 300, max_output_tokens: 200 } };
    const overflow = await postJson(
      `${service.url}/api/v1/assemble`,
      { messages: [{ ...messages[0], content: [{ type: 'text', text: 'long '.repeat(2_000) }] }], model: tiny },
      withKey(key),
    );
    await expectProblem(overflow, 422, 'context/overflow');
    expect(left(await call(withKey(key)))).toBe(String(20_000n - PRICE));
  });

  it('is refused for a while after a hundred answers that were not charged, without a debit', async () => {
    const key = await newKey(service, 2n * PRICE);
    const free = { ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 };
    await call(withKey(key));
    for (let n = 0; n < 100; n += 1) expect((await call(withKey(key), free)).status).toBe(200);
    const refused = await call(withKey(key));
    await expectProblem(refused, 429, 'key_exhausted');
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(80_000);
  });
});

describe('an Idempotency-Key', () => {
  it('is debited once for 50 copies at once and later ones, which get the same bytes', async () => {
    const key = await newKey(service, 2n * PRICE);
    const copies = await Promise.all(Array.from({ length: 50 }, () => call(withKey(key, 'i1'))));
    const reordered = JSON.stringify(Object.fromEntries(Object.entries(EXAMPLE).toReversed()), null, 2);
    const all = [...copies, await call(withKey(key, 'i1')), await call(withKey(key, 'i1'), reordered)];
    expect(all.map(({ status }) => status)).toEqual(all.map(() => 200));
    expect(new Set(all.map(left))).toEqual(new Set([String(PRICE)]));
    expect(new Set(await Promise.all(all.map((response) => response.text()))).size).toBe(1);
    // And when the credits are spent.
    await call(withKey(key));
    expect([(await call(withKey(key, 'i1'))).status, (await call(withKey(key, 'i2'))).status]).toEqual([200, 402]);
  });

  it('stands for one request: any other is 409, and not debited', async () => {
    const key = await newKey(service, 3n * PRICE);
    await call(withKey(key, 'i'));
    await expectProblem(await call(withKey(key, 'i'), { ...EXAMPLE, targetTokens: 1 }), 409, 'idempotency_key_reused');
    expect(left(await call(withKey(key, 'i')))).toBe(String(2n * PRICE));
  });

  it('is a name of its key only, and free again where nothing was charged', async () => {
    const [one, other] = [await newKey(service, PRICE), await newKey(service, PRICE)];
    const [first, second] = [await call(withKey(one, 'i')), await call(withKey(other, 'i'))];
    expect([left(first), left(second)]).toEqual(['0', '0']);
    expect(await first.text()).not.toBe(await second.text());
    const third = await newKey(service, PRICE);
    const free = { ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 };
    expect(left(await call(withKey(third, 'i'), free))).toBe(String(PRICE));
    expect(left(await call(withKey(third, 'i')))).toBe('0');
  });
});

describe('spent credits', () => {
  it('are said in the challenge, which a payment then meets: with the same key, name and request, once', async () => {
    const key = await newKey(service, PRICE - 1n);
    const wallet = await newWallet(service);
    const before = await balanceOf(service.chain, wallet.account.address);
    const asked = await call(withKey(key, 'i'));
    expect(asked.headers.get('PAYMENT-REQUIRED')).toBeTruthy();
    expect(await expectProblem(asked, 402, 'credits_spent')).toMatchObject({
      credits: String(PRICE - 1n),
      price: String(PRICE),
      error: expect.stringContaining('spent'),
      accepts: [{ maxAmountRequired: String(PRICE) }],
    });
    const payment = payWith(await freshPayment(service, wallet));
    const paid = await call({ ...withKey(key, 'i'), ...payment });
    expect([paid.status, left(paid)]).toEqual([200, null]);
    expect(paid.headers.get('PAYMENT-RESPONSE')).toBeTruthy();
    const text = await paid.text();
    // Signed anew under the same name: the stored answer, and nothing is taken.
    const again = await call({ ...withKey(key, 'i'), ...payWith(await freshPayment(service, wallet)) });
    expect(await again.text()).toBe(text);
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before - PRICE);
  });

  it('let the official client pay, unmodified', async () => {
    const key = await newKey(service, 0n);
    const wallet = await newWallet(service);
    const headers = { 'Content-Type': 'application/json', ...withKey(key) };
    const response = await wallet.fetch(service.endpoint, { method: 'POST', headers, body: JSON.stringify(EXAMPLE) });
    expect(response.status).toBe(200);
    expect(response.headers.get('PAYMENT-RESPONSE')).toBeTruthy();
  });
});

describe('a key and a payment', () => {
  it('with enough credits: the payment is left alone, also by copies, also when the credits are spent by then', async () => {
    const key = await newKey(service, PRICE);
    const wallet = await newWallet(service);
    const before = await balanceOf(service.chain, wallet.account.address);
    const payment = payWith(await freshPayment(service, wallet));
    const copies = await Promise.all(Array.from({ length: 5 }, () => call({ ...withKey(key), ...payment })));
    const all = [...copies, await call({ ...withKey(key), ...payment })];
    expect(all.map((response) => [response.status, left(response)])).toEqual(all.map(() => [200, '0']));
    expect(new Set(await Promise.all(all.map((response) => response.text()))).size).toBe(1);
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before);
    // It was not used, so it still pays for another call.
    expect((await call({ ...withKey(key, 'next'), ...payment })).status).toBe(200);
    expect(await balanceOf(service.chain, wallet.account.address)).toBe(before - PRICE);
  });

  it('that cannot be settled beside spent credits is 402, and the key pays nothing', async () => {
    const key = await newKey(service, PRICE - 1n);
    const poor = await newWallet(service, false);
    const response = await call({ ...withKey(key, 'i'), ...payWith(await freshPayment(service, poor)) });
    await expectProblem(response, 402, 'payment_invalid');
  });
});

describe('200 callers at once', () => {
  it('with credits for 120: 120 are answered, 80 get 402, and nothing is left', async () => {
    const key = await newKey(service, 120n * PRICE);
    const responses = await Promise.all(
      Array.from({ length: 200 }, (_, n) => call(withKey(key), { ...EXAMPLE, targetTokens: 1_000 + n })),
    );
    const statuses = responses.map(({ status }) => status);
    expect([200, 402].map((status) => statuses.filter((each) => each === status).length)).toEqual([120, 80]);
    expect(responses.map(left).filter((credits) => credits === '0').length).toBeGreaterThan(0);
    expect(await expectProblem(await call(withKey(key)), 402, 'credits_spent')).toMatchObject({ credits: '0' });
  });
});

describe('POST /local/keys', () => {
  it('makes a key, in either spelling of credits, for local callers only', async () => {
    const make = (credits: unknown, headers = {}) => postJson(`${service.url}/local/keys`, { credits }, headers);
    const made = await make('1.5 USDC');
    expect(await made.json()).toEqual({
      id: expect.stringMatching(/^key_[0-9a-f]{16}$/),
      key: expect.stringMatching(/^cek_[1-9A-HJ-NP-Za-km-z]{40,44}$/),
      credits: '1500000',
    });
    for (const bad of [5, '-1', '1.5', '0.0000001 USDC', '', '9'.repeat(19)]) {
      expect((await make(bad)).status).toBe(400);
    }
    expect((await make('1', { Origin: 'https://page.example' })).status).toBe(403);
  });
});

describe('the log', () => {
  it('has no error of all this', () => {
    expect(service.errors).toEqual([]);
  });
});
