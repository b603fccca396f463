/**
 * Counting in o200k_base against the tokenizers that one could take instead. For every kind of text each has a process of
 * its own, so that none suffers from what another kind left in its caches; who has worked 20 seconds on a kind is stopped.
 */
import { fork } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { COUNTER_NAMES, type CounterName, ENOUGH_MS, type Loaded, type Said } from './counter.ts';
import { cells, head, median } from './measure.ts';
import { ORDINARY, type Source, UNBROKEN } from './texts.ts';

const LIMIT_MS = 20_000;
const PEERS = COUNTER_NAMES.slice(1);

/** Characters in a text, and how many such texts in a round. */
type Size = readonly [length: number, count: number];
const SIZES: readonly Size[] = [
  [1_000, 15],
  [10_000, 5],
  [100_000, 1],
  [400_000, 1],
];
/** To be compared with what was measured elsewhere. */
const UNBROKEN_LENGTH = 96_000;
const UNBROKEN_SIZES = SIZES.map(([length, count]): Size => [length === 100_000 ? UNBROKEN_LENGTH : length, count]);
/** All are measured in turn so often, since the machine is not equally fast all the time. */
const ROUNDS = 5;
/** Counted first and not looked at, for the compiler; the first call of a process has a table of its own. */
const WARM_UP: Size = [1_000, 100];

/** Two lengths, between which the growth is taken, and how often. */
const SHORT = 24_000;
const LONG = 384_000;
const GROWTH_ROUNDS = 7;

/** Milliseconds of each count that came to an end, and how long the one took that was stopped. */
interface Times {
  readonly cold: number[];
  readonly warm: number[];
  readonly tokens: number[];
  stoppedMs?: number;
}

/** One length of one kind of text. */
interface Row {
  readonly kind: string;
  readonly characters: number;
  /** By what power of the length the time of ours grows; the same in all rows of a kind, undefined if it was not measured. */
  readonly growth: number | undefined;
  /** For every round and every counter, ours being the first; a slow peer takes part in the first round only. */
  readonly rounds: readonly (readonly Times[])[];
}

interface Counter extends Loaded {
  count(texts: readonly string[]): Promise<Times>;
  stop(): void;
}

async function startCounter(name: CounterName): Promise<Counter> {
  const child = fork(join(import.meta.dirname, 'counter.js'), [name]);
  const [loaded] = (await once(child, 'message')) as [Loaded];
  let leftMs = LIMIT_MS;
  const stop = () => void child.kill('SIGKILL');

  async function count(texts: readonly string[]): Promise<Times> {
    const times: Times = { cold: [], warm: [], tokens: [] };
    if (leftMs <= 0) return times;
    const start = performance.now();
    let since = start;
    const signal = AbortSignal.timeout(Math.ceil(leftMs));
    child.send(texts);
    try {
      for await (const [said] of on(child, 'message', { signal, close: ['exit'] }) as AsyncIterable<[Said]>) {
        if (said === 'done') return times;
        if ('warmMs' in said) times.warm.push(said.warmMs);
        else {
          times.cold.push(said.coldMs);
          times.tokens.push(said.tokens);
        }
        since = performance.now();
      }
      throw new Error(`${name} ended by itself`);
    } catch (error) {
      if (!signal.aborted) throw error;
      stop();
      // The timer can be a little early.
      leftMs = 0;
      return { ...times, stoppedMs: performance.now() - since };
    } finally {
      leftMs -= performance.now() - start;
    }
  }

  return { ...loaded, count, stop };
}

export async function benchTokenizer(): Promise<void> {
  await benchLoad();
  process.stdout.write('\nHow many times as long as ours, the first time a text is seen / again\n\n');
  head('text', 'characters', 'ours, ms', ...PEERS, 'growth of ours');
  /** What was not measured, and why: sentences. */
  const missing: string[] = [];
  const ordinary = await rowsOf(ORDINARY, SIZES, missing);
  const unbroken = await rowsOf(UNBROKEN, UNBROKEN_SIZES, missing);
  const rows = [...ordinary, ...unbroken];
  const long = unbroken.filter(({ characters }) => characters === UNBROKEN_LENGTH);
  const growths = rows.flatMap(({ growth = [] }) => growth);
  const known = growths.length > 0 ? [`The growth of ours is at most ${Math.max(...growths).toFixed(2)}.`] : [];
  process.stdout.write(`\n${[...known, ...missing].join('\n')}\n\n`);
  head(
    'at least',
    'ordinary text',
    `${UNBROKEN_LENGTH.toLocaleString('en')} without a break`,
    'texts with another count',
  );
  for (const [index, name] of PEERS.entries()) {
    const least = (of: readonly Row[], which: 'cold' | 'warm') =>
      figure(Math.min(...of.map((row) => ratio(row, index + 1, which) ?? Infinity)));
    const same = rows.flatMap(({ rounds }) =>
      rounds.flatMap((times) => times[index + 1]!.tokens.map((tokens, text) => tokens === times[0]!.tokens[text])),
    );
    const differing = same.filter((it) => !it).length;
    cells(
      name,
      `${least(ordinary, 'cold')} / ${least(ordinary, 'warm')}`,
      least(long, 'cold'),
      `${differing} of ${same.length}`,
    );
  }
}

async function rowsOf(kinds: typeof ORDINARY, sizes: typeof SIZES, missing: string[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [kind, open] of Object.entries(kinds)) {
    const source = open();
    const counters = await Promise.all(COUNTER_NAMES.map(startCounter));
    for (const counter of counters) await counter.count(draw(source, WARM_UP));
    const measured: Omit<Row, 'growth'>[] = [];
    for (const size of sizes) {
      const rounds: Times[][] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const texts = draw(source, size);
        const times: Times[] = [];
        for (const [index, counter] of counters.entries()) {
          const slow = rounds[0]?.[index]!.cold.every((ms) => ms > ENOUGH_MS);
          times.push(await counter.count(slow ? [] : texts));
        }
        rounds.push(times);
        if (times[0]!.cold.length === 0) missing.push(notCounted(kind, size[0], `in round ${round + 1} of ${ROUNDS}`));
      }
      measured.push({ kind, characters: size[0], rounds });
    }
    const { growth, uncounted } = await growthOf(counters[0]!, source);
    for (const length of uncounted) missing.push(notCounted(kind, length, 'for the growth'));
    for (const row of measured) {
      rows.push({ ...row, growth });
      show(rows.at(-1)!);
    }
    for (const counter of counters) counter.stop();
  }
  return rows;
}

/** Of neighbours in time, so that both had the same machine; and the lengths that were not counted, each once. */
async function growthOf(
  ours: Counter,
  source: Source,
): Promise<{ growth: number | undefined; uncounted: Set<number> }> {
  const growths: number[] = [];
  const uncounted = new Set<number>();
  /** Alone, so that no other text of the same message uses its time up. */
  const countOne = async (length: number): Promise<number | undefined> => {
    const [ms] = (await ours.count([source(length)])).cold;
    if (ms === undefined) uncounted.add(length);
    return ms;
  };
  for (let round = 0; round < GROWTH_ROUNDS; round++) {
    const [before, long, after] = [await countOne(SHORT), await countOne(LONG), await countOne(SHORT)];
    if (before === undefined || long === undefined || after === undefined) break;
    growths.push(Math.log((2 * long) / (before + after)) / Math.log(LONG / SHORT));
  }
  return { growth: median(growths), uncounted };
}

const notCounted = (kind: string, length: number, what: string): string =>
  `Not measured: ours, ${kind}, ${length.toLocaleString('en')} characters, ${what}: its ${LIMIT_MS / 1_000} s for this text were used up.`;

const draw = (source: Source, [length, count]: Size) => Array.from({ length: count }, () => source(length));

/** How many times as long as ours; undefined if no count came to an end. */
function ratio({ rounds }: Row, counter: number, which: 'cold' | 'warm'): number | undefined {
  const ratios = rounds.flatMap((times) => {
    const [theirs, ours] = [median(times[counter]![which]), median(times[0]![which])];
    return theirs === undefined || ours === undefined ? [] : [theirs / ours];
  });
  return median(ratios);
}

const figure = (value: number | undefined) =>
  value === undefined || value === Infinity ? '-' : value >= 100 ? value.toFixed(0) : value.toPrecision(2);

function show(row: Row): void {
  const { kind, characters, growth, rounds } = row;
  const own = (which: 'cold' | 'warm') => figure(median(rounds.flatMap((times) => times[0]![which])));
  const ratios = PEERS.map((_, index) => {
    const cold = ratio(row, index + 1, 'cold');
    if (cold !== undefined) return `${figure(cold)} / ${figure(ratio(row, index + 1, 'warm'))}`;
    const [ours, theirs] = [median(rounds[0]![0]!.cold), rounds[0]![index + 1]!.stoppedMs];
    return ours === undefined || theirs === undefined ? '-' : `>${figure(theirs / ours)}`;
  });
  cells(kind, characters.toLocaleString('en'), `${own('cold')} / ${own('warm')}`, ...ratios, growth?.toFixed(2) ?? '-');
}

const LOADS = 9;

/** Each in fresh processes, in turn: what it takes to load it, and its first call. */
async function benchLoad(): Promise<void> {
  const source = ORDINARY['English prose']!();
  const loads: (readonly [load: number, memory: number, first: number])[][] = COUNTER_NAMES.map(() => []);
  for (let run = 0; run < LOADS; run++) {
    for (const [index, name] of COUNTER_NAMES.entries()) {
      const counter = await startCounter(name);
      const { cold } = await counter.count([source(10_000)]);
      loads[index]!.push([counter.loadMs, counter.residentMb, cold[0]!]);
      counter.stop();
    }
  }
  process.stdout.write('\nA fresh process\n\n');
  head('', 'load, ms', 'memory, MB', 'first call, 10,000 characters of English, ms');
  for (const [index, name] of COUNTER_NAMES.entries()) {
    const of = (column: 0 | 1 | 2) => figure(median(loads[index]!.map((load) => load[column])));
    cells(name, of(0), of(1), of(2));
  }
}
