/** A gate of its own over the real chain and contract; only the facilitator's word is bent, by a wrapper around the real one. */
import type { FacilitatorClient } from '@x402/core/server';
import type { PaymentRequired } from '@x402/core/types';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactEvmScheme as ExactEvmClient } from '@x402/evm/exact/client';
import { createPublicClient, erc20Abi, http, type Address } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { defineOperation, type Outcome } from '../src/operation.ts';
import type { AnswerIssuer } from '../src/operations/execute.ts';
import { DEFAULT_CONTEXT } from '../src/operations/run-context.ts';
import { createChainView, type ChainView } from '../src/payment/chain.ts';
import type { ApiKeys } from '../src/payment/api-keys.ts';
import { createGate, type GateAnswer, type GateCall, type Report } from '../src/payment/gate.ts';
import { withApiKeys } from '../src/payment/keyed.ts';
import { createMemoryLedger, type Ledger } from '../src/payment/ledger.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../src/payment/networks.ts';
import { createOfferKey } from '../src/payment/offer-receipt.ts';
import { parsePayment, type Payment } from '../src/payment/payload.ts';
import { createSealer, type Sealer } from '../src/payment/seal.ts';
import { didKey } from '../src/provenance/did.ts';
import { createSigner } from '../src/provenance/ed25519.ts';
import { issuerOf } from '../src/provenance/envelope.ts';
import { createInProcessFacilitator } from '../src/runtime/facilitator.ts';
import type { LocalChain } from '../src/runtime/local-chain.ts';

export const PRICE = 5_000n;

type Settle = FacilitatorClient['settle'];

type Ran = Outcome<{ versions: Record<string, unknown>; ran: number }>;

export interface GateOptions {
  readonly outcome?: () => Ran | Promise<Ran>;
  /** Bends the settlement; `real` is the real facilitator's. */
  readonly settle?: (real: Settle, ...call: Parameters<Settle>) => ReturnType<Settle>;
  readonly verify?: (
    real: FacilitatorClient['verify'],
    ...call: Parameters<Settle>
  ) => ReturnType<FacilitatorClient['verify']>;
  readonly supported?: () => Promise<never>;
  readonly chain?: Partial<ChainView>;
  readonly ledger?: (real: Ledger) => Ledger;
  /** What another gate has left behind. */
  readonly legacy?: { readonly ledger?: Ledger; readonly sealer?: Sealer; readonly payTo?: Address };
  readonly seed?: Uint8Array;
  readonly keys?: ApiKeys;
  readonly identifierRequired?: boolean;
  readonly now?: () => number;
  readonly facilitatorTimeoutMs?: number;
}

/** A gate of its own over the shared chain, with counters of what happened. */
export async function setUpGate(chain: LocalChain, options: GateOptions = {}) {
  const counts = { runs: 0, settles: 0, verifies: 0, errors: [] as string[] };
  const real = createInProcessFacilitator({
    chain: BASE_SEPOLIA,
    rpcUrl: chain.rpcUrl,
    privateKey: chain.facilitatorKey,
    pollingIntervalMs: 10,
  });
  const facilitator: FacilitatorClient = {
    getSupported: () => options.supported?.() ?? real.getSupported(),
    verify: (...call) => {
      counts.verifies += 1;
      return options.verify ? options.verify(real.verify, ...call) : real.verify(...call);
    },
    settle: (...call) => {
      counts.settles += 1;
      return options.settle ? options.settle(real.settle, ...call) : real.settle(...call);
    },
  };
  const usdc = BASE_SEPOLIA_USDC;
  const view = createChainView({ rpcUrl: chain.rpcUrl, chain: BASE_SEPOLIA, usdc: usdc.address });
  const seed = options.seed ?? crypto.getRandomValues(new Uint8Array(32));
  const signer = await createSigner(seed);
  const did = didKey(signer.publicKey);
  const payTo = options.legacy?.payTo ?? privateKeyToAccount(generatePrivateKey()).address;
  const ledger = options.legacy?.ledger ?? createMemoryLedger();
  const sealer = options.legacy?.sealer ?? (await createSealer(crypto.getRandomValues(new Uint8Array(32))));
  const contextFor = () => DEFAULT_CONTEXT;
  const issuer: AnswerIssuer = {
    ...(await issuerOf(did, signer)),
    generator: { name: 'test', version: '0' },
    now: () => new Date(options.now?.() ?? Date.now()),
    newId: () => crypto.randomUUID(),
  };
  const report: Report = (event, _, requestId) => counts.errors.push(`${event} ${requestId}`);
  const payGate = createGate({
    contextFor,
    offerKey: await createOfferKey(seed, did),
    discovery: async () => ({}),
    facilitator,
    chain: { ...view, ...options.chain },
    ledger: options.ledger?.(ledger) ?? ledger,
    sealer,
    issuer,
    usdc,
    payTo,
    ...(options.facilitatorTimeoutMs && { facilitatorTimeoutMs: options.facilitatorTimeoutMs }),
    ...(options.identifierRequired && { identifierRequired: true }),
    report,
  });
  const gate = withApiKeys(payGate, { keys: options.keys, sealer, issuer, contextFor, report });
  const operation = defineOperation({
    id: 'count-runs',
    version: '1.0.0',
    title: 'Count runs',
    summary: '',
    description: 'Counts how often it ran.',
    roi: '',
    audience: 'test',
    price: String(PRICE),
    input: z.unknown(),
    output: z.unknown(),
    example: {},
    run: async () => {
      counts.runs += 1;
      return (
        (await options.outcome?.()) ?? { kind: 'answer', billable: true, data: { versions: {}, ran: counts.runs } }
      );
    },
  });
  const call = (
    payment: Payment | undefined,
    value: unknown = { n: 1 },
    more: Pick<GateCall, 'idempotencyKey' | 'apiKey'> = {},
  ): Promise<GateAnswer> =>
    gate.admit({
      requestId: 'r1',
      operation,
      resourceUrl: 'http://test/op',
      input: { ok: true, value },
      payment,
      ...more,
    });
  return { gate, call, counts, payTo, operation, ledger, sealer, chainView: view };
}

export async function challengeOf(call: (payment: undefined) => Promise<GateAnswer>): Promise<PaymentRequired> {
  const answer = await call(undefined);
  if (answer.kind !== 'refused' || !answer.challenge) throw new Error(`no challenge but ${codeOf(answer)}`);
  return answer.challenge;
}

export async function signedPayment(
  chain: LocalChain,
  call: (payment: undefined) => Promise<GateAnswer>,
  funds = PRICE,
  account = privateKeyToAccount(generatePrivateKey()),
): Promise<Payment> {
  if (funds > 0n) await chain.mint(account.address, funds);
  const client = new x402HTTPClient(new x402Client().register('eip155:*', new ExactEvmClient(account)));
  return parsed(await client.createPaymentPayload(await challengeOf(call)));
}

export function parsed(payload: unknown): Payment {
  const payment = parsePayment(payload);
  if (!payment.ok) throw new Error('the payment does not parse');
  return payment.value;
}

export function paidTo(chain: LocalChain, owner: Address): Promise<bigint> {
  const client = createPublicClient({ chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) });
  return client.readContract({ address: chain.usdc, abi: erc20Abi, functionName: 'balanceOf', args: [owner] });
}

export const codeOf = (answer: GateAnswer): string => (answer.kind === 'answered' ? 'answered' : answer.problem.code);
export const textOf = (answer: GateAnswer): string =>
  answer.kind === 'answered' ? new TextDecoder().decode(answer.body) : `no answer: ${codeOf(answer)}`;
