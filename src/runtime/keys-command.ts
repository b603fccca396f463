/**
 * The command `keys`: makes, lists, tops up and revokes API keys in the ledger's file, also while the service runs. A key is printed once,
 * when it is made, and cannot be had again.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import type { Account } from '../payment/accounts.ts';
import {
  createKeyMac,
  CREDITS_EXPECTED,
  formatCredits,
  issueKey,
  parseCredits,
  pepperMac,
  type ApiKeys,
} from '../payment/api-keys.ts';
import { createSealer } from '../payment/seal.ts';
import { parseKeyringSettings } from './env.ts';
import { openSqliteLedger } from './store/sqlite-ledger.ts';

export const KEYS_USAGE = `keys create [--credits AMOUNT] [--name TEXT]
keys list
keys top-up ID AMOUNT
keys revoke ID

AMOUNT is in atomic USDC units (1500000), or in USDC with its name ("1.5 USDC").
It needs the NETWORK, STORE_SECRET, KEY_PEPPER and DATABASE_URL or DATA_DIR of the service.
`;

/** One line, and no control characters: it is printed in a table. */
const NAME = /^[\p{L}\p{N}\p{P}\p{S} ]{1,64}$/u;

/**
 * @returns what is to be printed.
 * @throws Error that says what is wrong with the words or the settings, or that no live key has this id.
 */
export async function keysCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  now: Date,
): Promise<string> {
  const run = parseCommand(args);
  const { DATABASE_URL: path, STORE_SECRET, KEY_PEPPER } = parseKeyringSettings(env);
  const [sealer, macOf] = [await createSealer(STORE_SECRET), await createKeyMac(KEY_PEPPER)];
  mkdirSync(dirname(path), { recursive: true });
  const ledger = openSqliteLedger(path, await sealer.mac('store'), await pepperMac(macOf));
  try {
    return await run({ accounts: ledger.accounts, macOf }, now);
  } finally {
    ledger.close();
  }
}

type Command = (keys: ApiKeys, now: Date) => Promise<string>;

function parseCommand(args: readonly string[]): Command {
  const [verb = '', ...rest] = args;
  const { values, positionals } = parseArgs({
    args: rest,
    options: { credits: { type: 'string' }, name: { type: 'string' } },
    allowPositionals: true,
  });
  const [id = '', amount = ''] = positionals;
  if (verb !== 'create' && Object.keys(values).length > 0) throw new Error(KEYS_USAGE);
  switch (`${verb}/${positionals.length}`) {
    case 'create/0':
      return create(creditsOf(values.credits ?? '0'), nameOf(values.name));
    case 'list/0':
      return async ({ accounts }) => table(await accounts.list());
    case 'top-up/2':
      return topUp(id, creditsOf(amount));
    case 'revoke/1':
      return revoke(id);
    default:
      throw new Error(KEYS_USAGE);
  }
}

function creditsOf(text: string): bigint {
  const credits = parseCredits(text);
  if (credits === undefined) throw new Error(`The amount ${CREDITS_EXPECTED}.`);
  return credits;
}

function nameOf(text: string | undefined): { readonly name?: string } {
  if (text === undefined) return {};
  if (!NAME.test(text)) throw new Error('The name must have 1 to 64 characters, none of them invisible.');
  return { name: text };
}

const create =
  (credits: bigint, name: { readonly name?: string }): Command =>
  async (keys, now) => {
    const issued = await issueKey(keys, { credits, now, ...name });
    if (!issued) throw new Error('These are more credits than an account can hold.');
    return `id       ${issued.id}\nkey      ${issued.key}\ncredits  ${formatCredits(credits)}\n
The key is shown this once. Its owner sends it as X-API-KEY.\n`;
  };

const NO_SUCH_KEY = 'There is no key of this id that is not revoked';

const topUp =
  (id: string, credits: bigint): Command =>
  async ({ accounts }) => {
    const balance = await accounts.topUp(id, credits);
    if (balance === undefined) throw new Error(`${NO_SUCH_KEY}, or it would have more credits than one can hold.`);
    return `${id} has ${formatCredits(balance)}\n`;
  };

const revoke =
  (id: string): Command =>
  async ({ accounts }, now) => {
    if (!(await accounts.revoke(id, now.getTime() / 1_000))) throw new Error(`${NO_SUCH_KEY}.`);
    return `${id} is revoked\n`;
  };

/** Amounts in atomic units, as everywhere; columns are parted by tabs, for people and programs alike. */
function table(accounts: readonly Account[]): string {
  const lines = accounts.map(({ id, name = '', balance, reserved, captured, toppedUp, createdAt, revokedAt }) =>
    [id, balance, reserved, captured, toppedUp, day(createdAt), revokedAt ? day(revokedAt) : '', name].join('\t'),
  );
  return `${['id', 'credits', 'reserved', 'charged', 'topped_up', 'created', 'revoked', 'name'].join('\t')}\n${lines.map((line) => `${line}\n`).join('')}`;
}

const day = (seconds: number): string => new Date(seconds * 1_000).toISOString().slice(0, 10);
