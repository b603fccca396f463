/** The README's first command, without the install. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('the demo pays, verifies, catches a forgery and exits 0, whatever the environment says', async () => {
  const demo = join(import.meta.dirname, '../../dist/examples/demo.js');
  const env = { ...process.env, NETWORK: 'base', PORT: '1', HOST: '0.0.0.0', PRICES: 'x' };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [demo], { env });
  expect(stdout).toContain('All of it held.');
  expect(stdout).toMatch(/payer {3}10 -> 9\.995 USDC/);
  expect(stderr).toBe('');
  expect((await readdir(tmpdir())).filter((name) => name.startsWith('context-evidence-kit-demo'))).toEqual([]);
});
