/** The paying fetch against the real service, through a proxy that breaks things: whatever happens, one signature and one charge. */
import fc from 'fast-check';
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  http,
  parseAbi,
  parseSignature,
  type Hex,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createPaidFetch, PaidFetchError, type PaidFetch, type PaidFetchOptions } from '../../src/client/paid-fetch.ts';
import { readPayment } from '../../src/client/payment.ts';
import { BASE_SEPOLIA } from '../../src/payment/networks.ts';
import { count } from '../../src/operations/count.ts';
import { LOCAL_POLLING_INTERVAL_MS } from '../../src/runtime/local-chain.ts';
import { receiptOf } from '../../src/runtime/receipt.ts';
import {
  balanceOf,
  decodeHeader,
  encodeHeader,
  EXAMPLE,
  newWallet,
  PRICE,
  startTestService,
  type TestService,
} from '../service.ts';
import { startProxy, type Fault, type Proxy } from './proxy.ts';

let service: TestService;
let proxy: Proxy;
beforeAll(async () => {
  service = await startTestService();
  proxy = await startProxy(service.url);
});
afterEach(() => {
  proxy.script();
  proxy.scriptPaid();
});
afterAll(async () => {
  await proxy.close();
  await service.close();
});

interface Payer {
  readonly pay: PaidFetch;
  readonly signatures: () => number;
  readonly charged: () => Promise<bigint>;
  readonly store: Map<string, string>;
  /** Another client of the same wallet and store, as after a restart. */
  readonly again: (options?: Partial<PaidFetchOptions>) => PaidFetch;
}

async function newPayer(options: Partial<PaidFetchOptions> = {}, funded = true): Promise<Payer> {
  const { account } = await newWallet(service, funded);
  let signed = 0;
  const counting = {
    address: account.address,
    signTypedData: (message: Parameters<typeof account.signTypedData>[0]): Promise<Hex> => {
      signed += 1;
      return account.signTypedData(message);
    },
  };
  const store = new Map<string, string>();
  const again: Payer['again'] = (others = {}) =>
    createPaidFetch(counting, {
      maxTotal: '1',
      store,
      retries: 0,
      ...options,
      ...others,
    });
  const before = await balanceOf(service.chain, account.address);
  const charged = async (): Promise<bigint> => before - (await balanceOf(service.chain, account.address));
  return { pay: again(), again, signatures: () => signed, charged, store };
}

/** A request that no other test sends. */
let unique = 0;
const newRequest = (): RequestInit => {
  unique += 1;
  return post({
    ...EXAMPLE,
    messages: EXAMPLE.messages.map((message, index) => (index === 5 ? { ...message, id: `u${unique}` } : message)),
  });
};
const post = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});
const url = (): string => `${proxy.url}/api/v1/conversation-prune`;

/** As before a service that does not say who it is. */
const publishingNothing: typeof fetch = (input, init) =>
  typeof input === 'string' && input.endsWith('/did.json')
    ? Promise.resolve(new Response('', { status: 404 }))
    : fetch(input, init);

const failureOf = async (call: Promise<unknown>): Promise<PaidFetchError> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PaidFetchError);
  return error as PaidFetchError;
};

describe('when all goes well', () => {
  it('pays once, hands over a verified answer, and keeps nothing but the total', async () => {
    const { pay, signatures, charged, store } = await newPayer();
    const response = await pay(url(), newRequest());
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ data: { status: 'pass' }, _provenance: {} });
    expect(response.headers.get('PAYMENT-RESPONSE')).toBeTruthy();
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
    expect([...store]).toEqual([['total', String(PRICE)]]);
  });

  it('buys anew when the same call is made after an answer was handed over', async () => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    await pay(url(), request);
    await pay(url(), request);
    expect([signatures(), await charged()]).toEqual([2, 2n * PRICE]);
  });

  it('shares one payment among 20 equal calls at once, and gives each the answer', async () => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    const responses = await Promise.all(Array.from({ length: 20 }, () => pay(url(), request)));
    const texts = await Promise.all(responses.map((response) => response.text()));
    expect([new Set(texts).size, responses.map(({ status }) => status)]).toEqual([1, responses.map(() => 200)]);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('pays for each of 20 different calls at once, and lets an Idempotency-Key tell equal ones apart', async () => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    const named = (name: string): RequestInit => ({
      ...request,
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': name },
    });
    const calls = [named('a'), named('b'), ...Array.from({ length: 18 }, newRequest)];
    const responses = await Promise.all(calls.map((init) => pay(url(), init)));
    expect(responses.every(({ status }) => status === 200)).toBe(true);
    expect([signatures(), await charged()]).toEqual([20, 20n * PRICE]);
  });

  it('takes a Request, a stream and bytes as a body', async () => {
    const { pay, signatures } = await newPayer();
    const text = newRequest().body as string;
    const { headers } = newRequest() as { headers: Record<string, string> };
    const bytes = new TextEncoder().encode(text);
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(bytes);
        controller.close();
      },
    });
    const streamed = { method: 'POST', headers, body: stream, duplex: 'half' } as RequestInit;
    for (const init of [streamed, { method: 'POST', headers, body: bytes }]) {
      expect((await pay(new Request(url(), init))).status).toBe(200);
    }
    expect(signatures()).toBe(2);
  });

  it('knows the answer to a request with half a surrogate pair in it, which asks for repair', async () => {
    const { pay, charged } = await newPayer();
    const messages = [{ role: 'user', content: 'half \ud83d' }];
    const response = await pay(
      url(),
      post({ format: 'openai-chat', messages, repair: true, cacheBreakpoint: -1, targetTokens: 100 }),
    );
    const repair = { path: '/messages/0/content', fault: 'split-surrogate' };
    expect(await response.json()).toMatchObject({ data: { repairs: [repair] } });
    expect(await charged()).toBe(PRICE);
  });

  it('gives the budget back for an answer that is signed as free', async () => {
    const { pay, charged, store } = await newPayer();
    const response = await pay(url(), post({ ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 }));
    expect(await response.json()).toMatchObject({ data: { status: 'unknown' } });
    expect([await charged(), [...store]]).toEqual([0n, [['total', '0']]]);
  });

  it('passes through what costs nothing', async () => {
    const { pay, signatures } = await newPayer();
    expect((await pay(`${proxy.url}/healthz`)).status).toBe(200);
    expect((await pay(`${proxy.url}/nothing`)).status).toBe(404);
    const refused = await pay(url(), post({ ...EXAMPLE, targetTokens: -1 }));
    expect([refused.status, await refused.json()]).toMatchObject([402, { refused: { path: '/targetTokens' } }]);
    expect(signatures()).toBe(0);
  });
});

describe('when the way is bad', () => {
  const FAULTS = [
    'refused',
    'lost',
    'cut in the middle',
    'doubled',
    'bad gateway',
    'gateway time-out',
    'settlement unknown',
    'facilitator down',
  ] as const satisfies readonly Fault[];

  it.each(FAULTS)('by itself it sends the same payment again: %s', async (fault) => {
    const { pay, signatures, charged } = await newPayer({ retries: 2 });
    proxy.scriptPaid(fault);
    expect((await pay(url(), newRequest())).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('any run of faults, with a caller who tries again and restarts in between: one signature, one charge', async () => {
    const step = fc.record({
      fault: fc.constantFrom<Fault>('none', ...FAULTS),
      restart: fc.boolean(),
      copies: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const { again, signatures, charged } = await newPayer();
        let pay = again();
        const request = newRequest();
        let answered = false;
        for (const { fault, restart, copies } of [...steps, { fault: 'none', restart: false, copies: 1 } as const]) {
          if (answered) break;
          if (restart) pay = again();
          proxy.scriptPaid(fault);
          const outcomes = await Promise.allSettled(Array.from({ length: copies }, () => pay(url(), request)));
          answered = outcomes.some((outcome) => outcome.status === 'fulfilled' && outcome.value.status === 200);
          expect(signatures()).toBe(1);
        }
        expect([answered, signatures(), await charged()]).toEqual([true, 1, PRICE]);
      }),
      { numRuns: 25 },
    );
  });

  it('hands over the last 503, keeps the payment, and sends it at the next call, after a restart too', async () => {
    const { pay, again, signatures, charged, store } = await newPayer({ retries: 1 });
    const request = newRequest();
    proxy.scriptPaid('settlement unknown', 'settlement unknown');
    const unknown = await pay(url(), request);
    expect([unknown.status, await unknown.json()]).toMatchObject([503, { code: 'settlement_unknown' }]);
    expect(store.size).toBe(2);
    expect((await again()(url(), request)).status).toBe(200);
    expect([signatures(), await charged(), store.size]).toEqual([1, PRICE, 1]);
  });

  it('says that nothing came, and that a payment may be out', async () => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    proxy.script('refused');
    expect(await failureOf(pay(url(), request))).toMatchObject({ code: 'network_failed', charged: false });
    proxy.scriptPaid('lost');
    expect(await failureOf(pay(url(), request))).toMatchObject({ code: 'network_failed', charged: 'unknown' });
    expect(signatures()).toBe(1);
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('asks a service no more that wants more patience than it has', async () => {
    const { pay } = await newPayer({ retries: 5 });
    const before = proxy.count();
    proxy.script({
      rewrite: ({ body }) => ({ status: 503, headers: { 'retry-after': '3600' }, body }),
    });
    expect((await pay(url(), newRequest())).status).toBe(503);
    expect(proxy.count() - before).toBe(1);
  });

  it('goes on after an attempt that is never answered', async () => {
    const { pay, signatures, charged } = await newPayer({ retries: 1, attemptTimeoutMs: 1_500 });
    proxy.scriptPaid('never answered');
    expect((await pay(url(), newRequest())).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('outlasts a chain that stops for a while', async () => {
    const { pay, signatures, charged } = await newPayer({ retries: 0, attemptTimeoutMs: 1_500 });
    const test = createTestClient({ mode: 'anvil', chain: BASE_SEPOLIA, transport: http(service.chain.rpcUrl) });
    const request = newRequest();
    await test.setAutomine(false);
    try {
      expect(await failureOf(pay(url(), request))).toMatchObject({ code: 'network_failed', charged: 'unknown' });
      expect(await charged()).toBe(0n);
    } finally {
      // In this order, as a run hung once where the chain mined by itself and was told to mine as well.
      await test.mine({ blocks: 1 });
      await test.setAutomine(true);
    }
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });
});

describe('when the caller leaves', () => {
  it('throws his reason, keeps the payment, and takes it up when he comes back', async () => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    const controller = new AbortController();
    proxy.scriptPaid({
      rewrite: (passed) => {
        controller.abort(new Error('enough'));
        return passed;
      },
    });
    await expect(pay(url(), { ...request, signal: controller.signal })).rejects.toThrow('enough');
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('hands the answer over all the same if he leaves when the purchase has ended', async () => {
    const controller = new AbortController();
    const map = new Map<string, string>();
    const store = {
      get: (key: string) => map.get(key),
      set: (key: string, value: string) => map.set(key, value),
      delete: (key: string) => {
        controller.abort(new Error('enough'));
        return Promise.resolve(map.delete(key));
      },
    };
    const { pay } = await newPayer({ store });
    const response = await pay(url(), { ...newRequest(), signal: controller.signal });
    expect([response.status, [...map.keys()]]).toEqual([200, ['total']]);
  });

  it('lets the others of the same call stay', async () => {
    const { pay, signatures } = await newPayer();
    const request = newRequest();
    const controller = new AbortController();
    proxy.scriptPaid({
      rewrite: (passed) => {
        controller.abort(new Error('enough'));
        return passed;
      },
    });
    const [left, stayed] = await Promise.allSettled([
      pay(url(), { ...request, signal: controller.signal }),
      pay(url(), request),
    ]);
    expect(left.status).toBe('rejected');
    expect(stayed).toMatchObject({ status: 'fulfilled', value: { status: 200 } });
    expect(signatures()).toBe(1);
  });

  it('does not begin for one who has left already', async () => {
    const { pay } = await newPayer();
    const before = proxy.count();
    await expect(pay(url(), { ...newRequest(), signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone');
    expect(proxy.count()).toBe(before);
  });
});

describe('what it does not sign', () => {
  const challenge = (change: (offer: Record<string, unknown>) => object): Fault => ({
    rewrite: ({ headers, ...passed }) => {
      const required = JSON.parse(atob(String(headers['payment-required']))) as { accepts: Record<string, unknown>[] };
      const accepts = required.accepts.map((offer) => ({ ...offer, ...change(offer) }));
      return { ...passed, headers: { ...headers, 'payment-required': encodeHeader({ ...required, accepts }) } };
    },
  });
  const other = `0x${'12'.repeat(20)}`;

  it.each<[string, () => Fault, Partial<PaidFetchOptions>, string]>([
    ['more than a call may cost', () => 'none', { maxPerCall: 4_999n }, 'over_call_limit'],
    ['more than all may cost', () => 'none', { maxTotal: '0.004999' }, 'over_total_limit'],
    ['another payee than the pinned one', () => 'none', { payTo: other }, 'payee_not_pinned'],
    ['for another network', () => challenge(() => ({ network: 'eip155:1' })), {}, 'no_acceptable_offer'],
    ['with another token', () => challenge(() => ({ asset: other })), {}, 'no_acceptable_offer'],
    ['a scheme it does not know', () => challenge(() => ({ scheme: 'upto' })), {}, 'no_acceptable_offer'],
    ['a permit', () => challenge(() => ({ extra: { assetTransferMethod: 'permit2' } })), {}, 'no_acceptable_offer'],
    ['what is taken first', () => challenge(() => ({ extra: { paymentFlow: 'upfront' } })), {}, 'no_acceptable_offer'],
    ['a payment good for years', () => challenge(() => ({ maxTimeoutSeconds: 1e9 })), {}, 'no_acceptable_offer'],
    ['a higher price than told', () => challenge(() => ({ amount: '50001' })), {}, 'over_call_limit'],
    ['half an amount', () => challenge(() => ({ amount: '0.5' })), {}, 'no_acceptable_offer'],
    [
      'nothing readable',
      () => ({ rewrite: () => ({ status: 402, headers: {}, body: Buffer.from('pay!') }) }),
      {},
      'no_acceptable_offer',
    ],
  ])('%s', async (_, fault, options, code) => {
    const { pay, signatures, store } = await newPayer(options);
    proxy.script(fault());
    expect(await failureOf(pay(url(), newRequest()))).toMatchObject({ code, charged: false });
    expect([signatures(), [...store.keys()].filter((key) => key !== 'total')]).toEqual([0, []]);
  });

  it('anything past the total, over all calls at once and over restarts', async () => {
    const { pay, again, signatures, charged } = await newPayer({ maxTotal: '0.015' });
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => pay(url(), newRequest())));
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(3);
    expect(await failureOf(again()(url(), newRequest()))).toMatchObject({ code: 'over_total_limit' });
    expect([signatures(), await charged()]).toEqual([3, 3n * PRICE]);
  });

  it('for a service that publishes another issuer than the named one', async () => {
    const stranger = await startTestService();
    const named = await newPayer({ issuer: stranger.did });
    await stranger.close();
    expect(await failureOf(named.pay(url(), newRequest()))).toMatchObject({
      code: 'issuer_unavailable',
      charged: false,
    });
    expect([named.signatures(), [...named.store]]).toEqual([0, []]);
    const right = await newPayer({ issuer: service.did });
    expect((await right.pay(url(), newRequest())).status).toBe(200);
  });

  it('for an issuer whose keys it cannot get', async () => {
    const { pay, signatures } = await newPayer({ issuer: 'did:web:nobody.invalid' });
    expect(await failureOf(pay(url(), newRequest()))).toMatchObject({ code: 'issuer_unavailable', charged: false });
    expect(signatures()).toBe(0);
  });

  it('when the wallet will not, and takes nothing off the total then', async () => {
    const store = new Map<string, string>();
    const { account } = await newWallet(service, false);
    const refuse = { address: account.address, signTypedData: () => Promise.reject(new Error('no')) };
    const pay = createPaidFetch(refuse, { maxTotal: '1', store });
    expect(await failureOf(pay(url(), newRequest()))).toMatchObject({ code: 'signing_failed' });
    expect([...store]).toEqual([['total', '0']]);
  });

  it('to pay the pinned payee it does', async () => {
    for (const payTo of [service.chain.payTo, { [proxy.url]: service.chain.payTo.toUpperCase().replace('0X', '0x') }]) {
      const { pay } = await newPayer({ payTo });
      expect((await pay(url(), newRequest())).status).toBe(200);
    }
  });
});

/** A did:key of nobody here. */
const STRANGER = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK';

describe('what it does not hand over', () => {
  const answer = (change: (text: string) => string): Fault => ({
    rewrite: ({ status, headers, body }) => ({ status, headers, body: Buffer.from(change(body.toString())) }),
  });

  it.each<[string, () => Fault]>([
    ['a changed digit', () => answer((text) => text.replace('"tokensBefore":6', '"tokensBefore":7'))],
    [
      'an answer without evidence',
      () => answer((text) => JSON.stringify({ data: (JSON.parse(text) as { data: object }).data })),
    ],
    ['a member beside it', () => answer((text) => text.replace('{', '{"extra":1,'))],
    ['no JSON', () => answer(() => '<h1>Welcome to the hotel</h1>')],
  ])('%s; the payment stays, and brings the true answer', async (_, fault) => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    proxy.scriptPaid(fault());
    const error = await failureOf(pay(url(), request));
    expect(error).toMatchObject({ code: 'answer_unverified', charged: 'unknown' });
    expect(error.failure.code === 'answer_unverified' && error.failure.response.status).toBe(200);
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('a true answer to another call: of another request, operation or payment, or a sample', async () => {
    const saved: Record<string, Buffer> = {};
    const save = (name: string): Fault => ({
      rewrite: (passed) => {
        saved[name] = passed.body;
        return passed;
      },
    });
    const request = newRequest();
    const honest = await newPayer();
    proxy.scriptPaid(save('another payer'));
    await honest.pay(url(), request);
    const { pay, signatures } = await newPayer();
    proxy.scriptPaid(save('an earlier payment'));
    await pay(url(), request);
    proxy.scriptPaid(save('another request'));
    await pay(url(), newRequest());
    proxy.scriptPaid(save('another operation'));
    await pay(`${proxy.url}/api/v1/count`, post(count.example));
    const sample = (await (await fetch(`${service.url}/api/v1/samples/conversation-prune`)).json()) as {
      response: object;
    };
    saved['a sample'] = Buffer.from(JSON.stringify(sample.response));
    const before = signatures();
    const give = (body: Buffer | undefined): Fault => ({
      rewrite: ({ status, headers }) => ({ status, headers, body: body ?? Buffer.of() }),
    });
    for (const name of ['another payer', 'an earlier payment', 'another request', 'another operation']) {
      proxy.scriptPaid(give(saved[name]));
      expect(await failureOf(pay(url(), request)), name).toMatchObject({ code: 'answer_unverified' });
    }
    proxy.scriptPaid(give(saved['a sample']));
    expect(await failureOf(pay(url(), post(EXAMPLE)))).toMatchObject({ failure: { reason: 'it is a sample' } });
    expect(signatures()).toBe(before + 2);
  });

  it('an answer of another issuer than the named one, and does not pay again for it', async () => {
    const stranger = await startTestService();
    const { again, signatures, charged } = await newPayer({ issuer: stranger.did, fetch: publishingNothing });
    await stranger.close();
    const request = newRequest();
    for (let time = 0; time < 3; time += 1) {
      const error = await failureOf(again()(url(), request));
      expect(error.failure).toMatchObject({ code: 'answer_unverified', verification: { outcome: 'unverifiable' } });
    }
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
    expect((await again({ issuer: service.did })(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('an answer that an API key paid for, unless it is verified like any other', async () => {
    const withKey = (init: RequestInit): RequestInit => ({
      ...init,
      headers: { 'Content-Type': 'application/json', 'X-API-KEY': 'k' },
    });
    const { pay, signatures } = await newPayer();
    const request = newRequest();
    const genuine = Buffer.from(await (await pay(url(), request)).arrayBuffer());
    const give = (body: Buffer): Fault => ({
      rewrite: () => ({ status: 200, headers: { 'content-type': 'application/json' }, body }),
    });
    proxy.script(give(genuine));
    expect((await pay(url(), withKey(request))).status).toBe(200);
    proxy.script(give(genuine));
    expect(await failureOf(pay(url(), withKey(newRequest())))).toMatchObject({
      code: 'answer_unverified',
      charged: false,
    });
    proxy.script(give(genuine));
    const other = pay(`${proxy.url}/api/v1/prune`, withKey(request));
    expect(await failureOf(other)).toMatchObject({ failure: { reason: 'it answers another operation' } });
    expect(signatures()).toBe(1);
  });

  it('an answer to somebody else’s call under the same Idempotency-Key', async () => {
    const named: RequestInit = {
      ...newRequest(),
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'monday' },
    };
    const theirs = await newPayer();
    const body = Buffer.from(await (await theirs.pay(url(), named)).arrayBuffer());
    const { pay } = await newPayer();
    proxy.scriptPaid({ rewrite: ({ status, headers }) => ({ status, headers, body }) });
    expect(await failureOf(pay(url(), named))).toMatchObject({ failure: { reason: 'it was paid by somebody else' } });
    expect((await pay(url(), named)).status).toBe(200);
  });

  it('an answer by a key that the issuer did not have when it was asked; it is asked once more', async () => {
    let asked = 0;
    const stale: typeof fetch = async (input, init) => {
      if (!String(input instanceof Request ? input.url : input).endsWith('/did.json')) return fetch(input, init);
      asked += 1;
      return asked === 1 ? Response.json({ id: STRANGER }) : fetch(input, init);
    };
    const { pay, signatures } = await newPayer({ fetch: stale });
    expect((await pay(url(), newRequest())).status).toBe(200);
    expect((await pay(url(), newRequest())).status).toBe(200);
    expect([asked, signatures()]).toEqual([2, 2]);
  });

  it('a redirection, paid or not', async () => {
    const { pay, signatures } = await newPayer();
    const elsewhere: Fault = {
      rewrite: () => ({ status: 307, headers: { location: `${service.url}/healthz` }, body: Buffer.of() }),
    };
    const request = newRequest();
    proxy.script(elsewhere);
    expect(await failureOf(pay(url(), request))).toMatchObject({ code: 'redirected', charged: false });
    proxy.scriptPaid(elsewhere);
    expect(await failureOf(pay(url(), request))).toMatchObject({ code: 'redirected', charged: 'unknown' });
    expect((await pay(url(), request)).status).toBe(200);
    expect(signatures()).toBe(1);
  });
});

describe('when a payment is done with', () => {
  const refuse = (code: string): Fault => ({
    strip: true,
    rewrite: ({ status, headers, body }) => ({
      status,
      headers,
      body: Buffer.from(JSON.stringify({ ...(JSON.parse(body.toString()) as object), code })),
    }),
  });

  it('after payment_failed the next call signs anew', async () => {
    const { pay, signatures, charged } = await newPayer();
    const request = newRequest();
    proxy.scriptPaid(refuse('payment_failed'));
    expect((await pay(url(), request)).status).toBe(402);
    expect(signatures()).toBe(1);
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([2, PRICE]);
  });

  it.each(['payment_invalid', 'payment_expires_too_soon', 'payment_required', 'anything'])(
    'a 402 with %s does not end one that is still valid',
    async (code) => {
      const { pay, signatures, charged } = await newPayer();
      const request = newRequest();
      proxy.scriptPaid(refuse(code));
      expect((await pay(url(), request)).status).toBe(402);
      expect((await pay(url(), request)).status).toBe(200);
      expect([signatures(), await charged()]).toEqual([1, PRICE]);
    },
  );

  it('a wallet that was empty pays by the same signature once it is funded', async () => {
    const { pay, signatures, store } = await newPayer({}, false);
    const request = newRequest();
    const refused = await pay(url(), request);
    expect([refused.status, await refused.json()]).toMatchObject([402, { code: 'payment_invalid' }]);
    const header = [...store.values()].find((value) => value.length > 100) ?? '';
    const from = readPayment(header)?.payer as Hex;
    await service.chain.mint(from, PRICE);
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await balanceOf(service.chain, from)]).toEqual([1, 0n]);
  });

  it('one that has run out unused makes place for another, in the same call', async () => {
    const { again, signatures, charged } = await newPayer();
    const request = newRequest();
    proxy.scriptPaid('refused');
    const tenMinutesAgo = new Date(Date.now() - 600_000);
    await failureOf(again({ now: () => tenMinutesAgo })(url(), request));
    expect((await again()(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([2, PRICE]);
  });

  it('one that ran out after it was taken still brings its answer', async () => {
    const { again, signatures, charged } = await newPayer();
    const request = newRequest();
    proxy.scriptPaid('lost');
    await failureOf(again()(url(), request));
    const inAnHour = new Date(Date.now() + 3_600_000);
    expect((await again({ now: () => inAnHour })(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
  });

  it('one that was spent elsewhere is not followed by another until the caller says so', async () => {
    const { pay, signatures, charged, store } = await newPayer();
    const request = newRequest();
    proxy.scriptPaid('refused');
    await failureOf(pay(url(), request));
    await spend([...store.values()].find((value) => value.length > 100) ?? '');
    for (let time = 0; time < 3; time += 1) {
      const spent = await pay(url(), request);
      expect([spent.status, await spent.json()]).toMatchObject([409, { code: 'payment_spent' }]);
    }
    expect([signatures(), await charged()]).toEqual([1, PRICE]);
    await pay.forget(url(), request);
    expect((await pay(url(), request)).status).toBe(200);
    expect([signatures(), await charged()]).toEqual([2, 2n * PRICE]);
  });

  it('a store that was tampered with stops it', async () => {
    const { pay, store, signatures } = await newPayer();
    const request = newRequest();
    proxy.scriptPaid('refused');
    await failureOf(pay(url(), request));
    for (const key of store.keys()) store.set(key, 'x');
    expect(await failureOf(pay(url(), request))).toMatchObject({ code: 'store_broken' });
    expect(await failureOf(pay(url(), newRequest()))).toMatchObject({ code: 'store_broken' });
    expect(signatures()).toBe(1);
  });
});

/** Settles a payment past the service, as anyone can who holds it. */
async function spend(header: string): Promise<void> {
  const { signature, authorization } = decodeHeader(header).payload as {
    signature: Hex;
    authorization: { from: Hex; to: Hex; value: string; validBefore: string; nonce: Hex };
  };
  const { from, to, value, validBefore, nonce } = authorization;
  const { v, yParity, r, s } = parseSignature(signature);
  const account = privateKeyToAccount(service.chain.facilitatorKey);
  const connection = { chain: BASE_SEPOLIA, transport: http(service.chain.rpcUrl) };
  const hash = await createWalletClient({ ...connection, account }).writeContract({
    address: service.chain.usdc,
    abi: parseAbi([
      'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
    ]),
    functionName: 'transferWithAuthorization',
    args: [from, to, BigInt(value), 0n, BigInt(validBefore), nonce, Number(v ?? 27 + yParity), r, s],
  });
  await receiptOf(createPublicClient(connection), hash, LOCAL_POLLING_INTERVAL_MS);
  service.paidOutside(BigInt(value));
}
