/** A facilitator in this process, over a key and an RPC of the operator's own. It sends transactions; the gate decides when. */
import { x402Facilitator } from '@x402/core/facilitator';
import type { FacilitatorClient } from '@x402/core/server';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createWalletClient, http, nonceManager, publicActions, type Chain, type Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { RPC_PATIENCE } from '../payment/chain.ts';

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
