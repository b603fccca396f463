/** The settings, read from the environment once. Everything wrong is listed at once, and nothing is guessed. */
import { join } from 'node:path';
import { getAddress, isAddress, isHex, size, zeroAddress, type Address, type Hex } from 'viem';
import { z } from 'zod';
import { PRICE } from '../operation.ts';
import { PEPPER_BYTES } from '../payment/api-keys.ts';
import { BASE_SEPOLIA_USDC, BASE_USDC } from '../payment/networks.ts';
import { STORE_SECRET_BYTES } from '../payment/seal.ts';
import { fromHex } from '../provenance/canonical.ts';
import { parseSigningKey } from './signing-key.ts';

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);
export const isLoopbackHost = (host: string): boolean => LOOPBACK_HOSTS.has(host);

const MIB = 1_024 * 1_024;

/** A field whose text `read` understands; messages never repeat a value, which may be a secret. */
function field<T>(read: (text: string) => T | undefined, message: string) {
  return z.string(`is required: ${message}`).transform((text, context): T => {
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

const jsonOf =
  <T>(schema: z.ZodType<T>) =>
  (text: string): T | undefined => {
    try {
      return schema.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined; // no JSON
    }
  };

/** Money sent to the zero address or to the token itself is lost; one wrong digit is found by the checksum only (EIP-55). */
function readPayTo(text: string): Address | undefined {
  const lost: readonly string[] = [zeroAddress, BASE_USDC.address, BASE_SEPOLIA_USDC.address];
  return isAddress(text) && getAddress(text) === text && !lost.includes(text) ? text : undefined;
}

const isIpAddress = (hostname: string): boolean => /^\[|^[0-9.]+$/.test(hostname);
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');
const isLoopbackHttp = (url: URL): boolean => url.protocol === 'http:' && isLoopbackHost(hostOf(url));

const urlOf = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined);

/** did:web has no place for a path, and people none for an address; on loopback, for tests, a port is needed. */
function readPublicUrl(text: string): string | undefined {
  const url = urlOf(text);
  if (url?.origin !== text) return undefined;
  const isPublic = url.protocol === 'https:' && url.port === '' && !isIpAddress(url.hostname);
  return isPublic || isLoopbackHttp(url) ? text : undefined;
}

function readServiceUrl(text: string): string | undefined {
  const url = urlOf(text);
  return url && (url.protocol === 'https:' || isLoopbackHttp(url)) && url.hash === '' ? text : undefined;
}

const PRIVATE_KEY_BYTES = 32;
function readPrivateKey(text: string): Hex | undefined {
  const hex: Hex = text.startsWith('0x') ? (text as Hex) : `0x${text}`;
  return isHex(hex) && hex.length === 2 + 2 * PRIVATE_KEY_BYTES && size(hex) === PRIVATE_KEY_BYTES ? hex : undefined;
}

const readSecret =
  (bytes: number) =>
  (text: string): Uint8Array<ArrayBuffer> | undefined =>
    /^[0-9a-f]+$/i.test(text) && text.length === 2 * bytes ? Uint8Array.from(fromHex(text)) : undefined;

const FILE_PREFIX = 'file:';
const readDatabaseUrl = (text: string): string | undefined =>
  text.startsWith(FILE_PREFIX) && text.length > FILE_PREFIX.length ? text.slice(FILE_PREFIX.length) : undefined;

/** Settings that name more than one thing have commas between them. */
const listOf =
  <T>(read: (text: string) => T | undefined) =>
  (text: string): readonly T[] | undefined => {
    const values = text.split(',').map((each) => read(each.trim()));
    const known = values.filter((each) => each !== undefined);
    return known.length === values.length && new Set(known).size === known.length ? known : undefined;
  };

const readFacilitatorKind = (text: string): 'url' | 'self' | undefined =>
  text === 'url' || text === 'self' ? text : undefined;

const headers = z.record(z.string(), z.string());

const signingKey = field(
  parseSigningKey,
  'must be 64 hex digits or a secretKeyMultibase (z3u2...); `context-evidence-kit keygen` prints both',
);
const serviceUrl = field(readServiceUrl, 'must be an https URL, or http on loopback');

const common = (operationIds: readonly string[]) =>
  z.object({
    NODE_ENV: z.string().optional(),
    /** Unset: 4021 if it is free, else any free port. */
    PORT: integer(0, 65_535).optional(),
    HOST: z.string().default('127.0.0.1'),
    DATA_DIR: z.string().default('./data'),
    SIGNING_KEY: signingKey.optional(),
    /** Operation id to atomic USDC units. */
    PRICES: field(
      jsonOf(z.record(z.string(), z.string().regex(PRICE))),
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
    /** Whether a payment has to carry an id of the x402 extension payment-identifier. */
    PAYMENT_IDENTIFIER: z.enum(['optional', 'required'], 'must be optional or required').default('optional'),
    LOG_LEVEL: z.enum(['silent', 'error', 'info'], 'must be silent, error or info').default('info'),
  });

const local = (operationIds: readonly string[]) =>
  common(operationIds).extend({
    NETWORK: z.literal('local', 'must be local, base-sepolia or base').default('local'),
    NODE_ENV: z
      .string()
      .refine((mode) => mode !== 'production', 'production refuses local mode, whose money is worth nothing')
      .optional(),
    HOST: z
      .string()
      .refine(isLoopbackHost, 'local mode gives money away, so it listens on a loopback address only')
      .default('127.0.0.1'),
  });

const remote = (operationIds: readonly string[]) =>
  common(operationIds).extend({
    NETWORK: z.enum(['base-sepolia', 'base']),
    SIGNING_KEY: signingKey,
    PAY_TO: field(
      readPayTo,
      'must be the address that is paid, with its EIP-55 checksum; not that of the token, and not zero',
    ),
    PUBLIC_URL: field(
      readPublicUrl,
      'must be the https origin of this service, without path, port or IP address (or http on loopback)',
    ),
    STORE_SECRET: field(readSecret(STORE_SECRET_BYTES), 'must be 64 hex digits, kept secret and never changed'),
    /** API keys are in use where it is set. */
    KEY_PEPPER: field(readSecret(PEPPER_BYTES), 'must be 64 hex digits, kept secret and never changed').optional(),
    /** A file of earlier DID documents; see retired-keys.ts. */
    RETIRED_KEYS: z.string().optional(),
    RPC_URL: serviceUrl,
    /** As wallets count: 1 is the newest block. */
    CONFIRMATIONS: integer(1, 1_000).default(2),
    /** In the order in which they are asked. */
    FACILITATOR_URL: field(
      listOf(readServiceUrl),
      'must be an https URL, or http on loopback; or several different ones, with commas between them',
    ).optional(),
    FACILITATOR_HEADERS: field(
      jsonOf(z.union([headers, z.record(z.string(), headers)])),
      'must be JSON like {"Authorization":"Bearer ..."}, or with several URLs {"https://...":{"Authorization":"Bearer ..."}}',
    ).default({}),
    /** Which are asked first, those of FACILITATOR_URL or that of FACILITATOR_PRIVATE_KEY; one that is not named is not asked. */
    FACILITATORS: field(listOf(readFacilitatorKind), 'must be url, self, or both with a comma between them').optional(),
    FACILITATOR_TIMEOUT_MS: integer(100, 120_000).default(15_000),
    FACILITATOR_PRIVATE_KEY: field(readPrivateKey, 'must be 64 hex digits').optional(),
    /** Path of the ledger; one PAY_TO belongs to one ledger. */
    DATABASE_URL: field(readDatabaseUrl, 'must be file: and a path').optional(),
  });

export type LocalSettings = z.infer<ReturnType<typeof local>>;
/** One that is asked, over HTTP or in this process. */
export type FacilitatorSetting =
  | { readonly kind: 'url'; readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'self'; readonly privateKey: Hex };

type GivenRemote = z.infer<ReturnType<typeof remote>>;
type FacilitatorNames = 'FACILITATOR_URL' | 'FACILITATOR_HEADERS' | 'FACILITATOR_PRIVATE_KEY' | 'FACILITATORS';
export type RemoteSettings = Omit<GivenRemote, 'DATABASE_URL' | FacilitatorNames> & {
  readonly DATABASE_URL: string;
  /** At least one, in the order in which they are asked. */
  readonly FACILITATORS: readonly FacilitatorSetting[];
};
export type Settings = LocalSettings | RemoteSettings;

/** Everything that is wrong with the settings, one line each. */
export class SettingsError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(`The settings are not usable:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** An empty variable means the same as an absent one, as shells and compose files leave them. */
const withoutEmpty = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));

/**
 * @param operationIds the operations that PRICES may name.
 * @throws SettingsError
 */
export function parseSettings(env: Environment, operationIds: readonly string[]): Settings {
  const given = withoutEmpty(env);
  return given['NETWORK'] === 'base' || given['NETWORK'] === 'base-sepolia'
    ? parseRemote(given, operationIds)
    : take(local(operationIds).safeParse(given));
}

/** What the command `keys` needs of the service's environment. */
const keyring = z.object({
  NETWORK: z.enum(
    ['base-sepolia', 'base'],
    'must be base-sepolia or base; in local mode keys end with the service, and POST /local/keys makes one',
  ),
  ...remote([]).pick({ DATA_DIR: true, STORE_SECRET: true, DATABASE_URL: true }).shape,
  KEY_PEPPER: remote([]).shape.KEY_PEPPER.unwrap(),
});

export type KeyringSettings = Omit<z.infer<typeof keyring>, 'DATABASE_URL'> & { DATABASE_URL: string };

/** @throws SettingsError */
export function parseKeyringSettings(env: Environment): KeyringSettings {
  return withDatabase(take(keyring.safeParse(withoutEmpty(env))));
}

const TOKEN_MIN_CHARS = 32;

const facilitator = z.object({
  NETWORK: z.enum(['base-sepolia', 'base'], 'must be base-sepolia or base'),
  /** Port 4022 unless it is set; 0 is any free one. */
  PORT: integer(0, 65_535).default(4_022),
  HOST: z.string().default('127.0.0.1'),
  RPC_URL: serviceUrl,
  FACILITATOR_PRIVATE_KEY: field(readPrivateKey, 'must be 64 hex digits, of an account with ETH for gas'),
  FACILITATOR_TOKEN: field(
    (text) => (text.length >= TOKEN_MIN_CHARS ? text : undefined),
    `must have at least ${TOKEN_MIN_CHARS} characters; sellers send it as Bearer token`,
  ),
  /** Sellers' payments go to these addresses only. */
  FACILITATOR_PAY_TO: field(listOf(readPayTo), 'must be addresses with their EIP-55 checksum, separated by commas'),
  LOG_LEVEL: z.enum(['silent', 'error', 'info'], 'must be silent, error or info').default('info'),
});

export type FacilitatorSettings = z.infer<typeof facilitator>;

/** @throws SettingsError */
export function parseFacilitatorSettings(env: Environment): FacilitatorSettings {
  return take(facilitator.safeParse(withoutEmpty(env)));
}

function parseRemote(given: Environment, operationIds: readonly string[]): RemoteSettings {
  const parsed = remote(operationIds).safeParse(given);
  const { FACILITATOR_URL: url, FACILITATOR_PRIVATE_KEY: key, FACILITATOR_HEADERS: headersGiven } = given;
  const faults: string[] = [];
  if (!url && !key) faults.push('FACILITATOR_URL: is required, or FACILITATOR_PRIVATE_KEY for one of your own');
  if (headersGiven && !url) faults.push('FACILITATOR_HEADERS: are for FACILITATOR_URL only');
  if (parsed.success) faults.push(...contradictions(parsed.data));
  const settings = withDatabase(take(parsed, faults));
  return { ...settings, FACILITATORS: facilitatorsOf(settings) };
}

/** What each of the facilitators' settings allows, and all of them together do not. */
function contradictions(settings: GivenRemote): string[] {
  const { FACILITATOR_URL: urls = [], FACILITATOR_HEADERS: given, FACILITATOR_PRIVATE_KEY: key } = settings;
  const { FACILITATORS: order = [] } = settings;
  const faults: string[] = [];
  if (order.includes('url') && urls.length === 0)
    faults.push('FACILITATORS: names url, and FACILITATOR_URL is not set');
  if (order.includes('self') && !key) faults.push('FACILITATORS: names self, and FACILITATOR_PRIVATE_KEY is not set');
  // What is a secret for one of them must not be told to another.
  const named = Object.keys(given);
  const misdirected = isByUrl(given) ? named.some((name) => !urls.includes(name)) : named.length > 0 && urls.length > 1;
  if (urls.length > 0 && misdirected) {
    faults.push('FACILITATOR_HEADERS: must say for which one of FACILITATOR_URL they are, {"https://...":{...}}');
  }
  return faults;
}

type Headers = z.infer<typeof headers>;
const isByUrl = (given: Headers | Record<string, Headers>): given is Record<string, Headers> =>
  Object.values(given).some((value) => typeof value === 'object');

function facilitatorsOf(settings: GivenRemote): readonly FacilitatorSetting[] {
  const { FACILITATOR_URL: urls = [], FACILITATOR_HEADERS: given, FACILITATOR_PRIVATE_KEY: privateKey } = settings;
  const remotes = urls.map(
    (url) => ({ kind: 'url', url, headers: (isByUrl(given) ? given[url] : given) ?? {} }) as const,
  );
  const own = privateKey === undefined ? [] : [{ kind: 'self', privateKey } as const];
  const { FACILITATORS: order = ['url', 'self'] } = settings;
  return order.flatMap<FacilitatorSetting>((kind) => (kind === 'url' ? remotes : own));
}

const withDatabase = <T extends { DATA_DIR: string; DATABASE_URL?: string | undefined }>(settings: T) => ({
  ...settings,
  DATABASE_URL: settings.DATABASE_URL ?? join(settings.DATA_DIR, 'ledger.db'),
});

function take<T>(parsed: z.ZodSafeParseResult<T>, faults: readonly string[] = []): T {
  if (parsed.success && faults.length === 0) return parsed.data;
  const issues = parsed.error?.issues ?? [];
  throw new SettingsError([
    ...issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`),
    ...faults,
  ]);
}
