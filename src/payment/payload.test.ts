import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePayment, parsePaymentHeader } from './payload.ts';

const ADDRESS = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const PAYLOAD = {
  x402Version: 2,
  resource: { url: 'http://127.0.0.1/x' },
  accepted: {
    scheme: 'exact',
    network: 'eip155:84532',
    asset: ADDRESS,
    amount: '5000',
    payTo: ADDRESS,
    maxTimeoutSeconds: 300,
    extra: { name: 'USDC', version: '2' },
  },
  payload: {
    signature: `0x${'Ab'.repeat(65)}`,
    authorization: {
      from: ADDRESS,
      to: ADDRESS,
      value: '5000',
      validAfter: '0',
      validBefore: '1800000000',
      nonce: `0x${'Cd'.repeat(32)}`,
    },
  },
};

const header = (value: unknown): string => btoa(JSON.stringify(value));

describe('parsePaymentHeader', () => {
  it('reads a payload, whatever the case of its hex', () => {
    const parsed = parsePaymentHeader(header(PAYLOAD));
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        payload: PAYLOAD,
        authorization: { payer: ADDRESS.toLowerCase(), nonce: `0x${'cd'.repeat(32)}`, validBefore: 1_800_000_000 },
      },
    });
    const otherCase = JSON.parse(
      JSON.stringify(PAYLOAD).replaceAll('Cd', 'cD').replaceAll(ADDRESS, ADDRESS.toLowerCase()),
    );
    const again = parsePaymentHeader(header(otherCase));
    expect(again.ok && [again.value.authorization, again.value.fingerprint]).toEqual(
      parsed.ok && [parsed.value.authorization, parsed.value.fingerprint],
    );
  });

  it('knows one payment by whatever spelling of its numbers and of its signature', () => {
    const { authorization } = PAYLOAD.payload;
    const spelled = (v: string, value: string, validAfter: string): unknown => {
      const payload = { authorization: { ...authorization, value, validAfter }, signature: `0x${'ab'.repeat(64)}${v}` };
      const parsed = parsePayment({ ...PAYLOAD, payload });
      return parsed.ok && parsed.value.fingerprint;
    };
    expect(spelled('1b', '5000', '0')).toBe(spelled('00', '05000', '000'));
    expect(spelled('1c', '5000', '0')).toBe(spelled('01', '5000', '0'));
    expect(spelled('1b', '5000', '0')).not.toBe(spelled('1c', '5000', '0'));
  });

  it('tells payments apart that differ in any signed field or in the signature', () => {
    const { authorization, signature } = PAYLOAD.payload;
    const variants = [
      { authorization, signature },
      { authorization, signature: `0x${'ab'.repeat(64)}ac` },
      ...Object.entries({
        from: `0x${'1'.repeat(40)}`,
        to: `0x${'1'.repeat(40)}`,
        value: '1',
        validAfter: '1',
        validBefore: '1',
        nonce: `0x${'1'.repeat(64)}`,
      }).map(([name, value]) => ({ authorization: { ...authorization, [name]: value }, signature })),
    ];
    const fingerprints = variants.map((payload) => {
      const parsed = parsePayment({ ...PAYLOAD, payload });
      return parsed.ok && parsed.value.fingerprint;
    });
    expect(fingerprints.every((fingerprint) => typeof fingerprint === 'string')).toBe(true);
    expect(new Set(fingerprints).size).toBe(variants.length);
  });

  it('reads the id of a payment-identifier, and takes an echoed declaration without one for none', () => {
    const identified = (info: unknown): unknown => {
      const parsed = parsePayment({
        ...PAYLOAD,
        extensions: { bazaar: {}, 'payment-identifier': { info, schema: {} } },
      });
      return parsed.ok ? (parsed.value.identifier ?? 'none') : parsed.problem.code;
    };
    expect([{ required: false }, undefined, {}].map(identified)).toEqual(['none', 'none', 'none']);
    for (const id of ['pay_7d5d747be160e280504c099d984bcfe0', 'a'.repeat(16), '-_'.repeat(64)]) {
      expect(identified({ required: true, id })).toBe(id);
    }
    for (const id of ['a'.repeat(15), 'a'.repeat(129), 'a'.repeat(15) + '.', 'ä'.repeat(16), '', 5, null]) {
      expect(identified({ id })).toBe('malformed_payment');
    }
    expect(identified('no object')).toBe('malformed_payment');
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no base64', '%%%'],
    ['base64url', 'eyJ4Ijoi_-8ifQ'],
    ['a length that base64 has not', 'abcde'],
    ['no JSON', btoa('hello')],
    ['no UTF-8', btoa('\u00ff\u00fe')],
    ['JSON null', header(null)],
    ['a list', header([PAYLOAD])],
    ['version 1', header({ ...PAYLOAD, x402Version: 1 })],
    ['no accepted', header({ x402Version: 2, payload: PAYLOAD.payload })],
    ['a key twice', btoa(JSON.stringify(PAYLOAD).replace('"x402Version":2', '"x402Version":2,"x402Version":2'))],
    [
      'a bad nonce',
      header({
        ...PAYLOAD,
        payload: { ...PAYLOAD.payload, authorization: { ...PAYLOAD.payload.authorization, nonce: '0x12' } },
      }),
    ],
    [
      'a fractional value',
      header({
        ...PAYLOAD,
        payload: { ...PAYLOAD.payload, authorization: { ...PAYLOAD.payload.authorization, value: '1.5' } },
      }),
    ],
    ['an odd signature', header({ ...PAYLOAD, payload: { ...PAYLOAD.payload, signature: '0xabc' } })],
    [
      'a Permit2 authorization beside the one that is read',
      header({ ...PAYLOAD, payload: { ...PAYLOAD.payload, permit2Authorization: { from: ADDRESS } } }),
    ],
    ['a null beside it', header({ ...PAYLOAD, payload: { ...PAYLOAD.payload, permit2Authorization: null } })],
    ['a Permit2 payload', header({ ...PAYLOAD, payload: { signature: '0xab', permit2Authorization: {} } })],
  ])('refuses %s as malformed', (_, text) => {
    expect(parsePaymentHeader(text)).toMatchObject({ ok: false, problem: { code: 'malformed_payment' } });
  });

  it('never throws and never echoes, whatever the header holds', () => {
    const secret = 'zzTOPzzSECRETzz';
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json().map(btoaSafe),
          fc.jsonValue().map((value) => btoaSafe(JSON.stringify({ ...PAYLOAD, payload: { [secret]: value } }))),
        ),
        (text) => {
          const parsed = parsePaymentHeader(text);
          expect(parsed.ok || !JSON.stringify(parsed.problem).includes(secret)).toBe(true);
        },
      ),
    );
  });
});

const btoaSafe = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
