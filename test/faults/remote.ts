/** Helpers: settings of remote mode over a chain that the test owns, wallets on it, and a look into the ledger's file. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import Database from 'libsql';
import type { Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { conversationPrune } from '../../src/operations/conversation-prune.ts';
import { operations } from '../../src/operations/list.ts';
import type { Operation } from '../../src/operation.ts';
import { parseSettings } from '../../src/runtime/env.ts';
import type { LocalChain } from '../../src/runtime/local-chain.ts';
import { startRemoteService } from '../../src/runtime/remote-service.ts';
import type { Service } from '../../src/runtime/service.ts';
import { operationPath } from '../../src/surfaces/links.ts';
import { expectBalance, settledIn, type Books } from '../books.ts';
import { balanceOf, decodeHeader, encodeHeader, EXAMPLE, postJson, PRICE, requiredOf } from '../service.ts';

export interface RemoteFolder {
  readonly databasePath: string;
  /** Everything that remote mode asks for; `more` names the facilitator and whatever a test is about. */
  env(more: Readonly<Record<string, string>>): Record<string, string>;
  /** State of each payment's row, by nonce, as another process would find it. */
  states(): ReadonlyMap<string, string>;
  /** Before the chain stops. Rejects if what the payee has got meanwhile is not what the settled rows say. */
  remove(): Promise<void>;
}

export async function remoteFolder(chain: LocalChain): Promise<RemoteFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-remote-'));
  const databasePath = join(folder, 'ledger.db');
  const before = await balanceOf(chain, chain.payTo);
  const read = async (): Promise<Books> => ({
    received: (await balanceOf(chain, chain.payTo)) - before,
    settled: settledIn(databasePath),
  });
  return {
    databasePath,
    env: (more) => ({
      NETWORK: 'base-sepolia',
      PORT: '0',
      DATA_DIR: folder,
      PAY_TO: chain.payTo,
      PUBLIC_URL: 'http://localhost:4021',
      SIGNING_KEY: '07'.repeat(32),
      STORE_SECRET: '09'.repeat(32),
      RPC_URL: chain.rpcUrl,
      CONFIRMATIONS: '1',
      DATABASE_URL: `file:${databasePath}`,
      LOG_LEVEL: 'error',
      ...more,
    }),
    states: () => {
      const database = new Database(databasePath);
      const rows = database.prepare('SELECT nonce, state FROM payment').all() as { nonce: string; state: string }[];
      database.close();
      return new Map(rows.map(({ nonce, state }) => [nonce, state]));
    },
    remove: async () => {
      try {
        if (existsSync(databasePath)) await expectBalance(read);
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  };
}

export interface RemoteService extends Service {
  readonly endpoint: string;
  readonly errors: string[];
}

/** In this process, so that engine runs can be counted: `runs` maps a request's targetTokens to their number. */
export async function startRemote(
  env: Record<string, string>,
  runs = new Map<number, number>(),
): Promise<RemoteService> {
  const counting: Operation = {
    ...(conversationPrune as Operation),
    run: (input, context) => {
      const { targetTokens } = input as typeof EXAMPLE;
      // What a challenge shows of an answer is worked out from the example, once, and is nobody's call.
      if (input !== conversationPrune.example) runs.set(targetTokens, (runs.get(targetTokens) ?? 0) + 1);
      return (conversationPrune as Operation).run(input, context);
    },
  };
  const errors: string[] = [];
  const settings = parseSettings(
    env,
    operations.map(({ id }) => id),
  );
  if (settings.NETWORK === 'local') throw new TypeError('not remote');
  const log = (level: string, event: string): void => void (level === 'error' && errors.push(event));
  const service = await startRemoteService(settings, log, [counting]);
  return { ...service, endpoint: service.url + operationPath(conversationPrune), errors };
}

export interface PaidCall {
  readonly body: unknown;
  readonly nonce: string;
  readonly payer: Address;
  readonly headers: Record<string, string>;
  /** What has left the payer's wallet, in prices. */
  charges(): Promise<number>;
  send(endpoint: string): Promise<Answer>;
}

export interface PruneCall extends PaidCall {
  readonly targetTokens: number;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly receipt: string | null;
  readonly retryAfter: string | null;
  /** The problem's code, or `answer`. */
  readonly code: string;
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const { code = 'answer' } = JSON.parse(text) as { code?: string };
  const { headers } = response;
  return {
    status: response.status,
    text,
    receipt: headers.get('PAYMENT-RESPONSE'),
    retryAfter: headers.get('Retry-After'),
    code,
  };
}

/** Of `conversation-prune`, told apart by `targetTokens`. */
export async function newPaidCall(
  chain: LocalChain,
  endpoint: string,
  targetTokens: number,
  headers: Record<string, string> = {},
): Promise<PruneCall> {
  const body = { ...EXAMPLE, targetTokens };
  return { ...(await newCallOf(chain, endpoint, { body, price: PRICE, headers })), targetTokens };
}

/** What a payer can spend: a second charge would go through. */
const FUNDS_IN_PRICES = 3n;

/** A wallet of its own and a signed payment for the operation behind `endpoint`. */
export async function newCallOf(
  chain: LocalChain,
  endpoint: string,
  { body, price, headers = {} }: { body: unknown; price: bigint; headers?: Record<string, string> },
): Promise<PaidCall> {
  const account = privateKeyToAccount(generatePrivateKey());
  const funds = FUNDS_IN_PRICES * price;
  await chain.mint(account.address, funds);
  const client = new x402HTTPClient(new x402Client().register('eip155:*', new ExactEvmScheme(account)));
  const required = requiredOf(await fetch(endpoint, { method: 'POST' }));
  const payment = encodeHeader(await client.createPaymentPayload(required));
  const { authorization } = decodeHeader(payment).payload as { authorization: { nonce: string } };
  const paid = { ...headers, 'PAYMENT-SIGNATURE': payment };
  return {
    body,
    nonce: authorization.nonce,
    payer: account.address,
    headers: paid,
    charges: async () => Number(funds - (await balanceOf(chain, account.address))) / Number(price),
    send: async (to) => answerOf(await postJson(to, body, paid)),
  };
}
