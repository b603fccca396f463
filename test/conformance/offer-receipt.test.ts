/** Offers and receipts over HTTP, checked as a customer would: with the extension's own package, and with the chain. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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
import { createPublicClient, http, type Hex } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE_SEPOLIA } from '../../src/payment/networks.ts';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { newPaidCall, remoteFolder, startRemote, type RemoteFolder } from '../faults/remote.ts';
import {
  EXAMPLE,
  newWallet,
  payWith,
  postJson,
  PRICE,
  requiredOf,
  startTestService,
  type TestService,
} from '../service.ts';

const offerOf = (response: Response): JWSSignedOffer => {
  const [offer] = extractOffersFromPaymentRequired(requiredOf(response));
  if (offer?.format !== 'jws') throw new Error('no offer');
  return offer;
};
const receiptOf = (response: Response): JWSSignedReceipt => {
  const receipt = extractReceiptFromResponse(response);
  if (receipt?.format !== 'jws') throw new Error('no receipt');
  return receipt;
};

describe('in local mode', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());

  it('a challenge holds an offer, the answer a receipt; both hold, match each other and the chain', async () => {
    const wallet = await newWallet(service);
    const unpaid = await postJson(service.endpoint, EXAMPLE);
    const offer = offerOf(unpaid);
    const { accepts } = requiredOf(unpaid);
    expect(await verifyOfferSignatureJWS(offer)).toMatchObject({
      resourceUrl: service.endpoint,
      amount: String(PRICE),
      payTo: service.chain.payTo,
    });
    expect(findAcceptsObjectFromSignedOffer(offer, accepts)).toBe(accepts[0]);

    const payment = payWith(await wallet.sign(requiredOf(unpaid)));
    const paid = await postJson(service.endpoint, EXAMPLE, payment);
    const receipt = await verifyReceiptSignatureJWS(receiptOf(paid));
    const [decoded] = decodeSignedOffers([offer]);
    if (!decoded) throw new Error('no offer');
    expect(verifyReceiptMatchesOffer(receiptOf(paid), decoded, [wallet.account.address])).toBe(true);

    const client = createPublicClient({ chain: BASE_SEPOLIA, transport: http(service.chain.rpcUrl) });
    const { status, logs } = await client.getTransactionReceipt({ hash: receipt.transaction as Hex });
    expect(status).toBe('success');
    expect(logs.some(({ data }) => BigInt(data === '0x' ? 0 : data.slice(0, 66)) === PRICE)).toBe(true);

    const replayed = await postJson(service.endpoint, EXAMPLE, payment);
    expect(replayed.headers.get('PAYMENT-RESPONSE')).toBe(paid.headers.get('PAYMENT-RESPONSE'));
  });

  it('the index names the key', async () => {
    const index = (await (await fetch(service.url)).json()) as { payment: { offerKey: string } };
    const offer = offerOf(await postJson(service.endpoint, EXAMPLE));
    expect(extractJWSHeader(offer.signature)).toEqual({ alg: 'EdDSA', kid: index.payment.offerKey });
  });

  it('an answer that is not charged has no receipt', async () => {
    const wallet = await newWallet(service);
    const required = requiredOf(await postJson(service.endpoint, EXAMPLE));
    const free = { ...EXAMPLE, messages: [{ role: 'user' }], cacheBreakpoint: -1 };
    const answer = await postJson(service.endpoint, free, payWith(await wallet.sign(required)));
    expect([answer.status, extractReceiptFromResponse(answer)]).toEqual([200, undefined]);
  });
});

describe('under did:web', () => {
  let chain: LocalChain;
  let remote: RemoteFolder;
  beforeAll(async () => {
    chain = await startLocalChain();
    remote = await remoteFolder(chain);
  });
  afterAll(async () => {
    await remote.remove();
    await chain.stop();
  });

  it('the key is found in the document that the service publishes; a replay with another key gives the same receipt', async () => {
    const port = await freePort();
    const env = remote.env({
      PORT: String(port),
      PUBLIC_URL: `http://localhost:${port}`,
      FACILITATOR_PRIVATE_KEY: chain.facilitatorKey,
    });
    const service = await startRemote(env);
    const offer = offerOf(await postJson(service.endpoint, EXAMPLE));
    const { kid = '' } = extractJWSHeader(offer.signature);
    expect(kid.startsWith(`did:web:localhost%3A${port}#`)).toBe(true);
    expect(await verifyOfferSignatureJWS(offer)).toMatchObject({
      resourceUrl: `http://localhost:${port}/api/v1/conversation-prune`,
    });
    const call = await newPaidCall(chain, service.endpoint, 100);
    const paid = await postJson(service.endpoint, call.body, call.headers);
    expect(await verifyReceiptSignatureJWS(receiptOf(paid))).toMatchObject({ payer: call.payer.toLowerCase() });
    await service.close();

    const again = await startRemote({ ...env, SIGNING_KEY: '08'.repeat(32) });
    const replayed = await postJson(again.endpoint, call.body, call.headers);
    expect(replayed.headers.get('PAYMENT-RESPONSE')).toBe(paid.headers.get('PAYMENT-RESPONSE'));
    const next = offerOf(await postJson(again.endpoint, EXAMPLE));
    expect(extractJWSHeader(next.signature).kid).not.toBe(kid);
    await again.close();
  });
});

/** So that the public URL can name it before the service listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
