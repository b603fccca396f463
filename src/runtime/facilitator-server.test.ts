/** The facilitator for other sellers, over HTTP, by the stock client, on the practice chain. */
import { x402Client } from '@x402/core/client';
import { HTTPFacilitatorClient } from '@x402/core/server';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { createPublicClient, erc20Abi, http, type Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { parseFacilitatorSettings } from './env.ts';
import { startLocalChain, type LocalChain } from './local-chain.ts';
import { type RunningFacilitator, startFacilitator } from './start-facilitator.ts';

const TOKEN = 'a-token-that-the-sellers-know-0123456789';
const seller = privateKeyToAccount(generatePrivateKey()).address;
const payer = privateKeyToAccount(generatePrivateKey());
const reported: string[] = [];
let chain: LocalChain;
let running: RunningFacilitator;
let url: string;
let reader: ReturnType<typeof createPublicClient>;
beforeAll(async () => {
  chain = await startLocalChain();
  await chain.mint(payer.address, 10_000n);
  reader = createPublicClient({ chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) });
  const settings = parseFacilitatorSettings({
    NETWORK: 'base-sepolia',
    PORT: '0',
    RPC_URL: chain.rpcUrl,
    FACILITATOR_PRIVATE_KEY: chain.facilitatorKey,
    FACILITATOR_TOKEN: TOKEN,
    FACILITATOR_PAY_TO: seller,
  });
  running = await startFacilitator(settings, (_, event) => void reported.push(event), 10);
  ({ url } = running);
});
afterAll(async () => {
  await running.close();
  await chain.stop();
});

it.each([
  [{ FACILITATOR_TOKEN: 'short' }, 'FACILITATOR_TOKEN: must have at least 32 characters'],
  [{ FACILITATOR_TOKEN: undefined }, 'FACILITATOR_TOKEN: is required'],
  [{ FACILITATOR_PAY_TO: '' }, 'FACILITATOR_PAY_TO: is required'],
  [{ FACILITATOR_PAY_TO: `${seller},${seller.toLowerCase()}` }, 'FACILITATOR_PAY_TO: must be addresses'],
  [{ NETWORK: 'local' }, 'NETWORK: must be base-sepolia or base'],
  [{ FACILITATOR_PRIVATE_KEY: '0x12' }, 'FACILITATOR_PRIVATE_KEY: must be 64 hex digits'],
])('settings with %j are refused', (wrong, says) => {
  const right = {
    NETWORK: 'base',
    RPC_URL: 'https://rpc.example',
    FACILITATOR_PRIVATE_KEY: '1'.repeat(64),
    FACILITATOR_TOKEN: TOKEN,
    FACILITATOR_PAY_TO: ` ${seller} ,${payer.address}`,
  };
  expect(parseFacilitatorSettings(right).FACILITATOR_PAY_TO).toEqual([seller, payer.address]);
  expect(() => parseFacilitatorSettings({ ...right, ...wrong })).toThrow(says);
});

const requirements = (more: Partial<PaymentRequirements> = {}): PaymentRequirements => ({
  scheme: 'exact',
  network: BASE_SEPOLIA_USDC.caip2,
  asset: BASE_SEPOLIA_USDC.address,
  amount: '1000',
  payTo: seller,
  maxTimeoutSeconds: 300,
  extra: { name: BASE_SEPOLIA_USDC.name, version: BASE_SEPOLIA_USDC.version },
  ...more,
});
const sign = (asked: PaymentRequirements): Promise<PaymentPayload> =>
  new x402Client().register('eip155:*', new ExactEvmScheme(payer)).createPaymentPayload({
    x402Version: 2,
    resource: { url: 'https://seller.example/thing', description: '', mimeType: '' },
    accepts: [asked],
  });
const balance = (owner: Address): Promise<bigint> =>
  reader.readContract({ address: BASE_SEPOLIA_USDC.address, abi: erc20Abi, functionName: 'balanceOf', args: [owner] });
const client = (token = TOKEN): HTTPFacilitatorClient => {
  const headers = { Authorization: `Bearer ${token}` };
  return new HTTPFacilitatorClient({
    url,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });
};
const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${TOKEN}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

describe('a seller with the token', () => {
  it('learns what is supported, verifies, and settles once', async () => {
    expect((await client().getSupported()).kinds).toContainEqual(
      expect.objectContaining({ scheme: 'exact', network: BASE_SEPOLIA_USDC.caip2 }),
    );
    const asked = requirements();
    const payload = await sign(asked);
    expect(await client().verify(payload, asked)).toMatchObject({ isValid: true, payer: payer.address });
    const settled = await client().settle(payload, asked);
    expect(settled).toMatchObject({ success: true, network: BASE_SEPOLIA_USDC.caip2 });
    expect(await balance(seller)).toBe(1_000n);
    expect(await client().settle(payload, asked)).toMatchObject({ success: false });
    expect(await balance(seller)).toBe(1_000n);
  });

  it('pays no gas for a settlement that would fail', async () => {
    const sender = privateKeyToAccount(chain.facilitatorKey).address;
    const before = await reader.getTransactionCount({ address: sender });
    const asked = requirements({ amount: '999999' });
    expect(await client().settle(await sign(asked), asked)).toMatchObject({ success: false });
    expect(await reader.getTransactionCount({ address: sender })).toBe(before);
  });
});

describe('nobody', () => {
  it.each([
    ['without a token', ''],
    ['with a wrong one', 'Bearer wrong'],
    ['with the token alone', TOKEN],
    ['with another scheme', `Basic ${TOKEN}`],
  ])('%s is served', async (_, Authorization) => {
    for (const path of ['/verify', '/settle']) {
      const response = await post(path, {}, { Authorization });
      expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([401, 'Bearer']);
    }
    expect((await fetch(`${url}/supported`, { headers: { Authorization } })).status).toBe(401);
  });

  it.each<[string, Partial<PaymentRequirements>, string]>([
    ['to another address', { payTo: payer.address }, '/paymentRequirements/payTo'],
    ['of another token', { asset: seller }, '/paymentRequirements/asset'],
    ['on another chain', { network: 'eip155:1' }, '/paymentRequirements/network'],
  ])('has a payment settled %s', async (_, more, path) => {
    const paymentPayload = await sign(requirements());
    const response = await post('/settle', { x402Version: 2, paymentPayload, paymentRequirements: requirements(more) });
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_request', path }]);
  });
});

it.each([
  ['no JSON', 'nonsense', 400],
  ['a list', [], 400],
  ['nothing in it', {}, 400],
  ['a payment of v1', { paymentPayload: { x402Version: 1 }, paymentRequirements: requirements() }, 400],
  ['no requirements', { paymentPayload: {} }, 400],
  ['too much', `{"a":"${'x'.repeat(70_000)}"}`, 413],
])('a body that is %s is refused', async (_, body, status) => {
  expect((await post('/settle', body)).status).toBe(status);
  expect(reported).toEqual([]);
});
