/** Writes every generated file of the repository; with `--check` it changes nothing and fails where one is not current. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { operations } from '../src/operations/list.ts';
import { generatedSamples } from '../src/surfaces/samples.ts';

const files = await generatedSamples(operations);
const check = process.argv.includes('--check');
const stale: string[] = [];
for (const [path, text] of files) {
  const current = await readFile(path, 'utf8').catch(() => undefined);
  if (current === text) continue;
  stale.push(path);
  if (check) continue;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
const verb = check ? 'not current; run npm run generate' : 'written';
process.stdout.write(stale.length === 0 ? 'All generated files are current.\n' : `${verb}:\n  ${stale.join('\n  ')}\n`);
if (check && stale.length > 0) process.exitCode = 1;
