/**
 * Ed25519 (RFC 8032) behind the key guard: WebCrypto where it knows the algorithm, @noble/ed25519 where it does not. Both
 * decide by the equation without cofactor, so they agree on every signature, hostile ones included. No randomness.
 */
import { etc, getPublicKeyAsync, hashes, Point, signAsync } from '@noble/ed25519';
import { toHex } from './canonical.ts';
import { isSafePublicKey, KEY_BYTES, littleEndian } from './multikey.ts';

export const SIGNATURE_BYTES = 64;

export interface Signer {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** 64 bytes; the same message always gives the same ones. */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

export interface Ed25519 {
  /** @throws RangeError unless the seed has 32 bytes. */
  createSigner(seed: Uint8Array): Promise<Signer>;
  /** Never throws; wrong lengths and unsafe keys are false. */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): Promise<boolean>;
}

/** Imports the key once; see `Ed25519.createSigner`. */
export async function createSigner(seed: Uint8Array): Promise<Signer> {
  return (await fastest()).createSigner(seed);
}

/** See `Ed25519.verify`. */
export async function verifySignature(
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
): Promise<boolean> {
  return (await fastest()).verify(signature, message, publicKey);
}

let chosen: Promise<Ed25519> | undefined;

function fastest(): Promise<Ed25519> {
  chosen ??= importPublicKey(new Uint8Array(Point.BASE.toBytes())).then((key) =>
    key ? webCryptoEd25519 : nobleEd25519,
  );
  return chosen;
}

/** What WebCrypto takes: never shared memory. */
type Bytes = Uint8Array<ArrayBuffer>;

interface Implementation {
  createSigner(seed: Bytes): Promise<Signer>;
  verify(signature: Bytes, message: Bytes, publicKey: Bytes): Promise<boolean>;
}

/** The arguments are copied, so that nobody can change them between the look at them and their use. */
function guarded(implementation: Implementation): Ed25519 {
  return {
    async createSigner(seed) {
      if (seed.length !== KEY_BYTES) throw new RangeError(`an Ed25519 seed has ${KEY_BYTES} bytes`);
      return implementation.createSigner(new Uint8Array(seed));
    },
    async verify(signature, message, publicKey) {
      if (signature.length !== SIGNATURE_BYTES || !isSafePublicKey(publicKey)) return false;
      return implementation.verify(new Uint8Array(signature), new Uint8Array(message), new Uint8Array(publicKey));
    },
  };
}

const ALGORITHM = 'Ed25519';
/** PrivateKeyInfo of RFC 8410 section 7 up to the 32 bytes of the seed. */
const PKCS8_PREFIX = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/** Undefined where the runtime lacks Ed25519, or where it refuses a key that is no point of the curve. */
async function importPublicKey(publicKey: Bytes): Promise<CryptoKey | undefined> {
  try {
    return await crypto.subtle.importKey('raw', publicKey, ALGORITHM, false, ['verify']);
  } catch {
    return undefined;
  }
}

export const webCryptoEd25519: Ed25519 = guarded({
  async createSigner(seed) {
    const pkcs8 = Uint8Array.of(...PKCS8_PREFIX, ...seed);
    const key = await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']);
    return {
      publicKey: await getPublicKeyAsync(seed),
      sign: async (message) => new Uint8Array(await crypto.subtle.sign(ALGORITHM, key, new Uint8Array(message))),
    };
  },
  async verify(signature, message, publicKey) {
    const key = await importPublicKey(publicKey);
    return key !== undefined && crypto.subtle.verify(ALGORITHM, key, signature, message);
  },
});

export const nobleEd25519: Ed25519 = guarded({
  async createSigner(seed) {
    return {
      publicKey: await getPublicKeyAsync(seed),
      sign: (message) => signAsync(message, seed),
    };
  },
  /**
   * RFC 8032 section 5.1.7 without the cofactor: R must be the very encoding of [S]B - [k]A. noble's own check multiplies
   * by the cofactor, also with `zip215: false`, and so takes signatures that differ by a torsion point.
   */
  async verify(signature, message, publicKey) {
    const r = signature.subarray(0, KEY_BYTES);
    const s = littleEndian(signature.subarray(KEY_BYTES));
    const order = Point.CURVE().n;
    const a = decodePoint(publicKey);
    if (!a || s >= order) return false;
    const k = etc.mod(littleEndian(await hashes.sha512Async(etc.concatBytes(r, publicKey, message))), order);
    const expected = Point.BASE.multiply(s, false).subtract(a.multiply(k, false));
    return toHex(expected.toBytes()) === toHex(r);
  },
});

function decodePoint(bytes: Uint8Array): Point | undefined {
  try {
    return Point.fromBytes(bytes);
  } catch {
    return undefined;
  }
}
