/**
 * What a caller sends as payment: an x402 v2 PaymentPayload with an EIP-3009 authorization, read strictly.
 * It decides nothing about the payment's worth and calls nobody.
 */
import type { PaymentPayload } from '@x402/core/types';
import { isAddress, type Address, type Hex } from 'viem';
import { z } from 'zod';
import type { Result } from '../problem.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';

/** EIP-3009 `transferWithAuthorization`, as the payer signed it. Addresses and nonce are lower case. */
export interface Authorization {
  readonly payer: Address;
  readonly nonce: Hex;
  /** Unix seconds; the chain refuses the authorization from this second on. */
  readonly validBefore: number;
}

/** All that is signed, and the signature: whoever has it can have the token carry it out. */
export interface SignedTransfer {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
  readonly signature: Hex;
}

export interface Payment {
  readonly payload: PaymentPayload;
  readonly authorization: Authorization;
  readonly transfer: SignedTransfer;
  /** Every signed field and the signature: a copy that differs in any of them is another payment. */
  readonly fingerprint: string;
  /** The id of the extension `payment-identifier`, where the client gave one. */
  readonly identifier?: string;
}

/** The extension's name and the form of its id (x402 v2, specs/extensions/payment_identifier.md). */
export const PAYMENT_IDENTIFIER = 'payment-identifier';
const IDENTIFIER = /^[A-Za-z0-9_-]{16,128}$/;

/** What a challenge says of the extension: a client appends `id` to `info`. */
export const declarePaymentIdentifier = (required: boolean): Record<string, unknown> => ({
  [PAYMENT_IDENTIFIER]: {
    info: { required },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        required: { type: 'boolean' },
        id: { type: 'string', minLength: 16, maxLength: 128, pattern: IDENTIFIER.source },
      },
      required: ['required'],
    },
  },
});

/** Longer ones exist (ERC-6492 wraps deployment data), but a header has to stay well below 16 KB. */
const SIGNATURE_MAX_BYTES = 4_096;
const UINT256_MAX_DECIMAL_DIGITS = 78;

const address = z.string().refine((text) => isAddress(text, { strict: false }), 'no address');
const hex = (digits: number): z.ZodString => z.string().regex(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`));
const uint = z.string().regex(new RegExp(`^[0-9]{1,${UINT256_MAX_DECIMAL_DIGITS}}$`));

/**
 * x402 v2, transport "HTTP": section PAYMENT-SIGNATURE; scheme "exact" on EVM. What is signed is strict: by a further member
 * a facilitator could take the payment for another kind (Permit2) than the one that was read here.
 */
const payloadSchema = z.looseObject({
  x402Version: z.literal(2),
  resource: z.looseObject({ url: z.string() }).optional(),
  accepted: z.looseObject({
    scheme: z.string(),
    network: z.string().regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/),
    asset: address,
    amount: uint,
    payTo: address,
    maxTimeoutSeconds: z.number().int().positive(),
    extra: z.record(z.string(), z.unknown()),
  }),
  payload: z.strictObject({
    signature: z.string().regex(new RegExp(`^0x([0-9a-fA-F]{2}){1,${SIGNATURE_MAX_BYTES}}$`)),
    authorization: z.strictObject({
      from: address,
      to: address,
      value: uint,
      validAfter: uint,
      validBefore: uint,
      nonce: hex(64),
    }),
  }),
  // Clients echo the challenge's extensions, so one without an id is as good as none.
  extensions: z
    .looseObject({
      [PAYMENT_IDENTIFIER]: z
        .looseObject({ info: z.looseObject({ id: z.string().regex(IDENTIFIER).optional() }).optional() })
        .optional(),
    })
    .optional(),
});

/** Reads the PAYMENT-SIGNATURE header. Nothing of it is echoed. */
export function parsePaymentHeader(header: string): Result<Payment> {
  const json = decodePaymentHeader(header);
  return json.ok ? parsePayment(json.value) : json;
}

/** The JSON of a payment header, of whichever protocol version: base64 in the standard alphabet. */
export function decodePaymentHeader(header: string): Result<unknown> {
  const bytes = decodeBase64(header);
  if (!bytes) return malformed('the header is not base64');
  const json = parseStrictJson(bytes);
  return json.ok ? json : malformed('the header does not hold strict JSON');
}

/** Reads an already decoded payload, wherever a transport carries it. */
export function parsePayment(value: unknown): Result<Payment> {
  const parsed = payloadSchema.safeParse(value);
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.');
    return malformed(`it is no x402 v2 payload of scheme exact with an EIP-3009 authorization (${place || 'payload'})`);
  }
  const { payload } = parsed.data;
  const { from, to, value: amount, validAfter, validBefore, nonce } = payload.authorization;
  const identifier = parsed.data.extensions?.[PAYMENT_IDENTIFIER]?.info?.id;
  const authorization: Authorization = {
    payer: from.toLowerCase() as Address,
    nonce: nonce.toLowerCase() as Hex,
    // Past 2^53 seconds the exact value says no more than "far too long", which the gate refuses.
    validBefore: Number(validBefore),
  };
  return {
    ok: true,
    value: {
      payload: value as PaymentPayload,
      authorization,
      transfer: {
        from,
        to,
        value: BigInt(amount),
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
        nonce: nonce as Hex,
        signature: payload.signature as Hex,
      },
      ...(identifier !== undefined && { identifier }),
      fingerprint: JSON.stringify([
        ...[from, to, nonce, normalSignature(payload.signature)].map((hexText) => hexText.toLowerCase()),
        ...[amount, validAfter, validBefore].map((number) => String(BigInt(number))),
      ]),
    },
  };
}

/** An ECDSA signature's last byte may be spelled 0 or 1 for 27 or 28; it is the same signature. */
function normalSignature(signature: string): string {
  const [, start, v] = /^(0x[0-9a-f]{128})0([01])$/i.exec(signature) ?? [];
  return start && v ? `${start}${(27 + Number(v)).toString(16)}` : signature;
}

export function malformed(detail: string): Result<never> {
  return { ok: false, problem: { code: 'malformed_payment', detail } };
}

function decodeBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined; // a length that no base64 text has
  }
}
