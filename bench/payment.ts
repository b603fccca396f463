/**
 * What our gate adds to a paid call, beside the stock paymentMiddleware of @x402/hono: same requests over HTTP, same trivial handler, same
 * in-process facilitator on the same chain, one process. Payments are signed before the clock runs; the challenge is not measured.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import type { FacilitatorClient } from '@x402/core/server';
import type { PaymentRequired } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactEvmScheme as ExactEvmServer } from '@x402/evm/exact/server';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { paymentMiddleware, x402ResourceServer } from '@x402/hono';
import { Hono } from 'hono';
import Database from 'libsql';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { createApp } from '../src/app.ts';
import { defineOperation } from '../src/operation.ts';
import type { AnswerIssuer } from '../src/operations/execute.ts';
import { DEFAULT_CONTEXT } from '../src/operations/run-context.ts';
import { createChainView, type ChainView } from '../src/payment/chain.ts';
import { createKeyMac, issueKey, PEPPER_BYTES } from '../src/payment/api-keys.ts';
import { createGate } from '../src/payment/gate.ts';
import { withApiKeys } from '../src/payment/keyed.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../src/payment/networks.ts';
import { createOfferKey } from '../src/payment/offer-receipt.ts';
import { createSealer, STORE_SECRET_BYTES } from '../src/payment/seal.ts';
import { didDocument, didKey } from '../src/provenance/did.ts';
import { createSigner } from '../src/provenance/ed25519.ts';
import { issuerOf } from '../src/provenance/envelope.ts';
import { createInProcessFacilitator } from '../src/runtime/facilitator.ts';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain, type LocalChain } from '../src/runtime/local-chain.ts';
import { openSqliteLedger } from '../src/runtime/store/sqlite-ledger.ts';
import { operationPath } from '../src/surfaces/links.ts';
import { cells, head, median, medianMs, row } from './measure.ts';

const USDC = BASE_SEPOLIA_USDC;
const ROUNDS = 41;
const WARM_UP_ROUNDS = 5;
const AT_ONCE = 32;
const BURSTS = 9;

/** Both sell this. */
const trivial = defineOperation({
  id: 'trivial',
  version: '1.0.0',
  title: 'Trivial',
  summary: 'Answers at once.',
  description: 'Answers at once.',
  roi: '',
  audience: 'bench',
  price: '1000',
  input: z.object({ n: z.number() }),
  output: z.unknown(),
  example: { n: 1 },
  run: async ({ n }) => ({ kind: 'answer', billable: true, data: { n, versions: {} } }),
});
const PATH = operationPath(trivial);

/** Who moves the money, and who is asked whether it moved. */
interface Rails {
  readonly facilitator: FacilitatorClient;
  readonly chain: ChainView;
}

/** Nothing moves, and everybody says at once that it has: what is left is the seller's own work. */
function answeringAtOnce(real: FacilitatorClient): Rails {
  const transaction = `0x${'ab'.repeat(32)}` as const;
  return {
    facilitator: {
      getSupported: () => real.getSupported(),
      verify: async () => ({ isValid: true }),
      settle: async () => ({ success: true, transaction, network: USDC.caip2 }),
    },
    chain: {
      patienceMs: 0,
      reachable: async () => true,
      head: async () => 1,
      isExecutable: async () => true,
      authorizationState: async () => ({ kind: 'settled', transaction }),
    },
  };
}

interface Seller {
  readonly name: string;
  readonly url: string;
  /** Of ours, one with more credits than the bench spends. */
  readonly apiKey?: string;
  close(): Promise<void>;
}

async function listen(name: string, fetch: (request: Request) => Response | Promise<Response>): Promise<Seller> {
  const server = createAdaptorServer({ fetch });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
  const close = async (): Promise<void> => void server.close();
  return { name, url, close };
}

async function ours(name: string, { facilitator, chain }: Rails, payTo: `0x${string}`, path: string): Promise<Seller> {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  const signer = await createSigner(seed);
  const did = didKey(signer.publicKey);
  const issuer: AnswerIssuer = {
    ...(await issuerOf(did, signer)),
    generator: { name: 'bench', version: '0' },
    now: () => new Date(),
    newId: () => crypto.randomUUID(),
  };
  const sealer = await createSealer(crypto.getRandomValues(new Uint8Array(STORE_SECRET_BYTES)));
  const ledger = openSqliteLedger(path);
  const report = (event: string, error: unknown): never => {
    throw new Error(event, { cause: error });
  };
  const contextFor = () => DEFAULT_CONTEXT;
  const offerKey = await createOfferKey(seed, did);
  const dependencies = { facilitator, chain, ledger, sealer, issuer, contextFor, usdc: USDC, payTo, report, offerKey };
  const payGate = createGate({ ...dependencies, discovery: async () => ({}) });
  const macOf = await createKeyMac(crypto.getRandomValues(new Uint8Array(PEPPER_BYTES)));
  const keys = { accounts: ledger.accounts, macOf };
  const issued = await issueKey(keys, { credits: 10n ** 12n, now: new Date() });
  const gate = withApiKeys(payGate, { keys, sealer, issuer, contextFor, report });
  const app = createApp({
    operations: [trivial],
    gate,
    chain,
    issuer,
    contextFor,
    didDocument: await didDocument(did, [signer]),
    offerKeyId: offerKey.kid,
    usdc: USDC,
    payTo,
    publicUrl: 'http://localhost',
    bodyLimitBytes: 1_000_000,
    report,
    onAnswer: () => {},
  });
  const seller = await listen(name, app.fetch);
  return {
    ...seller,
    ...(issued && { apiKey: issued.key }),
    close: async () => {
      await seller.close();
      ledger.close();
    },
  };
}

function stock(name: string, { facilitator }: Rails, payTo: string): Promise<Seller> {
  const price = { asset: USDC.address, amount: trivial.price, extra: { name: USDC.name, version: USDC.version } };
  const accepts = { scheme: 'exact', network: USDC.caip2, payTo, price };
  const server = new x402ResourceServer(facilitator).register(USDC.caip2, new ExactEvmServer());
  const app = new Hono();
  app.use(paymentMiddleware({ [`POST ${PATH}`]: { accepts, description: trivial.description } }, server));
  app.post(PATH, async (c) => {
    const { n } = await c.req.json<{ n: number }>();
    return c.json({ n });
  });
  return listen(name, app.fetch);
}

/** A paid request that is ready to be sent: resolves to how long its answer took, in milliseconds. */
type Send = () => Promise<number>;

async function createPayer(chain: LocalChain): Promise<Payer> {
  const account = privateKeyToAccount(generatePrivateKey());
  await chain.mint(account.address, 1_000_000_000n);
  const client = new x402HTTPClient(new x402Client().register('eip155:*', new ExactEvmScheme(account)));
  const challenges = new Map<string, PaymentRequired>();
  let n = 0;

  const challengeOf = async (url: string): Promise<PaymentRequired> => {
    const { headers } = await fetch(url, { method: 'POST' });
    return client.getPaymentRequiredResponse((name) => headers.get(name));
  };
  return async ({ url }: Seller): Promise<Send> => {
    const required = challenges.get(url) ?? (await challengeOf(url));
    challenges.set(url, required);
    const payment = client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
    const headers = { 'Content-Type': 'application/json', ...payment };
    const body = JSON.stringify({ n: (n += 1) });
    return async () => {
      const start = performance.now();
      const response = await fetch(url, { method: 'POST', headers, body });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${url}: ${response.status} ${text}`);
      return performance.now() - start;
    };
  };
}

type Payer = (seller: Seller) => Promise<Send>;

/** As a payer, without a payment. */
const drawing: Payer = async ({ url, apiKey = '' }) => {
  const headers = { 'Content-Type': 'application/json', 'X-API-KEY': apiKey };
  return async () => {
    const start = performance.now();
    const response = await fetch(url, { method: 'POST', headers, body: '{"n":1}' });
    await response.text();
    if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
    return performance.now() - start;
  };
};

/** Median milliseconds of one call at a time, the sellers taking turns. */
async function latencies(sellers: readonly Seller[], prepare: Payer): Promise<readonly number[]> {
  const times = sellers.map((): number[] => []);
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    for (const turn of sellers.keys()) {
      const index = (turn + round) % sellers.length;
      const ms = await (await prepare(sellers[index]!))();
      if (round >= WARM_UP_ROUNDS) times[index]!.push(ms);
    }
  }
  return times.map((each) => median(each)!);
}

/** Median calls per second of many at once, the sellers taking turns. All share one thread with the payer. */
async function throughputs(sellers: readonly Seller[], prepare: Payer): Promise<readonly number[]> {
  const rates = sellers.map((): number[] => []);
  for (let burst = 0; burst < 1 + BURSTS; burst += 1) {
    for (const [index, seller] of sellers.entries()) {
      const sends = await Promise.all(Array.from({ length: AT_ONCE }, () => prepare(seller)));
      const start = performance.now();
      await Promise.all(sends.map((send) => send()));
      if (burst > 0) rates[index]!.push((AT_ONCE * 1_000) / (performance.now() - start));
    }
  }
  return rates.map((each) => median(each)!);
}

/** Median milliseconds of one row that is on the disk when the call returns, as each step of a paid call is. */
async function durableRowMs(path: string): Promise<number> {
  const database = new Database(path);
  for (const setting of ['journal_mode = WAL', 'synchronous = FULL']) database.exec(`PRAGMA ${setting}`);
  database.exec('CREATE TABLE row (value TEXT)');
  const insert = database.prepare('INSERT INTO row VALUES (?)');
  const ms = await medianMs(() => insert.run('x'.repeat(ROW_BYTES)), 101);
  database.close();
  return ms;
}

const ROW_BYTES = 1_000;

export async function benchPayment(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-bench-'));
  const chain = await startLocalChain();
  const { rpcUrl, payTo, facilitatorKey: privateKey } = chain;
  const network = { chain: BASE_SEPOLIA, rpcUrl };
  const facilitator = createInProcessFacilitator({
    ...network,
    privateKey,
    pollingIntervalMs: LOCAL_POLLING_INTERVAL_MS,
  });
  const real: Rails = { facilitator, chain: createChainView({ ...network, usdc: USDC.address }) };
  const atOnce = answeringAtOnce(facilitator);
  const prepare = await createPayer(chain);
  const sellersOn = (rails: Rails, name: string): Promise<Seller[]> =>
    Promise.all([
      stock('@x402/hono', rails, payTo),
      ours('ours', rails, payTo, join(folder, `${name}.db`)),
      ours('ours, ledger in memory', rails, payTo, ':memory:'),
    ]);
  const [settling, idle] = [await sellersOn(real, 'real'), await sellersOn(atOnce, 'at-once')];
  try {
    head('one paid call', ...settling.map(({ name }) => `${name}, ms`), 'ours to @x402/hono');
    for (const [name, sellers] of [
      ['settled on the chain', settling],
      ['facilitator and chain answer at once', idle],
    ] as const) {
      const times = await latencies(sellers, prepare);
      cells(name, ...times.map((ms) => ms.toFixed(2)), `${(times[1]! / times[0]!).toFixed(2)} x`);
    }
    const rates = await throughputs(idle, prepare);
    const ratio = `${(rates[1]! / rates[0]!).toFixed(2)} x`;
    cells(`the same, calls per second with ${AT_ONCE} at once`, ...rates.map((rate) => rate.toFixed(0)), ratio);
    const keyed = idle.slice(1);
    const [ms, perSecond] = [await latencies(keyed, drawing), await throughputs(keyed, drawing)];
    cells('with an API key, one call', '-', ...ms.map((each) => each.toFixed(2)), '-');
    const keyedRatio = `${(perSecond[0]! / rates[0]!).toFixed(2)} x`;
    cells(`with an API key, calls per second`, '-', ...perSecond.map((rate) => rate.toFixed(0)), keyedRatio);
    row('one durable row, of which a paid call writes four', await durableRowMs(join(folder, 'row.db')));
  } finally {
    await Promise.all([...settling, ...idle].map((seller) => seller.close()));
    await chain.stop();
    await rm(folder, { recursive: true });
  }
}
