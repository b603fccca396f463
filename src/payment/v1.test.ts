import type { PaymentRequired } from '@x402/core/types';
import { EVM_NETWORK_CHAIN_ID_MAP } from '@x402/evm/v1';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { ALL_USDC } from './networks.ts';
import { declarePaymentIdentifier, parsePayment } from './payload.ts';
import { parseV1PaymentHeader, toV1Challenge, toV1Settlement } from './v1.ts';

const PAY_TO = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C';
// The example of specs/transports-v1/http.md.
const SPECIFIED = {
  x402Version: 1,
  scheme: 'exact',
  network: 'base-sepolia',
  payload: {
    signature:
      '0x2d6a7588d6acca505cbf0d9a4a227e0c52c6c34008c8e8986a1283259764173608a2ce6496642e377d6da8dbbf5836e9bd15092f9ecab05ded3d6293af148b571c',
    authorization: {
      from: '0x857b06519E91e3A54538791bDbb0E22373e36b66',
      to: PAY_TO,
      value: '10000',
      validAfter: '1740672089',
      validBefore: '1740672154',
      nonce: '0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480',
    },
  },
};
const header = (value: unknown): string => btoa(JSON.stringify(value));
const change = (member: object): object => ({
  ...SPECIFIED,
  payload: { ...SPECIFIED.payload, authorization: { ...SPECIFIED.payload.authorization, ...member } },
});

test('chains are called as the v1 packages call them', () => {
  for (const { caip2, v1Name } of ALL_USDC) {
    expect(`eip155:${EVM_NETWORK_CHAIN_ID_MAP[v1Name as keyof typeof EVM_NETWORK_CHAIN_ID_MAP]}`).toBe(caip2);
  }
});

describe('parseV1PaymentHeader', () => {
  const ACCEPTED = {
    scheme: 'exact',
    network: 'eip155:84532',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    amount: '10000',
    payTo: PAY_TO,
    maxTimeoutSeconds: 300,
    extra: { name: 'USDC', version: '2' },
  };

  it('reads the example of the specification, as the v2 payment that signs the same', () => {
    const parsed = parseV1PaymentHeader(header(SPECIFIED));
    const asV2 = parsePayment({ x402Version: 2, accepted: ACCEPTED, payload: SPECIFIED.payload });
    expect(parsed).toMatchObject({ ok: true });
    expect(parsed).toEqual(asV2);
  });

  it('takes for accepted what is signed, whatever its case', () => {
    for (const to of [PAY_TO.toLowerCase(), `0x${PAY_TO.slice(2).toUpperCase()}`]) {
      const parsed = parseV1PaymentHeader(header(change({ to, value: '1' })));
      expect(parsed).toMatchObject({ value: { payload: { accepted: { ...ACCEPTED, amount: '1', payTo: PAY_TO } } } });
    }
  });

  it('reads whatever is signed as v2 reads it: the same row, the same fingerprint', () => {
    const hexOf = (bytes: number): fc.Arbitrary<string> =>
      fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((raw) => `0x${Buffer.from(raw).toString('hex')}`);
    const uint = fc.bigInt({ min: 0n, max: 2n ** 64n }).map(String);
    const authorization = fc.record({
      from: hexOf(20),
      to: hexOf(20),
      value: uint,
      validAfter: uint,
      validBefore: uint,
      nonce: hexOf(32),
    });
    fc.assert(
      fc.property(fc.record({ signature: hexOf(65), authorization }), (payload) => {
        const v1 = parseV1PaymentHeader(header({ ...SPECIFIED, payload }));
        const v2 = parsePayment({ x402Version: 2, accepted: ACCEPTED, payload });
        if (!v1.ok || !v2.ok) throw new Error('not read');
        const { fingerprint, authorization: signed, transfer } = v2.value;
        expect(v1.value).toMatchObject({ fingerprint, authorization: signed, transfer });
      }),
    );
  });

  test.each<[string, string, string]>([
    ['nothing', '', 'not base64'],
    ['junk', '%%%', 'not base64'],
    ['no JSON', btoa('{'), 'strict JSON'],
    ['null', header(null), '(payload)'],
    ['a list', header([SPECIFIED]), '(payload)'],
    ['version 2', header({ ...SPECIFIED, x402Version: 2 }), '(x402Version)'],
    ['a v2 payload', header({ x402Version: 2, accepted: {}, payload: SPECIFIED.payload }), '(x402Version)'],
    ['a chain that is none of ours', header({ ...SPECIFIED, network: 'solana' }), '(network)'],
    ['the name of v2', header({ ...SPECIFIED, network: 'eip155:84532' }), '(network)'],
    ['no authorization', header({ ...SPECIFIED, payload: { transaction: 'x' } }), '(payload.authorization)'],
    ['no address', header(change({ to: '0x1' })), '(accepted.payTo)'],
    ['no amount', header(change({ value: '-1' })), '(accepted.amount)'],
    ['a number for a text', header(change({ value: 10_000 })), '(payload.authorization.value)'],
    ['a short nonce', header(change({ nonce: '0x12' })), '(payload.authorization.nonce)'],
    [
      'a Permit2 payment beside',
      header({ ...SPECIFIED, payload: { ...SPECIFIED.payload, permit2Authorization: {} } }),
      '(payload)',
    ],
    ['a key twice', btoa(JSON.stringify(SPECIFIED).replace('"scheme"', '"network":"base","scheme"')), 'strict JSON'],
  ])('refuses %s', (_, text, why) => {
    const parsed = parseV1PaymentHeader(text);
    expect(parsed).toMatchObject({ ok: false, problem: { code: 'malformed_payment' } });
    expect(JSON.stringify(parsed)).toContain(why);
  });

  it('refuses any garbage with one code, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json().map(btoaUtf8), fc.base64String()), (text) => {
        expect(parseV1PaymentHeader(text)).toMatchObject({ ok: false, problem: { code: 'malformed_payment' } });
      }),
    );
  });
});

const btoaUtf8 = (text: string): string => Buffer.from(text).toString('base64');

describe('toV1Challenge', () => {
  const required = (more: object = {}): PaymentRequired => ({
    x402Version: 2,
    resource: { url: 'https://api.example.com/x', description: 'Says x.', mimeType: 'application/json' },
    accepts: [
      {
        scheme: 'exact',
        network: 'eip155:8453',
        asset: PAY_TO,
        amount: '5000',
        payTo: PAY_TO,
        maxTimeoutSeconds: 300,
        extra: { name: 'USD Coin', version: '2' },
      },
    ],
    ...more,
  });

  it('says what v2 says in the words of v1', () => {
    expect(toV1Challenge(required())).toEqual({
      x402Version: 1,
      extensions: {},
      accepts: [
        {
          scheme: 'exact',
          network: 'base',
          maxAmountRequired: '5000',
          resource: 'https://api.example.com/x',
          description: 'Says x.',
          mimeType: 'application/json',
          payTo: PAY_TO,
          asset: PAY_TO,
          maxTimeoutSeconds: 300,
          extra: { name: 'USD Coin', version: '2' },
        },
      ],
    });
  });

  it('asks for nothing where a payment needs an id, which v1 has no place for', () => {
    expect(toV1Challenge(required({ extensions: declarePaymentIdentifier(true) }))).toMatchObject({ accepts: [] });
    expect(toV1Challenge(required({ extensions: declarePaymentIdentifier(false) }))).toMatchObject({ accepts: [{}] });
  });
});

test('a settlement names the chain as v1 does', () => {
  const settlement = { success: true, transaction: '0x1', network: 'eip155:84532' } as const;
  expect(toV1Settlement(settlement)).toEqual({ ...settlement, network: 'base-sepolia' });
});
