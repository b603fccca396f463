/**
 * API keys: what one looks like, how it is known again, and how it is made. A key is shown once, when it is made; what is kept is an HMAC
 * of it, so neither the database alone nor the pepper alone tells whether a key is good.
 */
import { formatUnits } from 'viem';
import { PRICE_DECIMALS } from '../operation.ts';
import { toHex } from '../provenance/canonical.ts';
import { encodeBase58 } from '../provenance/multikey.ts';
import type { Accounts } from './accounts.ts';

/** Where keys are in use: the accounts, and how a key finds its own. */
export interface ApiKeys {
  readonly accounts: Accounts;
  readonly macOf: KeyMac;
}

/** HMAC-SHA-256 under the pepper, hex. Looking it up leaks no time about the key: one wrong bit gives another HMAC altogether. */
export type KeyMac = (key: string) => Promise<string>;

export const PEPPER_BYTES = 32;

export async function createKeyMac(pepper: Uint8Array<ArrayBuffer>): Promise<KeyMac> {
  const hmac = await crypto.subtle.importKey('raw', pepper, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return async (key) => toHex(new Uint8Array(await crypto.subtle.sign('HMAC', hmac, new TextEncoder().encode(key))));
}

/** Stands for the pepper in the store; it is no key's HMAC, for keys have a prefix. */
export const pepperMac = (macOf: KeyMac): Promise<string> => macOf('pepper');

/** So that a key is found where it should not be: in logs, in repositories. */
const KEY_PREFIX = 'cek_';
const KEY_BYTES = 32;
const ID_PREFIX = 'key_';
const ID_BYTES = 8;

export interface IssuedKey {
  readonly id: string;
  /** Secret, and kept nowhere. */
  readonly key: string;
}

export interface KeyOrder {
  readonly credits: bigint;
  readonly name?: string;
  readonly now: Date;
}

/** Makes an account with a new key; undefined where the credits are over CREDITS_MAX. */
export async function issueKey({ accounts, macOf }: ApiKeys, order: KeyOrder): Promise<IssuedKey | undefined> {
  const { credits, name, now } = order;
  const key = KEY_PREFIX + encodeBase58(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  const id = ID_PREFIX + toHex(crypto.getRandomValues(new Uint8Array(ID_BYTES)));
  const account = { id, keyMac: await macOf(key), createdAt: now.getTime() / 1_000, credits };
  const made = await accounts.create({ ...account, ...(name !== undefined && { name }) });
  return made ? { id, key } : undefined;
}

const ATOMIC = /^[0-9]{1,18}$/;
const USDC = /^([0-9]{1,12})(?:\.([0-9]{1,6}))? ?usdc$/i;

export const CREDITS_EXPECTED = 'must be atomic USDC units ("1500000"), or USDC with its name ("1.5 USDC")';

/** Atomic units (`1500000`), or USDC where that is said (`1.5 USDC`); undefined where the text is neither, or finer than a unit. */
export function parseCredits(text: string): bigint | undefined {
  if (ATOMIC.test(text)) return BigInt(text);
  const [, whole, fraction = ''] = USDC.exec(text) ?? [];
  return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(PRICE_DECIMALS, '0'));
}

/** Both spellings that `parseCredits` takes. */
export const formatCredits = (credits: bigint): string => `${credits} (${formatUnits(credits, PRICE_DECIMALS)} USDC)`;
