/** The chains that a payment can be made on, and their USDC. Data only. */
import type { Address, Chain } from 'viem';

export interface Usdc {
  /** CAIP-2 id of the chain. */
  readonly caip2: `eip155:${number}`;
  /** What x402 v1 calls the chain. */
  readonly v1Name: string;
  readonly address: Address;
  /** EIP-712 domain of the token, which a payer signs under. */
  readonly name: string;
  readonly version: string;
}

/**
 * Base Sepolia, also the identity of local mode's practice chain. Written here, since `viem/chains` loads every chain
 * there is, which takes longer than the rest of the start. Where it is reached is the operator's setting.
 */
export const BASE_SEPOLIA = {
  id: 84_532,
  name: 'Base Sepolia',
  nativeCurrency: { name: 'Sepolia Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [] } },
  contracts: { multicall3: { address: '0xca11bde05977b3631167028862be2a173976ca11' } },
  testnet: true,
} as const satisfies Chain;

/** Base's mainnet. */
export const BASE = {
  id: 8_453,
  name: 'Base',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [] } },
  contracts: { multicall3: { address: '0xca11bde05977b3631167028862be2a173976ca11' } },
} as const satisfies Chain;

/** Source: Circle's list of USDC contract addresses; name and version read from the contract. */
export const BASE_SEPOLIA_USDC: Usdc = {
  caip2: `eip155:${BASE_SEPOLIA.id}`,
  v1Name: 'base-sepolia',
  address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  name: 'USDC',
  version: '2',
};

/** Source: Circle's list; on mainnet the contract's name is the long one, and it is part of what a payer signs. */
export const BASE_USDC: Usdc = {
  caip2: `eip155:${BASE.id}`,
  v1Name: 'base',
  address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  name: 'USD Coin',
  version: '2',
};

export const ALL_USDC: readonly Usdc[] = [BASE_USDC, BASE_SEPOLIA_USDC];
