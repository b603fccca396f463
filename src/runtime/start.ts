/** The command `start`: boots the service, says in a few lines where it is, and ends it in order when it is told to. */
import { operations } from '../operations/list.ts';
import { operationPath, samplePath } from '../surfaces/links.ts';
import { parseSettings } from './env.ts';
import { startLocalService } from './local-service.ts';
import { createLog } from './log.ts';
import { GENERATOR } from './version.ts';

/** Resolves when the service has ended. */
export async function start(): Promise<void> {
  const settings = parseSettings(
    process.env,
    operations.map(({ id }) => id),
  );
  const log = createLog(settings.logLevel, (line) => process.stderr.write(line));
  const service = await startLocalService(settings, log);
  const [operation = { id: '' }] = operations;
  process.stdout
    .write(`${GENERATOR.name} ${GENERATOR.version} in local mode: the money is practice money, and ends with this process.

  listening   ${service.url}
  issuer      ${service.did}
  chain       ${service.chain.rpcUrl} (id ${service.chain.chainId}, USDC ${service.chain.usdc})

Try:
  curl ${service.url}${samplePath(operation)}
  curl -i -X POST ${service.url}${operationPath(operation)}
  curl ${service.url}/local/faucet -H 'content-type: application/json' -d '{"address":"0x..."}'
  npm run demo

Ctrl-C ends it.
`);
  const signalled = new Promise<'signal'>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve('signal'));
  });
  const why = await Promise.race([signalled, service.chain.ended]);
  if (why !== 'signal') {
    process.stderr.write('The practice chain ended, so no payment can be settled any more.\n');
    process.exitCode = 1;
  }
  await service.close();
}
