/**
 * Reads an x402 v2 challenge and finds the one offer that the caller agreed to in advance: scheme exact, a transfer by
 * EIP-3009, a token and network that were named. Whatever else a service asks to have signed is refused. No I/O.
 */
import { isJsonObject, type JsonObject } from '../provenance/canonical.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';
import { PaidFetchError } from './failure.ts';

/** A token that may be paid with. Name and version are its EIP-712 domain, which the service does not get to choose. */
export interface PayableToken {
  /** CAIP-2 id of an EVM chain. */
  readonly caip2: `eip155:${number}`;
  readonly address: `0x${string}`;
  readonly name: string;
  readonly version: string;
}

export interface Challenge {
  readonly accepts: readonly JsonObject[];
  readonly resource: unknown;
  readonly extensions: JsonObject;
  /** The service says that it would refuse this body, paid or not. */
  readonly bodyRefused: boolean;
}

export interface Offer {
  readonly token: PayableToken;
  /** Atomic units, above zero. */
  readonly amount: bigint;
  /** Lower case. */
  readonly payTo: `0x${string}`;
  readonly maxTimeoutSeconds: number;
  /** As the service wrote it; a payment repeats it. */
  readonly asOffered: JsonObject;
}

/** A day, as long as this service takes a payment for; who asks for more wants a blank cheque. */
const MAX_VALIDITY_SECONDS = 86_400;
const ADDRESS = /^0x[0-9a-f]{40}$/i;
const AMOUNT = /^[1-9]\d{0,38}$/;

/** The challenge of a 402, of its PAYMENT-REQUIRED header or else of its body; undefined where neither holds one. */
export function readChallenge(header: string | null, body: unknown): Challenge | undefined {
  const fromHeader = header === null ? undefined : decodeBase64Json(header);
  const required = [fromHeader, body].find((value) => isJsonObject(value) && value['x402Version'] === 2);
  if (!isJsonObject(required) || !Array.isArray(required['accepts'])) return undefined;
  const { accepts, resource, extensions } = required;
  return {
    accepts: (accepts as readonly unknown[]).filter(isJsonObject),
    resource,
    extensions: isJsonObject(extensions) ? extensions : {},
    bodyRefused: isJsonObject(body) && 'refused' in body,
  };
}

/**
 * The first offer that is one of `tokens` and asks for nothing but one EIP-3009 transfer after the answer.
 *
 * @throws PaidFetchError `no_acceptable_offer`
 */
export function chooseOffer(challenge: Challenge, tokens: readonly PayableToken[]): Offer {
  const offers = challenge.accepts.map((offer) => readOffer(offer, tokens));
  const offer = offers.find((one) => typeof one === 'object');
  if (offer) return offer;
  const reasons = new Set(offers.filter((one) => typeof one === 'string'));
  throw refusal(reasons.size > 0 ? [...reasons].join('; ') : 'the challenge offers nothing');
}

const refusal = (reason: string): PaidFetchError => new PaidFetchError({ code: 'no_acceptable_offer', reason });

/** An offer, or why it is none to be taken. */
function readOffer(offer: JsonObject, tokens: readonly PayableToken[]): Offer | string {
  const { scheme, network, asset, amount, payTo, maxTimeoutSeconds, extra } = offer;
  if (scheme !== 'exact') return 'the scheme is not exact';
  const sameNetwork = tokens.filter(({ caip2 }) => caip2 === network);
  if (sameNetwork.length === 0) return 'the network is not one that may be paid on';
  const token = sameNetwork.find(({ address }) => sameAddress(address, asset));
  if (!token) return 'the token is not one that may be paid with';
  const { assetTransferMethod = 'eip3009', paymentFlow = 'authorization' } = isJsonObject(extra) ? extra : {};
  if (assetTransferMethod !== 'eip3009') return 'the transfer is not one by EIP-3009';
  if (paymentFlow !== 'authorization') return 'the payment would be taken before there is an answer';
  if (typeof amount !== 'string' || !AMOUNT.test(amount)) return 'the amount is not a whole number of atomic units';
  if (typeof payTo !== 'string' || !ADDRESS.test(payTo)) return 'the payee is not an address';
  if (typeof maxTimeoutSeconds !== 'number' || !(maxTimeoutSeconds > 0 && maxTimeoutSeconds <= MAX_VALIDITY_SECONDS)) {
    return `the payment would have to be valid for more than ${MAX_VALIDITY_SECONDS} seconds, or not at all`;
  }
  return {
    token,
    amount: BigInt(amount),
    payTo: payTo.toLowerCase() as `0x${string}`,
    maxTimeoutSeconds: Math.floor(maxTimeoutSeconds),
    asOffered: offer,
  };
}

/** Hex digits in any case. */
export function sameAddress(a: string, b: unknown): boolean {
  return typeof b === 'string' && a.toLowerCase() === b.toLowerCase();
}

/** The JSON in a base64 text; undefined where there is none. */
export function decodeBase64Json(text: string): unknown {
  try {
    const parsed = parseStrictJson(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined; // not base64
  }
}
