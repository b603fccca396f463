/** Medians of repeated runs, and rows that show them beside a base. */

/** Median milliseconds of `runs` runs, after one that is not counted. */
export async function medianMs(run: () => unknown, runs = 11): Promise<number> {
  await run();
  const times: number[] = [];
  for (let index = 0; index < runs; index += 1) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b)[runs >> 1] ?? Number.NaN;
}

/** One line: what, how long, and how it stands to `base`. */
export function row(what: string, ms: number, base?: { name: string; ms: number }): void {
  const ratio = base ? `  ${(ms / base.ms).toFixed(2)} x ${base.name}` : '';
  process.stdout.write(`  ${what.padEnd(46)} ${ms.toFixed(2).padStart(9)} ms${ratio}\n`);
}
