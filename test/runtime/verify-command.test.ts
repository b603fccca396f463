/** The command that an auditor runs: saved answers of a real service, checked by the built CLI in a process that has no network. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operations } from '../../src/operations/list.ts';
import { EXAMPLE, newKey, postJson, startTestService, type TestService } from '../service.ts';

const CLI = join(import.meta.dirname, '../../dist/src/runtime/cli.js');
/** Whoever opens a socket or asks for a name ends the process. */
const UNPLUGGED = `const refuse = () => { process.stderr.write('network'); process.exit(99); };
const net = require('node:net'); const dns = require('node:dns');
net.Socket.prototype.connect = refuse; dns.lookup = refuse; globalThis.fetch = refuse;`;

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let folder: string;
let service: TestService;
const fileOf = (name: string): string => join(folder, name);
const save = async (name: string, value: unknown): Promise<string> => {
  await writeFile(fileOf(name), typeof value === 'string' ? value : JSON.stringify(value));
  return fileOf(name);
};

function verify(args: readonly string[], input = ''): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--require', fileOf('unplugged.cjs'), CLI, 'verify', ...args]);
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    child.on('close', (code) =>
      resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }),
    );
    child.stdin.end(input);
  });
}

interface Answer {
  readonly data: Record<string, unknown>;
  readonly _provenance: { readonly credential: Record<string, unknown> };
}

let answers: Map<string, string>;
let document: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-verify-'));
  await save('unplugged.cjs', UNPLUGGED);
  service = await startTestService();
  const key = await newKey(service, 1_000_000n);
  answers = new Map();
  for (const { id, example } of operations) {
    const response = await postJson(`${service.url}/api/v1/${id}`, example, { 'X-API-KEY': key });
    answers.set(id, await response.text());
    await save(`${id}.input.json`, example);
  }
  document = await save('did.json', await (await fetch(`${service.url}/.well-known/did.json`)).text());
  // What follows needs no service.
  await service.close();
});
afterAll(() => rm(folder, { recursive: true }));

const answerOf = (id: string): Answer => JSON.parse(answers.get(id) ?? '') as Answer;

describe('an answer that was saved', () => {
  it.each(operations.map(({ id }) => id))('of %s is verified, and computed again from its request', async (id) => {
    const file = await save(`${id}.json`, answers.get(id));
    const plain = await verify([file, '--issuer', service.did]);
    expect([plain.code, plain.stderr]).toEqual([0, '']);
    expect(plain.stdout).toMatch(/✓ signature {3,}.*\n✓ issuer/);
    expect(plain.stdout).toContain(`\nverified: ${id} `);
    expect(plain.stdout).toContain('practice money');
    const again = await verify([file, '--did', document, '--input', fileOf(`${id}.input.json`)]);
    expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/✓ rerun +Computed again/)]);
  });

  it('is verified from standard input, and told as JSON', async () => {
    const { code, stdout } = await verify(['-', '--issuer', service.did, '--json'], answers.get('count'));
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { outcome: 'verified', issuer: service.did, about: { operation: 'count', environment: 'local' } },
    ]);
  });

  it('is unverifiable where nobody, or another issuer, is named', async () => {
    const file = await save('own.json', answers.get('count'));
    const other = await startTestService();
    await other.close();
    for (const named of [[], ['--issuer', other.did]]) {
      const { code, stdout } = await verify([file, ...named]);
      expect(code).toBe(2);
      expect(stdout).toMatch(/✓ signature[^]*· issuer .*who did:key:\S+ is was not checked[^]*\nunverifiable\n$/);
    }
  });
});

describe('an answer that was tampered with', () => {
  it.each<[string, (answer: Answer) => unknown, RegExp]>([
    ['its data', (answer) => ({ ...answer, data: { ...answer.data, tokens: 1 } }), /✗ data_digest/],
    [
      'its credential',
      ({ data, _provenance: { credential, ...rest } }) => ({
        data,
        _provenance: { ...rest, credential: { ...credential, validFrom: '2020-01-01T00:00:00Z' } },
      }),
      /✗ signature/,
    ],
    ['something beside it', (answer) => ({ ...answer, note: 'trust me' }), /✗ profile/],
    [
      'a name twice',
      (answer) => JSON.stringify(answer).replace('{', '{"data":{},'),
      /✗ the answer cannot be read: .*data/,
    ],
    ['its end', (answer) => JSON.stringify(answer).slice(0, -1), /✗ the answer cannot be read/],
    ['no answer at all', () => EXAMPLE, /✗ the answer cannot be read/],
  ])('in %s is contradicted', async (_, change, said) => {
    const file = await save('tampered.json', change(answerOf('count')));
    const { code, stdout } = await verify([file, '--issuer', service.did]);
    expect([code, stdout]).toEqual([1, expect.stringMatching(said)]);
    expect(stdout.trimEnd()).toMatch(/contradicted$/);
  });

  it('is contradicted by another request, and not computed again', async () => {
    const { code, stdout } = await verify([
      await save('count.json', answers.get('count')),
      '--issuer',
      service.did,
      '--input',
      fileOf('prune.input.json'),
    ]);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/✗ input_digest[^]*· rerun/)]);
  });
});

describe('words that it cannot do anything with', () => {
  it.each([
    [[]],
    [['a.json', 'b.json']],
    [['/nowhere/answer.json']],
    [['-', '--issuer', 'did:web:a.example']],
    [['-', '--issuer', 'did:key:zzz']],
    [['-', '--did', '/dev/null']],
    [['-', '--loud']],
  ])('%j end with 64 and the usage', async (args) => {
    const { code, stdout } = await verify(args, answers.get('count'));
    expect([code, stdout]).toEqual([64, expect.stringContaining('Ends with 0: verified')]);
  });
});
