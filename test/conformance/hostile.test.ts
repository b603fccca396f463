/** Hostile bodies, headers, methods and paths, and the status each gets. None is 500, none runs the engine unpaid, none costs anything. */
import { Agent, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operations } from '../../src/operations/list.ts';
import {
  decodeHeader,
  EXAMPLE,
  encodeHeader,
  freshPayment,
  balanceOf,
  newWallet,
  payWith,
  postJson,
  startTestService,
  type TestService,
} from '../service.ts';

const BODY_LIMIT_BYTES = 1_000_000;
let service: TestService;
let payment: string;
beforeAll(async () => {
  service = await startTestService({ BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) });
  payment = await freshPayment(service);
});
afterAll(() => service.close());

const message = (fields: object): object => ({
  ...EXAMPLE,
  messages: [{ role: 'user', ...fields }],
  cacheBreakpoint: -1,
});
const SECRET = 'words-of-the-caller';

/** Body, then the status and code that it gets with a good payment, and the pointer where there is one. */
const BODIES: Readonly<
  Record<string, readonly [body: string | Uint8Array | object, status: number, code: string, path?: string]>
> = {
  'no body': ['', 400, 'invalid_request', ''],
  'not JSON': [SECRET, 400, 'invalid_json'],
  'JSON that breaks off': [`{"messages":[{"role":"${SECRET}`, 400, 'invalid_json'],
  'two values': ['{} {}', 400, 'invalid_json'],
  null: ['null', 400, 'invalid_request', ''],
  'a list': ['[]', 400, 'invalid_request', ''],
  'a text': [JSON.stringify(SECRET), 400, 'invalid_request', ''],
  'bytes that are no UTF-8': [Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d), 400, 'invalid_utf8'],
  'a key twice': ['{"messages":[],"messages":[]}', 400, 'duplicate_key', '/messages'],
  'a key twice, escaped': ['{"a":1,"\\u0061":2}', 400, 'duplicate_key', '/a'],
  '100,000 levels of lists': ['['.repeat(100_000), 400, 'nesting_too_deep'],
  '100,000 levels of objects': ['{"a":'.repeat(100_000), 400, 'nesting_too_deep'],
  'a lone surrogate': [
    '{"messages":[{"role":"\\ud83d"}],"cacheBreakpoint":-1,"targetTokens":1}',
    400,
    'invalid_unicode',
    '/messages/0/role',
  ],
  'an integer past 2^53': ['{"targetTokens":9007199254740993}', 400, 'unsafe_number', '/targetTokens'],
  'a number past the range': ['{"targetTokens":1e400}', 400, 'unsafe_number', '/targetTokens'],
  'an own __proto__': [
    '{"messages":[{"role":"user","tokens":1}],"cacheBreakpoint":-1,"targetTokens":1,"__proto__":{"x":1}}',
    400,
    'invalid_request',
    '/__proto__',
  ],
  'an unknown field': [{ ...EXAMPLE, [SECRET]: 1 }, 400, 'invalid_request', `/${SECRET}`],
  'no messages': [{ ...EXAMPLE, messages: [] }, 400, 'invalid_request', '/messages'],
  'a message that is a number': [{ ...EXAMPLE, messages: [7] }, 400, 'invalid_request', '/messages/0'],
  'a role that is a number': [message({ role: 7 }), 400, 'invalid_request', '/messages/0/role'],
  'a kind that is none': [message({ kind: SECRET }), 400, 'invalid_request', '/messages/0/kind'],
  'half a token': [message({ tokens: 0.5 }), 400, 'invalid_request', '/messages/0/tokens'],
  'fewer tokens than none': [message({ tokens: -1 }), 400, 'invalid_request', '/messages/0/tokens'],
  'a breakpoint that is a text': [{ ...EXAMPLE, cacheBreakpoint: '1' }, 400, 'invalid_request', '/cacheBreakpoint'],
  'a null where a number belongs': [{ ...EXAMPLE, keepRecent: null }, 400, 'invalid_request', '/keepRecent'],
  '100,001 characters in one content': [
    message({ content: 'x'.repeat(100_001) }),
    400,
    'invalid_request',
    '/messages/0/content',
  ],
  '400,001 characters in all': [
    { ...EXAMPLE, messages: [...Array(5)].map((_, i) => ({ role: 'user', content: 'x'.repeat(i < 4 ? 100_000 : 1) })) },
    400,
    'invalid_request',
    '/messages',
  ],
  '90,000 messages': [{ ...EXAMPLE, messages: Array(90_000).fill(1) }, 400, 'invalid_request', '/messages'],
  '100,001 names': [`{${Array.from({ length: 100_001 }, (_, i) => `"${i}":1`).join(',')}}`, 400, 'too_many_values'],
  'more bytes than are taken': [new Uint8Array(BODY_LIMIT_BYTES + 1).fill(32), 413, 'payload_too_large'],
};

function post(body: string | Uint8Array | object, headers: Record<string, string>): Promise<Response> {
  const raw = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return fetch(service.endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: raw as BodyInit,
  });
}

describe('hostile bodies with a good payment', () => {
  it.each(Object.entries(BODIES))('%s', async (_, [body, status, code, path]) => {
    const response = await post(body, payWith(payment));
    const problem = (await response.json()) as Record<string, unknown>;
    expect([response.status, problem['code']]).toEqual([status, code]);
    expect(problem['charged']).toBe(false);
    if (path !== undefined) expect(problem['path']).toBe(path);
    expect(String(problem['error']).replaceAll(`/${SECRET}`, '')).not.toContain(SECRET);
    expect(problem['error']).toContain('Nothing was charged.');
    expect(response.headers.get('X-Request-Id')).toBeTruthy();
  });

  it('takes JSON under another media type for no JSON, and a body that is packed too', async () => {
    for (const headers of [{ 'Content-Type': 'text/plain' }, { 'Content-Encoding': 'gzip' }]) {
      expect((await post(EXAMPLE, { ...payWith(payment), ...headers })).status).toBe(415);
    }
    expect((await post(EXAMPLE, { 'Content-Type': 'text/plain' })).status).toBe(402);
  });

  it.each([{ 'Transfer-Encoding': 'chunked' }, {}])(
    'reads too much to its end, so that its sender sees the answer and no broken pipe: %o',
    async (headers) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const path = '/api/v1/conversation-prune';
      expect(await rawPost(path, ' '.repeat(4 * BODY_LIMIT_BYTES), headers, agent)).toBe(413);
      const connection = Object.values(agent.freeSockets).flat();
      expect(connection).toHaveLength(1);
      expect(await rawPost(path, '{}', {}, agent)).toBe(402);
      expect(Object.values(agent.freeSockets).flat()).toEqual(connection);
      agent.destroy();
    },
  );

  it('does not read without end', async () => {
    const { hostname, port } = new URL(service.url);
    const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
    const request = httpRequest({ hostname, port, path: '/api/v1/count', method: 'POST', headers });
    const ended = new Promise((resolve) => {
      request.on('response', (response) => resolve(response.statusCode));
      request.on('error', () => resolve('cut off'));
    });
    const more = (): void => {
      while (!request.destroyed && request.write(' '.repeat(BODY_LIMIT_BYTES)));
    };
    request.on('drain', more);
    more();
    expect([413, 'cut off']).toContain(await ended);
    request.destroy();
  });

  it('left the payment good: it still buys an answer', async () => {
    expect((await post(EXAMPLE, payWith(payment))).status).toBe(200);
  });
});

describe('an answer of another kind of payment', () => {
  it('is not to be had: a Permit2 signature beside an authorization that nobody signed', async () => {
    const payload = structuredClone(decodeHeader(await freshPayment(service))) as unknown as {
      payload: { authorization: { from: string; nonce: string } } & Record<string, unknown>;
    };
    payload.payload.authorization.from = `0x${'de'.repeat(20)}`;
    payload.payload['permit2Authorization'] = { from: `0x${'de'.repeat(20)}` };
    const response = await post(EXAMPLE, payWith(encodeHeader(payload)));
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'malformed_payment']);
  });
});

describe('hostile payment headers with a good body', () => {
  const change = (mutate: (payload: Record<string, Record<string, unknown>>) => void): string => {
    const payload = structuredClone(decodeHeader(payment)) as unknown as Record<string, Record<string, unknown>>;
    mutate(payload);
    return encodeHeader(payload);
  };
  const authorization = (payload: Record<string, Record<string, unknown>>): Record<string, unknown> =>
    payload['payload']?.['authorization'] as Record<string, unknown>;

  it.each<[string, () => string, number, string]>([
    ['empty', () => '', 400, 'malformed_payment'],
    ['not base64', () => '***', 400, 'malformed_payment'],
    ['base64 of no JSON', () => btoa(SECRET), 400, 'malformed_payment'],
    ['base64 of null', () => btoa('null'), 400, 'malformed_payment'],
    ['base64 of a number', () => btoa('1'), 400, 'malformed_payment'],
    ['base64 of a deep list', () => btoa('['.repeat(5_000)), 400, 'malformed_payment'],
    ['an empty object', () => encodeHeader({}), 400, 'malformed_payment'],
    ['protocol version 1', () => change((p) => Object.assign(p, { x402Version: 1 })), 400, 'malformed_payment'],
    ['protocol version 99', () => change((p) => Object.assign(p, { x402Version: 99 })), 400, 'malformed_payment'],
    ['no authorization', () => change((p) => Object.assign(p, { payload: {} })), 400, 'malformed_payment'],
    [
      'a nonce that is a number',
      () => change((p) => Object.assign(authorization(p), { nonce: 5 })),
      400,
      'malformed_payment',
    ],
    [
      'an address that is none',
      () => change((p) => Object.assign(authorization(p), { from: SECRET })),
      400,
      'malformed_payment',
    ],
    [
      'another network',
      () => change((p) => Object.assign(p['accepted'] ?? {}, { network: 'eip155:1' })),
      402,
      'payment_invalid',
    ],
    ['another price', () => change((p) => Object.assign(p['accepted'] ?? {}, { amount: '1' })), 402, 'payment_invalid'],
    [
      'another scheme',
      () => change((p) => Object.assign(p['accepted'] ?? {}, { scheme: 'upto' })),
      402,
      'payment_invalid',
    ],
    [
      'a signature by nobody',
      () => change((p) => Object.assign(p['payload'] ?? {}, { signature: `0x${'11'.repeat(65)}` })),
      402,
      'payment_invalid',
    ],
    [
      'a signature of one byte',
      () => change((p) => Object.assign(p['payload'] ?? {}, { signature: '0x11' })),
      402,
      'payment_invalid',
    ],
    [
      'another value than was signed',
      () => change((p) => Object.assign(authorization(p), { value: '1' })),
      402,
      'payment_invalid',
    ],
    [
      'an end in the past',
      () => change((p) => Object.assign(authorization(p), { validBefore: '1' })),
      402,
      'payment_expires_too_soon',
    ],
    [
      'an end at the end of time',
      () => change((p) => Object.assign(authorization(p), { validBefore: '9'.repeat(78) })),
      402,
      'payment_invalid',
    ],
  ])('%s', async (_, header, status, code) => {
    payment = await freshPayment(service);
    const response = await post(EXAMPLE, payWith(header()));
    const problem = (await response.json()) as Record<string, unknown>;
    expect([response.status, problem['code'], problem['charged']]).toEqual([status, code, false]);
    expect(JSON.stringify(problem)).not.toContain(SECRET);
  });

  it('20 KB of header: refused by the server before us', async () => {
    expect((await post(EXAMPLE, payWith('A'.repeat(20_000)))).status).toBe(431);
  });

  it('an empty wallet is told why, and may pay again', async () => {
    const poor = await newWallet(service, false);
    const response = await post(EXAMPLE, payWith(await freshPayment(service, poor)));
    expect(response.status).toBe(402);
    expect(await response.json()).toMatchObject({
      code: 'payment_invalid',
      reason: 'invalid_exact_evm_insufficient_balance',
      accepts: [{}],
    });
  });
});

describe('methods and paths', () => {
  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
    '%s on a paid path is 405 with Allow, paid or not',
    async (method) => {
      for (const { id } of operations) {
        for (const headers of [{}, payWith(payment)]) {
          const response = await fetch(`${service.url}/api/v1/${id}`, { method, headers });
          expect([response.status, response.headers.get('Allow')]).toEqual([405, 'POST']);
          expect(response.headers.get('X-Request-Id')).toBeTruthy();
        }
      }
    },
  );

  it('a URL with a user name is refused, not failed', async () => {
    const absolute = service.endpoint.replace('http://', 'http://a:b@');
    expect(await rawPost(absolute, JSON.stringify(EXAMPLE), payWith(await freshPayment(service)))).toBe(400);
  });

  it('a method override is not honoured', async () => {
    const response = await fetch(service.endpoint, { headers: { 'X-HTTP-Method-Override': 'POST' } });
    expect(response.status).toBe(405);
  });

  it.each([
    '/api/v1/conversation-prune/',
    '//api/v1/conversation-prune',
    '/api//v1/conversation-prune',
    '/API/v1/conversation-prune',
    '/api/v1/Conversation-Prune',
    '/api/v1/%63onversation-prune',
    '/api/v1/conversation%2Dprune',
    '/api/v1%2Fconversation-prune',
    '/api/v1/./conversation-prune',
    '/api/v1/x/../conversation-prune',
    '/api/v1/x/%2e%2e/conversation-prune',
    '/api/v1/conversation-prune;p=1',
    '/api/v1/conversation-prune%00',
    '/api/v1/conversation-prune?x=1',
    '/api/v1/conversation-prune%3Fx',
    '/api/v1/conversation-prune#x',
  ])('%s, sent as it stands, is challenged where a paid copy is answered, and unknown where not', async (path) => {
    const unpaid = await rawPost(path, JSON.stringify(EXAMPLE));
    const paid = await rawPost(path, JSON.stringify(EXAMPLE), payWith(await freshPayment(service)));
    expect([
      [402, 200],
      [404, 404],
    ]).toContainEqual([unpaid, paid]);
  });

  it('GET serves HEAD, and refuses POST, on the free paths', async () => {
    const samples = operations.map(({ id }) => `/api/v1/samples/${id}`);
    for (const path of ['/', '/healthz', ...samples, '/.well-known/did.json']) {
      const head = await fetch(service.url + path, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([200, '']);
      const posted = await postJson(service.url + path, {});
      expect([posted.status, posted.headers.get('Allow')]).toEqual([405, 'GET, HEAD']);
    }
  });
});

describe('hostile evidence', () => {
  const verdictOf = async (body: unknown): Promise<[number, unknown]> => {
    const response = await postJson(`${service.url}/api/v1/verify-provenance`, body);
    const verdict = (await response.json()) as { outcome?: string; path?: string };
    return [response.status, verdict.outcome ?? verdict.path];
  };
  const sample = async (): Promise<{ _provenance: { credential: Record<string, unknown>; manifest: object } }> => {
    const response = await fetch(`${service.url}/api/v1/samples/conversation-prune`);
    return ((await response.json()) as { response: Awaited<ReturnType<typeof sample>> }).response;
  };

  it.each<[string, unknown, [number, unknown]]>([
    ['no body', '', [400, '']],
    ['null', 'null', [400, '']],
    ['a list', [], [400, '']],
    ['nothing', {}, [400, '/data']],
    ['no evidence', { data: 1 }, [400, '/_provenance']],
    ['evidence that is a text', { data: 1, _provenance: 'x' }, [400, '/_provenance']],
    ['no credential', { data: 1, _provenance: { manifest: {} } }, [400, '/_provenance/credential']],
    [
      'a list of proofs',
      { data: 1, _provenance: { manifest: {}, credential: { proof: [] } } },
      [400, '/_provenance/credential/proof'],
    ],
    ['a member that nothing vouches for', { data: 1, _provenance: {}, note: 1 }, [400, '/note']],
    ['empty parts', { data: 1, _provenance: { manifest: {}, credential: { proof: {} } } }, [200, 'contradicted']],
  ])('%s', async (_, body, expected) => {
    const [status, outcome] = await verdictOf(body);
    expect([status, outcome]).toEqual(expected);
  });

  it('is never verified with a member that is not signed, a swapped key, or a proof of another', async () => {
    const answer = await sample();
    const { credential, manifest } = answer._provenance;
    const proof = credential['proof'] as Record<string, unknown>;
    const forgeries = [
      { ...answer, _provenance: { ...answer._provenance, extra: 1 } },
      { ...answer, _provenance: { manifest, credential: { ...credential, extra: 1 } } },
      { ...answer, _provenance: { manifest, credential: { ...credential, proof: { ...proof, nonce: 'x' } } } },
      { ...answer, _provenance: { manifest, credential: { ...credential, issuer: 'did:web:example.com' } } },
      {
        ...answer,
        _provenance: { manifest, credential: { ...credential, proof: { ...proof, proofValue: `z${'1'.repeat(88)}` } } },
      },
      { ...answer, _provenance: { manifest: { ...manifest, label: 'x' }, credential } },
    ];
    for (const forgery of forgeries) {
      const [status, outcome] = await verdictOf(forgery);
      expect(status).toBe(200);
      expect(outcome).not.toBe('verified');
    }
  });
});

describe('local routes', () => {
  it('answer only loopback callers', async () => {
    const faucet = `${service.url}/local/faucet`;
    const refused = await postJson(faucet, { address: service.chain.payTo }, { Origin: 'https://evil.example' });
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'forbidden_origin' }),
    ]);
    expect(await rawPost('/local/faucet', '{}', { Host: 'evil.example' })).toBe(403);
    expect((await fetch(`${service.url}/local/info`, { headers: { Origin: 'null' } })).status).toBe(403);
    expect((await fetch(`${service.url}/local/info`, { headers: { Origin: 'http://localhost:3000' } })).status).toBe(
      200,
    );
  });

  it('give practice money to an address, and to nothing else', async () => {
    const { account } = await newWallet(service);
    expect(await balanceOf(service.chain, account.address)).toBe(10_000_000n);
    const nobody = { address: `0x${'0'.repeat(40)}` };
    for (const body of [
      '',
      '[]',
      nobody,
      { address: service.chain.usdc },
      { address: 'x' },
      { address: account.address, amount: 1 },
      { address: null },
    ]) {
      const response = await postJson(`${service.url}/local/faucet`, body);
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'invalid_request']);
    }
  });
});

describe('the log', () => {
  it('has no error of all this', () => {
    expect(service.errors).toEqual([]);
  });
});

/** Sends a path as it stands; fetch would tidy it first. */
function rawPost(path: string, body: string, headers: Record<string, string> = {}, agent?: Agent): Promise<number> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { hostname, port, path, agent, method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
