/**
 * The x402 extension `offer-receipt` (specs/extensions/extension-offer-and-receipt.md), in its JWS form: what we ask for, signed,
 * and that it was paid, signed. The key is one of its own. No I/O; the time is an argument.
 */
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import { isJsonObject } from '../provenance/canonical.ts';
import { didKey, verificationMethodId } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import { deriveSeed, signJson, type JwsKey } from '../provenance/jws.ts';

export const OFFER_RECEIPT = 'offer-receipt';
/** Section 4.2 and 5.2: of the payloads. */
const VERSION = 1;

/**
 * The key of offers and receipts: HKDF of the service's seed. Under did:web it is one of the document's; a did:key has room for no
 * second key, so there it is a did:key of its own.
 */
export async function createOfferKey(seed: Uint8Array, did: string): Promise<JwsKey> {
  const signer = await createSigner(await deriveSeed(seed, OFFER_RECEIPT));
  const owner = did.startsWith('did:key:') ? didKey(signer.publicKey) : did;
  return { kid: await verificationMethodId(owner, signer.publicKey), signer };
}

/** What a challenge says of the extension: an offer for each of `accepts`. @param now Unix seconds. */
export async function declareOffers(
  key: JwsKey,
  resourceUrl: string,
  accepts: readonly PaymentRequirements[],
  now: number,
): Promise<Record<string, unknown>> {
  const offers = await Promise.all(
    accepts.map(async ({ scheme, network, asset, payTo, amount, maxTimeoutSeconds }, acceptIndex) => {
      const validUntil = Math.floor(now) + maxTimeoutSeconds;
      const payload = { version: VERSION, resourceUrl, scheme, network, asset, payTo, amount, validUntil };
      return { format: 'jws', acceptIndex, signature: await signJson(payload, key) };
    }),
  );
  const item = { type: 'object', properties: { ...SIGNED, acceptIndex: { type: 'integer' } }, required: REQUIRED };
  return declaration({ offers }, { offers: { type: 'array', items: item } });
}

/** A settlement with the time of its receipt, which is signed when somebody asks for it: every copy then signs the same bytes. */
export function dated(settlement: SettleResponse, now: number): SettleResponse {
  return { ...settlement, extensions: { [OFFER_RECEIPT]: { info: { issuedAt: Math.floor(now) } } } };
}

/** The settlement with its receipt; the very same one where it has a receipt, or was never dated. */
export async function withReceipt(
  key: JwsKey,
  resourceUrl: string,
  settlement: SettleResponse,
): Promise<SettleResponse> {
  const issuedAt = issuedAtOf(settlement);
  const { network, payer, transaction } = settlement;
  if (issuedAt === undefined || payer === undefined) return settlement;
  const payload = { version: VERSION, network, resourceUrl, payer, issuedAt, transaction };
  const receipt = { format: 'jws', signature: await signJson(payload, key) };
  const item = { type: 'object', properties: SIGNED, required: REQUIRED };
  return { ...settlement, extensions: declaration({ receipt }, { receipt: item }) };
}

function issuedAtOf({ extensions }: SettleResponse): number | undefined {
  const declared = extensions?.[OFFER_RECEIPT];
  const info = isJsonObject(declared) ? declared['info'] : undefined;
  return isJsonObject(info) && typeof info['issuedAt'] === 'number' ? info['issuedAt'] : undefined;
}

/** Section 3.1: of the JWS form. */
const SIGNED = { format: { type: 'string', const: 'jws' }, signature: { type: 'string' } };
const REQUIRED = ['format', 'signature'];

/** The shape of v2 extensions: the data, and a JSON Schema of it. */
function declaration(info: object, properties: object): Record<string, unknown> {
  const $schema = 'https://json-schema.org/draft/2020-12/schema';
  return { [OFFER_RECEIPT]: { info, schema: { $schema, type: 'object', properties, required: Object.keys(info) } } };
}
