/**
 * A service in remote mode that is killed (-9) at random points of paid calls and started again, until every call has its answer. PAYMENT_CALLS
 * says how many there are; each way to settle takes half of them, and they go round all operations.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { operations } from '../../src/operations/list.ts';
import { operationPath } from '../../src/surfaces/links.ts';
import { balanceOf } from '../service.ts';
import { startFacilitator, type Facilitator } from './facilitator.ts';
import { newCallOf, remoteFolder, type Answer, type PaidCall, type RemoteFolder } from './remote.ts';

const CLI = join(import.meta.dirname, '../../dist/src/runtime/cli.js');
const CALLS = Number(process.env['PAYMENT_CALLS'] ?? 20);
/** How many calls are on their way when it is killed. */
const AT_ONCE = 2;
/** A call takes less than this here, so that a kill falls anywhere into it, or behind it. */
const CALL_MS = 120;

let chain: LocalChain;
let facilitator: Facilitator;
let child: ChildProcess | undefined;
beforeAll(async () => {
  chain = await startLocalChain();
  facilitator = await startFacilitator(chain);
  facilitator.jitterMs = 20;
});
afterAll(async () => {
  if (child) await kill(child);
  await facilitator.stop();
  await chain.stop();
});

async function start(env: Record<string, string>): Promise<string> {
  const { PATH } = process.env;
  const started = spawn(process.execPath, [CLI, 'start'], { env: { PATH, ...env } });
  child = started;
  let output = '';
  for (const stream of [started.stdout, started.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await vi.waitFor(() => expect(output).toContain('Ctrl-C'), { timeout: 20_000, interval: 10 });
  const [, url = ''] = /listening\s+([^\s,]+)/.exec(output) ?? [];
  return url;
}

/** One call of an operation, with a body that no other one has. */
interface Sold extends PaidCall {
  readonly path: string;
  readonly price: bigint;
}

async function newCall(url: string, n: number): Promise<Sold> {
  const operation = operations[n % operations.length];
  if (!operation) throw new Error('there is no operation');
  const { id, example } = operation;
  const path = operationPath(operation);
  const price = BigInt(operation.price);
  const { messages } = example as { messages: unknown[] };
  const last = { role: 'user', timestamp: n, content: [{ type: 'text', text: `This is call ${n}.` }] };
  const own = id === 'conversation-prune' ? { targetTokens: 1_000 + n } : { messages: [...messages, last] };
  const body = { ...(example as object), ...own };
  return { ...(await newCallOf(chain, url + path, { body, price })), path, price };
}

async function kill(victim: ChildProcess): Promise<void> {
  if (victim.exitCode !== null || victim.signalCode !== null) return;
  victim.kill('SIGKILL');
  await once(victim, 'exit');
}

describe.each(['FACILITATOR_URL', 'FACILITATOR_PRIVATE_KEY'])('killed again and again, with %s', (setting) => {
  let folder: RemoteFolder;
  beforeAll(async () => {
    folder = await remoteFolder(chain);
  });
  afterAll(() => folder.remove());

  it(
    'charges each request that was answered once, and answers it with the same bytes for ever',
    async () => {
      const env = folder.env({
        [setting]: setting === 'FACILITATOR_URL' ? facilitator.url : chain.facilitatorKey,
      });
      const before = await balanceOf(chain, chain.payTo);
      const answers = new Map<Sold, Answer>();
      const codes: string[] = [];
      const calls: Sold[] = [];
      /** In which state a kill has left the rows. */
      const found: string[] = [];
      let kills = 0;
      let url = await start(env);
      for (let n = 0; n < CALLS / 2; n += AT_ONCE) {
        const some = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => newCall(url, n + index)));
        calls.push(...some);
        let open = some;
        // The first copy of each is cut off somewhere, and sometimes the second too.
        for (let attempt = 0; open.length > 0; attempt += 1) {
          const sent = open.map(async (call) => {
            const answer = await call.send(url + call.path).catch(() => undefined);
            if (answer) codes.push(`${answer.status} ${answer.code}`);
            if (answer?.status === 200) answers.set(call, answer);
          });
          if (attempt < 2 && child) {
            await delay(Math.random() * CALL_MS * (attempt + 1));
            await kill(child);
            kills += 1;
            const states = folder.states();
            found.push(...open.map(({ nonce }) => states.get(nonce) ?? 'no row'));
            url = await start(env);
          }
          await Promise.all(sent);
          open = open.filter((call) => !answers.has(call));
          if (attempt > 10) throw new Error(`no answer: ${codes.slice(-AT_ONCE).join()}`);
        }
      }

      for (const call of calls) expect(await call.send(url + call.path)).toEqual(answers.get(call));
      expect(answers.size).toBe(calls.length);
      expect(await Promise.all(calls.map((call) => call.charges()))).toEqual(calls.map(() => 1));
      expect((await balanceOf(chain, chain.payTo)) - before).toBe(calls.reduce((sum, { price }) => sum + price, 0n));
      expect([...folder.states().values()]).toEqual(calls.map(() => 'settled'));
      // Never "pay again", and nothing that a caller could not wait out.
      expect(codes.filter((code) => !/^(200 answer|503 settlement_unknown)$/.test(code))).toEqual([]);
      const sold = show(calls.map(({ path }) => path));
      const text = `${calls.length} calls (${sold}), ${kills} kills; found ${show(found)}; answered ${show(codes)}`;
      console.log(`${setting}: ${text}`);
      if (child) await kill(child);
    },
    60_000 + CALLS * 3_000,
  );
});

const show = (names: readonly string[]): string =>
  [...new Set(names)].map((name) => `${name} ${names.filter((each) => each === name).length}`).join(', ');
