/** An x402 facilitator over real HTTP that settles as it should, and misbehaves on demand: for each payment as it was told. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { FacilitatorClient } from '@x402/core/server';
import type { Network, PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { BASE_SEPOLIA } from '../../src/payment/networks.ts';
import { createInProcessFacilitator } from '../../src/runtime/facilitator.ts';
import { LOCAL_POLLING_INTERVAL_MS, type LocalChain } from '../../src/runtime/local-chain.ts';

type Call = { readonly paymentPayload: PaymentPayload; readonly paymentRequirements: PaymentRequirements };

/** How an answer to /settle is given; `truth` is what an honest one would say. */
export type Fault = (response: ServerResponse, truth: SettleResponse) => unknown;

/** When the money moves: before the answer, not at all, or after it, when `settleLate` is called. */
export type Moved = 'before' | 'never' | 'later';

const NETWORK = `eip155:${BASE_SEPOLIA.id}` as const;
const json = (response: ServerResponse, status: number, body: unknown): unknown =>
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
const refusal = (errorReason: string, transaction = ''): SettleResponse => ({
  success: false,
  errorReason,
  transaction,
  network: NETWORK,
});

/** Longer than any caller of these tests waits. */
const FOREVER_MS = 60_000;
const LATE_MS = 150;

/** The table's rows. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  none: (response, truth) => json(response, 200, truth),
  '502 with HTML': (response) => response.writeHead(502, { 'Content-Type': 'text/html' }).end('<h1>Bad Gateway</h1>'),
  '500 with JSON': (response) => json(response, 500, { error: 'internal' }),
  'connection reset': (response) => response.destroy(),
  'answer cut off': (response) => {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 500 }).write('{"success":tr');
    setTimeout(() => response.destroy(), 10);
  },
  'no answer in time': (response) => {
    const timer = setTimeout(() => response.end(), FOREVER_MS);
    response.on('close', () => clearTimeout(timer));
  },
  'slow answer': async (response, truth) => {
    await delay(LATE_MS);
    json(response, 200, truth);
  },
  'invalid JSON': (response) => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"success":'),
  'JSON of another shape': (response) => json(response, 200, { ok: true }),
  '429 with JSON': (response) => json(response, 429, { error: 'slow down' }),
  settlement_pending: (response) => json(response, 200, refusal('settlement_pending', `0x${'ab'.repeat(32)}`)),
  nonce_already_used: (response) => json(response, 200, refusal('invalid_exact_evm_nonce_already_used')),
  transaction_failed: (response) => json(response, 200, refusal('invalid_exact_evm_transaction_failed')),
  'an unknown reason': (response) => json(response, 200, refusal('computer_says_no')),
  'success, invented': (response) =>
    json(response, 200, { success: true, transaction: `0x${'cd'.repeat(32)}`, network: NETWORK }),
  'failure: no funds': (response) => json(response, 200, refusal('invalid_exact_evm_insufficient_balance')),
  'failure: no funds, status 400': (response) => json(response, 400, refusal('invalid_exact_evm_insufficient_balance')),
};

export interface Behaviour {
  readonly fault: Fault;
  readonly moved: Moved;
  /** What happens between verification and settlement. */
  readonly meanwhile?: () => Promise<void>;
}

export interface Facilitator {
  readonly url: string;
  /** Of the payment with this nonce, until told otherwise; `undefined` heals it. */
  behave(nonce: string, behaviour: Behaviour | undefined): void;
  /** Moves the money of all payments that were to be settled later. */
  settleLate(): Promise<void>;
  /** Whether it answers anything at all. */
  setUp(up: boolean): void;
  /** Requests per path, and the headers of the last one. */
  readonly seen: { readonly paths: string[]; headers: IncomingMessage['headers'] };
  /** The network that it says it settles on. */
  network: Network;
  /** How it answers /verify, instead of as it should. */
  verifyFault: Fault | undefined;
  /** Whether the answer to /verify is its last: nobody can connect to it any more. */
  leavesAfterVerify: boolean;
  /** With which status it says that a payment is not valid; not all say 200. */
  refusalStatus: number;
  /** Waits up to this long, at random, before and after it settles. */
  jitterMs: number;
  stop(): Promise<void>;
}

export async function startFacilitator(chain: Pick<LocalChain, 'rpcUrl' | 'facilitatorKey'>): Promise<Facilitator> {
  const real: FacilitatorClient = createInProcessFacilitator({
    chain: BASE_SEPOLIA,
    rpcUrl: chain.rpcUrl,
    privateKey: chain.facilitatorKey,
    pollingIntervalMs: LOCAL_POLLING_INTERVAL_MS,
  });
  const behaviours = new Map<string, Behaviour>();
  const late = new Map<string, Call>();
  const seen: Facilitator['seen'] = { paths: [], headers: {} };
  let up = true;

  const pause = (): Promise<void> => delay(Math.random() * facilitator.jitterMs);
  const settle = async (response: ServerResponse, { paymentPayload, paymentRequirements }: Call): Promise<void> => {
    const { nonce } = (paymentPayload.payload as { authorization: { nonce: string } }).authorization;
    const { fault = FAULTS['none'], moved = 'before', meanwhile } = behaviours.get(nonce) ?? {};
    await meanwhile?.();
    await pause();
    if (moved === 'later') late.set(nonce, { paymentPayload, paymentRequirements });
    const truth = moved === 'before' ? await real.settle(paymentPayload, paymentRequirements) : refusal('never_tried');
    await pause();
    await fault?.(response, truth);
  };

  const supported = async () => {
    const { kinds, ...more } = await real.getSupported();
    return { ...more, kinds: kinds.map((kind) => ({ ...kind, network: facilitator.network })) };
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    seen.paths.push(request.url ?? '');
    seen.headers = request.headers;
    if (!up) return response.destroy();
    if (request.url === '/supported') return json(response, 200, await supported());
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const call = JSON.parse(Buffer.concat(chunks).toString()) as Call;
    if (request.url === '/settle') return settle(response, call);
    if (facilitator.verifyFault) return facilitator.verifyFault(response, refusal('never_tried'));
    const verdict = await real.verify(call.paymentPayload, call.paymentRequirements);
    if (facilitator.leavesAfterVerify) {
      response.setHeader('Connection', 'close');
      server.close();
    }
    return json(response, verdict.isValid ? 200 : facilitator.refusalStatus, verdict);
  };

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const facilitator: Facilitator = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behave: (nonce, behaviour) => void (behaviour ? behaviours.set(nonce, behaviour) : behaviours.delete(nonce)),
    settleLate: async () => {
      for (const call of late.values()) await real.settle(call.paymentPayload, call.paymentRequirements);
    },
    setUp: (value) => void (up = value),
    seen,
    network: NETWORK,
    verifyFault: undefined,
    leavesAfterVerify: false,
    refusalStatus: 200,
    jitterMs: 0,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return facilitator;
}
