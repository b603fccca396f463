/** Local mode: practice chain, in-process facilitator, ledger in memory and the app, on one loopback port. */
import { Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';

import { createApp } from '../app.ts';
import type { AnswerIssuer } from '../operations/execute.ts';
import { operations as allOperations } from '../operations/list.ts';
import { createChainView } from '../payment/chain.ts';
import { createMemoryLedger, ROW_GRACE_SECONDS } from '../payment/ledger.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { createSealer, STORE_SECRET_BYTES } from '../payment/seal.ts';
import { didDocument, didKey, verificationMethodId } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import type { Settings } from './env.ts';
import { createInProcessFacilitator } from './facilitator.ts';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain, type LocalChain } from './local-chain.ts';
import { mountLocalRoutes } from './local-routes.ts';
import { errorFields, type Log } from './log.ts';
import { loadOrCreateSeed, parseSigningKey } from './signing-key.ts';
import { GENERATOR } from './version.ts';

export interface LocalService {
  readonly url: string;
  readonly did: string;
  readonly chain: LocalChain;
  /** Stops taking calls, finishes those that run, then ends the chain. */
  close(): Promise<void>;
}

/** The port that the README names; taken when PORT is unset and it is free. */
const DEFAULT_PORT = 4_021;
const SWEEP_INTERVAL_MS = 3_600_000;

/**
 * Boots everything and resolves when paid calls can be served.
 *
 * @throws LocalChainMissing where the optional packages are not installed; Error where PORT is given and taken.
 */
export async function startLocalService(settings: Settings, log: Log): Promise<LocalService> {
  const seed = await (settings.signingKey === undefined
    ? loadOrCreateSeed(settings.dataDir)
    : required(parseSigningKey(settings.signingKey)));
  const chain = await startLocalChain();
  try {
    return await serve(chain, seed, settings, log);
  } catch (error) {
    await chain.stop();
    throw error;
  }
}

async function serve(chain: LocalChain, seed: Uint8Array, settings: Settings, log: Log): Promise<LocalService> {
  const pending: { fetch?: (request: Request) => Response | Promise<Response> } = {};
  const server = createAdaptorServer({
    fetch: (request) => pending.fetch?.(request) ?? new Response(null, { status: 503 }),
  });
  const port = await listen(server, settings);
  const url = `http://${settings.host.includes(':') ? `[${settings.host}]` : settings.host}:${port}`;

  const signer = await createSigner(seed);
  const did = didKey(signer.publicKey);
  const now = (): number => Date.now();
  const issuer: AnswerIssuer = {
    did,
    verificationMethod: await verificationMethodId(did, signer.publicKey),
    signer,
    generator: GENERATOR,
    environment: 'local',
    now: () => new Date(now()),
    newId: () => crypto.randomUUID(),
  };
  const usdc = BASE_SEPOLIA_USDC;
  const facilitator = createInProcessFacilitator({
    chain: BASE_SEPOLIA,
    rpcUrl: chain.rpcUrl,
    privateKey: chain.facilitatorKey,
    pollingIntervalMs: LOCAL_POLLING_INTERVAL_MS,
  });
  const ledger = createMemoryLedger();
  const view = createChainView({ rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: usdc.address });
  const app = createApp({
    server: new x402ResourceServer(facilitator).register(usdc.caip2, new ExactEvmScheme()),
    chain: view,
    ledger,
    sealer: await createSealer(crypto.getRandomValues(new Uint8Array(STORE_SECRET_BYTES))),
    issuer,
    usdc,
    payTo: chain.payTo,
    now,
    onError: (event, error) => log('error', event, errorFields(error)),
    operations: allOperations.map((operation) => ({
      ...operation,
      price: settings.prices[operation.id] ?? operation.price,
    })),
    publicUrl: url,
    didDocument: await didDocument(did, [signer]),
    bodyLimitBytes: settings.bodyLimitBytes,
    ready: () => view.reachable(),
  });
  mountLocalRoutes(app, chain);
  pending.fetch = (request) => app.fetch(request);

  const sweep = setInterval(() => {
    ledger
      .sweep(now() / 1_000 - ROW_GRACE_SECONDS)
      .catch((error: unknown) => log('error', 'sweep_failed', errorFields(error)));
  }, SWEEP_INTERVAL_MS).unref();

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    clearInterval(sweep);
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      // A connection whose last answer is still to come is not idle now; it must not linger when it is.
      if (server instanceof HttpServer) server.keepAliveTimeout = 1;
    });
    await chain.stop();
  };
  return { url, did, chain, close: () => (closing ??= close()) };
}

type Server = ReturnType<typeof createAdaptorServer>;

async function listen(server: Server, { host, port }: Settings): Promise<number> {
  try {
    return await listenOn(server, host, port ?? DEFAULT_PORT);
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    if (!taken || port !== undefined) throw error;
    return listenOn(server, host, 0);
  }
}

function listenOn(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the settings were not checked');
  return value;
}
