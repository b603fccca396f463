import { createPublicClient, createTestClient, http } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BASE_SEPOLIA } from '../payment/networks.ts';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain, type LocalChain } from './local-chain.ts';
import { receiptOf } from './receipt.ts';

let chain: LocalChain;
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(() => chain.stop());

const clientOf = (fetchFn?: typeof fetch) =>
  createPublicClient({ chain: BASE_SEPOLIA, transport: http(chain.rpcUrl, fetchFn && { fetchFn }) });

it('finds a receipt that comes after its block, though no block follows', async () => {
  const hash = await chain.mint(privateKeyToAccount(generatePrivateKey()).address, 1n);
  let asked = 0;
  const late: typeof fetch = async (input, init) => {
    asked += 1;
    if (asked > 3) return fetch(input, init);
    return Response.json({ jsonrpc: '2.0', id: (JSON.parse(init?.body as string) as { id: number }).id, result: null });
  };
  expect(await receiptOf(clientOf(late), hash, LOCAL_POLLING_INTERVAL_MS)).toMatchObject({ status: 'success' });
  expect(asked).toBe(4);
});

it('waits for one that is mined later', async () => {
  const anvil = createTestClient({ mode: 'anvil', chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) });
  await anvil.setAutomine(false);
  const minted = chain.mint(privateKeyToAccount(generatePrivateKey()).address, 1n);
  await anvil.mine({ blocks: 1 });
  await anvil.setAutomine(true);
  await anvil.mine({ blocks: 1 });
  expect(await minted).toMatch(/^0x[0-9a-f]{64}$/);
});

it('gives up when its time is over, and at once where nobody answers', async () => {
  await expect(receiptOf(clientOf(), `0x${'ab'.repeat(32)}`, 1, 20)).rejects.toThrow('could not be found');
  const unreachable: typeof fetch = () => Promise.reject(new TypeError('fetch failed'));
  await expect(receiptOf(clientOf(unreachable), `0x${'ab'.repeat(32)}`, 1)).rejects.toThrow('HTTP request failed');
});
