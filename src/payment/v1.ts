/**
 * x402 v1 over HTTP (specs/transports-v1/http.md): what its clients send as v2, and what we say as v1. Both versions sign the same
 * EIP-3009 authorization, so it is one payment whichever carried it. It holds no rule about money.
 */
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { getAddress, isAddress } from 'viem';
import { z } from 'zod';
import { isJsonObject } from '../provenance/canonical.ts';
import type { Result } from '../problem.ts';
import { outputSchemaOf } from './bazaar.ts';
import { MAX_TIMEOUT_SECONDS } from './gate.ts';
import { ALL_USDC, type Usdc } from './networks.ts';
import { decodePaymentHeader, malformed, parsePayment, PAYMENT_IDENTIFIER, type Payment } from './payload.ts';

export const V1_PAYMENT_HEADER = 'X-PAYMENT';
export const V1_RESPONSE_HEADER = 'X-PAYMENT-RESPONSE';

const payloadSchema = z.looseObject({
  x402Version: z.literal(1),
  scheme: z.string(),
  network: z.enum(ALL_USDC.map(({ v1Name }) => v1Name)),
  // The rest is read as strictly as that of v2.
  payload: z.looseObject({ authorization: z.looseObject({ to: z.string(), value: z.string() }) }),
});

/** Reads X-PAYMENT. A v1 payload does not repeat what was asked for, so what it signs is taken for what it accepts. */
export function parseV1PaymentHeader(header: string): Result<Payment> {
  const json = decodePaymentHeader(header);
  if (!json.ok) return json;
  const parsed = payloadSchema.safeParse(json.value);
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.');
    return malformed(`${V1_PAYMENT_HEADER} holds no x402 v1 payload of scheme exact (${place || 'payload'})`);
  }
  const { scheme, network, payload } = parsed.data;
  const { to, value: amount } = payload.authorization;
  const token = ALL_USDC.find(({ v1Name }) => v1Name === network);
  const payTo = isAddress(to, { strict: false }) ? getAddress(to) : to;
  const accepted = token && { ...acceptedIn(token), scheme, amount, payTo };
  return parsePayment({ x402Version: 2, accepted, payload });
}

const acceptedIn = ({
  caip2,
  address,
  name,
  version,
}: Usdc): Omit<PaymentRequirements, 'scheme' | 'amount' | 'payTo'> => ({
  network: caip2,
  asset: address,
  maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
  extra: { name, version },
});

/** The body of a 402: what v1 clients read, and the extensions for whoever reads bodies only. */
export function toV1Challenge({ accepts, resource, extensions = {} }: PaymentRequired): object {
  const outputSchema = outputSchemaOf(extensions);
  return {
    x402Version: 1,
    accepts: asksForIdentifier(extensions)
      ? [] // v1 has no place for one, so nobody shall sign
      : accepts.map(({ network, amount, scheme, payTo, asset, maxTimeoutSeconds, extra }) => ({
          scheme,
          network: v1NameOf(network),
          maxAmountRequired: amount,
          resource: resource?.url ?? '',
          description: resource?.description ?? '',
          mimeType: resource?.mimeType ?? '',
          payTo,
          asset,
          maxTimeoutSeconds,
          extra,
          ...(outputSchema && { outputSchema }),
        })),
    extensions,
  };
}

function asksForIdentifier(extensions: Record<string, unknown>): boolean {
  const declared = extensions[PAYMENT_IDENTIFIER];
  return isJsonObject(declared) && isJsonObject(declared['info']) && declared['info']['required'] === true;
}

/** X-PAYMENT-RESPONSE: the same settlement, of the chain's v1 name. */
export function toV1Settlement(settlement: SettleResponse): SettleResponse {
  return { ...settlement, network: v1NameOf(settlement.network) as SettleResponse['network'] };
}

const v1NameOf = (network: string): string => ALL_USDC.find(({ caip2 }) => caip2 === network)?.v1Name ?? network;
