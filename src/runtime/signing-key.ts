/** The service's Ed25519 seed: from SIGNING_KEY, else from DATA_DIR, where the first start of local mode puts one. */
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeSecretKey, encodeSecretKey } from '../provenance/multikey.ts';
import { toHex } from '../provenance/canonical.ts';

const SEED_BYTES = 32;
const FILE_NAME = 'signing-key';

/** Both spellings of one seed that SIGNING_KEY takes. */
export interface KeySpellings {
  readonly hex: string;
  /** Multikey with the Ed25519 secret prefix, `z3u2...`. */
  readonly secretKeyMultibase: string;
}

export const newSeed = (): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(SEED_BYTES));

export const spellings = (seed: Uint8Array): KeySpellings => ({
  hex: toHex(seed),
  secretKeyMultibase: encodeSecretKey(seed),
});

/** The seed, or undefined where the text is neither spelling. */
export function parseSigningKey(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) {
    return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  }
  const decoded = decodeSecretKey(text);
  return decoded.ok ? decoded.key : undefined;
}

/**
 * The seed kept in `dataDir`, readable by its owner only; made where there is none. Two first starts at once agree on one.
 *
 * @throws Error if the file holds something else: a damaged key must be noticed, not replaced.
 */
export async function loadOrCreateSeed(dataDir: string): Promise<Uint8Array> {
  await mkdir(dataDir, { recursive: true });
  const path = join(dataDir, FILE_NAME);
  try {
    const file = await open(path, 'wx', 0o600);
    const seed = newSeed();
    await file.writeFile(`${toHex(seed)}\n`);
    await file.close();
    return seed;
  } catch (error) {
    if (!isExisting(error)) throw error;
  }
  const seed = parseSigningKey((await readFile(path, 'utf8')).trim());
  if (!seed) throw new Error(`${path} holds no signing key; move it away to get a new one`);
  return seed;
}

const isExisting = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EEXIST';
