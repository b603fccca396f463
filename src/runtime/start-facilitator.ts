/** `context-evidence-kit facilitator`: a facilitator for the operator's other sellers, until a signal ends it. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { type FacilitatorSettings, parseFacilitatorSettings } from './env.ts';
import { createInProcessFacilitator } from './facilitator.ts';
import { createFacilitatorApp } from './facilitator-server.ts';
import { createLog, errorFields, type Log } from './log.ts';
import { NETWORKS, POLLING_INTERVAL_MS } from './remote-service.ts';

export interface RunningFacilitator {
  readonly url: string;
  /** Stops taking calls and finishes those that run. */
  close(): Promise<void>;
}

export async function startFacilitator(
  settings: FacilitatorSettings,
  log: Log,
  pollingIntervalMs = POLLING_INTERVAL_MS,
): Promise<RunningFacilitator> {
  const { chain, usdc } = NETWORKS[settings.NETWORK];
  const facilitator = createInProcessFacilitator({
    chain,
    rpcUrl: settings.RPC_URL,
    privateKey: settings.FACILITATOR_PRIVATE_KEY,
    pollingIntervalMs,
    simulate: true,
  });
  const app = createFacilitatorApp({
    facilitator,
    usdc,
    token: settings.FACILITATOR_TOKEN,
    payTo: settings.FACILITATOR_PAY_TO,
    report: (event, error) => log('error', event, errorFields(error)),
  });
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(settings.PORT, settings.HOST, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const host = settings.HOST.includes(':') ? `[${settings.HOST}]` : settings.HOST;
  return {
    url: `http://${host}:${port}`,
    close: async () => {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      server.closeIdleConnections();
      await closed;
    },
  };
}

export async function facilitate(): Promise<void> {
  const settings = parseFacilitatorSettings(process.env);
  const running = await startFacilitator(
    settings,
    createLog(settings.LOG_LEVEL, (line) => process.stderr.write(line)),
  );
  process.stdout.write(`Facilitator for ${settings.NETWORK}, listening on ${running.url}; Ctrl-C ends it.\n`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await running.close();
}
