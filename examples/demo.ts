/**
 * The whole life of one paid call against a freshly started local service, with the official x402 client and practice money:
 * challenge, payment, answer, balances, verification, and a forgery that is caught. Exits 0 only if all of it held.
 */
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { createPublicClient, erc20Abi, formatUnits, http, type Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { operations } from '../src/operations/list.ts';
import { PRICE_DECIMALS } from '../src/operation.ts';
import { parseSettings } from '../src/runtime/env.ts';
import { startLocalService } from '../src/runtime/local-service.ts';
import { createLog } from '../src/runtime/log.ts';
import { newSeed, spellings } from '../src/runtime/signing-key.ts';

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
  const chain = createPublicClient({ transport: http(rpcUrl) });
  const balanceOf = async (owner: Address): Promise<bigint> =>
    chain.readContract({ address: usdc, abi: erc20Abi, functionName: 'balanceOf', args: [owner] });

  step(`1. A fresh wallet gets practice USDC`);
  const wallet = privateKeyToAccount(generatePrivateKey());
  await postJson(`${service}/local/faucet`, { address: wallet.address });
  const before = { payer: await balanceOf(wallet.address), payTo: await balanceOf(payTo) };
  say(`${wallet.address} holds ${inUsdc(before.payer)} USDC`);

  step(`2. Without payment: 402, and what it costs`);
  const { request } = await getJson<{ request: unknown }>(`${service}/api/v1/samples/conversation-prune`);
  const unpaid = await postJson(endpoint, request);
  const challenge = decodePaymentRequiredHeader(unpaid.headers.get('PAYMENT-REQUIRED') ?? '');
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
  const price = BigInt(challenge.accepts[0]?.amount ?? 0);
  const after = { payer: await balanceOf(wallet.address), payTo: await balanceOf(payTo) };
  say(`payer   ${inUsdc(before.payer)} -> ${inUsdc(after.payer)} USDC`);
  say(`PAY_TO  ${inUsdc(before.payTo)} -> ${inUsdc(after.payTo)} USDC`);
  expect(before.payer - after.payer === price && after.payTo - before.payTo === price, 'the price moved, once');

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

const inUsdc = (amount: bigint): string => formatUnits(amount, PRICE_DECIMALS);

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

// In this process, so that the service ends with it however that ends; a key of its own leaves nothing behind.
const settings = parseSettings(
  { PORT: '0', SIGNING_KEY: spellings(newSeed()).hex },
  operations.map(({ id }) => id),
);
const service = await startLocalService(
  settings,
  createLog('error', (line) => process.stderr.write(line)),
);
try {
  await main(service.url);
} finally {
  await service.close();
}
process.stdout.write('\nAll of it held.\n');
