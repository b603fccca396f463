/** What every answer tells browsers and caches, status by status: any origin may read it, nothing private is kept, all headers are small. */
import type { PaymentRequired } from '@x402/core/types';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp, type AppDependencies } from '../../src/app.ts';
import { assemble } from '../../src/operations/assemble.ts';
import { operations } from '../../src/operations/list.ts';
import { DEFAULT_CONTEXT } from '../../src/operations/run-context.ts';
import { BASE_SEPOLIA_USDC } from '../../src/payment/networks.ts';
import { createOfferKey, declareOffers } from '../../src/payment/offer-receipt.ts';
import { didDocument, didKey } from '../../src/provenance/did.ts';
import { createSigner } from '../../src/provenance/ed25519.ts';
import { issuerOf } from '../../src/provenance/envelope.ts';
import {
  decodeHeader,
  encodeHeader,
  EXAMPLE,
  freshPayment,
  newKey,
  newWallet,
  payWith,
  postJson,
  requiredOf,
  startTestService,
  type TestService,
} from '../service.ts';

const BODY_LIMIT_BYTES = 100_000;
const PAGE = { Origin: 'https://page.example' };
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) });
});
afterAll(() => service.close());

const paid = async (body: unknown, path = '/api/v1/conversation-prune'): Promise<Response> =>
  postJson(service.url + path, body, {
    ...PAGE,
    ...payWith(await freshPayment(service, undefined, service.url + path)),
  });

const keyed = async (credits: bigint): Promise<Response> =>
  postJson(service.endpoint, EXAMPLE, { ...PAGE, 'X-API-KEY': await newKey(service, credits) });

/** Uses up a payment that brings only answers that are not charged. */
async function exhausted(): Promise<Response> {
  const payment = payWith(await freshPayment(service));
  const free = { ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 };
  for (let time = 0; time < 3; time += 1) await postJson(service.endpoint, free, payment);
  return postJson(service.endpoint, free, { ...PAGE, ...payment });
}

async function reused(): Promise<Response> {
  const payment = payWith(await freshPayment(service));
  await postJson(service.endpoint, EXAMPLE, payment);
  return postJson(service.endpoint, { ...EXAMPLE, targetTokens: 1 }, { ...PAGE, ...payment });
}

/** A payment as v1 carries it: the same authorization. */
async function v1(): Promise<Record<string, string>> {
  const { payload } = decodeHeader(await freshPayment(service));
  return { 'X-PAYMENT': encodeHeader({ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }) };
}

const overflowing = {
  ...(assemble.example as object),
  model: { id: 'tiny', limits: { context_window: 300, max_output_tokens: 200 } },
};

const HEADERS_MAX_BYTES = 8_000;

function expectOpen(response: Response): void {
  const { headers } = response;
  expect(headers.get('Access-Control-Allow-Origin')).toBe('*');
  expect(headers.get('Access-Control-Allow-Credentials')).toBeNull();
  expect(headers.get('Access-Control-Expose-Headers')?.split(', ')).toEqual([
    'PAYMENT-REQUIRED',
    'PAYMENT-RESPONSE',
    'X-PAYMENT-RESPONSE',
    'X-Credits-Remaining',
    'Retry-After',
    'X-Request-Id',
  ]);
  expect(headers.get('X-Request-Id')).toBeTruthy();
  expect(bytesOf(headers)).toBeLessThan(HEADERS_MAX_BYTES);
}

/** As HTTP/1.1 sends them: name, colon, space, value, line end. */
const bytesOf = (headers: Headers): number =>
  [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);

const PRIVATE = 'private, no-store';
const get = (path: string, init: { method?: string; body?: string; headers?: Record<string, string> } = {}) =>
  fetch(service.url + path, { ...init, headers: { ...PAGE, ...init.headers } });

describe('every status', () => {
  it.each<[string, number, string, () => Promise<Response>]>([
    ['a paid answer', 200, PRIVATE, () => paid(EXAMPLE)],
    [
      'a paid answer that costs nothing',
      200,
      PRIVATE,
      () => paid({ ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 }),
    ],
    ['a keyed answer', 200, PRIVATE, () => keyed(1_000_000n)],
    ['spent credits', 402, PRIVATE, () => keyed(0n)],
    ['a wrong key', 401, 'no-store', () => postJson(service.endpoint, EXAMPLE, { ...PAGE, 'X-API-KEY': 'cek_1' })],
    ['the index', 200, 'public, max-age=60', () => get('/')],
    ['the DID document', 200, 'public, max-age=60', () => get('/.well-known/did.json')],
    ['a sample', 200, 'no-store', () => get('/api/v1/samples/count')],
    ['health', 200, 'no-store', () => get('/healthz')],
    ['readiness', 200, 'no-store', () => get('/readyz')],
    ['a HEAD', 200, 'no-store', () => get('/healthz', { method: 'HEAD' })],
    [
      'a verdict',
      200,
      'no-store',
      () =>
        postJson(
          `${service.url}/verify-provenance`,
          { data: 1, _provenance: { manifest: {}, credential: { proof: {} } } },
          PAGE,
        ),
    ],
    ['a body that is refused', 400, 'no-store', () => paid({})],
    [
      'a payment that is none',
      400,
      'no-store',
      () => postJson(service.endpoint, EXAMPLE, { ...PAGE, ...payWith('x') }),
    ],
    ['a challenge', 402, PRIVATE, () => postJson(service.endpoint, EXAMPLE, PAGE)],
    ['a challenge to nothing', 402, PRIVATE, () => get('/api/v1/conversation-prune', { method: 'POST' })],
    ...operations.map(({ id }): [string, number, string, () => Promise<Response>] => [
      `a challenge of ${id}, whose body is refused`,
      402,
      PRIVATE,
      () => postJson(`${service.url}/api/v1/${id}`, { messages: 'x' }, PAGE),
    ]),
    [
      'a paid answer of v1',
      200,
      PRIVATE,
      async () => postJson(service.endpoint, EXAMPLE, { ...PAGE, ...(await v1()) }),
    ],
    ['a path that is none', 404, 'no-store', () => get('/nothing')],
    ['a method that is none', 405, 'no-store', () => get('/api/v1/count')],
    ['OPTIONS that is no preflight', 405, 'no-store', () => get('/api/v1/count', { method: 'OPTIONS' })],
    ['a payment of another request', 409, 'no-store', reused],
    ['too large a body', 413, 'no-store', () => paid(' '.repeat(BODY_LIMIT_BYTES + 1))],
    [
      'no JSON',
      415,
      'no-store',
      () => get('/verify-provenance', { method: 'POST', body: 'x', headers: { 'Content-Type': 'text/plain' } }),
    ],
    ['a context that cannot fit', 422, 'no-store', () => paid(overflowing, '/api/v1/assemble')],
    ['a payment that is used up', 429, 'no-store', exhausted],
  ])('%s: %d, %s', async (_, status, cacheControl, ask) => {
    const response = await ask();
    expect([response.status, response.headers.get('Cache-Control')]).toEqual([status, cacheControl]);
    expectOpen(response);
  });

  it('500, and 503 in all its kinds', async () => {
    const broken = await brokenApp();
    const cases: [number, Request][] = [
      [500, new Request('http://127.0.0.1/readyz')],
      [503, new Request('http://127.0.0.1/api/v1/count', { method: 'POST' })],
      [
        503,
        new Request('http://127.0.0.1/api/v1/count', { method: 'POST', headers: payWith(await freshPayment(service)) }),
      ],
      [503, new Request('http://127.0.0.1/api/v1/count', { method: 'POST', headers: { 'X-API-KEY': 'cek_1' } })],
    ];
    const codes: unknown[] = [];
    for (const [status, request] of cases) {
      const response = await broken(request);
      expect([response.status, response.headers.get('Cache-Control')]).toEqual([status, 'no-store']);
      expectOpen(response);
      codes.push(((await response.json()) as { code: string }).code);
    }
    expect(codes).toEqual(['internal_error', 'facilitator_unavailable', 'settlement_unknown', 'debit_unknown']);
  });
});

describe('what a payment has to repeat', () => {
  /** nginx takes no longer header line (large_client_header_buffers), and Node no more than 16 KiB in all. */
  const LINE_MAX_BYTES = 8_192;
  /** A longer host than most. */
  const HOST = `${'a'.repeat(63)}.${'b'.repeat(63)}.example.com`;

  it.each(operations.map(({ id }) => id))('fits one line: %s', async (id) => {
    const wallet = await newWallet(service);
    const unpaid = await fetch(`${service.url}/api/v1/${id}`, { method: 'POST' });
    const required = requiredOf(unpaid);
    expect(Object.keys(required.extensions ?? {})).toEqual(['payment-identifier', 'offer-receipt', 'bazaar']);
    const withId = structuredClone(required) as Required<PaymentRequired>;
    Object.assign((withId.extensions['payment-identifier'] as { info: object }).info, { id: 'x'.repeat(128) });
    const elsewhere = JSON.parse(
      JSON.stringify(withId).replaceAll(service.url, `https://${HOST}`),
    ) as Required<PaymentRequired>;
    const key = await createOfferKey(new Uint8Array(32), `did:web:${HOST}`);
    const offers = await declareOffers(key, elsewhere.resource.url, required.accepts, Date.now() / 1_000);
    Object.assign(elsewhere.extensions, offers);
    for (const challenge of [withId, elsewhere]) {
      const header = await wallet.sign(challenge);
      expect(`PAYMENT-SIGNATURE: ${header}\r\n`.length).toBeLessThan(LINE_MAX_BYTES);
    }
  });
});

describe('a preflight', () => {
  /** What the stock client sends, what v1 clients send, and ours. */
  const SENT = 'content-type, payment-signature, x-payment, idempotency-key, x-api-key, access-control-expose-headers';
  const preflight = (path: string, origin = PAGE.Origin): Promise<Response> =>
    fetch(service.url + path, {
      method: 'OPTIONS',
      headers: { Origin: origin, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': SENT },
    });

  it.each(['/', '/nothing', '/verify-provenance', ...operations.map(({ id }) => `/api/v1/${id}`)])(
    'is granted for %s',
    async (path) => {
      const response = await preflight(path);
      expect([response.status, await response.text()]).toEqual([204, '']);
      expectOpen(response);
      const allowed = response.headers.get('Access-Control-Allow-Headers')?.toLowerCase().split(', ');
      expect(allowed?.toSorted()).toEqual(SENT.split(', ').toSorted());
      expect(response.headers.get('Access-Control-Allow-Methods')).toBe('GET, HEAD, POST');
      expect(response.headers.get('Access-Control-Max-Age')).toBe('7200');
    },
  );

  it.each(['/local/faucet', '/local/info', '/local/', '/%6cocal/faucet'])('is not granted for %s', async (path) => {
    for (const origin of [PAGE.Origin, 'null', 'http://localhost:3000']) {
      const response = await preflight(path, origin);
      expect(response.ok).toBe(false);
      expect(response.headers.get('Access-Control-Allow-Origin')).toBeNull();
      expect(response.headers.get('Access-Control-Allow-Headers')).toBeNull();
    }
  });
});

describe('local routes', () => {
  it('show nothing to any other origin, and are not kept', async () => {
    for (const origin of [PAGE.Origin, 'null', 'http://localhost:3000', undefined]) {
      const response = await fetch(`${service.url}/local/info`, {
        headers: origin === undefined ? {} : { Origin: origin },
      });
      expect(response.headers.get('Access-Control-Allow-Origin')).toBeNull();
      expect(response.headers.get('Cache-Control')).toBe('no-store');
    }
  });
});

/** The app on a chain that cannot be asked, and a gate that breaks on payments and has no facilitator. */
async function brokenApp(): Promise<(request: Request) => Response | Promise<Response>> {
  const signer = await createSigner(new Uint8Array(32).fill(1));
  const did = didKey(signer.publicKey);
  const dependencies: AppDependencies = {
    operations,
    gate: {
      admit: async ({ payment, apiKey }) => {
        if (apiKey !== undefined) throw new Error('broken');
        const code = payment ? 'settlement_unknown' : 'facilitator_unavailable';
        return { kind: 'refused', problem: { code, retry_after_seconds: 2 } };
      },
      idle: async () => undefined,
    },
    chain: {
      reachable: () => Promise.reject(new Error('broken')),
      head: () => Promise.reject(new Error('broken')),
      authorizationState: () => Promise.reject(new Error('broken')),
      isExecutable: () => Promise.reject(new Error('broken')),
      patienceMs: 0,
    },
    issuer: {
      ...(await issuerOf(did, signer)),
      generator: { name: 'x', version: '1' },
      now: () => new Date(),
      newId: () => '',
    },
    contextFor: () => DEFAULT_CONTEXT,
    didDocument: await didDocument(did, [signer]),
    offerKeyId: did,
    usdc: BASE_SEPOLIA_USDC,
    payTo: `0x${'1'.repeat(40)}`,
    publicUrl: 'http://127.0.0.1',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    report: () => undefined,
    onAnswer: () => undefined,
  };
  const app = createApp(dependencies);
  return app.fetch;
}
