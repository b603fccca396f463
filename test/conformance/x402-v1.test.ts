/** The v1 packages' own client (x402-fetch) against a whole service on the real local chain, and one payment in both protocols. */
import type { PaymentRequired } from '@x402/core/types';
import { extractReceiptFromResponse, verifyReceiptSignatureJWS } from '@x402/extensions/offer-receipt';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch';
import { operations } from '../../src/operations/list.ts';
import {
  balanceOf,
  encodeHeader,
  EXAMPLE,
  freshPayment,
  payWith,
  postJson,
  PRICE,
  requiredOf,
  startTestService,
  type TestService,
} from '../service.ts';

const FUNDS = 10_000_000n;
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  expect(service.errors).toEqual([]);
  await service.close();
});

async function newAccount(): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  await postJson(`${service.url}/local/faucet`, { address: account.address });
  return account;
}
const spent = async ({ address }: PrivateKeyAccount): Promise<bigint> =>
  FUNDS - (await balanceOf(service.chain, address));
const init = (body: unknown = EXAMPLE): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});
const payV1 = (header: string): Record<string, string> => ({ 'X-PAYMENT': header });

/** A payment that x402-fetch has signed, and that never went out. */
async function signedV1(account?: PrivateKeyAccount): Promise<{ account: PrivateKeyAccount; header: string }> {
  const signer = account ?? (await newAccount());
  let header: string | undefined;
  const intercepting: typeof fetch = (input, options) => {
    header = new Headers(options?.headers).get('X-PAYMENT') ?? undefined;
    return header === undefined ? fetch(input, options) : Promise.resolve(new Response());
  };
  await wrapFetchWithPayment(intercepting, signer)(service.endpoint, init());
  if (header === undefined) throw new Error('nothing was signed');
  return { account: signer, header };
}

interface V1Payload {
  payload: { signature: string; authorization: Record<string, string> };
}
const decode = (header: string): V1Payload => JSON.parse(atob(header)) as V1Payload;

/** The same authorization as v2 carries it. */
async function asV2(header: string): Promise<string> {
  const { accepts, resource }: PaymentRequired = requiredOf(await fetch(service.endpoint, { method: 'POST' }));
  return encodeHeader({ x402Version: 2, resource, accepted: accepts[0], payload: decode(header).payload });
}

describe('x402-fetch, unmodified', () => {
  it('pays once and is answered; its own reader understands the settlement', async () => {
    const account = await newAccount();
    const response = await wrapFetchWithPayment(fetch, account)(service.endpoint, init());
    expect(response.status).toBe(200);
    expect(response.headers.get('Cache-Control')).toBe('private, no-store');
    expect(await response.clone().json()).toMatchObject({ data: { status: 'pass' }, _provenance: {} });
    const settlement = decodeXPaymentResponse(response.headers.get('X-PAYMENT-RESPONSE') ?? '');
    expect(settlement).toMatchObject({
      success: true,
      network: 'base-sepolia',
      payer: account.address.toLowerCase(),
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    expect(await spent(account)).toBe(PRICE);
    const receipt = extractReceiptFromResponse(response);
    if (receipt?.format !== 'jws') throw new Error('no receipt');
    const { transaction } = settlement;
    expect(await verifyReceiptSignatureJWS(receipt)).toMatchObject({ network: 'eip155:84532', transaction });
  });

  it('pays for every operation', async () => {
    const account = await newAccount();
    const pay = wrapFetchWithPayment(fetch, account);
    for (const { id, example } of operations) {
      expect([id, (await pay(`${service.url}/api/v1/${id}`, init(example))).status]).toEqual([id, 200]);
    }
    expect(await spent(account)).toBe(operations.reduce((sum, { price }) => sum + BigInt(price), 0n));
  });

  it('asks no more than it was told to pay', async () => {
    const pay = wrapFetchWithPayment(fetch, await newAccount(), PRICE - 1n);
    await expect(pay(service.endpoint, init())).rejects.toThrow('exceeds maximum');
  });
});

describe('one authorization', () => {
  it.each([
    ['v1, then v2', [payV1, payWith]],
    ['v2, then v1', [payWith, payV1]],
  ] as const)('sent as %s is one payment with one answer', async (_, order) => {
    const { account, header } = await signedV1();
    const headers = new Map([
      [payV1, header],
      [payWith, await asV2(header)],
    ]);
    const answers = [];
    for (const carry of [...order, ...order]) {
      const response = await postJson(service.endpoint, EXAMPLE, carry(headers.get(carry) ?? ''));
      expect(response.headers.has('X-PAYMENT-RESPONSE')).toBe(carry === payV1);
      answers.push([response.status, response.headers.get('PAYMENT-RESPONSE'), await response.text()]);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]?.[0]).toBe(200);
    expect(await spent(account)).toBe(PRICE);
  });

  it('sent in both at once, twenty times, runs and is charged once', async () => {
    const { account, header } = await signedV1();
    const v2 = await asV2(header);
    const copies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => postJson(service.endpoint, EXAMPLE, n % 2 ? payWith(v2) : payV1(header))),
    );
    expect(new Set(await Promise.all(copies.map((copy) => copy.text()))).size).toBe(1);
    expect(new Set(copies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await spent(account)).toBe(PRICE);
  });

  it('buys one request, whichever protocol carries it', async () => {
    const { account, header } = await signedV1();
    expect((await postJson(service.endpoint, EXAMPLE, payV1(header))).status).toBe(200);
    for (const carried of [payV1(header), payWith(await asV2(header))]) {
      const reused = await postJson(service.endpoint, { ...EXAMPLE, targetTokens: 1 }, carried);
      expect([reused.status, await reused.json()]).toMatchObject([409, { code: 'payment_reused' }]);
    }
    expect(await spent(account)).toBe(PRICE);
  });

  it('that is changed in v1 is refused as in v2, and nothing is taken', async () => {
    const { account, header } = await signedV1();
    const { payload, ...rest } = decode(header);
    const changed = (member: Record<string, string>): string =>
      encodeHeader({ ...rest, payload: { ...payload, authorization: { ...payload.authorization, ...member } } });
    const soon = String(Math.floor(Date.now() / 1_000) + 10);
    const codes: [Record<string, string>, object][] = [
      [{ value: '1' }, { code: 'payment_invalid', error: expect.stringContaining('no_matching_requirements') }],
      [
        { to: account.address },
        { code: 'payment_invalid', error: expect.stringContaining('no_matching_requirements') },
      ],
      [{ validBefore: soon }, { code: 'payment_expires_too_soon' }],
      [{ nonce: `0x${'12'.repeat(32)}` }, { code: 'payment_invalid' }],
    ];
    for (const [member, problem] of codes) {
      const refused = await postJson(service.endpoint, EXAMPLE, payV1(changed(member)));
      expect([refused.status, await refused.json()]).toMatchObject([
        402,
        { ...problem, x402Version: 1, charged: false },
      ]);
      expect(requiredOf(refused).x402Version).toBe(2);
    }
    expect(await spent(account)).toBe(0n);
  });
});

describe('a payment header that is none', () => {
  test.each<[string, (header: string) => Promise<Record<string, string>>]>([
    ['junk in X-PAYMENT', async () => payV1('%%%')],
    ['nothing in X-PAYMENT', async () => payV1('')],
    ['a v2 payment in X-PAYMENT', async (header) => payV1(await asV2(header))],
    ['a v1 payment in PAYMENT-SIGNATURE', async (header) => payWith(header)],
    ['one in each', async (header) => ({ ...payV1(header), ...payWith(await asV2(header)) })],
    ['two different ones', async (header) => ({ ...payV1(header), ...payWith(await freshPayment(service)) })],
  ])('%s: 400, and nothing is taken', async (_, carry) => {
    const { account, header } = await signedV1();
    const refused = await postJson(service.endpoint, EXAMPLE, await carry(header));
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'malformed_payment', charged: false }]);
    // It is as good as before.
    expect((await postJson(service.endpoint, EXAMPLE, payV1(header))).status).toBe(200);
    expect(await spent(account)).toBe(PRICE);
  });
});

describe('where every payment needs an identifier', () => {
  it('v1 is asked for nothing, so x402-fetch signs nothing, and a v1 payment is 400', async () => {
    const strict = await startTestService({ PAYMENT_IDENTIFIER: 'required' });
    const unpaid = await fetch(strict.endpoint, { method: 'POST' });
    expect(await unpaid.json()).toMatchObject({ x402Version: 1, accepts: [] });
    await expect(wrapFetchWithPayment(fetch, await newAccount())(strict.endpoint, init())).rejects.toThrow();
    const refused = await postJson(strict.endpoint, EXAMPLE, payV1((await signedV1()).header));
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'malformed_payment' }]);
    await strict.close();
  });
});
