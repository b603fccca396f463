/** The view of the chain against the real contract: what it says of an authorization, used, unused, or used for another. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  encodeFunctionData,
  http,
  multicall3Abi,
  parseAbi,
  parseSignature,
  type Address,
  type Hex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain, type LocalChain } from '../runtime/local-chain.ts';
import { receiptOf } from '../runtime/receipt.ts';
import { createChainView, type ChainView } from './chain.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from './networks.ts';
import type { SignedTransfer } from './payload.ts';

const ABI = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
]);
const AUTHORIZATION = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const;

let chain: LocalChain;
let view: ChainView;
beforeAll(async () => {
  chain = await startLocalChain();
  view = createChainView({ rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: chain.usdc });
});
afterAll(() => chain.stop());

const payer = privateKeyToAccount(generatePrivateKey());
/** Unix seconds, past this century. */
const FAR = 2 ** 40;
const newNonce = (): Hex => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`;
const stateOf = (nonce: Hex, payTo: Address, amount: bigint) =>
  view.authorizationState({ payer: payer.address, nonce, validBefore: FAR }, { payTo, amount });

/** Sends and waits; what it calls must not revert. */
async function send(address: Address, data: Hex): Promise<Hex> {
  const account = privateKeyToAccount(chain.facilitatorKey);
  const connection = { chain: BASE_SEPOLIA, transport: http(chain.rpcUrl), pollingInterval: 10 };
  const hash = await createWalletClient({ ...connection, account }).sendTransaction({ to: address, data });
  const receipt = await receiptOf(createPublicClient(connection), hash, LOCAL_POLLING_INTERVAL_MS);
  expect(receipt.status).toBe('success');
  return hash;
}

const domain = {
  name: BASE_SEPOLIA_USDC.name,
  version: BASE_SEPOLIA_USDC.version,
  chainId: BASE_SEPOLIA.id,
  verifyingContract: BASE_SEPOLIA_USDC.address,
};

/** A transfer of `value` from the payer under `nonce`, signed. */
async function signedTransfer(to: Address, value: bigint, nonce: Hex): Promise<SignedTransfer> {
  const message = { from: payer.address, to, value, validAfter: 0n, validBefore: BigInt(FAR), nonce };
  const types = { TransferWithAuthorization: AUTHORIZATION };
  const signature = await payer.signTypedData({ domain, types, primaryType: 'TransferWithAuthorization', message });
  return { ...message, signature };
}

/** The call that carries it out. */
async function transferCall(to: Address, value: bigint, nonce: Hex): Promise<Hex> {
  await chain.mint(payer.address, value);
  const { signature, ...message } = await signedTransfer(to, value, nonce);
  const { v, yParity, r, s } = parseSignature(signature);
  const args = [message.from, to, value, 0n, message.validBefore, nonce, Number(v ?? 27 + yParity), r, s] as const;
  return encodeFunctionData({ abi: ABI, functionName: 'transferWithAuthorization', args });
}

const pay = async (to: Address, value: bigint, nonce: Hex): Promise<Hex> =>
  send(chain.usdc, await transferCall(to, value, nonce));

describe('authorizationState', () => {
  it('is unused before, settled with its transaction after, and only for the payee and amount that it paid', async () => {
    const nonce = newNonce();
    expect(await stateOf(nonce, chain.payTo, 5n)).toEqual({ kind: 'unused', expired: false });
    const transaction = await pay(chain.payTo, 5n, nonce);
    expect(await stateOf(nonce, chain.payTo, 5n)).toEqual({ kind: 'settled', transaction });
    expect(await stateOf(nonce, chain.payTo.toLowerCase() as Address, 5n)).toEqual({ kind: 'settled', transaction });
    expect(await stateOf(nonce, chain.payTo, 6n)).toEqual({ kind: 'spent_elsewhere' });
    expect(await stateOf(nonce, payer.address, 5n)).toEqual({ kind: 'spent_elsewhere' });
    expect(await stateOf(newNonce(), chain.payTo, 5n)).toEqual({ kind: 'unused', expired: false });
  });

  it('is spent elsewhere where the payer cancelled it', async () => {
    const nonce = newNonce();
    const types = {
      CancelAuthorization: [AUTHORIZATION[0], AUTHORIZATION[5]].map(({ name, type }) => ({
        name: name === 'from' ? 'authorizer' : name,
        type,
      })),
    };
    const message = { authorizer: payer.address, nonce };
    const signature = await payer.signTypedData({ domain, types, primaryType: 'CancelAuthorization', message });
    const { v, yParity, r, s } = parseSignature(signature);
    const args = [payer.address, nonce, Number(v ?? 27 + yParity), r, s] as const;
    await send(chain.usdc, encodeFunctionData({ abi: ABI, functionName: 'cancelAuthorization', args }));
    expect(await stateOf(nonce, chain.payTo, 5n)).toEqual({ kind: 'spent_elsewhere' });
  });
});

describe('isExecutable', () => {
  it('is what the token would do: not without funds, not under a wrong signature, not twice', async () => {
    const poor = privateKeyToAccount(generatePrivateKey());
    const nonce = newNonce();
    const transfer = await signedTransfer(chain.payTo, 5n, nonce);
    await chain.mint(payer.address, 5n);
    expect(await view.isExecutable(transfer)).toBe(true);
    expect(await view.isExecutable({ ...transfer, value: 6n })).toBe(false);
    expect(await view.isExecutable({ ...transfer, from: poor.address })).toBe(false);
    expect(await view.isExecutable(await signedTransfer(chain.payTo, 2n ** 60n, newNonce()))).toBe(false);
    await pay(chain.payTo, 5n, nonce);
    expect(await view.isExecutable(transfer)).toBe(false);
  });
});

describe('depth', () => {
  it('is pending until enough blocks stand on a transfer, and found however many ranges lie between', async () => {
    const where = { rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: chain.usdc };
    const deep = createChainView({ ...where, confirmations: 3, logRangeBlocks: 10 });
    const test = createTestClient({ mode: 'anvil', chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) });
    const fromBlock = await deep.head();
    await test.mine({ blocks: 25 });
    const nonce = newNonce();
    const ask = (from?: number) =>
      deep.authorizationState(
        { payer: payer.address, nonce, validBefore: FAR },
        { payTo: chain.payTo, amount: 5n },
        from,
      );
    expect(await ask()).toEqual({ kind: 'unused', expired: false });
    const transaction = await pay(chain.payTo, 5n, nonce);
    for (let confirmations = 1; confirmations < 3; confirmations += 1) {
      expect(await ask()).toEqual({ kind: 'pending' });
      await test.mine({ blocks: 1 });
    }
    expect(await ask()).toEqual({ kind: 'settled', transaction });
    expect(await ask(fromBlock)).toEqual({ kind: 'settled', transaction });
    await test.mine({ blocks: 20 });
    expect(await ask(fromBlock)).toEqual({ kind: 'settled', transaction });
    // Nobody remembers it, and it is not among the last blocks.
    expect(await ask()).toEqual({ kind: 'spent_elsewhere' });
  });
});

describe('what must not deceive it', () => {
  it('takes each transfer of a batch for its own authorization only', async () => {
    const [toSelf, toUs] = [newNonce(), newNonce()];
    const calls = [await transferCall(payer.address, 7n, toSelf), await transferCall(chain.payTo, 7n, toUs)];
    const args = [calls.map((callData) => ({ target: chain.usdc, allowFailure: false, callData }))] as const;
    const { address } = BASE_SEPOLIA.contracts.multicall3;
    const transaction = await send(
      address,
      encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args }),
    );
    expect(await stateOf(toSelf, chain.payTo, 7n)).toEqual({ kind: 'spent_elsewhere' });
    expect(await stateOf(toUs, chain.payTo, 7n)).toEqual({ kind: 'settled', transaction });
  });

  it('takes a node that knows the state and not the event for no witness', async () => {
    const nonce = newNonce();
    await pay(chain.payTo, 5n, nonce);
    // A real node behind a proxy that has lost its logs.
    const withoutLogs = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString()) as { id: number; method: string };
      const headers = { 'Content-Type': 'application/json' };
      const forwarded = await fetch(chain.rpcUrl, { method: 'POST', headers, body: Buffer.concat(chunks) });
      const answer =
        method === 'eth_getLogs' ? JSON.stringify({ jsonrpc: '2.0', id, result: [] }) : await forwarded.text();
      response.writeHead(200, headers).end(answer);
    };
    const proxy = createServer((request, response) => {
      withoutLogs(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => {
      proxy.listen(0, '127.0.0.1', resolve);
    });
    const rpcUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const forgetful = createChainView({ rpcUrl, chain: BASE_SEPOLIA, usdc: chain.usdc });
    const authorization = { payer: payer.address, nonce, validBefore: FAR };
    const transfer = { payTo: chain.payTo, amount: 5n };
    await expect(forgetful.authorizationState(authorization, transfer, 0)).rejects.toThrow();
    // Where no row of ours stands behind it, it is enough that nobody can be paid with it any more.
    expect(await forgetful.authorizationState(authorization, transfer)).toEqual({ kind: 'spent_elsewhere' });
    proxy.close();
  });

  it('knows by the chain’s own clock that an authorization is over', async () => {
    const test = createTestClient({ mode: 'anvil', chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) });
    const { timestamp } = await createPublicClient({ chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) }).getBlock();
    const validBefore = Number(timestamp) + 100;
    const ask = () =>
      view.authorizationState(
        { payer: payer.address, nonce: newNonce(), validBefore },
        { payTo: chain.payTo, amount: 1n },
      );
    expect(await ask()).toEqual({ kind: 'unused', expired: false });
    await test.setNextBlockTimestamp({ timestamp: BigInt(validBefore - 1) });
    await test.mine({ blocks: 1 });
    expect(await ask()).toEqual({ kind: 'unused', expired: false });
    await test.setNextBlockTimestamp({ timestamp: BigInt(validBefore) });
    await test.mine({ blocks: 1 });
    expect(await ask()).toEqual({ kind: 'unused', expired: true });
  });
});

describe('a chain that cannot be asked', () => {
  it('is not reachable, and gives no state', async () => {
    const own = await startLocalChain();
    const dead = createChainView({ rpcUrl: own.rpcUrl, chain: BASE_SEPOLIA, usdc: own.usdc });
    expect(await dead.reachable()).toBe(true);
    await own.stop();
    expect(await dead.reachable()).toBe(false);
    await expect(dead.isExecutable(await signedTransfer(own.payTo, 1n, newNonce()))).rejects.toThrow();
    await expect(dead.head()).rejects.toThrow();
    await expect(
      dead.authorizationState(
        { payer: payer.address, nonce: newNonce(), validBefore: FAR },
        { payTo: own.payTo, amount: 1n },
      ),
    ).rejects.toThrow();
  });
});
