/** `npm run bench [-- name]`: medians, and ratios to a named limit or peer measured in the same run. */
import { benchCall } from './call.ts';
import { benchFidelity } from './fidelity.ts';
import { benchEngines } from './engines.ts';
import { benchTokenizer } from './tokenizer.ts';

const benches: Readonly<Record<string, () => Promise<void>>> = {
  call: benchCall,
  fidelity: benchFidelity,
  engines: benchEngines,
  tokenizer: benchTokenizer,
};

const wanted = process.argv.slice(2);
for (const name of wanted.length > 0 ? wanted : Object.keys(benches)) {
  const bench = benches[name];
  if (!bench) throw new Error(`there is no bench ${name}; there are: ${Object.keys(benches).join(', ')}`);
  process.stdout.write(`\n${name}\n`);
  await bench();
}
