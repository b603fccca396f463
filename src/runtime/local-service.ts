/** Local mode: practice chain, in-process facilitator, ledger in memory and the app, on one loopback port. */
import { Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createAdaptorServer } from '@hono/node-server';
import { createApp } from '../app.ts';
import type { AnswerIssuer } from '../operations/execute.ts';
import { createMemoryLeaseStore } from '../operations/leases.ts';
import { operations } from '../operations/list.ts';
import { createContextFor } from '../operations/run-context.ts';
import { createChainView } from '../payment/chain.ts';
import { createGate } from '../payment/gate.ts';
import { createMemoryLedger, ROW_GRACE_SECONDS } from '../payment/ledger.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { createSealer, STORE_SECRET_BYTES } from '../payment/seal.ts';
import { didDocument, didKey } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import { issuerOf } from '../provenance/envelope.ts';
import { openContextSettings, type ContextSettings } from './context-settings.ts';
import type { Settings } from './env.ts';
import { createInProcessFacilitator } from './facilitator.ts';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain, type LocalChain } from './local-chain.ts';
import { mountLocalRoutes } from './local-routes.ts';
import { errorFields, type Log } from './log.ts';
import { loadOrCreateSeed } from './signing-key.ts';
import { GENERATOR } from './version.ts';

export interface LocalService {
  readonly url: string;
  readonly did: string;
  readonly chain: LocalChain;
  /** Stops taking calls, finishes those that run, then ends the chain. */
  close(): Promise<void>;
}

/** The port that the README names; taken when PORT is unset and it is free. */
export const DEFAULT_PORT = 4_021;
/** How long a shutdown waits for requests that are still arriving, and for answers that are on their way. */
const DRAIN_MS = 10_000;
const FLUSH_MS = 1_000;
const SWEEP_INTERVAL_MS = 3_600_000;

/**
 * Boots everything and resolves when paid calls can be served.
 *
 * @throws SettingsError where a file that a setting names is no good; LocalChainMissing where the optional packages are not
 * installed; Error where PORT is given and taken.
 */
export async function startLocalService(settings: Settings, log: Log): Promise<LocalService> {
  const context = await openContextSettings(settings, log);
  let chain: LocalChain | undefined;
  try {
    const seed = settings.SIGNING_KEY ?? (await loadOrCreateSeed(settings.DATA_DIR));
    chain = await startLocalChain();
    return await serve(chain, seed, context, settings, log);
  } catch (error) {
    context.close();
    await chain?.stop();
    throw error;
  }
}

async function serve(
  chain: LocalChain,
  seed: Uint8Array,
  context: ContextSettings,
  settings: Settings,
  log: Log,
): Promise<LocalService> {
  const app: { fetch?: (request: Request) => Response | Promise<Response> } = {};
  // The port is known only when it listens, and the app names its own URL: in between there is nothing to serve.
  const server = createAdaptorServer({
    fetch: (request) => app.fetch?.(request) ?? new Response(null, { status: 503 }),
  });
  const port = await listen(server, settings);
  const url = `http://${settings.HOST.includes(':') ? `[${settings.HOST}]` : settings.HOST}:${port}`;

  const signer = await createSigner(seed);
  const did = didKey(signer.publicKey);
  const issuer: AnswerIssuer = {
    ...(await issuerOf(did, signer)),
    generator: GENERATOR,
    environment: 'local',
    now: () => new Date(),
    newId: () => crypto.randomUUID(),
  };
  const usdc = BASE_SEPOLIA_USDC;
  const facilitator = createInProcessFacilitator({
    chain: BASE_SEPOLIA,
    rpcUrl: chain.rpcUrl,
    privateKey: chain.facilitatorKey,
    pollingIntervalMs: LOCAL_POLLING_INTERVAL_MS,
  });
  const report = (event: string, error: unknown, requestId: string): void =>
    log('error', event, { requestId, ...errorFields(error) });
  const ledger = createMemoryLedger();
  const view = createChainView({ rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: usdc.address });
  const contextFor = createContextFor(() => context.current(), {
    store: createMemoryLeaseStore(),
    now: issuer.now,
    report: (event, error) => log('error', event, errorFields(error)),
  });
  const gate = createGate({
    facilitator,
    chain: view,
    ledger,
    sealer: await createSealer(crypto.getRandomValues(new Uint8Array(STORE_SECRET_BYTES))),
    issuer,
    contextFor,
    usdc,
    payTo: chain.payTo,
    report,
  });
  const hono = createApp({
    operations: operations.map((operation) => ({
      ...operation,
      price: settings.PRICES[operation.id] ?? operation.price,
    })),
    gate,
    chain: view,
    issuer,
    contextFor,
    didDocument: await didDocument(did, [signer]),
    usdc,
    payTo: chain.payTo,
    publicUrl: url,
    bodyLimitBytes: settings.BODY_LIMIT_BYTES,
    report,
    onAnswer: (answer) => log('info', 'answered', answer),
  });
  mountLocalRoutes(hono, chain);
  app.fetch = hono.fetch;

  const sweep = setInterval(() => {
    ledger
      .sweep(Date.now() / 1_000 - ROW_GRACE_SECONDS)
      .catch((error: unknown) => log('error', 'sweep_failed', errorFields(error)));
  }, SWEEP_INTERVAL_MS).unref();

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    clearInterval(sweep);
    context.close();
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    // A connection whose last answer is still to come is not idle now; it must not linger when it is.
    if (server instanceof HttpServer) server.keepAliveTimeout = 1;
    await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })]);
    // Whoever has paid by now gets his answer, however long it takes; whoever is still sending does not.
    await gate.idle();
    await Promise.race([closed, delay(FLUSH_MS, undefined, { ref: false })]);
    if (server instanceof HttpServer) server.closeAllConnections();
    await chain.stop();
  };
  return { url, did, chain, close: () => (closing ??= close()) };
}

type Server = ReturnType<typeof createAdaptorServer>;

async function listen(server: Server, { HOST, PORT }: Settings): Promise<number> {
  try {
    return await listenOn(server, HOST, PORT ?? DEFAULT_PORT);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    if (PORT !== undefined) throw new Error(`PORT: ${PORT} is taken; leave it out for a free one`, { cause: error });
    return listenOn(server, HOST, 0);
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
