/** The command `keys` by its words; beside a service that runs it is tried in test/faults/keys.test.ts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { keysCommand } from './keys-command.ts';
import { SettingsError } from './env.ts';

const folder = mkdtempSync(join(tmpdir(), 'context-evidence-kit-keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

const NOW = new Date('2026-12-01T10:00:00Z');
let runs = 0;
let env: Record<string, string> = {};
beforeEach(() => {
  env = {
    NETWORK: 'base',
    STORE_SECRET: '09'.repeat(32),
    KEY_PEPPER: '0b'.repeat(32),
    DATABASE_URL: `file:${join(folder, 'new', `${(runs += 1)}.db`)}`,
  };
});
const keys = (...args: string[]): Promise<string> => keysCommand(args, env, NOW);

describe('the command keys', () => {
  it('shows a key once, and lists accounts in a table', async () => {
    const first = await keys('create', '--credits', '1.5usdc', '--name', 'first');
    expect(first).toMatch(
      /^id {7}key_[0-9a-f]{16}\nkey {6}cek_\w{40,44}\ncredits {2}1500000 \(1\.5 USDC\)\n\nThe key is shown this once/,
    );
    expect(await keys('create')).toContain('credits  0 (0 USDC)');
    const table = await keys('list');
    expect(table).not.toContain('cek_');
    expect(table.split('\n').map((line) => line.replace(/key_\w+/, 'ID'))).toEqual([
      'id\tcredits\treserved\tcharged\ttopped_up\tcreated\trevoked\tname',
      'ID\t1500000\t0\t0\t1500000\t2026-12-01\t\tfirst',
      'ID\t0\t0\t0\t0\t2026-12-01\t\t',
      '',
    ]);
  });

  it('tops up and revokes by id', async () => {
    const [, id = ''] = /(key_\w+)/.exec(await keys('create')) ?? [];
    expect(await keys('top-up', id, '7')).toBe(`${id} has 7 (0.000007 USDC)\n`);
    await expect(keys('top-up', id, '9'.repeat(18))).rejects.toThrow('more credits than one can hold');
    expect(await keys('revoke', id)).toBe(`${id} is revoked\n`);
    await expect(keys('revoke', id)).rejects.toThrow('There is no key of this id');
    await expect(keys('top-up', id, '7')).rejects.toThrow('There is no key of this id');
    expect(await keys('list')).toContain('2026-12-01\t2026-12-01');
  });

  it.each([
    [[], 'keys create'],
    [['destroy'], 'keys create'],
    [['list', 'x'], 'keys create'],
    [['list', '--name', 'x'], 'keys create'],
    [['revoke'], 'keys create'],
    [['create', '--credits', '1.5'], 'atomic USDC units'],
    [['create', '--credits=-1'], 'atomic USDC units'],
    [['create', '--name', 'a\tb'], '1 to 64 characters'],
    [['create', '--name', ''], '1 to 64 characters'],
    [['create', '--colour', 'red'], '--colour'],
    [['top-up', 'key_0', 'all'], 'atomic USDC units'],
    [['top-up', 'key_0', '1'], 'There is no key of this id'],
  ])('%j is refused in words', async (args, words) => {
    await expect(keys(...args)).rejects.toThrow(words);
  });

  it('says what it needs, and knows the secrets that the keys were made under', async () => {
    await keys('create');
    const good = env;
    const faultsOf = async (changed: Record<string, string>): Promise<readonly string[]> => {
      env = changed;
      const error = await keys('list').then(
        () => undefined,
        (caught: unknown) => caught,
      );
      if (!(error instanceof SettingsError)) throw error;
      return error.faults.map((fault) => fault.split(':')[0] ?? '');
    };
    expect(await faultsOf({})).toEqual(['NETWORK', 'STORE_SECRET', 'KEY_PEPPER']);
    env = {};
    await expect(keys('list')).rejects.toThrow('POST /local/keys');
    expect(await faultsOf({ ...good, KEY_PEPPER: '' })).toEqual(['KEY_PEPPER']);
    expect(await faultsOf({ ...good, KEY_PEPPER: '0b'.repeat(31) })).toEqual(['KEY_PEPPER']);
    env = { ...good, KEY_PEPPER: '0c'.repeat(32) };
    await expect(keys('list')).rejects.toThrow('KEY_PEPPER: the API keys in the ledger were made under another one');
    env = { ...good, STORE_SECRET: '0c'.repeat(32) };
    await expect(keys('list')).rejects.toThrow('STORE_SECRET');
  });
});
