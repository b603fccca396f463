/** `npm run bench [-- name]`: medians, and ratios to a named limit or peer measured in the same run. */

/** Each loads what it measures when its turn comes. */
const benches: Readonly<Record<string, () => Promise<void>>> = {
  call: async () => (await import('./call.ts')).benchCall(),
  tokenizer: async () => (await import('./tokenizer.ts')).benchTokenizer(),
  payment: async () => (await import('./payment.ts')).benchPayment(),
  engines: async () => (await import('./engines.ts')).benchEngines(),
  evidence: async () => (await import('./evidence.ts')).benchEvidence(),
  fidelity: async () => (await import('./fidelity.ts')).benchFidelity(),
};

const wanted = process.argv.slice(2);
for (const name of wanted.length > 0 ? wanted : Object.keys(benches)) {
  const bench = benches[name];
  if (!bench) throw new Error(`there is no bench ${name}; there are: ${Object.keys(benches).join(', ')}`);
  process.stdout.write(`\n${name}\n`);
  await bench();
}
