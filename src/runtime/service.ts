/**
 * What every run mode has in common: one port, the app behind the gate, the rounds that keep the ledger tidy, and an end in order.
 * What a mode has of its own (chain, facilitator, keys) it is given.
 */
import { Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createAdaptorServer } from '@hono/node-server';
import type { FacilitatorClient } from '@x402/core/server';
import type { Address } from 'viem';
import { createApp } from '../app.ts';
import type { Operation } from '../operation.ts';
import type { AnswerIssuer } from '../operations/execute.ts';
import { createMemoryLeaseStore } from '../operations/leases.ts';
import { createContextFor } from '../operations/run-context.ts';
import type { ApiKeys } from '../payment/api-keys.ts';
import { createDiscovery } from '../payment/bazaar.ts';
import type { ChainView } from '../payment/chain.ts';
import { createGate } from '../payment/gate.ts';
import { withApiKeys } from '../payment/keyed.ts';
import { ROW_GRACE_SECONDS } from '../payment/ledger.ts';
import type { Usdc } from '../payment/networks.ts';
import { createOfferKey } from '../payment/offer-receipt.ts';
import { reconcileOpenRows } from '../payment/reconciliation.ts';
import type { Sealer } from '../payment/seal.ts';
import { didDocument } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import { issuerOf } from '../provenance/envelope.ts';
import { openContextSettings, type ContextSettings } from './context-settings.ts';
import type { Settings } from './env.ts';
import { errorFields, type Log } from './log.ts';
import { type RetiredKeys, without } from './retired-keys.ts';
import type { SqliteLedger } from './store/sqlite-ledger.ts';
import { GENERATOR } from './version.ts';

export interface Service {
  readonly url: string;
  readonly did: string;
  /** Stops taking calls and finishes those that run. */
  close(): Promise<void>;
}

/** What a run mode brings along. */
export interface Installation {
  readonly operations: readonly Operation[];
  readonly seed: Uint8Array;
  /** @param url where it listens. */
  readonly publicUrlOf: (url: string) => string;
  readonly didOf: (publicKey: Uint8Array, publicUrl: string) => string;
  readonly retiredKeys?: RetiredKeys;
  readonly environment?: 'local';
  readonly chain: ChainView;
  readonly facilitator: FacilitatorClient;
  readonly facilitatorTimeoutMs?: number;
  readonly ledger: SqliteLedger;
  readonly sealer: Sealer;
  /** Absent where API keys are not in use. */
  readonly keys: ApiKeys | undefined;
  readonly usdc: Usdc;
  readonly payTo: Address;
  readonly mount?: (app: ReturnType<typeof createApp>) => void;
}

/** The port that the README names; taken when PORT is unset and it is free. */
export const DEFAULT_PORT = 4_021;
/** How long a shutdown waits for requests that are still arriving, and for answers that are on their way. */
const DRAIN_MS = 10_000;
const FLUSH_MS = 1_000;
const SWEEP_INTERVAL_MS = 3_600_000;
/** A few blocks of Base. */
const RECONCILE_INTERVAL_MS = 10_000;

/**
 * Reads the files that settings name, has the mode install what it needs, and resolves when calls can be served.
 *
 * @throws SettingsError where a file that a setting names is no good; Error where PORT is given and taken; whatever `install` does.
 */
export async function startService(
  install: () => Promise<Installation>,
  settings: Settings,
  log: Log,
): Promise<Service> {
  const context = await openContextSettings(settings, log);
  let installation: Installation | undefined;
  try {
    installation = await install();
    return await serve(installation, context, settings, log);
  } catch (error) {
    context.close();
    installation?.ledger.close();
    throw error;
  }
}

async function serve(
  installation: Installation,
  context: ContextSettings,
  settings: Settings,
  log: Log,
): Promise<Service> {
  const { chain, ledger, usdc, payTo, environment, facilitatorTimeoutMs } = installation;
  const app: { fetch?: (request: Request) => Response | Promise<Response> } = {};
  // The port is known only when it listens, and the app names its own URL: in between there is nothing to serve.
  const server = createAdaptorServer({
    fetch: (request) => app.fetch?.(request) ?? new Response(null, { status: 503 }),
  });
  const port = await listen(server, settings);
  const url = `http://${settings.HOST.includes(':') ? `[${settings.HOST}]` : settings.HOST}:${port}`;
  const publicUrl = installation.publicUrlOf(url);

  const signer = await createSigner(installation.seed);
  const did = installation.didOf(signer.publicKey, publicUrl);
  const offerKey = await createOfferKey(installation.seed, did);
  const { retiredKeys = { keys: [], jwsKeys: [] } } = installation;
  const retired = without(retiredKeys, [signer.publicKey, offerKey.signer.publicKey]);
  const issuer: AnswerIssuer = {
    ...(await issuerOf(did, signer)),
    generator: GENERATOR,
    ...(environment && { environment }),
    now: () => new Date(),
    newId: () => crypto.randomUUID(),
  };
  const reportAlone = (event: string, error: unknown): void => log('error', event, errorFields(error));
  const report = (event: string, error: unknown, requestId: string): void =>
    log('error', event, { requestId, ...errorFields(error) });
  const contextFor = createContextFor(() => context.current(), {
    store: createMemoryLeaseStore(),
    now: issuer.now,
    report: reportAlone,
  });
  const payGate = createGate({
    facilitator: installation.facilitator,
    ...(facilitatorTimeoutMs && { facilitatorTimeoutMs }),
    chain,
    ledger,
    sealer: installation.sealer,
    issuer,
    contextFor,
    offerKey,
    discovery: createDiscovery(reportAlone),
    usdc,
    payTo,
    identifierRequired: settings.PAYMENT_IDENTIFIER === 'required',
    report,
  });
  const gate = withApiKeys(payGate, {
    keys: installation.keys,
    sealer: installation.sealer,
    issuer,
    contextFor,
    report,
  });
  const hono = createApp({
    operations: installation.operations.map((operation) => ({
      ...operation,
      price: settings.PRICES[operation.id] ?? operation.price,
    })),
    gate,
    chain,
    issuer,
    contextFor,
    didDocument: await didDocument(
      did,
      [signer, ...retired.keys],
      [...(offerKey.kid.startsWith(`${did}#`) ? [offerKey.signer.publicKey] : []), ...retired.jwsKeys],
    ),
    offerKeyId: offerKey.kid,
    usdc,
    payTo,
    publicUrl,
    bodyLimitBytes: settings.BODY_LIMIT_BYTES,
    report,
    onAnswer: (answer) => log('info', 'answered', answer),
  });
  installation.mount?.(hono);
  app.fetch = hono.fetch;

  const rounds = [
    everyNowAndThen(RECONCILE_INTERVAL_MS, async (stop) => {
      const closed = await reconcileOpenRows(ledger, chain, reportAlone, stop);
      if (closed > 0) log('info', 'reconciled', { rows: closed });
    }),
    everyNowAndThen(SWEEP_INTERVAL_MS, async () => {
      const now = Date.now() / 1_000;
      await ledger.sweep(now - ROW_GRACE_SECONDS);
      await ledger.accounts.sweep(now);
    }),
  ].map((round) => round((error) => reportAlone('round_failed', error)));

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
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
    await Promise.all(rounds.map((stop) => stop()));
    ledger.close();
  };
  return { url, did, close: () => (closing ??= close()) };
}

/** Runs `work` now and then, never twice at once; what it gives stops it, and waits for a round that runs. */
const everyNowAndThen =
  (intervalMs: number, work: (stop: AbortSignal) => Promise<unknown>) =>
  (failed: (error: unknown) => void): (() => Promise<void>) => {
    const stopping = new AbortController();
    let running: Promise<unknown> | undefined;
    const round = (): void => {
      running ??= work(stopping.signal)
        .catch(failed)
        .finally(() => (running = undefined));
    };
    round();
    const timer = setInterval(round, intervalMs).unref();
    return async () => {
      clearInterval(timer);
      stopping.abort();
      await running;
    };
  };

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
