import { etc, getPublicKeyAsync, Point, utils } from '@noble/ed25519';
import * as fc from 'fast-check';
import { afterEach, describe, expect, it, test, vi } from 'vitest';
import speccheck from '../../test/vectors/ed25519-speccheck.json' with { type: 'json' };
import { fromHex, toHex } from './canonical.ts';
import { createSigner, nobleEd25519, verifySignature, webCryptoEd25519, type Ed25519 } from './ed25519.ts';
import { littleEndian } from './multikey.ts';

const chosen: Ed25519 = { createSigner, verify: verifySignature };
const IMPLEMENTATIONS: [string, Ed25519][] = [
  ['WebCrypto', webCryptoEd25519],
  ['noble', nobleEd25519],
  ['the chosen one', chosen],
];

function flip(bytes: Uint8Array, bit: number): Uint8Array {
  return bytes.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
}

function verdicts(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): Promise<boolean[]> {
  return Promise.all([webCryptoEd25519, nobleEd25519].map((ed25519) => ed25519.verify(signature, message, publicKey)));
}

const scalarBytes = (scalar: bigint) => fromHex(scalar.toString(16).padStart(64, '0')).toReversed();

// RFC 8032 section 7.1, tests 1 to 3: seed, public key, message, signature.
const RFC_8032 = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
].map((hexes) => hexes.map(fromHex));

describe.each(IMPLEMENTATIONS)('%s', (_, ed25519) => {
  test.each(RFC_8032)('RFC 8032 vector', async (seed, publicKey, message, signature) => {
    if (!seed || !publicKey || !message || !signature) throw new Error('incomplete vector');
    const signer = await ed25519.createSigner(seed);
    expect(signer.publicKey).toEqual(publicKey);
    expect(await signer.sign(message)).toEqual(signature);
    expect(await ed25519.verify(signature, message, publicKey)).toBe(true);
  });

  test.each(speccheck.cases)('speccheck case $case', async ({ case: number, message, pub_key: key, signature }) => {
    const verdict = await ed25519.verify(fromHex(signature), fromHex(message), fromHex(key));
    expect(verdict).toBe(number === 2 || number === 3);
  });

  it('refuses a signature with any bit changed', async () => {
    const [seed, publicKey, message, signature] = RFC_8032[2] ?? [];
    if (!seed || !publicKey || !message || !signature) throw new Error('incomplete vector');
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 511 }), async (bit) => {
        expect(await ed25519.verify(flip(signature, bit), message, publicKey)).toBe(false);
        expect(await ed25519.verify(signature, flip(message, bit % 16), publicKey)).toBe(false);
        expect(await ed25519.verify(signature, message, flip(publicKey, bit % 256))).toBe(false);
      }),
      { numRuns: 30 },
    );
  });

  it('refuses lengths that are none, and seeds that are none', async () => {
    const [, publicKey = new Uint8Array(), message = new Uint8Array(), signature = new Uint8Array()] =
      RFC_8032[0] ?? [];
    for (const cut of [signature.subarray(0, 63), new Uint8Array([...signature, 0]), new Uint8Array()]) {
      expect(await ed25519.verify(cut, message, publicKey)).toBe(false);
    }
    expect(await ed25519.verify(signature, message, publicKey.subarray(1))).toBe(false);
    for (const length of [0, 31, 33, 64]) {
      await expect(ed25519.createSigner(new Uint8Array(length))).rejects.toThrow(RangeError);
    }
  });

  it('keeps its key when the seed is overwritten', async () => {
    const seed = new Uint8Array(32).fill(1);
    const signer = await ed25519.createSigner(seed);
    const before = await signer.sign(Uint8Array.of(1));
    seed.fill(2);
    expect(await signer.sign(Uint8Array.of(1))).toEqual(before);
  });
});

describe('both implementations agree', () => {
  it('on honest keys and messages', async () => {
    const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 });
    await fc.assert(
      fc.asyncProperty(seeds, fc.uint8Array(), async (seed, message) => {
        const native = await webCryptoEd25519.createSigner(seed);
        const pure = await nobleEd25519.createSigner(seed);
        expect(native.publicKey).toEqual(pure.publicKey);
        const signature = await native.sign(message);
        expect(await pure.sign(message)).toEqual(signature);
        expect(await verdicts(signature, message, native.publicKey)).toEqual([true, true]);
      }),
      { numRuns: 25 },
    );
  });

  it('on signatures that differ from good ones by points of order 8', async () => {
    const order = Point.CURVE().n;
    const torsion = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
    const { scalar, point } = await utils.getExtendedPublicKeyAsync(new Uint8Array(32).fill(3));
    const seen = new Set<string>();
    for (let round = 0; round < 48; round++) {
      const message = Uint8Array.of(round);
      const nonce = BigInt(round) * 7919n + 1n;
      const onKey = round % 3 !== 0;
      const onR = round % 3 !== 1;
      const publicKey = (onKey ? point.add(torsion) : point).toBytes();
      const r = (onR ? Point.BASE.multiply(nonce).add(torsion) : Point.BASE.multiply(nonce)).toBytes();
      const hash = new Uint8Array(await crypto.subtle.digest('SHA-512', Uint8Array.of(...r, ...publicKey, ...message)));
      const k = etc.mod(littleEndian(hash), order);
      const signature = Uint8Array.of(...r, ...scalarBytes(etc.mod(nonce + k * scalar, order)));
      const [native, pure] = await verdicts(signature, message, publicKey);
      expect(pure).toBe(native);
      seen.add(`${onKey} ${onR} ${pure}`);
    }
    // A twisted R alone never holds; a twisted key does where the torsion cancels out.
    expect(seen).not.toContain('false true true');
    expect(seen).toContain('true false false');
    expect(seen.has('true false true') || seen.has('true true true')).toBe(true);
  });

  it('on keys that are no points', async () => {
    const noPoint = fromHex(`02${'00'.repeat(31)}`);
    expect(() => Point.fromBytes(noPoint)).toThrow();
    expect(await verdicts(new Uint8Array(64), new Uint8Array(), noPoint)).toEqual([false, false]);
  });
});

describe('without Ed25519 in WebCrypto', () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.resetModules();
  });

  it('signs and verifies all the same', async () => {
    const importKey = vi
      .spyOn(crypto.subtle, 'importKey')
      .mockRejectedValue(new DOMException('Unrecognized name', 'NotSupportedError'));
    vi.resetModules();
    const fresh = await import('./ed25519.ts');
    const seed = new Uint8Array(32).fill(7);
    const signer = await fresh.createSigner(seed);
    const signature = await signer.sign(Uint8Array.of(1, 2, 3));
    expect(await fresh.verifySignature(signature, Uint8Array.of(1, 2, 3), signer.publicKey)).toBe(true);
    expect(importKey).toHaveBeenCalledTimes(1);
    expect(toHex(signer.publicKey)).toBe(toHex(await getPublicKeyAsync(seed)));
  });
});
