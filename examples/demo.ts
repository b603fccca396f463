/**
 * The whole life of one paid call against a freshly started service, with the official x402 client and practice money:
 * challenge, payment, answer, balances, verification, and a forgery that is caught. Exits 0 only if all of it held.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { createPublicClient, formatUnits, http, parseAbi, type Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { baseSepolia } from 'viem/chains';

interface Answer {
  readonly data: {
    readonly status: string;
    readonly keep: number[];
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  };
  readonly _provenance: { readonly credential: { readonly issuer: string } };
}

interface Verdict {
  readonly verified: boolean;
  readonly outcome: string;
  readonly checks: Readonly<Record<string, { readonly result: string; readonly reason: string }>>;
}

async function main(service: string): Promise<void> {
  const endpoint = `${service}/api/v1/conversation-prune`;
  const { rpcUrl, usdc, payTo } = await getJson<{ rpcUrl: string; usdc: Address; payTo: Address }>(
    `${service}/local/info`,
  );
  const chain = createPublicClient({ chain: baseSepolia, transport: http(rpcUrl) });
  const balanceOf = async (owner: Address): Promise<bigint> =>
    chain.readContract({ address: usdc, abi: ERC20, functionName: 'balanceOf', args: [owner] });

  step(`1. A fresh wallet gets practice USDC`);
  const wallet = privateKeyToAccount(generatePrivateKey());
  await postJson(`${service}/local/faucet`, { address: wallet.address });
  const before = { payer: await balanceOf(wallet.address), payTo: await balanceOf(payTo) };
  say(`${wallet.address} holds ${inUsdc(before.payer)} USDC`);

  step(`2. Without payment: 402, and what it costs`);
  const { request } = await getJson<{ request: unknown }>(`${service}/api/v1/samples/conversation-prune`);
  const unpaid = await postJson(endpoint, request);
  const challenge = (await unpaid.json()) as { error: string; accepts: unknown[] };
  say(`HTTP ${unpaid.status}: ${challenge.error}`);
  say(JSON.stringify(challenge.accepts[0]));
  expect(unpaid.status === 402, 'an unpaid call is challenged');

  step(`3. With the official @x402/fetch client: paid and answered`);
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet));
  const paid = await wrapFetchWithPayment(fetch, client)(endpoint, jsonInit(request));
  expect(paid.status === 200, 'the paid call is answered');
  const answer = (await paid.json()) as Answer;
  const receipt = decodePaymentResponseHeader(paid.headers.get('PAYMENT-RESPONSE') ?? '');
  const { status, keep, tokensBefore, tokensAfter } = answer.data;
  say(`status ${status}: keep messages ${JSON.stringify(keep)}, ${tokensBefore} -> ${tokensAfter} tokens`);
  say(`transaction ${receipt.transaction}`);

  step(`4. What moved on the chain`);
  const after = { payer: await balanceOf(wallet.address), payTo: await balanceOf(payTo) };
  say(`payer   ${inUsdc(before.payer)} -> ${inUsdc(after.payer)} USDC`);
  say(`PAY_TO  ${inUsdc(before.payTo)} -> ${inUsdc(after.payTo)} USDC`);
  expect(before.payer - after.payer === 5_000n && after.payTo - before.payTo === 5_000n, '0.005 USDC moved, once');

  step(`5. The evidence, checked and re-run`);
  const verdict = await verify(service, { ...answer, input: request });
  say(`${verdict.outcome}, signed by ${answer._provenance.credential.issuer}`);
  for (const [name, { result, reason }] of Object.entries(verdict.checks))
    say(`${result.padEnd(12)} ${name}: ${reason}`);
  expect(verdict.verified, 'the answer verifies');

  step(`6. One digit changed: ${tokensAfter} -> ${tokensAfter + 1}`);
  const forged = await verify(service, { ...answer, data: { ...answer.data, tokensAfter: tokensAfter + 1 } });
  say(`${forged.outcome}: ${forged.checks['data_digest']?.reason}`);
  expect(!forged.verified && forged.outcome === 'contradicted', 'the forgery is rejected');
}

const ERC20 = parseAbi(['function balanceOf(address owner) view returns (uint256)']);
const USDC_DECIMALS = 6;
const inUsdc = (amount: bigint): string => formatUnits(amount, USDC_DECIMALS);

const jsonInit = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

const postJson = (url: string, body: unknown): Promise<Response> => fetch(url, jsonInit(body));

async function getJson<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T;
}

async function verify(service: string, evidence: unknown): Promise<Verdict> {
  return (await (await postJson(`${service}/api/v1/verify-provenance`, evidence)).json()) as Verdict;
}

function step(title: string): void {
  process.stdout.write(`\n${title}\n`);
}

function say(line: string): void {
  process.stdout.write(`   ${line}\n`);
}

function expect(held: boolean, what: string): void {
  if (!held) throw new Error(`This did not hold: ${what}`);
}

/** Starts the service as a process of its own, as a user would, and hands over its URL. */
async function withService(use: (url: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'context-evidence-kit-demo-'));
  const cli = fileURLToPath(new URL('../src/runtime/cli.js', import.meta.url));
  const child = spawn(process.execPath, [cli, 'start'], {
    env: { ...process.env, PORT: '0', DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let output = '';
      child.once('exit', () => reject(new Error('the service did not start')));
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const listening = /listening\s+(\S+)\n/.exec(output)?.[1];
        if (listening !== undefined) resolve(listening);
      });
    });
    await use(url);
  } finally {
    child.kill('SIGTERM');
    await ended;
    await rm(dataDir, { recursive: true });
  }
}

await withService(main);
process.stdout.write('\nAll of it held.\n');
