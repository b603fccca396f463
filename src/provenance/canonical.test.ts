import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import jcs from '../../test/vectors/jcs-rfc8785.json' with { type: 'json' };
import {
  canonicalJson,
  canonicalJsonIfAny,
  digest,
  formatDigest,
  fromHex,
  isJsonObject,
  parseDigest,
  requestDigest,
  sameJson,
  sha256,
  toBase64,
  toBase64Url,
  toHex,
} from './canonical.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);

describe('canonicalJson', () => {
  test.each(jcs.pairs)('RFC 8785 vector $name', ({ input, output, outputHex }) => {
    const canonical = canonicalJson(JSON.parse(input));
    expect(canonical).toBe(output);
    expect(toHex(utf8(canonical))).toBe(outputHex);
  });

  // RFC 8785 appendix B: IEEE 754 bits and the number's text.
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('number with bits %s', (bits, text) => {
    expect(canonicalJson(new DataView(fromHex(bits).slice().buffer).getFloat64(0))).toBe(text);
  });

  it('is the canonical form of what JSON.stringify would send', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const sent: unknown = JSON.parse(JSON.stringify(value));
        expect(canonicalJson(value)).toBe(canonicalJson(sent));
        expect(JSON.parse(canonicalJson(value))).toEqual(sent);
      }),
    );
    expect(canonicalJson({ b: undefined, a: [undefined, () => 1], d: new Date(0) })).toBe(
      '{"a":[null,null],"d":"1970-01-01T00:00:00.000Z"}',
    );
  });

  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (object) => {
        const reversed = Object.fromEntries(Object.entries(object).toReversed());
        expect(canonicalJson(reversed)).toBe(canonicalJson(object));
        expect(sameJson(reversed, object)).toBe(true);
      }),
    );
  });

  it('keeps a key named __proto__', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1},"b":1}');
  });

  it('takes 100,000 levels without a stack', () => {
    const deep: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(canonicalJson(deep)).toHaveLength(200_000);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['NaN', [Number.NaN]],
    ['Infinity', { a: Infinity }],
    ['a BigInt', [1n]],
    ['a cycle', cyclic],
    ['half a surrogate pair', ['\ud800']],
    ['half a surrogate pair in a key', { '\udc00': 1 }],
    [
      'a toJSON that throws',
      {
        toJSON: () => {
          throw new Error('no');
        },
      },
    ],
  ])('refuses %s', (_, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
    expect(canonicalJsonIfAny(value)).toBeUndefined();
    expect(sameJson(value, value)).toBe(false);
  });
});

describe('digests', () => {
  it('is SHA-256 (FIPS 180-4)', async () => {
    const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    expect(toHex(await sha256('abc'))).toBe(abc);
    expect(toHex(await sha256(utf8('abc')))).toBe(abc);
  });

  it('covers the UTF-8 of the canonical JSON', async () => {
    expect(await digest({})).toBe('sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
    expect(await digest({ b: 'é', a: 1.0 })).toBe(formatDigest(await sha256('{"a":1,"b":"é"}')));
  });

  it('names a request by operation and input', async () => {
    expect(await requestDigest('count', { b: 1, a: 2 })).toBe(
      await digest({ input: { a: 2, b: 1 }, operation: 'count' }),
    );
    expect(await requestDigest('count', {})).not.toBe(await requestDigest('prune', {}));
  });

  it('reads back what it writes, and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (hash) => {
        expect(parseDigest(formatDigest(hash))).toEqual(hash);
      }),
    );
    const good = `sha256:${'a0'.repeat(32)}`;
    for (const bad of [
      good.toUpperCase(),
      good.slice(1),
      `${good}0`,
      `${good}\n`,
      `sha512:${'a0'.repeat(32)}`,
      7,
      null,
    ]) {
      expect(parseDigest(bad)).toBeUndefined();
    }
  });
});

describe('bytes as text', () => {
  // RFC 4648 section 10.
  test.each([
    ['', ''],
    ['f', 'Zg=='],
    ['fo', 'Zm8='],
    ['foo', 'Zm9v'],
    ['foobar', 'Zm9vYmFy'],
  ])('base64 of "%s"', (text, base64) => {
    expect(toBase64(utf8(text))).toBe(base64);
    expect(toBase64Url(utf8(text))).toBe(base64.replaceAll('=', ''));
  });

  it('uses the other two digits in base64url', () => {
    expect(toBase64(Uint8Array.of(0xfb, 0xff))).toBe('+/8=');
    expect(toBase64Url(Uint8Array.of(0xfb, 0xff))).toBe('-_8');
  });

  it('reads its own hex', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(fromHex(toHex(bytes))).toEqual(bytes);
      }),
    );
  });
});

test('isJsonObject', () => {
  expect([{}, JSON.parse('{"__proto__":1}')].every(isJsonObject)).toBe(true);
  expect([null, [], 'x', 1, true, undefined].some(isJsonObject)).toBe(false);
});
