/** Local mode: practice chain, in-process facilitator, a ledger that ends with them, and the app, on one loopback port. */
import { operations } from '../operations/list.ts';
import { createKeyMac, PEPPER_BYTES, type ApiKeys } from '../payment/api-keys.ts';
import { createChainView } from '../payment/chain.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { createSealer, STORE_SECRET_BYTES } from '../payment/seal.ts';
import { didKey } from '../provenance/did.ts';
import type { Settings } from './env.ts';
import { createInProcessFacilitator } from './facilitator.ts';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain, type LocalChain } from './local-chain.ts';
import { mountLocalRoutes } from './local-routes.ts';
import type { Log } from './log.ts';
import { startService, type Installation, type Service } from './service.ts';
import { loadOrCreateSeed } from './signing-key.ts';
import { openSqliteLedger } from './store/sqlite-ledger.ts';

export interface LocalService extends Service {
  readonly chain: LocalChain;
}

/**
 * Boots everything and resolves when paid calls can be served.
 *
 * @param ledgerPath where somebody wants to look into the ledger; it is of no use later, as the chain ends with this process.
 * @throws LocalChainMissing where the optional packages are not installed; see also `startService`.
 */
export async function startLocalService(settings: Settings, log: Log, ledgerPath = ':memory:'): Promise<LocalService> {
  if (settings.NETWORK !== 'local') throw new TypeError('these settings are not for local mode');
  const booted: { chain?: LocalChain } = {};
  const install = async (): Promise<Installation> => {
    const seed = settings.SIGNING_KEY ?? (await loadOrCreateSeed(settings.DATA_DIR));
    const chain = (booted.chain = await startLocalChain());
    return installationOn(chain, seed, ledgerPath);
  };
  try {
    const service = await startService(install, settings, log);
    const { chain } = booted;
    if (!chain) throw new TypeError('the service runs without its chain');
    let closing: Promise<void> | undefined;
    return { ...service, chain, close: () => (closing ??= service.close().then(() => chain.stop())) };
  } catch (error) {
    await booted.chain?.stop();
    throw error;
  }
}

async function installationOn(chain: LocalChain, seed: Uint8Array, ledgerPath: string): Promise<Installation> {
  const { rpcUrl, payTo, facilitatorKey: privateKey } = chain;
  const usdc = BASE_SEPOLIA_USDC;
  // Like the chain, they end with this process.
  const ledger = openSqliteLedger(ledgerPath);
  const [secret, pepper] = [newSecret(STORE_SECRET_BYTES), newSecret(PEPPER_BYTES)];
  const keys: ApiKeys = { accounts: ledger.accounts, macOf: await createKeyMac(pepper) };
  const network = { chain: BASE_SEPOLIA, rpcUrl };
  return {
    operations,
    seed,
    publicUrlOf: (url) => url,
    didOf: didKey,
    environment: 'local',
    chain: createChainView({ ...network, usdc: usdc.address }),
    facilitator: createInProcessFacilitator({ ...network, privateKey, pollingIntervalMs: LOCAL_POLLING_INTERVAL_MS }),
    ledger,
    sealer: await createSealer(secret),
    keys,
    usdc,
    payTo,
    mount: (app) => mountLocalRoutes(app, chain, keys),
  };
}

const newSecret = (bytes: number): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(bytes));
