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

/**
 * What the chain says of an authorization. `expired`: the chain's own clock has passed validBefore, so it can never be used.
 * `spent_elsewhere`: used for another transfer than ours, or cancelled.
 */
export type AuthorizationState =
  | { readonly kind: 'unused'; readonly expired: boolean }
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
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

/** A call waits for the chain, and its caller for the call. */
export const RPC_PATIENCE = { timeout: 5_000, retryCount: 1 } as const;

export function createChainView(options: { rpcUrl: string; chain: Chain; usdc: Address }): ChainView {
  const { usdc } = options;
  const client: PublicClient = createPublicClient({
    chain: options.chain,
    transport: http(options.rpcUrl, RPC_PATIENCE),
  });
  return {
    reachable: () =>
      client.getChainId().then(
        (id) => id === options.chain.id,
        () => false,
      ),
    authorizationState: async ({ payer, nonce, validBefore }, { payTo, amount }) => {
      // The block first: had the authorization been used since, the contract would say so.
      const { timestamp, number: blockNumber } = await client.getBlock();
      const spent = await client.readContract({
        address: usdc,
        abi: ABI,
        functionName: 'authorizationState',
        args: [payer, nonce],
        blockNumber,
      });
      if (!spent) return { kind: 'unused', expired: timestamp >= validBefore };
      const eventOf = async (eventName: 'AuthorizationUsed' | 'AuthorizationCanceled') => {
        const args = { authorizer: payer, nonce };
        const span = { fromBlock: 'earliest', toBlock: blockNumber, strict: true } as const;
        const [event] = await client.getContractEvents({ address: usdc, abi: ABI, eventName, args, ...span });
        return event;
      };
      const used = await eventOf('AuthorizationUsed');
      if (!used) {
        if (await eventOf('AuthorizationCanceled')) return { kind: 'spent_elsewhere' };
        // A node that lags or prunes knows the state and not the event: that is no proof of anything.
        throw new Error('the authorization is spent and no event says how');
      }
      const { logs } = await client.getTransactionReceipt({ hash: used.transactionHash });
      // The contract writes the transfer right behind the use. Any other one of the transaction may belong to another payment.
      const toUs = parseEventLogs({ abi: ABI, eventName: 'Transfer', logs }).some(
        ({ address, args, logIndex }) =>
          logIndex === used.logIndex + 1 &&
          isAddressEqual(address, usdc) &&
          isAddressEqual(args.from, payer) &&
          isAddressEqual(args.to, payTo) &&
          args.value === amount,
      );
      return toUs ? { kind: 'settled', transaction: used.transactionHash } : { kind: 'spent_elsewhere' };
    },
  };
}
