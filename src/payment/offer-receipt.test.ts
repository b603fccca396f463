/** The judge is the extension's own package: its verifier, its readers, its resolution of DIDs. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import {
  decodeSignedOffers,
  extractJWSHeader,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
  type JWSSignedOffer,
  type JWSSignedReceipt,
} from '@x402/extensions/offer-receipt';
import { encodePaymentResponseHeader } from '@x402/core/http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { toBase64Url } from '../provenance/canonical.ts';
import { didDocument, didKey } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import { createOfferKey, dated, declareOffers, OFFER_RECEIPT, withReceipt } from './offer-receipt.ts';

const SEED = new Uint8Array(32).fill(3);
const RESOURCE = 'https://api.example.com/api/v1/count';
const NOW = 1_800_000_000.75;
const ACCEPTS: PaymentRequirements[] = ['5000', '7000'].map((amount) => ({
  scheme: 'exact',
  network: 'eip155:84532',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  amount,
  payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
  maxTimeoutSeconds: 300,
  extra: { name: 'USDC', version: '2' },
}));
const PAYER = '0x857b06519e91e3a54538791bdbb0e22373e36b66';
const SETTLEMENT: SettleResponse = {
  success: true,
  network: 'eip155:84532',
  payer: PAYER,
  transaction: `0x${'ab'.repeat(32)}`,
};

const local = await createOfferKey(SEED, didKey((await createSigner(SEED)).publicKey));
const required = async (key = local): Promise<PaymentRequired> => ({
  x402Version: 2,
  resource: { url: RESOURCE },
  accepts: ACCEPTS,
  extensions: await declareOffers(key, RESOURCE, ACCEPTS, NOW),
});
const offersOf = async (key = local): Promise<JWSSignedOffer[]> =>
  extractOffersFromPaymentRequired(await required(key)) as JWSSignedOffer[];
const receiptOf = (settlement: SettleResponse): JWSSignedReceipt => {
  const headers = { 'PAYMENT-RESPONSE': encodePaymentResponseHeader(settlement) };
  return extractReceiptFromResponse(new Response(null, { headers })) as JWSSignedReceipt;
};

describe('offers', () => {
  it('are verified by the extension’s package, each for its entry of accepts', async () => {
    const offers = await offersOf();
    expect(offers).toHaveLength(2);
    for (const [index, offer] of offers.entries()) {
      const { scheme, network, asset, amount, payTo } = ACCEPTS[index] ?? {};
      expect(await verifyOfferSignatureJWS(offer)).toEqual({
        version: 1,
        resourceUrl: RESOURCE,
        scheme,
        network,
        asset,
        amount,
        payTo,
        validUntil: 1_800_000_300,
      });
      expect(offer).not.toHaveProperty('payload');
      expect(offer.acceptIndex).toBe(index);
      expect(findAcceptsObjectFromSignedOffer(offer, ACCEPTS)).toBe(ACCEPTS[index]);
    }
  });

  it('say what their schema says', async () => {
    const declared = (await required()).extensions?.[OFFER_RECEIPT] as { info: object; schema: object };
    expect(new Ajv2020({ strict: true }).validate(declared.schema, declared.info)).toBe(true);
  });
});

describe('a receipt', () => {
  it('is verified by the extension’s package, names the transaction, and matches its offer', async () => {
    const receipt = receiptOf(await withReceipt(local, RESOURCE, dated(SETTLEMENT, NOW)));
    expect(await verifyReceiptSignatureJWS(receipt)).toEqual({
      version: 1,
      network: 'eip155:84532',
      resourceUrl: RESOURCE,
      payer: PAYER,
      issuedAt: 1_800_000_000,
      transaction: SETTLEMENT.transaction,
    });
    const [offer] = decodeSignedOffers(await offersOf());
    if (!offer) throw new Error('no offer');
    const age = Date.now() / 1_000 - NOW + 10;
    expect(verifyReceiptMatchesOffer(receipt, offer, [PAYER.toUpperCase().replace('0X', '0x')], age)).toBe(true);
    expect(verifyReceiptMatchesOffer(receipt, offer, [ACCEPTS[0]?.payTo ?? ''], age)).toBe(false);
  });

  it('is the same for every copy, and is signed once: another key or URL changes nothing', async () => {
    const settlement = dated(SETTLEMENT, NOW);
    const first = await withReceipt(local, RESOURCE, settlement);
    expect(await withReceipt(local, RESOURCE, settlement)).toEqual(first);
    const other = await createOfferKey(new Uint8Array(32).fill(4), didKey(local.signer.publicKey));
    expect(await withReceipt(other, 'https://other.example/', first)).toBe(first);
    expect(await withReceipt(other, RESOURCE, settlement)).not.toEqual(first);
  });

  it('is not given for what was never dated, nor without a payer', async () => {
    const { payer, ...nobody } = dated(SETTLEMENT, NOW);
    expect(payer).toBe(PAYER);
    for (const settlement of [SETTLEMENT, nobody]) {
      expect(await withReceipt(local, RESOURCE, settlement)).toBe(settlement);
    }
  });

  it('says what its schema says', async () => {
    const { extensions = {} } = await withReceipt(local, RESOURCE, dated(SETTLEMENT, NOW));
    const declared = extensions[OFFER_RECEIPT] as { info: object; schema: object };
    expect(new Ajv2020({ strict: true }).validate(declared.schema, declared.info)).toBe(true);
  });
});

describe('the key', () => {
  it('is not the credential’s, and in local mode a did:key of its own', async () => {
    const credential = await createSigner(SEED);
    expect(local.signer.publicKey).not.toEqual(credential.publicKey);
    const own = didKey(local.signer.publicKey);
    expect(local.kid).toBe(`${own}#${own.slice('did:key:'.length)}`);
    expect(await createOfferKey(SEED, didKey(credential.publicKey))).toMatchObject({ kid: local.kid });
  });
});

describe('under did:web', () => {
  let server: Server;
  let did: string;
  let document: object;
  beforeAll(async () => {
    server = createServer((request, response) => {
      response.writeHead(request.url === '/.well-known/did.json' ? 200 : 404).end(JSON.stringify(document));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    did = `did:web:127.0.0.1%3A${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  it('the package finds the key in our document, and not where it is not listed', async () => {
    const key = await createOfferKey(SEED, did);
    const { publicKey } = await createSigner(SEED);
    document = await didDocument(did, [{ publicKey }], [key.signer.publicKey]);
    const [offer] = await offersOf(key);
    if (!offer) throw new Error('no offer');
    expect(extractJWSHeader(offer.signature)).toEqual({ alg: 'EdDSA', kid: key.kid });
    expect(await verifyOfferSignatureJWS(offer)).toMatchObject({ resourceUrl: RESOURCE });
    const receipt = receiptOf(await withReceipt(key, RESOURCE, dated(SETTLEMENT, NOW)));
    expect(await verifyReceiptSignatureJWS(receipt)).toMatchObject({ payer: PAYER });

    document = await didDocument(did, [{ publicKey }]);
    await expect(verifyOfferSignatureJWS(offer)).rejects.toThrow('No verification method found');
    document = await didDocument(did, [], [publicKey]);
    await expect(verifyReceiptSignatureJWS(receipt)).rejects.toThrow('No verification method found');
  });
});

/** Every text that differs from `jws` in one bit of one of its three parts. */
function flips(jws: string): string[] {
  const parts = jws.split('.').map((part) => Buffer.from(part, 'base64url'));
  return parts.flatMap((part, at) =>
    Array.from(part, (byte, index) => {
      const flipped = Uint8Array.from(part);
      flipped[index] = byte ^ (1 << (index % 8));
      return parts.map((each, place) => toBase64Url(place === at ? flipped : each)).join('.');
    }),
  );
}

describe('mutations', () => {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: toBase64Url(local.signer.publicKey) };

  test('no bit of an offer can be changed', async () => {
    const [offer] = await offersOf();
    if (!offer) throw new Error('no offer');
    const forged = flips(offer.signature);
    expect(forged.length).toBeGreaterThan(400);
    for (const signature of forged) {
      await expect(verifyOfferSignatureJWS({ ...offer, signature }, jwk)).rejects.toThrow();
      await expect(verifyOfferSignatureJWS({ ...offer, signature })).rejects.toThrow();
    }
  });

  test('nor of a receipt', async () => {
    const receipt = receiptOf(await withReceipt(local, RESOURCE, dated(SETTLEMENT, NOW)));
    for (const signature of flips(receipt.signature)) {
      await expect(verifyReceiptSignatureJWS({ ...receipt, signature }, jwk)).rejects.toThrow();
      await expect(verifyReceiptSignatureJWS({ ...receipt, signature })).rejects.toThrow();
    }
  });
});

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['a text', 'x'],
  ['no time', { info: {} }],
  ['a time that is none', { info: { issuedAt: '1' } }],
])('a settlement from elsewhere is left as it is: %s', async (_, declared) => {
  const settlement = { ...SETTLEMENT, extensions: { [OFFER_RECEIPT]: declared } };
  expect(await withReceipt(local, RESOURCE, settlement)).toBe(settlement);
});
