/**
 * The service on a chain that others keep: the ledger is a file and outlives the process, and money moves through a facilitator over
 * HTTP, or through one in this process with a key of the operator's own. A facilitator that is down does not keep it from starting.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { HTTPFacilitatorClient } from '@x402/core/server';
import type { Operation } from '../operation.ts';
import { operations as allOperations } from '../operations/list.ts';
import { createKeyMac, pepperMac } from '../payment/api-keys.ts';
import { createChainView, readChainId } from '../payment/chain.ts';
import { createFailover, type Member } from '../payment/facilitators.ts';
import { BASE, BASE_SEPOLIA, BASE_SEPOLIA_USDC, BASE_USDC } from '../payment/networks.ts';
import { createSealer } from '../payment/seal.ts';
import type { FacilitatorSetting, RemoteSettings } from './env.ts';
import { createInProcessFacilitator, isUnconnected } from './facilitator.ts';
import { errorFields, type Log } from './log.ts';
import { loadRetiredKeys } from './retired-keys.ts';
import { startService, type Installation, type Service } from './service.ts';
import { openSqliteLedger } from './store/sqlite-ledger.ts';

export const NETWORKS = {
  base: { chain: BASE, usdc: BASE_USDC },
  'base-sepolia': { chain: BASE_SEPOLIA, usdc: BASE_SEPOLIA_USDC },
} as const;

/** Base makes a block every two seconds; half of that is often enough to ask for a receipt. */
const BLOCK_MS = 2_000;
export const POLLING_INTERVAL_MS = BLOCK_MS / 2;

/**
 * Boots and resolves when calls are taken. A chain or a facilitator that cannot be reached is no reason not to: paid calls are answered
 * 503 until it is back.
 *
 * @throws Error where RPC_URL is another chain's, the ledger cannot be used, or PORT is taken.
 */
export async function startRemoteService(
  settings: RemoteSettings,
  log: Log,
  operations: readonly Operation[] = allOperations,
): Promise<Service> {
  return startService(() => install(settings, operations, log), settings, log);
}

async function install(settings: RemoteSettings, operations: readonly Operation[], log: Log): Promise<Installation> {
  const { RPC_URL: rpcUrl, CONFIRMATIONS: confirmations, PAY_TO: payTo, DATABASE_URL: path } = settings;
  const { chain, usdc } = NETWORKS[settings.NETWORK];
  const chainId = await readChainId(rpcUrl).catch(() => chain.id);
  if (chainId !== chain.id) {
    throw new Error(`RPC_URL: is chain ${chainId}, and NETWORK ${settings.NETWORK} is chain ${chain.id}`);
  }
  const { RETIRED_KEYS: retiredPath } = settings;
  const retiredKeys = retiredPath === undefined ? undefined : await loadRetiredKeys(retiredPath);
  const sealer = await createSealer(settings.STORE_SECRET);
  mkdirSync(dirname(path), { recursive: true });
  const { KEY_PEPPER: pepper } = settings;
  const macOf = pepper && (await createKeyMac(pepper));
  const ledger = openSqliteLedger(path, await sealer.mac('store'), macOf && (await pepperMac(macOf)));
  return {
    operations,
    seed: settings.SIGNING_KEY,
    publicUrlOf: () => settings.PUBLIC_URL,
    didOf: (_, publicUrl) => didWeb(publicUrl),
    ...(retiredKeys && { retiredKeys }),
    chain: createChainView({ rpcUrl, chain, usdc: usdc.address, confirmations, patienceMs: confirmations * BLOCK_MS }),
    ...facilitatorOf(settings, log),
    ledger,
    sealer,
    keys: macOf && { accounts: ledger.accounts, macOf },
    usdc,
    payTo,
  };
}

/** One is asked as it is; several take each other's place, and each of them may take its time. */
function facilitatorOf(
  settings: RemoteSettings,
  log: Log,
): Required<Pick<Installation, 'facilitator' | 'facilitatorTimeoutMs'>> {
  const { FACILITATOR_TIMEOUT_MS: timeoutMs, NETWORK, FACILITATORS } = settings;
  const members = FACILITATORS.map((facilitator) => memberOf(facilitator, settings));
  const [first, ...others] = members;
  if (first && others.length === 0) return { facilitator: first.client, facilitatorTimeoutMs: timeoutMs };
  const report = (facilitator: string, error: unknown): void =>
    log('error', 'facilitator_unanswered', { facilitator, ...errorFields(error) });
  const network = NETWORKS[NETWORK].usdc.caip2;
  return {
    facilitator: createFailover(members, { network, timeoutMs, now: Date.now, report }),
    facilitatorTimeoutMs: timeoutMs * QUESTIONS * members.length,
  };
}

/** What a facilitator may be asked within one call: whether it settles on the network, and then about the payment. */
const QUESTIONS = 2;

function memberOf(facilitator: FacilitatorSetting, settings: RemoteSettings): Member {
  if (facilitator.kind === 'url') {
    const { url, headers } = facilitator;
    const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
    const client = new HTTPFacilitatorClient({ url, timeoutMs: settings.FACILITATOR_TIMEOUT_MS, createAuthHeaders });
    return { name: new URL(url).host, client, provesUntouched: isUnconnected };
  }
  const { privateKey } = facilitator;
  const { chain } = NETWORKS[settings.NETWORK];
  const pollingIntervalMs = POLLING_INTERVAL_MS;
  const client = createInProcessFacilitator({ chain, rpcUrl: settings.RPC_URL, privateKey, pollingIntervalMs });
  // Its connections are those to the node, and one may be refused after the transaction went out over another.
  return { name: 'self', client, provesUntouched: () => false };
}

/** did:web of an origin: the document stands at /.well-known/did.json below it. */
export const didWeb = (origin: string): string => `did:web:${encodeURIComponent(new URL(origin).host)}`;
