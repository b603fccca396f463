/** The settings, read from the environment once. Everything wrong is listed at once, and nothing is guessed. */
import { z } from 'zod';
import { PRICE } from '../operation.ts';
import { parseSigningKey } from './signing-key.ts';

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);
export const isLoopbackHost = (host: string): boolean => LOOPBACK_HOSTS.has(host);

const MIB = 1_024 * 1_024;

/** A field whose text `read` understands; messages never repeat a value, which may be a secret. */
function field<T>(read: (text: string) => T | undefined, message: string) {
  return z.string().transform((text, context): T => {
    const value = read(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

const integer = (minimum: number, maximum: number) =>
  field((text) => {
    const number = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= minimum && number <= maximum ? number : undefined;
  }, `must be a whole number from ${minimum} to ${maximum}`);

function readPrices(text: string): Readonly<Record<string, string>> | undefined {
  try {
    return z.record(z.string(), z.string().regex(PRICE)).safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // no JSON
  }
}

const schema = (operationIds: readonly string[]) =>
  z.object({
    NODE_ENV: z
      .string()
      .refine((mode) => mode !== 'production', 'production refuses local mode, whose money is worth nothing')
      .optional(),
    /** Unset: 4021 if it is free, else any free port. */
    PORT: integer(0, 65_535).optional(),
    HOST: z
      .string()
      .refine(isLoopbackHost, 'local mode gives money away, so it listens on a loopback address only')
      .default('127.0.0.1'),
    DATA_DIR: z.string().default('./data'),
    NETWORK: z
      .enum(['local', 'base-sepolia', 'base'], 'must be local, base-sepolia or base')
      .refine(
        (network) => network === 'local',
        'base and base-sepolia are not served by this version yet; leave it out to run in local mode, with practice money',
      )
      .default('local'),
    SIGNING_KEY: field(
      parseSigningKey,
      'must be 64 hex digits or a secretKeyMultibase (z3u2...); `context-evidence-kit keygen` prints both',
    ).optional(),
    /** Operation id to atomic USDC units. */
    PRICES: field(
      readPrices,
      'must be JSON like {"conversation-prune":"5000"}: whole numbers of atomic USDC units, at least 1, as text',
    )
      .refine(
        (prices) => Object.keys(prices).every((id) => operationIds.includes(id)),
        `names an operation that does not exist; there are: ${operationIds.join(', ')}`,
      )
      .default({}),
    /** Files, reloaded while the service runs; context-settings.ts reads them. */
    CONTEXT_CONFIG: z.string().optional(),
    MODEL_CATALOG: z.string().optional(),
    BODY_LIMIT_BYTES: integer(1, 64 * MIB).default(8 * MIB),
    LOG_LEVEL: z.enum(['silent', 'error', 'info'], 'must be silent, error or info').default('info'),
  });

export type Settings = z.infer<ReturnType<typeof schema>>;

/** Everything that is wrong with the settings, one line each. */
export class SettingsError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(`The settings are not usable:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

/**
 * An empty variable means the same as an absent one, as shells and compose files leave them.
 *
 * @param operationIds the operations that PRICES may name.
 * @throws SettingsError
 */
export function parseSettings(
  env: Readonly<Record<string, string | undefined>>,
  operationIds: readonly string[],
): Settings {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = schema(operationIds).safeParse(given);
  if (parsed.success) return parsed.data;
  throw new SettingsError(parsed.error.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`));
}
