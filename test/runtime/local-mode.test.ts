/** Local mode as a process: how it starts, what it refuses, and that nothing is left when it ends, however it ends. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const CLI = join(import.meta.dirname, '../../dist/src/runtime/cli.js');

let folder: string;
let running: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-cli-'));
});
afterEach(async () => {
  for (const child of running) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  }
  running = [];
  await rm(folder, { recursive: true });
});

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly rpcUrl: string;
  readonly output: () => string;
}

function run(args: string[], env: Record<string, string> = {}): { child: ChildProcess; output: () => string } {
  return runCommand([process.execPath, CLI, ...args], env);
}

function runCommand(
  [command = '', ...args]: string[],
  env: Record<string, string>,
): { child: ChildProcess; output: () => string } {
  const { PATH, HOME } = process.env;
  const child = spawn(command, args, {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH, HOME, TMPDIR: folder, DATA_DIR: join(folder, 'data'), ...env },
  });
  running.push(child);
  let output = '';
  const collect = (chunk: Buffer): string => (output += chunk.toString());
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  return { child, output: () => output };
}

async function start(env: Record<string, string> = {}, command = [process.execPath, CLI, 'start']): Promise<Started> {
  const { child, output } = runCommand(command, env);
  await vi.waitFor(() => expect(output()).toContain('Ctrl-C'), { timeout: 20_000, interval: 20 });
  const [, url = ''] = /listening\s+(\S+)/.exec(output()) ?? [];
  const [, rpcUrl = ''] = /chain\s+(\S+)/.exec(output()) ?? [];
  return { child, url, rpcUrl, output };
}

async function exitOf(child: ChildProcess): Promise<number | string | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode ?? child.signalCode;
}

const answers = (url: string): Promise<boolean> =>
  fetch(url, { method: 'POST' }).then(
    () => true,
    () => false,
  );

describe('the end', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)('%s leaves no chain and no folder', async (signal) => {
    const { child, url, rpcUrl } = await start({ PORT: '0' });
    expect([await answers(url), await answers(rpcUrl)]).toEqual([true, true]);
    child.kill(signal);
    expect(await exitOf(child)).toBe(signal === 'SIGKILL' ? signal : 0);
    await vi.waitFor(
      async () => {
        expect(await answers(rpcUrl)).toBe(false);
        expect(await readdir(folder)).toEqual(['data']);
      },
      { timeout: 5_000 },
    );
    expect(await readdir(join(folder, 'data'))).toEqual(['signing-key']);
  });

  it('of the shell that npm runs the start script in leaves none either', async () => {
    // npm passes signals on to that shell only. The build is left out: other tests are running what it writes.
    const script = manifest.scripts.start.replace(/^tsc \S+ \S+/, 'true');
    const { child, url, rpcUrl } = await start({ PORT: '0' }, ['sh', '-c', script]);
    child.kill('SIGTERM');
    await exitOf(child);
    await vi.waitFor(async () => expect([await answers(url), await answers(rpcUrl)]).toEqual([false, false]), {
      timeout: 5_000,
    });
  });

  it('waits for a call that was begun, and answers it', async () => {
    const { child, url } = await start({ PORT: '0' });
    const { hostname, port } = new URL(url);
    const request = httpRequest({
      hostname,
      port,
      path: '/api/v1/conversation-prune',
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Expect: '100-continue', 'Transfer-Encoding': 'chunked' },
    });
    const status = new Promise<number | undefined>((resolve, reject) => {
      request.on('response', (response) => resolve(response.resume().statusCode));
      request.on('error', reject);
    });
    request.flushHeaders();
    await once(request, 'continue');
    // npm passes on a signal that the terminal has delivered already: twice is still once.
    child.kill('SIGTERM');
    child.kill('SIGTERM');
    await vi.waitFor(async () => expect(await answers(url)).toBe(false), { timeout: 5_000, interval: 20 });
    request.end('{}');
    expect(await status).toBe(402);
    expect(await exitOf(child)).toBe(0);
  });

  it('of the chain ends the service, with an error', async () => {
    const { child, rpcUrl, output } = await start({ PORT: '0' });
    const listing = spawn('sh', ['-c', `ps -eo pid,args | grep "[a]nvil.*--port" | awk '{print $1}'`]);
    let pids = '';
    listing.stdout.on('data', (chunk: Buffer) => (pids += chunk.toString()));
    await once(listing, 'close');
    // Of all chains on this machine, the one that is a grandchild of our own process.
    for (const pid of pids.split('\n').filter(Boolean)) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      const parent = /PPid:\s+(\d+)/.exec(status)?.[1] ?? '';
      const grandparent = /PPid:\s+(\d+)/.exec(await readFile(`/proc/${parent}/status`, 'utf8').catch(() => ''))?.[1];
      if (grandparent === String(child.pid)) process.kill(Number(pid), 'SIGKILL');
    }
    expect(await exitOf(child)).toBe(1);
    expect(output()).toContain('practice chain ended');
    expect(await answers(rpcUrl)).toBe(false);
  });
});

describe('the start', () => {
  it('keeps its key, readable by the owner only, and its DID over restarts', async () => {
    const didOf = async (url: string): Promise<unknown> =>
      ((await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }).id;
    const first = await start({ PORT: '0' });
    const did = await didOf(first.url);
    expect(did).toMatch(/^did:key:z6Mk/);
    first.child.kill('SIGTERM');
    await exitOf(first.child);
    expect((await stat(join(folder, 'data', 'signing-key'))).mode & 0o777).toBe(0o600);
    const second = await start({ PORT: '0' });
    expect(await didOf(second.url)).toBe(did);
    expect(second.output()).toContain(String(did));
    expect(second.output()).not.toContain((await readFile(join(folder, 'data', 'signing-key'), 'utf8')).trim());
  });

  it('takes a free port where PORT is unset and 4021 is busy, so that two run beside each other', async () => {
    const first = await start();
    const second = await start({ DATA_DIR: join(folder, 'data') });
    expect(first.url).not.toBe(second.url);
    expect(await answers(first.url)).toBe(true);
    expect(await answers(second.url)).toBe(true);
  });

  it('fails where PORT is given and busy', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
    const { port } = blocker.address() as { port: number };
    const { child, output } = run(['start'], { PORT: String(port) });
    expect(await exitOf(child)).toBe(1);
    expect(output()).toContain(`PORT: ${port} is taken`);
    blocker.close();
  });

  it.each<[Record<string, string>, string[]]>([
    [{ NETWORK: 'base' }, ['PAY_TO: is required', 'STORE_SECRET: is required', 'FACILITATOR_URL: is required']],
    [{ NODE_ENV: 'production' }, ['NODE_ENV: production refuses local mode']],
    [{ HOST: '0.0.0.0' }, ['HOST: local mode']],
    [
      { PORT: 'x', PRICES: '{"nothing":"1"}', SIGNING_KEY: 'zzzz', LOG_LEVEL: 'loud', HOST: '::' },
      ['PORT:', 'PRICES:', 'SIGNING_KEY:', 'LOG_LEVEL:', 'HOST:'],
    ],
    [{ PRICES: '{"nothing":"1"}' }, ['PRICES: names an operation that does not exist']],
    [
      { CONTEXT_CONFIG: 'zzzz.json', MODEL_CATALOG: 'src' },
      ['CONTEXT_CONFIG: the file cannot be read (ENOENT)', 'MODEL_CATALOG: the file cannot be read (not a file)'],
    ],
    [{ PRICES: '{"conversation-prune":0.005}' }, ['PRICES: must be JSON like']],
  ])('refuses %j and lists all that is wrong', async (env, faults) => {
    const { child, output } = run(['start'], env);
    expect(await exitOf(child)).toBe(1);
    for (const fault of faults) expect(output()).toContain(fault);
    expect(output()).not.toContain('    at ');
    expect(output()).not.toContain('zzzz');
  });

  it('takes another price and another key from the environment', async () => {
    const keygen = run(['keygen']);
    expect(await exitOf(keygen.child)).toBe(0);
    const [, hex = '', multibase = '', did = ''] =
      /^SIGNING_KEY=([0-9a-f]{64})\nor SIGNING_KEY=(z3u2\S+)\nIts DID in local mode: (did:key:\S+)\n$/.exec(
        keygen.output(),
      ) ?? [];
    const dids = [];
    for (const SIGNING_KEY of [hex, multibase]) {
      const { child, url, output } = await start({ PORT: '0', SIGNING_KEY, PRICES: '{"conversation-prune":"7000"}' });
      const challenge = (await (await fetch(`${url}/api/v1/conversation-prune`, { method: 'POST' })).json()) as {
        accepts: { maxAmountRequired: string }[];
      };
      expect(challenge.accepts[0]?.maxAmountRequired).toBe('7000');
      dids.push(/issuer\s+(\S+)/.exec(output())?.[1]);
      child.kill('SIGTERM');
      await exitOf(child);
    }
    expect(dids).toEqual([did, did]);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('the command line', () => {
  it.each<[string[], number, string]>([
    [[], 0, 'start'],
    [['--help'], 0, 'keygen'],
    [['--version'], 0, '0.'],
    [['nonsense'], 1, 'There is no command of that name'],
  ])('%j', async (args, code, text) => {
    const { child, output } = run(args);
    expect(await exitOf(child)).toBe(code);
    expect(output()).toContain(text);
  });
});
