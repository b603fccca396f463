import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSealer, STORE_SECRET_BYTES } from './seal.ts';

const secret = (byte: number): Uint8Array<ArrayBuffer> => new Uint8Array(STORE_SECRET_BYTES).fill(byte);
const binding = { requestDigest: 'sha256:aa', callerSecret: 'signature' };

describe('sealer', () => {
  it('opens what it sealed, under the same secret and binding only', async () => {
    const sealer = await createSealer(secret(1));
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 500 }), async (bytes) => {
        const plain = new Uint8Array(bytes);
        const sealed = await sealer.seal(plain, binding);
        expect(await sealer.open(sealed, binding)).toEqual(plain);
        expect(await sealer.open(sealed, { ...binding, requestDigest: 'sha256:ab' })).toBeUndefined();
        expect(await sealer.open(sealed, { ...binding, callerSecret: 'other' })).toBeUndefined();
        expect(await (await createSealer(secret(2))).open(sealed, binding)).toBeUndefined();
      }),
      { numRuns: 25 },
    );
  });

  it('notices every flipped bit and every cut', async () => {
    const sealer = await createSealer(secret(1));
    const sealed = await sealer.seal(new TextEncoder().encode('an answer'), binding);
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = sealed.slice();
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(await sealer.open(changed, binding)).toBeUndefined();
    }
    for (let length = 0; length < sealed.length; length += 1) {
      expect(await sealer.open(sealed.slice(0, length), binding)).toBeUndefined();
    }
  });

  it('does not show the plain text and never seals alike', async () => {
    const sealer = await createSealer(secret(1));
    const plain = new TextEncoder().encode('the caller’s words, the caller’s words');
    const [one, two] = await Promise.all([sealer.seal(plain, binding), sealer.seal(plain, binding)]);
    expect(Buffer.from(one).includes(Buffer.from(plain.slice(0, 8)))).toBe(false);
    expect(one).not.toEqual(two);
  });

  it('tells texts apart that would run together, and purposes', async () => {
    const sealer = await createSealer(secret(1));
    const macs = await Promise.all([
      sealer.mac('request', 'a', 'bc'),
      sealer.mac('request', 'ab', 'c'),
      sealer.mac('request', '', 'abc'),
      sealer.mac('request', 'abc'),
      sealer.mac('probe', 'a', 'bc'),
    ]);
    expect(new Set(macs).size).toBe(5);
    expect(macs[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  it('takes a signature of any length that a payment may have', async () => {
    const sealer = await createSealer(secret(1));
    const plain = new TextEncoder().encode('an answer');
    for (const length of [130, 714, 8_194]) {
      const long = { requestDigest: 'sha256:aa', callerSecret: 'f'.repeat(length) };
      expect(await sealer.open(await sealer.seal(plain, long), long)).toEqual(plain);
    }
  });

  it('refuses a secret that is too short', async () => {
    await expect(createSealer(new Uint8Array(31))).rejects.toThrow(RangeError);
  });
});
