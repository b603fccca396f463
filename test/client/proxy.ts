/** A real HTTP proxy in front of a service that loses, cuts, delays and rewrites answers on demand, and counts what passes. */
import { createServer, request as httpRequest, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Passed {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type Fault =
  | 'none'
  /** The service never sees the request. */
  | 'refused'
  /** The service has answered, and the caller sees a reset. */
  | 'lost'
  | 'cut in the middle'
  | 'never answered'
  /** The service gets it twice at once. */
  | 'doubled'
  | 'bad gateway'
  | 'gateway time-out'
  | 'settlement unknown'
  | 'facilitator down'
  /** Any rewriting of what the service said; `strip` takes the payment off before. */
  | { readonly strip?: true; readonly rewrite: (passed: Passed) => Passed };

export interface Proxy {
  readonly url: string;
  /** PAYMENT-SIGNATURE of each request that had one, in order. */
  readonly payments: string[];
  /** All requests, but for those to `/.well-known`. */
  readonly count: () => number;
  /** For the next requests, one each; after them nothing goes wrong. */
  readonly script: (...faults: Fault[]) => void;
  /** For the next requests with a payment. */
  readonly scriptPaid: (...faults: Fault[]) => void;
  readonly close: () => Promise<void>;
}

export async function startProxy(target: string): Promise<Proxy> {
  const payments: string[] = [];
  let requests = 0;
  let faults: Fault[] = [];
  let paidFaults: Fault[] = [];

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => response.destroy());
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = 'GET', url = '/', headers } = request;
      const payment = headers['payment-signature'];
      if (typeof payment === 'string') payments.push(payment);
      const counted = !url.startsWith('/.well-known');
      if (counted) requests += 1;
      const fault = (counted ? (faults.shift() ?? (payment && paidFaults.shift())) : undefined) || 'none';
      const forward = (): Promise<Passed> =>
        pass(
          target + url,
          method,
          typeof fault === 'object' && fault.strip ? without(headers, 'payment-signature') : headers,
          chunks,
        );
      answer(response, fault, forward).catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    payments,
    count: () => requests,
    script: (...next) => {
      faults = next;
    },
    scriptPaid: (...next) => {
      paidFaults = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(response: ServerResponse, fault: Fault, forward: () => Promise<Passed>): Promise<void> {
  const say = ({ status, headers, body }: Passed): void => {
    response.writeHead(status, withLength(headers, body)).end(body);
  };
  const json = (status: number, body: object, headers = {}): Passed => ({
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(body)),
  });
  if (typeof fault === 'object') return say(fault.rewrite(await forward()));
  switch (fault) {
    case 'none':
      return say(await forward());
    case 'refused':
      response.destroy();
      return;
    case 'lost':
      await forward();
      response.destroy();
      return;
    case 'cut in the middle': {
      const { status, headers, body } = await forward();
      response.writeHead(status, withLength(headers, body));
      response.write(body.subarray(0, body.length >> 1), () => response.destroy());
      return;
    }
    case 'never answered':
      await forward();
      return;
    case 'doubled': {
      const [first] = await Promise.all([forward(), forward()]);
      return say(first);
    }
    case 'bad gateway':
    case 'gateway time-out':
      await forward();
      say({
        status: fault === 'bad gateway' ? 502 : 504,
        headers: { 'content-type': 'text/html' },
        body: Buffer.from('<h1>no</h1>'),
      });
      return;
    case 'settlement unknown':
      await forward();
      say(json(503, { error: '', code: 'settlement_unknown', charged: 'unknown' }, { 'retry-after': '1' }));
      return;
    case 'facilitator down':
      say(json(503, { error: '', code: 'facilitator_unavailable', charged: false }, { 'retry-after': '1' }));
      return;
  }
}

const withLength = (headers: IncomingHttpHeaders, body: Buffer): IncomingHttpHeaders => ({
  ...without(headers, 'transfer-encoding', 'connection', 'keep-alive'),
  'content-length': String(body.length),
});

export function without(headers: IncomingHttpHeaders, ...names: string[]): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}

function pass(url: string, method: string, headers: IncomingHttpHeaders, chunks: Buffer[]): Promise<Passed> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { method, headers: without(headers, 'host', 'connection'), agent: false },
      (response) => {
        const answered: Buffer[] = [];
        response.on('data', (chunk: Buffer) => answered.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(answered) }),
        );
      },
    );
    request.on('error', reject);
    request.end(Buffer.concat(chunks));
  });
}
