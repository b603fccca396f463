/** A facilitator in this process, over a key and an RPC of the operator's own. It sends transactions; the gate decides when. */
import { x402Facilitator } from '@x402/core/facilitator';
import type { FacilitatorClient } from '@x402/core/server';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createWalletClient, http, nonceManager, publicActions, type Chain, type Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { RPC_PATIENCE } from '../payment/chain.ts';
import { receiptOf } from './receipt.ts';

export interface FacilitatorOptions {
  readonly chain: Chain;
  readonly rpcUrl: string;
  readonly privateKey: Hex;
  readonly pollingIntervalMs: number;
  /** Tries every settlement on a node before it is sent, so that none that fails costs gas. */
  readonly simulate?: boolean;
}

export function createInProcessFacilitator(options: FacilitatorOptions): FacilitatorClient {
  // Without a nonce manager, transactions that are sent at once take the same nonce and all but one fail.
  const account = privateKeyToAccount(options.privateKey, { nonceManager });
  const client = createWalletClient({
    account,
    chain: options.chain,
    transport: http(options.rpcUrl, RPC_PATIENCE),
    pollingInterval: options.pollingIntervalMs,
  }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({
    ...client,
    address: account.address,
    waitForTransactionReceipt: ({ hash, timeout }) => receiptOf(client, hash, options.pollingIntervalMs, timeout),
    // The same call; only the two packages' types disagree on optional members.
    verifyTypedData: (message) => client.verifyTypedData(message as Parameters<typeof client.verifyTypedData>[0]),
  });
  const facilitator = new x402Facilitator().register(
    `eip155:${options.chain.id}`,
    new ExactEvmScheme(signer, { simulateInSettle: options.simulate ?? false }),
  );
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as Awaited<ReturnType<FacilitatorClient['getSupported']>>,
  };
}

/**
 * Whether a request was never sent, as no connection came about: its host has no address, or nobody there takes connections. A connection
 * that was cut, or an answer that is late, proves nothing. A facilitator that passes a request on with a redirect is taken at its word.
 */
export function isUnconnected(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Of a host with several addresses, each one's failure.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnconnected);
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT') return true;
  return syscall === 'connect' || isUnconnected(error.cause);
}
