/**
 * A read-only view of the chain: the one witness of whether an authorization was spent. It never sends a transaction.
 */
import {
  createPublicClient,
  http,
  isAddressEqual,
  parseAbi,
  parseEventLogs,
  type Address,
  type Chain,
  type Hex,
  type PublicClient,
} from 'viem';
import type { Authorization } from './payload.ts';

/** What the chain says of an authorization. `spent_elsewhere`: used or cancelled, without a transfer of `amount` to `payTo`. */
export type AuthorizationState =
  | { readonly kind: 'unused' }
  | { readonly kind: 'settled'; readonly transaction: Hex }
  | { readonly kind: 'spent_elsewhere' };

export interface ChainView {
  /** Whether the chain answers now. Never rejects. */
  reachable(): Promise<boolean>;
  /** Rejects where the chain cannot be asked; the caller must not guess then. */
  authorizationState(
    authorization: Authorization,
    transfer: { payTo: Address; amount: bigint },
  ): Promise<AuthorizationState>;
}

/** EIP-3009 and EIP-20. */
const ABI = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

export function createChainView(options: { rpcUrl: string; chain: Chain; usdc: Address }): ChainView {
  const { usdc } = options;
  const client: PublicClient = createPublicClient({ chain: options.chain, transport: http(options.rpcUrl) });
  return {
    reachable: () =>
      client.getChainId().then(
        (id) => id === options.chain.id,
        () => false,
      ),
    authorizationState: async ({ payer, nonce }, { payTo, amount }) => {
      const used = await client.readContract({
        address: usdc,
        abi: ABI,
        functionName: 'authorizationState',
        args: [payer, nonce],
      });
      if (!used) return { kind: 'unused' };
      const [log] = await client.getContractEvents({
        address: usdc,
        abi: ABI,
        eventName: 'AuthorizationUsed',
        args: { authorizer: payer, nonce },
        fromBlock: 'earliest',
        strict: true,
      });
      if (!log) return { kind: 'spent_elsewhere' }; // cancelled: no event of a use
      const receipt = await client.getTransactionReceipt({ hash: log.transactionHash });
      const toUs = parseEventLogs({ abi: ABI, eventName: 'Transfer', logs: receipt.logs }).some(
        ({ address, args }) =>
          isAddressEqual(address, usdc) &&
          isAddressEqual(args.from, payer) &&
          isAddressEqual(args.to, payTo) &&
          args.value === amount,
      );
      return toUs ? { kind: 'settled', transaction: log.transactionHash } : { kind: 'spent_elsewhere' };
    },
  };
}
