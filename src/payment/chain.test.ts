/** The view of the chain against the real contract: what it says of an authorization, used, unused, or used for another. */
import { createPublicClient, createWalletClient, http, parseAbi, parseSignature, type Address, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLocalChain, type LocalChain } from '../runtime/local-chain.ts';
import { createChainView, type ChainView } from './chain.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from './networks.ts';

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
const newNonce = (): Hex => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`;
const stateOf = (nonce: Hex, payTo: Address, amount: bigint) =>
  view.authorizationState({ payer: payer.address, nonce, validBefore: 0 }, { payTo, amount });

async function send(
  functionName: 'transferWithAuthorization' | 'cancelAuthorization',
  args: readonly unknown[],
): Promise<Hex> {
  const account = privateKeyToAccount(chain.facilitatorKey);
  const connection = { chain: BASE_SEPOLIA, transport: http(chain.rpcUrl), pollingInterval: 10 };
  const hash = await createWalletClient({ ...connection, account }).writeContract({
    address: chain.usdc,
    abi: ABI,
    functionName,
    args: args as never,
  });
  const receipt = await createPublicClient(connection).waitForTransactionReceipt({ hash });
  expect(receipt.status).toBe('success');
  return hash;
}

const domain = {
  name: BASE_SEPOLIA_USDC.name,
  version: BASE_SEPOLIA_USDC.version,
  chainId: BASE_SEPOLIA.id,
  verifyingContract: BASE_SEPOLIA_USDC.address,
};

async function pay(to: Address, value: bigint, nonce: Hex): Promise<Hex> {
  await chain.mint(payer.address, value);
  const message = { from: payer.address, to, value, validAfter: 0n, validBefore: 2n ** 40n, nonce };
  const types = { TransferWithAuthorization: AUTHORIZATION };
  const signature = await payer.signTypedData({ domain, types, primaryType: 'TransferWithAuthorization', message });
  const { v, yParity, r, s } = parseSignature(signature);
  return send('transferWithAuthorization', [...Object.values(message), Number(v ?? 27 + yParity), r, s]);
}

describe('authorizationState', () => {
  it('is unused before, settled with its transaction after, and only for the payee and amount that it paid', async () => {
    const nonce = newNonce();
    expect(await stateOf(nonce, chain.payTo, 5n)).toEqual({ kind: 'unused' });
    const transaction = await pay(chain.payTo, 5n, nonce);
    expect(await stateOf(nonce, chain.payTo, 5n)).toEqual({ kind: 'settled', transaction });
    expect(await stateOf(nonce, chain.payTo.toLowerCase() as Address, 5n)).toEqual({ kind: 'settled', transaction });
    expect(await stateOf(nonce, chain.payTo, 6n)).toEqual({ kind: 'spent_elsewhere' });
    expect(await stateOf(nonce, payer.address, 5n)).toEqual({ kind: 'spent_elsewhere' });
    expect(await stateOf(newNonce(), chain.payTo, 5n)).toEqual({ kind: 'unused' });
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
    await send('cancelAuthorization', [payer.address, nonce, Number(v ?? 27 + yParity), r, s]);
    expect(await stateOf(nonce, chain.payTo, 5n)).toEqual({ kind: 'spent_elsewhere' });
  });
});

describe('a chain that cannot be asked', () => {
  it('is not reachable, and gives no state', async () => {
    const own = await startLocalChain();
    const dead = createChainView({ rpcUrl: own.rpcUrl, chain: BASE_SEPOLIA, usdc: own.usdc });
    expect(await dead.reachable()).toBe(true);
    await own.stop();
    expect(await dead.reachable()).toBe(false);
    await expect(
      dead.authorizationState(
        { payer: payer.address, nonce: newNonce(), validBefore: 0 },
        { payTo: own.payTo, amount: 1n },
      ),
    ).rejects.toThrow();
  });
});
