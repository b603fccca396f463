/**
 * The paying fetch of `context-evidence-kit/client` against a freshly started local service, with practice money: a call whose
 * answer is lost twice, a program that starts anew in between, one signature and one charge. Exits 0 only if that held.
 */
import { createPaidFetch, PaidFetchError } from 'context-evidence-kit/client';
import { createPublicClient, erc20Abi, formatUnits, http } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { operations } from '../src/operations/list.ts';
import { parseSettings } from '../src/runtime/env.ts';
import { startLocalService, type LocalService } from '../src/runtime/local-service.ts';
import { createLog } from '../src/runtime/log.ts';
import { newSeed, spellings } from '../src/runtime/signing-key.ts';

async function main(service: LocalService): Promise<void> {
  const account = privateKeyToAccount(generatePrivateKey());
  await fetch(`${service.url}/local/faucet`, post({ address: account.address }));

  let signatures = 0;
  const wallet = {
    address: account.address,
    signTypedData: (message: Parameters<typeof account.signTypedData>[0]) => {
      signatures += 1;
      return account.signTypedData(message);
    },
  };
  /** A connection that delivers two paid requests, and loses their answers. */
  let losses = 2;
  const badConnection: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const response = await fetch(request);
    if (!request.headers.has('PAYMENT-SIGNATURE') || losses === 0) return response;
    losses -= 1;
    throw new TypeError('connection lost');
  };
  // Where payments are kept until their fate is proven: a file or a table, in a program that may be killed.
  const store = new Map<string, string>();
  const start = (): typeof fetch =>
    createPaidFetch(wallet, {
      maxPerCall: '0.01',
      maxTotal: '0.05',
      payTo: service.chain.payTo,
      issuer: service.did,
      store,
      retries: 0,
      fetch: badConnection,
    });

  const sample = await fetch(`${service.url}/api/v1/samples/conversation-prune`);
  const { request } = (await sample.json()) as { request: unknown };
  const call = [`${service.url}/api/v1/conversation-prune`, post(request)] as const;

  for (let attempt = 1; ; attempt += 1) {
    const paidFetch = start(); // as after a restart: only the store has lasted
    try {
      const response = await paidFetch(...call);
      const { data } = (await response.json()) as { data: { tokensBefore: number; tokensAfter: number } };
      say(`attempt ${attempt}: HTTP ${response.status}, verified; ${data.tokensBefore} -> ${data.tokensAfter} tokens`);
      break;
    } catch (error) {
      if (!(error instanceof PaidFetchError) || error.code !== 'network_failed') throw error;
      say(`attempt ${attempt}: ${error.message}; charged: ${error.charged}. The payment is kept.`);
    }
  }

  const chain = createPublicClient({ transport: http(service.chain.rpcUrl) });
  const args = [account.address] as const;
  const { usdc: address } = service.chain;
  const balance = await chain.readContract({ address, abi: erc20Abi, functionName: 'balanceOf', args });
  say(`signatures: ${signatures}; 10 -> ${formatUnits(balance, 6)} USDC`);
  expect(signatures === 1 && balance === 9_995_000n, 'one signature, one charge');

  const tooDear = createPaidFetch(wallet, { maxPerCall: '0.001', maxTotal: '1', store });
  const refusal: unknown = await tooDear(...call).catch((error: unknown) => error);
  say(`with a limit of 0.001 USDC for a call: ${refusal instanceof PaidFetchError ? refusal.message : 'paid'}`);
  expect(refusal instanceof PaidFetchError && signatures === 1, 'nothing is signed past a limit');
}

const post = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function expect(held: boolean, what: string): void {
  if (!held) throw new Error(`This did not hold: ${what}`);
}

const settings = parseSettings(
  { PORT: '0', SIGNING_KEY: spellings(newSeed()).hex },
  operations.map(({ id }) => id),
);
const service = await startLocalService(
  settings,
  createLog('error', (line) => process.stderr.write(line)),
);
try {
  await main(service);
} finally {
  await service.close();
}
say('All of it held.');
