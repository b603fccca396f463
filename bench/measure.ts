/** Medians of repeated runs, and rows that show them beside a base. */

/** The upper one of the two in the middle where there are two; undefined for none. */
export function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

/** Milliseconds that one call takes. */
export function timeMs(run: () => unknown): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}

/** Median milliseconds of `runs` runs, at least one, after one that is not counted. */
export async function medianMs(run: () => unknown, runs = 11): Promise<number> {
  await run();
  const times: number[] = [];
  for (let index = 0; index < runs; index += 1) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return median(times)!;
}

/** One line: what, how long, and how it stands to `base`. */
export function row(what: string, ms: number, base?: { name: string; ms: number }): void {
  const ratio = base ? `  ${(ms / base.ms).toFixed(2)} x ${base.name}` : '';
  process.stdout.write(`  ${what.padEnd(46)} ${ms.toFixed(2).padStart(9)} ms${ratio}\n`);
}

/** A row of a Markdown table. */
export function cells(...values: readonly string[]): void {
  process.stdout.write(`| ${values.join(' | ')} |\n`);
}

/** The first row of a Markdown table of one column of words and others of figures. */
export function head(...titles: readonly string[]): void {
  cells(...titles);
  cells('---', ...titles.slice(1).map(() => '--:'));
}
