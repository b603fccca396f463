/**
 * A read-only view of the chain: the one witness of whether an authorization was spent. It never sends a transaction.
 */
import {
  BaseError,
  ContractFunctionRevertedError,
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
import type { Authorization, SignedTransfer } from './payload.ts';

/**
 * What the chain says of an authorization, and for all but `pending` at the depth that counts as final. `pending`: spent in a block
 * that a reorganisation may still undo. `expired`: the chain's own clock has passed validBefore, so it can never be used.
 * `spent_elsewhere`: used for another transfer than ours, or cancelled.
 */
export type AuthorizationState =
  | { readonly kind: 'unused'; readonly expired: boolean }
  | { readonly kind: 'pending' }
  | { readonly kind: 'settled'; readonly transaction: Hex }
  | { readonly kind: 'spent_elsewhere' };

export interface ChainView {
  /** Whether the chain answers now. Never rejects. */
  reachable(): Promise<boolean>;
  /** Number of the newest block, or of one a few seconds older. */
  head(): Promise<number>;
  /**
   * Rejects where the chain cannot be asked; the caller must not guess then.
   *
   * @param fromBlock what `head` said before a transfer could be sent. Without it the transfer is looked for in the last blocks
   * only, and one that is not among them is `spent_elsewhere`: no row of ours stands behind it.
   */
  authorizationState(
    authorization: Authorization,
    transfer: { payTo: Address; amount: bigint },
    fromBlock?: number,
  ): Promise<AuthorizationState>;
  /** Whether the token would carry the transfer out if it were sent now. Rejects where the chain cannot be asked. */
  isExecutable(transfer: SignedTransfer): Promise<boolean>;
  /** How long a transfer that was reported takes until it shows at the depth that counts, in milliseconds. */
  readonly patienceMs: number;
}

/** EIP-3009 and EIP-20; the signature as bytes, as FiatTokenV2_2 takes those of contract wallets too. */
const ABI = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

/** A call waits for the chain, and its caller for the call. */
export const RPC_PATIENCE = { timeout: 5_000, retryCount: 1 } as const;

/** Wider ranges of logs are refused by many providers. */
const LOG_RANGE_BLOCKS = 2_000;
/** A transfer may end up in a lower block than the one that was newest before it, if that one is undone. */
const REORGANISATION_BLOCKS = 64;

export interface ChainViewOptions {
  readonly rpcUrl: string;
  readonly chain: Chain;
  readonly usdc: Address;
  /** As wallets count: 1 is the newest block. */
  readonly confirmations?: number;
  readonly patienceMs?: number;
  /** How many blocks of logs are asked for at once. */
  readonly logRangeBlocks?: number;
}

/** Rejects where nobody answers. */
export const readChainId = (rpcUrl: string): Promise<number> =>
  createPublicClient({ transport: http(rpcUrl, RPC_PATIENCE) }).getChainId();

export function createChainView({
  usdc,
  confirmations = 1,
  logRangeBlocks = LOG_RANGE_BLOCKS,
  ...options
}: ChainViewOptions): ChainView {
  const client: PublicClient = createPublicClient({
    chain: options.chain,
    transport: http(options.rpcUrl, RPC_PATIENCE),
  });

  const isSpent = ({ payer, nonce }: Authorization, blockNumber: bigint): Promise<boolean> =>
    client.readContract({
      address: usdc,
      abi: ABI,
      functionName: 'authorizationState',
      args: [payer, nonce],
      blockNumber,
    });

  const findEvent = async (
    eventName: 'AuthorizationUsed' | 'AuthorizationCanceled',
    { payer: authorizer, nonce }: Authorization,
    [first, last]: readonly [bigint, bigint],
  ) => {
    for (let fromBlock = first; fromBlock <= last; fromBlock += BigInt(logRangeBlocks)) {
      const end = fromBlock + BigInt(logRangeBlocks - 1);
      const span = { fromBlock, toBlock: end < last ? end : last, strict: true } as const;
      const args = { authorizer, nonce };
      const [event] = await client.getContractEvents({ address: usdc, abi: ABI, eventName, args, ...span });
      if (event) return event;
    }
    return undefined;
  };

  /** Block by number, or 0 where the chain is younger. */
  const below = (block: bigint, blocks: number): bigint => (block > blocks ? block - BigInt(blocks) : 0n);

  return {
    patienceMs: options.patienceMs ?? 0,
    reachable: () =>
      client.getChainId().then(
        (id) => id === options.chain.id,
        () => false,
      ),
    head: async () => Number(await client.getBlockNumber()),
    isExecutable: async ({ from, to, value, validAfter, validBefore, nonce, signature }) => {
      const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
      try {
        await client.simulateContract({ address: usdc, abi: ABI, functionName: 'transferWithAuthorization', args });
        return true;
      } catch (error) {
        const reverted = (cause: unknown): boolean => cause instanceof ContractFunctionRevertedError;
        if (error instanceof BaseError && error.walk(reverted)) return false;
        throw error;
      }
    },
    authorizationState: async (authorization, { payTo, amount }, fromBlock) => {
      // The block first: had the authorization been used since, the contract would say so.
      const newest = await client.getBlock();
      const final =
        confirmations === 1 ? newest : await client.getBlock({ blockNumber: below(newest.number, confirmations - 1) });
      if (!(await isSpent(authorization, final.number))) {
        if (final !== newest && (await isSpent(authorization, newest.number))) return { kind: 'pending' };
        return { kind: 'unused', expired: final.timestamp >= authorization.validBefore };
      }
      const first =
        fromBlock === undefined
          ? below(final.number, logRangeBlocks - 1)
          : below(BigInt(fromBlock), REORGANISATION_BLOCKS);
      const span = [first, final.number] as const;
      const used = await findEvent('AuthorizationUsed', authorization, span);
      if (!used) {
        if (fromBlock === undefined || (await findEvent('AuthorizationCanceled', authorization, span))) {
          return { kind: 'spent_elsewhere' };
        }
        // A node that lags or prunes knows the state and not the event: that is no proof of anything.
        throw new Error('the authorization is spent and no event says how');
      }
      const { logs } = await client.getTransactionReceipt({ hash: used.transactionHash });
      // The contract writes the transfer right behind the use. Any other one of the transaction may belong to another payment.
      const toUs = parseEventLogs({ abi: ABI, eventName: 'Transfer', logs }).some(
        ({ address, args, logIndex }) =>
          logIndex === used.logIndex + 1 &&
          isAddressEqual(address, usdc) &&
          isAddressEqual(args.from, authorization.payer) &&
          isAddressEqual(args.to, payTo) &&
          args.value === amount,
      );
      return toUs ? { kind: 'settled', transaction: used.transactionHash } : { kind: 'spent_elsewhere' };
    },
  };
}
