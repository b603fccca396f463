/**
 * API keys in remote mode, as processes: the command beside a service that runs, a service that is killed (-9) in the middle of keyed calls,
 * and that neither its output nor its files hold a key.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import Database from 'libsql';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { EXAMPLE, postJson, PRICE } from '../service.ts';
import { answerOf, remoteFolder, type Answer, type RemoteFolder } from './remote.ts';

const CLI = join(import.meta.dirname, '../../dist/src/runtime/cli.js');
const { PATH } = process.env;

let chain: LocalChain;
let folder: RemoteFolder;
let env: Record<string, string>;
let services: ChildProcess[] = [];
let output = '';
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(() => chain.stop());
beforeEach(async () => {
  folder = await remoteFolder(chain);
  env = folder.env({
    FACILITATOR_PRIVATE_KEY: chain.facilitatorKey,
    KEY_PEPPER: '0b'.repeat(32),
    LOG_LEVEL: 'info',
  });
  output = '';
});
afterEach(async () => {
  for (const service of services) await kill(service);
  services = [];
  await folder.remove();
});

async function start(more: Record<string, string> = {}): Promise<{ service: ChildProcess; endpoint: string }> {
  const service = spawn(process.execPath, [CLI, 'start'], { env: { PATH, ...env, ...more } });
  services.push(service);
  let own = '';
  for (const stream of [service.stdout, service.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      own += chunk.toString();
      output += chunk.toString();
    });
  }
  await vi.waitFor(() => expect(own).toContain('Ctrl-C'), { timeout: 20_000, interval: 10 });
  const [, url = ''] = /listening\s+([^\s,]+)/.exec(own) ?? [];
  return { service, endpoint: `${url}/api/v1/conversation-prune` };
}

async function kill(victim: ChildProcess): Promise<void> {
  if (victim.exitCode !== null || victim.signalCode !== null) return;
  victim.kill('SIGKILL');
  await once(victim, 'exit');
}

/** What the command printed; rejects with what it printed on standard error. */
async function keys(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'keys', ...args], { env: { PATH, ...env } });
  return stdout;
}

async function create(credits: bigint, ...more: string[]): Promise<{ id: string; key: string }> {
  const text = await keys('create', '--credits', String(credits), ...more);
  const [, id = '', key = ''] = /id\s+(key_\w+)\nkey\s+(cek_\w+)\n/.exec(text) ?? [];
  expect(key).not.toBe('');
  return { id, key };
}

async function listed(id: string): Promise<Record<string, string>> {
  const [header = '', ...rows] = (await keys('list')).trimEnd().split('\n');
  const row = rows.find((each) => each.startsWith(`${id}\t`)) ?? expect.fail('not listed');
  const cells = row.split('\t');
  return Object.fromEntries(header.split('\t').map((name, column) => [name, cells[column] ?? '']));
}

const call = async (endpoint: string, key: string, more: { name?: string; targetTokens?: number } = {}) => {
  const { name, targetTokens = 1_000 } = more;
  const headers = { 'X-API-KEY': key, ...(name !== undefined && { 'Idempotency-Key': name }) };
  return answerOf(await postJson(endpoint, { ...EXAMPLE, targetTokens }, headers));
};

describe('the command keys', () => {
  it('works before the service has ever run and while it runs, and holds at once', async () => {
    const { id, key } = await create(PRICE, '--name', 'Frau Müller');
    const { endpoint } = await start();
    expect(await call(endpoint, key)).toMatchObject({ status: 200 });
    expect(await call(endpoint, key)).toMatchObject({ status: 402, code: 'credits_spent' });
    expect(await keys('top-up', id, '0.01 USDC')).toBe(`${id} has 10000 (0.01 USDC)\n`);
    expect(await call(endpoint, key)).toMatchObject({ status: 200 });
    expect(await listed(id)).toEqual({
      id,
      credits: String(10_000n - PRICE),
      reserved: '0',
      charged: String(2n * PRICE),
      topped_up: String(10_000n + PRICE),
      created: new Date().toISOString().slice(0, 10),
      revoked: '',
      name: 'Frau Müller',
    });
    expect(await keys('revoke', id)).toBe(`${id} is revoked\n`);
    expect(await call(endpoint, key)).toMatchObject({ status: 401, code: 'invalid_api_key' });
    await expect(keys('top-up', id, '1')).rejects.toThrow('There is no key of this id');
    await expect(keys('revoke', id)).rejects.toThrow('There is no key of this id');
    expect((await listed(id))['revoked']).not.toBe('');
    expect(await keys('list')).not.toContain(key);
  });
});

describe('a service in remote mode', () => {
  it('without KEY_PEPPER says that keys are not in use', async () => {
    const { key } = await create(PRICE);
    const { endpoint } = await start({ KEY_PEPPER: '' });
    const answer = await call(endpoint, key);
    expect(answer).toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect(JSON.parse(answer.text)).toMatchObject({ reason: 'off', charged: false });
  });

  /** How many calls a kill has left in the middle. */
  const cutOff = (): number => {
    const database = new Database(folder.databasePath);
    const rows = database.prepare(`SELECT id FROM keyed_call WHERE state = 'reserved'`).all();
    database.close();
    return rows.length;
  };

  const ROUNDS = 4;
  const AT_ONCE = 10;
  /** So many calls take longer than this here, so that a kill falls anywhere into them. */
  const CALLS_MS = 100;

  it('killed again and again debits each named call once, gives the same bytes for ever, and loses no credit', async () => {
    const total = BigInt(ROUNDS * AT_ONCE);
    const { id, key } = await create((total + 1n) * PRICE);
    const answers = new Map<string, Answer>();
    const codes = new Set<string>();
    const send = async (endpoint: string, name: string): Promise<void> => {
      const answer = await call(endpoint, key, { name, targetTokens: 1_000 + Number(name.split('-')[1]) }).catch(
        () => undefined,
      );
      if (!answer) return;
      codes.add(`${answer.status} ${answer.code}`);
      if (answer.status === 200) answers.set(name, answer);
    };
    let found = 0;
    let { service, endpoint } = await start();
    for (let round = 0; round < ROUNDS; round += 1) {
      let open = Array.from({ length: AT_ONCE }, (_, n) => `secret-${round * AT_ONCE + n}`);
      const all = open;
      for (let attempt = 0; open.length > 0; attempt += 1) {
        expect(attempt).toBeLessThan(5);
        const sent = open.map((name) => send(endpoint, name));
        if (attempt < 2) {
          await delay(Math.random() * CALLS_MS);
          await kill(service);
          found += cutOff();
          ({ service, endpoint } = await start());
        }
        await Promise.all(sent);
        open = all.filter((name) => !answers.has(name));
      }
    }
    expect([...codes]).toEqual(['200 answer']);
    console.log(`killed ${2 * ROUNDS} times, in the middle of ${found} calls`);
    expect(await listed(id)).toMatchObject({ credits: String(PRICE), reserved: '0', charged: String(total * PRICE) });
    // The last credits go, and every stored answer is still there.
    expect(await call(endpoint, key)).toMatchObject({ status: 200 });
    for (const [name, answer] of answers) {
      const targetTokens = 1_000 + Number(name.split('-')[1]);
      expect((await call(endpoint, key, { name, targetTokens })).text).toBe(answer.text);
    }
    expect(await listed(id)).toMatchObject({ credits: '0', charged: String((total + 1n) * PRICE) });

    // Nothing of it is in what the service printed, or in its files while the write-ahead log is open.
    expect(output).toContain('"answered"');
    const files = readdirSync(dirname(folder.databasePath)).map((name) =>
      readFileSync(join(dirname(folder.databasePath), name)),
    );
    expect(files.some((file) => file.includes(id))).toBe(true);
    for (const secret of [key, key.slice(8, 24), 'secret-', EXAMPLE.messages[0]?.content ?? key]) {
      expect(output).not.toContain(secret);
      expect(files.filter((file) => file.includes(secret))).toEqual([]);
    }
  }, 120_000);
});
