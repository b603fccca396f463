/** Test helpers: a real local service in this process, wallets that pay, and what the chain says. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client, x402HTTPClient, wrapFetchWithPayment } from '@x402/fetch';
import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { createPublicClient, createTestClient, createWalletClient, erc20Abi, http, type Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';

import { conversationPrune, conversationPruneExample } from '../src/operations/conversation-prune.ts';
import { operations } from '../src/operations/list.ts';
import { BASE_SEPOLIA } from '../src/payment/networks.ts';
import { parseSettings } from '../src/runtime/env.ts';
import type { Log } from '../src/runtime/log.ts';
import type { LocalChain } from '../src/runtime/local-chain.ts';
import { startLocalService, type LocalService } from '../src/runtime/local-service.ts';
import { operationPath } from '../src/surfaces/links.ts';
import { answeredBy, expectBalance, openBooks, settledIn, type Books } from './books.ts';

export interface TestService extends LocalService {
  /** Where `EXAMPLE` goes. */
  readonly endpoint: string;
  /** Events that the service logged as errors. */
  readonly errors: string[];
  /** To be told where a test has had units of USDC paid past the service. */
  paidOutside(units: bigint): void;
  /** Rejects if the money does not add up: the payee's on the chain, the settled rows', and that of the paid answers. */
  close(): Promise<void>;
}

export async function startTestService(env: Record<string, string> = {}): Promise<TestService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'context-evidence-kit-test-'));
  const errors: string[] = [];
  const settings = parseSettings(
    { PORT: '0', DATA_DIR: dataDir, ...env },
    operations.map(({ id }) => id),
  );
  const log: Log = (level, event) => void (level === 'error' && errors.push(event));
  const ledgerPath = join(dataDir, 'ledger.db');
  const service = await startLocalService(settings, log, ledgerPath);
  openBooks(service.url);
  let outside = 0n;
  const prices = new Map(operations.map((each) => [operationPath(each), settings.PRICES[each.id] ?? each.price]));
  const read = async (): Promise<Books> => ({
    received: (await balanceOf(service.chain, service.chain.payTo)) - outside,
    settled: settledIn(ledgerPath),
    answered: answeredBy(service.url, (path) => BigInt(prices.get(path) ?? 0)),
  });
  return {
    ...service,
    endpoint: service.url + operationPath(conversationPrune),
    errors,
    paidOutside: (units) => void (outside += units),
    close: async () => {
      try {
        await expectBalance(read);
      } finally {
        await service.close();
        await rm(dataDir, { recursive: true });
      }
    },
  };
}

export interface Wallet {
  readonly account: PrivateKeyAccount;
  /** The official client, unmodified. */
  readonly fetch: typeof globalThis.fetch;
  /** Signs a payment for a challenge, without sending it: the header's value. */
  sign(required: PaymentRequired): Promise<string>;
}

export async function newWallet(service: { url: string }, funded = true): Promise<Wallet> {
  const account = privateKeyToAccount(generatePrivateKey());
  if (funded) await postJson(`${service.url}/local/faucet`, { address: account.address });
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  const httpClient = new x402HTTPClient(client);
  return {
    account,
    fetch: wrapFetchWithPayment(fetch, client),
    sign: async (required) => encodeHeader(await httpClient.createPaymentPayload(required)),
  };
}

export const encodeHeader = (payload: PaymentPayload | object): string =>
  Buffer.from(JSON.stringify(payload)).toString('base64');

export const decodeHeader = (header: string): PaymentPayload =>
  JSON.parse(Buffer.from(header, 'base64').toString()) as PaymentPayload;

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: text });
}

export const payWith = (payment: string): Record<string, string> => ({ 'PAYMENT-SIGNATURE': payment });

/** A key of local mode with so many credits. */
export async function newKey(service: { url: string }, credits: bigint): Promise<string> {
  const response = await postJson(`${service.url}/local/keys`, { credits: String(credits) });
  return ((await response.json()) as { key: string }).key;
}

/** A fresh payment for the operation behind `endpoint`, from a funded wallet. */
export async function freshPayment(
  service: TestService,
  wallet?: Wallet,
  endpoint = service.endpoint,
): Promise<string> {
  const { sign } = wallet ?? (await newWallet(service));
  const unpaid = await fetch(endpoint, { method: 'POST' });
  return sign(requiredOf(unpaid));
}

/** What a challenge asks for, as v2 clients read it. */
export const requiredOf = ({ headers }: Response): PaymentRequired =>
  decodePaymentRequiredHeader(headers.get('PAYMENT-REQUIRED') ?? '');

export function balanceOf(chain: LocalChain, owner: Address): Promise<bigint> {
  const client = createPublicClient({ chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) });
  return client.readContract({ address: chain.usdc, abi: erc20Abi, functionName: 'balanceOf', args: [owner] });
}

/** The document's own example. */
export const EXAMPLE = conversationPruneExample;
export const PRICE = BigInt(conversationPrune.price);

/** Has the owner send all USDC away, as one who tries to have an answer for nothing would, between verification and settlement. */
export async function emptyWallet(chain: LocalChain, owner: Address): Promise<void> {
  const connection = { chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) };
  const anvil = createTestClient({ ...connection, mode: 'anvil' });
  await anvil.impersonateAccount({ address: owner });
  await anvil.setBalance({ address: owner, value: 10n ** 18n });
  const args = [SOMEWHERE_ELSE, await balanceOf(chain, owner)] as const;
  const wallet = createWalletClient({ ...connection, account: owner });
  await wallet.writeContract({ address: chain.usdc, abi: erc20Abi, functionName: 'transfer', args });
}

const SOMEWHERE_ELSE: Address = '0x000000000000000000000000000000000000dEaD';
