import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import multi from '../../test/vectors/w3c-multi-key-pairs.json' with { type: 'json' };
import speccheck from '../../test/vectors/ed25519-speccheck.json' with { type: 'json' };
import w3c from '../../test/vectors/w3c-eddsa-jcs-2022.json' with { type: 'json' };
import { fromHex, toHex } from './canonical.ts';
import { createSigner } from './ed25519.ts';
import {
  decodeBase58,
  decodePublicKey,
  decodeSecretKey,
  encodeBase58,
  encodePublicKey,
  encodeSecretKey,
  isSafePublicKey,
  littleEndian,
} from './multikey.ts';

const multikey = (hex: string) => `z${encodeBase58(fromHex(hex))}`;
const withSign = (hex: string) => toHex(fromHex(hex).map((byte, index) => (index === 31 ? byte | 0x80 : byte)));
const key32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe('base58btc', () => {
  // draft-msporny-base58-03 section 5.
  test.each([
    ['48656c6c6f20576f726c6421', '2NEpo7TZRRrLZSi2U'],
    [
      '54686520717569636b2062726f776e20666f78206a756d7073206f76657220746865206c617a7920646f672e',
      'USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z',
    ],
    ['0000287fb4cd', '11233QC4'],
    ['', ''],
    ['00', '1'],
  ])('%s is %s', (hex, text) => {
    expect(encodeBase58(fromHex(hex))).toBe(text);
    expect(decodeBase58(text)).toEqual(fromHex(hex));
  });

  it('gives each byte string one spelling', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(decodeBase58(encodeBase58(bytes))).toEqual(bytes);
      }),
    );
    const text = fc.string({
      unit: fc.constantFrom(...Array.from('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz')),
    });
    fc.assert(
      fc.property(text, (base58) => {
        expect(encodeBase58(decodeBase58(base58) ?? fromHex('ff'))).toBe(base58);
      }),
    );
  });

  it('refuses other characters and too much text', () => {
    for (const text of ['0', 'O', 'I', 'l', ' ', '2\n', '2=', 'é', '😀', 'z'.repeat(129)]) {
      expect(decodeBase58(text)).toBeUndefined();
    }
    expect(decodeBase58('z'.repeat(1_000_000))).toBeUndefined();
    expect(() => encodeBase58(new Uint8Array(89))).toThrow(RangeError);
  });
});

describe('Multikey', () => {
  const { keyPair1, keyPair2, keyPair3, keyPair4 } = multi;
  test.each([w3c.keyPair, keyPair1, keyPair2, keyPair3, keyPair4])(
    'W3C pair $publicKeyMultibase',
    async ({ publicKeyMultibase, privateKeyMultibase }) => {
      const secret = decodeSecretKey(privateKeyMultibase);
      if (!secret.ok) throw new Error(secret.reason);
      const { publicKey } = await createSigner(secret.key);
      expect(encodePublicKey(publicKey)).toBe(publicKeyMultibase);
      expect(encodeSecretKey(secret.key)).toBe(privateKeyMultibase);
      expect(decodePublicKey(publicKeyMultibase)).toEqual({ ok: true, key: publicKey });
    },
  );

  it('reads back what it writes', () => {
    fc.assert(
      fc.property(key32, (key) => {
        expect(decodeSecretKey(encodeSecretKey(key))).toEqual({ ok: true, key });
        fc.pre(isSafePublicKey(key));
        expect(decodePublicKey(encodePublicKey(key))).toEqual({ ok: true, key });
        expect(encodePublicKey(key)).toMatch(/^z6Mk.{44}$/);
      }),
    );
    expect(() => encodePublicKey(new Uint8Array(31))).toThrow(RangeError);
    expect(() => encodeSecretKey(new Uint8Array(64))).toThrow(RangeError);
  });

  const publicKey = `ed01${'5a'.repeat(32)}`;
  test.each<[string, unknown, string]>([
    ['a secret', w3c.keyPair.privateKeyMultibase, 'secret_key'],
    ['an X25519 key', multikey(`ec01${'5a'.repeat(32)}`), 'not_ed25519'],
    ['a P-256 key', multikey(`8024${'02'.repeat(33)}`), 'not_ed25519'],
    ['31 bytes', multikey(publicKey.slice(0, -2)), 'wrong_length'],
    ['33 bytes', multikey(`${publicKey}00`), 'wrong_length'],
    ['a leading zero', `z1${encodeBase58(fromHex(publicKey))}`, 'not_ed25519'],
    ['base64url', `u${'A'.repeat(47)}`, 'not_base58btc'],
    ['no prefix', encodeBase58(fromHex(publicKey)), 'not_base58btc'],
    ['nothing', '', 'not_base58btc'],
    ['only the prefix', 'z', 'not_ed25519'],
    ['a character that is none', `${w3c.keyPair.publicKeyMultibase.slice(0, -1)}0`, 'not_base58btc'],
    ['much text', `z${'z'.repeat(100_000)}`, 'not_base58btc'],
    ['a number', 5, 'not_base58btc'],
    ['null', null, 'not_base58btc'],
    ['the identity', multikey(`ed0101${'00'.repeat(31)}`), 'unsafe_key'],
  ])('refuses %s where a public key belongs', (_, value, reason) => {
    expect(decodePublicKey(value)).toEqual({ ok: false, reason });
  });

  it('refuses a public key where a secret belongs', () => {
    expect(decodeSecretKey(w3c.keyPair.publicKeyMultibase)).toEqual({ ok: false, reason: 'public_key' });
  });
});

describe('the key guard', () => {
  test.each(speccheck.smallOrderYsHexSignBitCleared)('refuses y = %s with either sign', (hex) => {
    expect(isSafePublicKey(fromHex(hex))).toBe(false);
    expect(isSafePublicKey(fromHex(withSign(hex)))).toBe(false);
  });

  it('refuses every y from 2^255 - 19 on, and takes the one below -1', () => {
    const ones = 'ff'.repeat(30);
    for (let low = 0xed; low <= 0xff; low++) {
      const hex = `${low.toString(16)}${ones}7f`;
      expect(isSafePublicKey(fromHex(hex))).toBe(false);
      expect(isSafePublicKey(fromHex(withSign(hex)))).toBe(false);
    }
    expect(isSafePublicKey(fromHex(`eb${ones}7f`))).toBe(true);
  });

  it('judges the speccheck keys as small or not', () => {
    for (const { pub_key: key, measured } of speccheck.cases) {
      expect(isSafePublicKey(fromHex(key))).toBe(!measured.A_is_small_order);
    }
  });

  it('refuses other lengths', () => {
    for (const length of [0, 31, 33, 64]) expect(isSafePublicKey(new Uint8Array(length).fill(9))).toBe(false);
  });
});

test('littleEndian', () => {
  expect(littleEndian(fromHex('0102ff'))).toBe(0xff0201n);
  expect(littleEndian(new Uint8Array())).toBe(0n);
});
