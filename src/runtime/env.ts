/** The settings, read from the environment once. Everything wrong is listed at once, and nothing is guessed. */
import { z } from 'zod';
import { parseSigningKey } from './signing-key.ts';

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);
export const isLoopbackHost = (host: string): boolean => LOOPBACK_HOSTS.has(host);

const MIB = 1_024 * 1_024;

const integer = (minimum: number, maximum: number): z.ZodPipe<z.ZodString, z.ZodTransform<number, string>> =>
  z.string().transform((text, context) => {
    const number = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= minimum && number <= maximum) return number;
    context.addIssue({ code: 'custom', message: `must be a whole number from ${minimum} to ${maximum}` });
    return z.NEVER;
  });

const prices = z.string().transform((text, context) => {
  try {
    const parsed = z.record(z.string(), z.string().regex(/^[1-9][0-9]{0,17}$/)).safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
  } catch {
    // not JSON: the same message says what is wanted
  }
  context.addIssue({
    code: 'custom',
    message: 'must be JSON like {"conversation-prune":"5000"}, in atomic USDC units',
  });
  return z.NEVER;
});

/** An empty variable means the same as an absent one, as shells and compose files leave them. */
const settingsSchema = z.object({
  NODE_ENV: z.string().optional(),
  PORT: integer(0, 65_535).optional(),
  HOST: z.string().default('127.0.0.1'),
  DATA_DIR: z.string().default('./data'),
  NETWORK: z.enum(['local', 'base-sepolia', 'base']).default('local'),
  SIGNING_KEY: z.string().optional(),
  PRICES: prices.default({}),
  BODY_LIMIT_BYTES: integer(1, 64 * MIB).default(8 * MIB),
  LOG_LEVEL: z.enum(['silent', 'error', 'info']).default('info'),
});

export interface Settings {
  /** Undefined: 4021 if it is free, else any free port. */
  readonly port: number | undefined;
  readonly host: string;
  readonly dataDir: string;
  readonly signingKey: string | undefined;
  /** Operation id to atomic USDC units. */
  readonly prices: Readonly<Record<string, string>>;
  readonly bodyLimitBytes: number;
  readonly logLevel: 'silent' | 'error' | 'info';
}

/** Everything that is wrong with the settings, one line each; values are never repeated, they may be secrets. */
export class SettingsError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(`The settings are not usable:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

/**
 * @param operationIds the operations that PRICES may name.
 * @throws SettingsError
 */
export function parseSettings(
  env: Readonly<Record<string, string | undefined>>,
  operationIds: readonly string[],
): Settings {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = settingsSchema.safeParse(given);
  const faults = parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`);
  // Read apart from the rest, so that one malformed setting does not hide the others' faults.
  const network = given['NETWORK'] ?? 'local';
  if (network === 'base' || network === 'base-sepolia') {
    faults.push(
      `NETWORK: ${network} is not served by this version yet; leave it out to run in local mode, with practice money`,
    );
  }
  if (network === 'local' && given['NODE_ENV'] === 'production') {
    faults.push('NODE_ENV: production refuses local mode, whose money is worth nothing');
  }
  if (network === 'local' && !isLoopbackHost(given['HOST'] ?? '127.0.0.1')) {
    faults.push('HOST: local mode gives money away, so it listens on a loopback address only');
  }
  const signingKey = given['SIGNING_KEY'];
  if (signingKey !== undefined && !parseSigningKey(signingKey)) {
    faults.push(
      'SIGNING_KEY: must be 64 hex digits or a secretKeyMultibase (z3u2...); `context-evidence-kit keygen` prints both',
    );
  }
  for (const id of parsed.success ? Object.keys(parsed.data.PRICES) : []) {
    if (!operationIds.includes(id))
      faults.push(`PRICES: names an operation that does not exist; there are: ${operationIds.join(', ')}`);
  }
  if (!parsed.success || faults.length > 0) throw new SettingsError(faults);
  const { PORT, HOST, DATA_DIR, PRICES, BODY_LIMIT_BYTES, LOG_LEVEL } = parsed.data;
  return {
    port: PORT,
    host: HOST,
    dataDir: DATA_DIR,
    signingKey,
    prices: PRICES,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    logLevel: LOG_LEVEL,
  };
}
