import fc from 'fast-check';
import { verifyTypedData } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, it } from 'vitest';
import { BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { parsePaymentHeader } from '../payment/payload.ts';
import { chooseOffer, decodeBase64Json, readChallenge, type Challenge } from './offer.ts';
import { readPayment, signPayment, type SignedPayment } from './payment.ts';

const account = privateKeyToAccount(`0x${'17'.repeat(32)}`);
const NOW = new Date('2026-12-01T00:00:00Z');
const OFFER = {
  scheme: 'exact',
  network: 'eip155:84532',
  asset: BASE_SEPOLIA_USDC.address,
  amount: '5000',
  payTo: '0x1111111111111111111111111111111111111111',
  maxTimeoutSeconds: 300,
  extra: { name: 'USDC', version: '2' },
};
const resource = { url: 'https://api.example/x', description: 'Drops an agent’s oldest messages' };

function challengeWith(extensions: object = {}): Challenge {
  const challenge = readChallenge(null, { x402Version: 2, accepts: [OFFER], resource, extensions });
  if (!challenge) throw new Error('the challenge of this test is none');
  return challenge;
}
const sign = (challenge: Challenge): Promise<SignedPayment> =>
  signPayment(account, challenge, chooseOffer(challenge, [BASE_SEPOLIA_USDC]), NOW);

interface Payload {
  readonly extensions: Record<string, { info: { id?: string } }>;
  readonly payload: { signature: `0x${string}`; authorization: Record<string, string> };
}

describe('a payment', () => {
  it('is what the service reads, repeats offer, resource and extensions, and can be read again', async () => {
    const extensions = { bazaar: { info: { a: [1] } } };
    const payment = await sign(challengeWith(extensions));
    expect(decodeBase64Json(payment.header)).toMatchObject({ x402Version: 2, accepted: OFFER, resource, extensions });
    expect(readPayment(payment.header)).toEqual(payment);
    const { header: _header, ...facts } = payment;
    const validBefore = NOW.getTime() / 1_000 + 300;
    expect(facts).toMatchObject({
      amount: 5_000n,
      network: OFFER.network,
      payer: account.address.toLowerCase(),
      validBefore,
    });
    const read = parsePaymentHeader(payment.header);
    expect(read.ok && read.value.authorization).toMatchObject({ payer: facts.payer, nonce: facts.nonce, validBefore });
  });

  it('is signed over USDC’s own domain, under a nonce of its own', async () => {
    const payments = await Promise.all(Array.from({ length: 20 }, () => sign(challengeWith())));
    expect(new Set(payments.map(({ nonce }) => nonce)).size).toBe(20);
    const { payload } = decodeBase64Json(payments[0]?.header ?? '') as Payload;
    const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
    const types = {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    };
    const isGood = await verifyTypedData({
      address: account.address,
      domain: { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: BASE_SEPOLIA_USDC.address },
      types,
      primaryType: 'TransferWithAuthorization',
      message: { from, to, value, validAfter, validBefore, nonce },
      signature: payload.signature,
    });
    expect(isGood).toBe(true);
  });

  it('carries an id that nobody can guess where the service takes a payment-identifier, and else none', async () => {
    const declared = { 'payment-identifier': { info: { required: false }, schema: { type: 'object' } } };
    const ids = await Promise.all(
      [1, 2].map(async () => {
        const { header } = await sign(challengeWith(declared));
        const payload = decodeBase64Json(header) as Payload;
        expect(payload.extensions['payment-identifier']).toMatchObject(declared['payment-identifier']);
        return payload.extensions['payment-identifier']?.info.id;
      }),
    );
    expect(ids).toEqual([expect.stringMatching(/^[\w-]{16,128}$/), expect.stringMatching(/^[\w-]{16,128}$/)]);
    expect(ids[0]).not.toBe(ids[1]);
    expect(declared['payment-identifier'].info).toEqual({ required: false });
  });

  it('is found in nothing else, and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.jsonValue().map((value) => btoa(JSON.stringify(value).replace(/[^ -~]/g, '?'))),
        ),
        (text) => {
          expect(readPayment(text)).toBeUndefined();
        },
      ),
    );
  });
});
