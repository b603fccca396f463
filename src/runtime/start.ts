/** The command `start`: boots the service, says in a few lines where it is, and ends it in order when it is told to. */
import { operations } from '../operations/list.ts';
import { operationPath, samplePath } from '../surfaces/links.ts';
import { parseSettings } from './env.ts';
import { LOCAL_PATHS } from './local-routes.ts';
import { DEFAULT_PORT, startLocalService } from './local-service.ts';
import { createLog } from './log.ts';
import { GENERATOR } from './version.ts';

/** A signal that follows the first by more than this ends the process at once. */
const IMPATIENT_MS = 1_000;

/** Resolves when the service has ended. */
export async function start(): Promise<void> {
  // Whoever read our output may leave; that is no reason to stop serving those who pay.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const settings = parseSettings(
    process.env,
    operations.map(({ id }) => id),
  );
  const log = createLog(settings.LOG_LEVEL, (line) => process.stderr.write(line));
  const service = await startLocalService(settings, log);
  const [operation] = operations;
  const { port } = new URL(service.url);
  const moved = settings.PORT === undefined && port !== String(DEFAULT_PORT);
  process.stdout
    .write(`${GENERATOR.name} ${GENERATOR.version} in local mode: the money is practice money, and ends with this process.

  listening   ${service.url}${moved ? `  (${DEFAULT_PORT} is taken; set PORT to insist on one)` : ''}
  issuer      ${service.did}
  chain       ${service.chain.rpcUrl} (id ${service.chain.chainId}, USDC ${service.chain.usdc})

Try:
  curl ${service.url}${samplePath(operation)}
  curl -i -X POST ${service.url}${operationPath(operation)}
  curl ${service.url}${LOCAL_PATHS.faucet} -H 'content-type: application/json' -d '{"address":"0x..."}'
  npm run demo     (starts one of its own)

Ctrl-C ends it.
`);
  const signalled = new Promise<'signal'>((resolve) => {
    let first = Number.POSITIVE_INFINITY;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // npm and the terminal both deliver one Ctrl-C; only a later signal is a second one, and means "now".
        if (Date.now() - first > IMPATIENT_MS) process.exit(1);
        first = Math.min(first, Date.now());
        resolve('signal');
      });
    }
  });
  const why = await Promise.race([signalled, service.chain.ended]);
  if (why !== 'signal') {
    process.stderr.write('The practice chain ended, so no payment can be settled any more.\n');
    process.exitCode = 1;
  }
  await service.close();
}
