/** The command `start`: boots the service, says in a few lines where it is, and ends it in order when it is told to. */
import { operations } from '../operations/list.ts';
import { operationPath, PATHS, samplePath } from '../surfaces/links.ts';
import { parseSettings, type RemoteSettings, type Settings } from './env.ts';
import { createLog, type Log } from './log.ts';
import { DEFAULT_PORT, type Service } from './service.ts';
import { GENERATOR } from './version.ts';

/** A signal that follows the first by more than this ends the process at once. */
const IMPATIENT_MS = 1_000;

interface Started {
  readonly service: Service;
  readonly greeting: string;
  /** Resolves, with what is to be said, where the service has lost what it cannot live without. */
  readonly lost?: Promise<string>;
}

/** Resolves when the service has ended. */
export async function start(): Promise<void> {
  // Whoever read our output may leave; that is no reason to stop serving those who pay.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const settings = parseSettings(
    process.env,
    operations.map(({ id }) => id),
  );
  const log = createLog(settings.LOG_LEVEL, (line) => process.stderr.write(line));
  const { service, greeting, lost } = await (settings.NETWORK === 'local'
    ? startLocal(settings, log)
    : startRemote(settings, log));
  process.stdout.write(`${GENERATOR.name} ${GENERATOR.version} ${greeting}
Ctrl-C ends it.
`);
  const signalled = new Promise<undefined>((resolve) => {
    let first = Number.POSITIVE_INFINITY;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // npm and the terminal both deliver one Ctrl-C; only a later signal is a second one, and means "now".
        if (Date.now() - first > IMPATIENT_MS) process.exit(1);
        first = Math.min(first, Date.now());
        resolve(undefined);
      });
    }
  });
  const why = await Promise.race([signalled, ...(lost ? [lost] : [])]);
  if (why !== undefined) {
    process.stderr.write(`${why}\n`);
    process.exitCode = 1;
  }
  await service.close();
}

// Each mode is loaded only where it is wanted: the practice chain's packages are optional.
async function startLocal(settings: Settings, log: Log): Promise<Started> {
  const { startLocalService } = await import('./local-service.ts');
  const { LOCAL_PATHS } = await import('./local-routes.ts');
  const service = await startLocalService(settings, log);
  const { url, did, chain } = service;
  const [operation] = operations;
  const greeting = `in local mode: the money is practice money, and ends with this process.

  listening   ${url}${moved(settings, url)}
  issuer      ${did}
  chain       ${chain.rpcUrl} (id ${chain.chainId}, USDC ${chain.usdc})

Try:
  curl ${url}${samplePath(operation)}
  curl -i -X POST ${url}${operationPath(operation)}
  curl ${url}${LOCAL_PATHS.faucet} -H 'content-type: application/json' -d '{"address":"0x..."}'
  npm run demo     (starts one of its own)
`;
  const lost = chain.ended.then(() => 'The practice chain ended, so no payment can be settled any more.');
  return { service, greeting, lost };
}

async function startRemote(settings: RemoteSettings, log: Log): Promise<Started> {
  const { startRemoteService } = await import('./remote-service.ts');
  const service = await startRemoteService(settings, log);
  const greeting = `on ${settings.NETWORK}.

  listening   ${service.url}${moved(settings, service.url)}, as ${settings.PUBLIC_URL}
  issuer      ${service.did}
  paid to     ${settings.PAY_TO}, final after ${settings.CONFIRMATIONS} block(s)
  ledger      ${settings.DATABASE_URL}
  ready?      ${service.url}${PATHS.ready}
`;
  return { service, greeting };
}

const moved = ({ PORT }: Settings, url: string): string =>
  PORT === undefined && new URL(url).port !== String(DEFAULT_PORT)
    ? `  (${DEFAULT_PORT} is taken; set PORT to insist on one)`
    : '';
