/** The service's Ed25519 seed: from SIGNING_KEY, else from DATA_DIR, where the first start of local mode puts one. */
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fromHex, toHex } from '../provenance/canonical.ts';
import { decodeSecretKey, encodeSecretKey, KEY_BYTES } from '../provenance/multikey.ts';

const FILE_NAME = 'signing-key';

/** Both spellings of one seed that SIGNING_KEY takes. */
export interface KeySpellings {
  readonly hex: string;
  /** Multikey with the Ed25519 secret prefix, `z3u2...`. */
  readonly secretKeyMultibase: string;
}

export const newSeed = (): Uint8Array => crypto.getRandomValues(new Uint8Array(KEY_BYTES));

export const spellings = (seed: Uint8Array): KeySpellings => ({
  hex: toHex(seed),
  secretKeyMultibase: encodeSecretKey(seed),
});

/** The seed, or undefined where the text is neither spelling. */
export function parseSigningKey(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return fromHex(text);
  const decoded = decodeSecretKey(text);
  return decoded.ok ? decoded.key : undefined;
}

/**
 * The seed kept in `dataDir`, readable by its owner only; made where there is none. Of several first starts at once, all
 * take the key of one: a link appears whole or not at all, and never over another.
 *
 * @throws Error if the file holds something else: a damaged key must be noticed, not replaced.
 */
export async function loadOrCreateSeed(dataDir: string): Promise<Uint8Array> {
  await mkdir(dataDir, { recursive: true }).catch((cause: unknown) => {
    throw new Error(`DATA_DIR: ${dataDir} is no folder that can be made or used (${String(codeOf(cause))})`, { cause });
  });
  const path = join(dataDir, FILE_NAME);
  const draft = `${path}.${process.pid}.${crypto.randomUUID()}`;
  let text = await readIfAny(path);
  if (text === undefined) {
    await writeFile(draft, `${toHex(newSeed())}\n`, { mode: 0o600 });
    try {
      await link(draft, path);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    } finally {
      await rm(draft);
    }
    text = await readFile(path, 'utf8');
  }
  const seed = parseSigningKey(text.trim());
  if (!seed) throw new Error(`${path} holds no signing key; move it away to get a new one`);
  return seed;
}

async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);
