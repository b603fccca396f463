import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { chooseOffer, readChallenge, type Challenge } from './offer.ts';

const OFFER = {
  scheme: 'exact',
  network: 'eip155:84532',
  asset: BASE_SEPOLIA_USDC.address,
  amount: '5000',
  payTo: `0x${'Ab'.repeat(20)}`,
  maxTimeoutSeconds: 300,
  extra: { name: 'not ours', version: '9' },
};
const challengeOf = (...accepts: object[]): Challenge | undefined =>
  readChallenge(null, { x402Version: 2, accepts, resource: {} });
const choose = (...accepts: object[]) => chooseOffer(challengeOf(...accepts) as Challenge, [BASE_SEPOLIA_USDC]);

describe('chooseOffer', () => {
  it('takes the first that fits, with the token’s own domain and not the offered one', () => {
    const offer = choose({ ...OFFER, network: 'solana:x' }, OFFER, { ...OFFER, amount: '1' });
    expect(offer).toEqual({
      token: BASE_SEPOLIA_USDC,
      amount: 5_000n,
      payTo: OFFER.payTo.toLowerCase(),
      maxTimeoutSeconds: 300,
      asOffered: OFFER,
    });
  });

  const WRONG: Readonly<Record<string, readonly unknown[]>> = {
    scheme: ['upto', '', undefined, null],
    network: ['eip155:1', 'base-sepolia', 84_532, undefined],
    asset: [`0x${'1'.repeat(40)}`, undefined, 5],
    amount: ['0', '-5000', '05000', '5e3', '0x1', '5000.0', '', 5_000, undefined, '9'.repeat(40)],
    payTo: ['0x12', 'me', undefined, `${OFFER.payTo}0`],
    maxTimeoutSeconds: [0, -1, 86_401, Number.NaN, '300', undefined],
    extra: [{ assetTransferMethod: 'permit2' }, { paymentFlow: 'upfront' }, { paymentFlow: 'escrow' }],
  };
  it.each(Object.entries(WRONG).flatMap(([name, values]) => values.map((value) => [name, value] as const)))(
    'refuses %s %j',
    (name, value) => {
      expect(() => choose({ ...OFFER, [name]: value })).toThrow('not paid');
    },
  );

  it('says why, once for each reason', () => {
    expect(() => choose({ ...OFFER, scheme: 'x' }, { ...OFFER, scheme: 'y' }, { ...OFFER, amount: '0' })).toThrow(
      'not paid: the scheme is not exact; the amount is not a whole number of atomic units',
    );
    expect(() => choose()).toThrow('offers nothing');
  });
});

describe('readChallenge', () => {
  const required = { x402Version: 2, accepts: [OFFER], resource: { url: 'x' }, extensions: { a: 1 } };
  it('prefers the header, takes the body else, and sees that the body would be refused', () => {
    const header = btoa(JSON.stringify(required));
    const expected = { accepts: [OFFER], resource: { url: 'x' }, extensions: { a: 1 }, bodyRefused: false };
    expect(readChallenge(header, { ...required, accepts: [] })).toEqual(expected);
    expect(readChallenge('%%%', required)).toEqual(expected);
    expect(readChallenge(header, { refused: {} })).toEqual({ ...expected, bodyRefused: true });
  });

  it('finds none in whatever else there is, and never throws', () => {
    fc.assert(
      fc.property(fc.option(fc.oneof(fc.string(), fc.base64String())), fc.jsonValue(), (header, body) => {
        expect(readChallenge(header, body)).toBeUndefined();
      }),
    );
    expect(readChallenge(null, { x402Version: 1, accepts: [OFFER] })).toBeUndefined();
    expect(readChallenge(null, { x402Version: 2, accepts: OFFER })).toBeUndefined();
  });
});
