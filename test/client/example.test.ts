/** The example runs as it is shipped, and imports the client as a caller does, by the package's name. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('the example loses two answers, starts anew, pays once and exits 0', async () => {
  const example = join(import.meta.dirname, '../../dist/examples/client.js');
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [example]);
  expect(stdout).toContain('attempt 3: HTTP 200, verified');
  expect(stdout).toContain('signatures: 1; 10 -> 9.995 USDC');
  expect(stdout).toContain('All of it held.');
  expect(stderr).toBe('');
});
