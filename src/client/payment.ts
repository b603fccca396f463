/**
 * Signs the payment for an offer (x402 v2, scheme exact, EIP-3009) as the header that carries it, and reads such a header
 * again. The header is all that is ever kept of a payment. No I/O; time and wallet are arguments.
 */
import { isJsonObject, toBase64, toHex } from '../provenance/canonical.ts';
import { PaidFetchError } from './failure.ts';
import { decodeBase64Json, type Challenge, type Offer } from './offer.ts';

/** What signs: a viem account is one. `signTypedData` is EIP-712. */
export interface Wallet {
  readonly address: `0x${string}`;
  signTypedData(message: {
    domain: Record<string, unknown>;
    types: Record<string, unknown>;
    primaryType: string;
    message: Record<string, unknown>;
  }): Promise<`0x${string}`>;
}

export interface SignedPayment {
  /** The value of PAYMENT-SIGNATURE. */
  readonly header: string;
  /** Atomic units. */
  readonly amount: bigint;
  /** CAIP-2. */
  readonly network: string;
  /** Payer and nonce in lower case, as the evidence names them. */
  readonly payer: string;
  readonly nonce: string;
  /** Unix seconds by the clock of the one who signed; from then on the chain refuses it. */
  readonly validBefore: number;
}

export const PAYMENT_HEADER = 'PAYMENT-SIGNATURE';

/** x402 extension: with an id that is on no chain, nobody who merely saw the payment there can fetch its answer. */
const PAYMENT_IDENTIFIER = 'payment-identifier';
const IDENTIFIER_BYTES = 16;
const NONCE_BYTES = 32;

/** Source: EIP-3009. */
const TRANSFER_WITH_AUTHORIZATION = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
];

/** @throws PaidFetchError `signing_failed` where the wallet refuses. */
export async function signPayment(
  wallet: Wallet,
  challenge: Challenge,
  offer: Offer,
  now: Date,
): Promise<SignedPayment> {
  const { token, amount, payTo, maxTimeoutSeconds, asOffered } = offer;
  const validBefore = Math.floor(now.getTime() / 1_000) + maxTimeoutSeconds;
  const transfer = { from: wallet.address, to: payTo, nonce: `0x${randomHex(NONCE_BYTES)}` };
  let signature: string;
  try {
    signature = await wallet.signTypedData({
      domain: {
        name: token.name,
        version: token.version,
        chainId: Number(token.caip2.slice('eip155:'.length)),
        verifyingContract: token.address,
      },
      types: { TransferWithAuthorization: TRANSFER_WITH_AUTHORIZATION },
      primaryType: 'TransferWithAuthorization',
      message: { ...transfer, value: amount, validAfter: 0n, validBefore: BigInt(validBefore) },
    });
  } catch (cause) {
    throw new PaidFetchError({ code: 'signing_failed' }, { cause });
  }
  const authorization = {
    ...transfer,
    value: String(amount),
    validAfter: '0',
    validBefore: String(validBefore),
  };
  const payload = {
    x402Version: 2,
    resource: challenge.resource,
    accepted: asOffered,
    payload: { signature, authorization },
    extensions: withIdentifier(challenge.extensions),
  };
  const header = toBase64(new TextEncoder().encode(JSON.stringify(payload)));
  const payment = readPayment(header);
  if (!payment) throw new PaidFetchError({ code: 'signing_failed' }); // a wallet without an address
  return payment;
}

/** A payment as its header tells it; undefined where the text is no header that was made here. */
export function readPayment(header: string): SignedPayment | undefined {
  const decoded = decodeBase64Json(header);
  if (!isJsonObject(decoded)) return undefined;
  const { accepted, payload } = decoded;
  if (!isJsonObject(accepted) || !isJsonObject(payload) || !isJsonObject(payload['authorization'])) return undefined;
  const { network } = accepted;
  const { from, nonce, value, validBefore } = payload['authorization'];
  const texts = [network, from, nonce, value, validBefore];
  if (!texts.every((text) => typeof text === 'string') || !/^\d+$/.test(String(value))) return undefined;
  return {
    header,
    amount: BigInt(String(value)),
    network: String(network),
    payer: String(from).toLowerCase(),
    nonce: String(nonce).toLowerCase(),
    validBefore: Number(validBefore),
  };
}

/** The service's extensions, as a payment repeats them; with an id where the service takes one. */
function withIdentifier(extensions: Challenge['extensions']): Challenge['extensions'] {
  const declared = extensions[PAYMENT_IDENTIFIER];
  if (!isJsonObject(declared) || !isJsonObject(declared['info'])) return extensions;
  const info = { ...declared['info'], id: `pay_${randomHex(IDENTIFIER_BYTES)}` };
  return { ...extensions, [PAYMENT_IDENTIFIER]: { ...declared, info } };
}

const randomHex = (bytes: number): string => toHex(crypto.getRandomValues(new Uint8Array(bytes)));
