/**
 * What makes a conversation fit a budget, ours beside others that do it without a model: whether a provider takes what comes
 * out, whether it fits, what it keeps, how long it takes and how that grows. All count by the same counter.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type Estimator, tokenizer } from '../src/engines/estimator.ts';
import type { AgentMessage } from '../src/transcript/message.ts';
import { beginsTurn } from '../src/transcript/results.ts';
import { loadEncoding } from '../src/tokenizer/encoding.ts';
import type { Task } from './assembler.ts';
import {
  type Conversation,
  faultyConversations,
  large,
  madeConversation,
  madeConversations,
  realConversations,
} from './conversations.ts';
import { benchFormats } from './formats.ts';
import { faultOf } from './legal.ts';
import { type Counter, type Job, type Manager, MANAGERS, Stopped } from './managers.ts';
import { cells, head, median, timeMs } from './measure.ts';
import { type Context, countContext, STEPS, take } from './ours.ts';

const SHARES = [0.75, 0.5, 0.25] as const;
const RUNS = 3;

export async function benchEngines(): Promise<void> {
  const estimator = tokenizer(await loadEncoding('o200k_base'));
  await benchFormats(estimator);
  await benchOutcomes(estimator);
  await benchGrowth(estimator);
  await benchWithoutCounting();
  await benchCold();
}

// What comes out

interface Verdict {
  readonly refused: boolean;
  /** Nothing to say against it. */
  readonly isGood: boolean;
  /** Tokens, as a share of the budget. */
  readonly filled: number;
  readonly fault: string | undefined;
  readonly overBudget: boolean;
  readonly lostUser: boolean;
  readonly lostSystem: boolean;
  /** Of the messages, without the system prompt; undefined where all are as they were. */
  readonly firstChanged: number | undefined;
  readonly ms: number;
}

interface Outcomes {
  /** Whether the conversation was legal as it was given. */
  readonly legal: boolean;
  readonly verdicts: readonly Verdict[];
}

async function benchOutcomes(estimator: Estimator): Promise<void> {
  const conversations = [...realConversations(), ...faultyConversations(), ...madeConversations()];
  const rows: Outcomes[] = [];
  process.stdout.write(
    `\n${MANAGERS.map(({ short, name }) => `${short}: ${name}`).join('; ')}.\n` +
      '`ok`: legal and within the budget, with the system prompt and the last user message. Else: I illegal, B over the budget, U without the last ' +
      'user message, S without the system prompt, R: it said that nothing fits. Then the first message that is not as it was, and milliseconds.\n\n',
  );
  head('conversation, messages, budget in tokens', ...MANAGERS.map(({ short }) => short));
  for (const conversation of conversations) {
    const total = countContext(estimator, conversation);
    const legal = faultOf(conversation.messages, false) === undefined;
    for (const share of SHARES) {
      const budget = Math.floor(total * share);
      const verdicts: Verdict[] = [];
      for (const manager of MANAGERS) verdicts.push(await judge(manager, conversation, budget, estimator));
      rows.push({ legal, verdicts });
      const name = `${conversation.name}${legal ? '' : '*'}, ${conversation.messages.length}, ${budget}`;
      cells(name, ...verdicts.map(cellOf));
    }
  }
  process.stdout.write('\n*: illegal as it was given.\n\n');
  showTotals(rows);
}

function showTotals(rows: readonly Outcomes[]): void {
  const [sound, faulty] = [rows.filter(({ legal }) => legal), rows.filter(({ legal }) => !legal)];
  head(
    `${rows.length} cases`,
    'legal, in budget, nothing lost',
    `illegal, of ${sound.length} that were legal`,
    `illegal, of ${faulty.length} that were not`,
    'over the budget',
    'nothing fits, it says',
    'though another one fits',
    'lost the last user message',
    'lost the system prompt',
    'budget filled, median',
    'ms, worst',
  );
  for (const [index, { name }] of MANAGERS.entries()) {
    const count = (of: readonly Outcomes[], is: (verdict: Verdict) => boolean): string =>
      String(of.filter(({ verdicts }) => is(verdicts[index]!)).length);
    const possible = rows.filter(({ verdicts }) => verdicts.some(({ isGood }) => isGood));
    const answers = rows.map(({ verdicts }) => verdicts[index]!).filter(({ refused }) => !refused);
    cells(
      name,
      count(rows, ({ isGood }) => isGood),
      count(sound, ({ fault }) => fault !== undefined),
      count(faulty, ({ fault }) => fault !== undefined),
      count(rows, ({ overBudget }) => overBudget),
      count(rows, ({ refused }) => refused),
      count(possible, ({ refused }) => refused),
      count(rows, ({ lostUser }) => lostUser),
      count(rows, ({ lostSystem }) => lostSystem),
      `${Math.round(100 * (median(answers.map(({ filled }) => filled)) ?? 0))} %`,
      Math.max(...rows.map(({ verdicts }) => verdicts[index]!.ms)).toFixed(1),
    );
  }
  const faults = sound.flatMap(({ verdicts }) =>
    verdicts.flatMap(({ fault }, index) =>
      fault === undefined ? [] : [`${MANAGERS[index]!.short}: ${fault.replace(/^\d+/, 'a message')}`],
    ),
  );
  const each = [...new Set(faults)].map((fault) => `${fault} (${faults.filter((other) => other === fault).length})`);
  process.stdout.write(`\nWhat was illegal of the legal ones: ${each.join('; ') || 'nothing'}.\n`);
}

async function judge(
  manager: Manager,
  conversation: Conversation,
  budget: number,
  estimator: Estimator,
): Promise<Verdict> {
  const counter: Counter = { estimator, asked: 0, deadline: Infinity };
  const times: number[] = [];
  let job: Job | undefined;
  let context: Context | undefined;
  for (let run = 0; run <= RUNS; run += 1) {
    job = manager.prepare(conversation, budget, counter);
    const start = performance.now();
    const read = await job.run();
    if (run > 0) times.push(performance.now() - start);
    context = read();
  }
  const { messages } = job!;
  const ms = median(times)!;
  const none = { fault: undefined, overBudget: false, lostUser: false, lostSystem: false, firstChanged: undefined };
  if (!context) return { ...none, refused: true, isGood: false, filled: 0, ms };
  const lastUser = messages.findLast(beginsTurn);
  const filled = countContext(estimator, context) / budget;
  const fault = faultOf(context.messages, messages[0]?.role === 'user');
  const overBudget = filled > 1;
  const lostUser = lastUser !== undefined && !context.messages.some((message) => isSame(message, lastUser));
  const lostSystem = !context.system.startsWith(conversation.system.trimEnd());
  return {
    refused: false,
    isGood: fault === undefined && !overBudget && !lostUser && !lostSystem,
    filled,
    fault,
    overBudget,
    lostUser,
    lostSystem,
    firstChanged: firstChanged(messages, context.messages),
    ms,
  };
}

function firstChanged(before: readonly AgentMessage[], after: readonly AgentMessage[]): number | undefined {
  const index = before.findIndex((message, at) => after[at] === undefined || !isSame(message, after[at]));
  return index < 0 ? undefined : index;
}

function isSame(a: AgentMessage, b: AgentMessage): boolean {
  const id = (message: AgentMessage) => (message.role === 'function_result' ? message.function_call_id : '');
  return a === b || (a.role === b.role && id(a) === id(b) && JSON.stringify(a.content) === JSON.stringify(b.content));
}

function cellOf({ refused, fault, overBudget, lostUser, lostSystem, firstChanged: changed, ms }: Verdict): string {
  const flags = [refused && 'R', fault !== undefined && 'I', overBudget && 'B', lostUser && 'U', lostSystem && 'S'];
  return `${flags.filter(Boolean).join('') || 'ok'} ${changed ?? '-'} ${ms.toFixed(1)}`;
}

// How it grows

const LENGTHS = [100, 500, 1_000, 2_500, 5_000] as const;
/** Of LENGTHS, between which the growth is taken: of the first one, what every call takes is too large a part. */
const [SHORT_AT, LONG_AT] = [1, 4] as const;
const GROWTH_SHARE = 0.5;
const GROWTH_ROUNDS = 7;
/** Who has worked so long on one length is stopped and gets no longer one; who has on a round gets no other round. */
const LIMIT_MS = 20_000;
const ROUND_LIMIT_MS = 3_000;

async function benchGrowth(estimator: Estimator): Promise<void> {
  process.stdout.write(
    `\nMilliseconds for an agent's conversation at half of its tokens, by what power of the length they grow from ${LENGTHS[SHORT_AT]} messages on, and how many counts of a message or text were asked for\n\n`,
  );
  const titles = LENGTHS.map((length) => `${length.toLocaleString('en')} messages`);
  head('', ...titles, 'growth', `counts for ${LENGTHS[LONG_AT].toLocaleString('en')}`);
  const tasks = LENGTHS.map((length) => {
    const conversation = madeConversation('', { length, rounds: 9 });
    return { conversation, budget: Math.floor(countContext(estimator, conversation) * GROWTH_SHARE) };
  });
  for (const manager of MANAGERS) {
    const rounds: number[][] = [];
    let asked: number | undefined;
    for (let round = 0; round <= GROWTH_ROUNDS; round += 1) {
      const times: number[] = [];
      for (const { conversation, budget } of tasks) {
        const counter: Counter = { estimator, asked: 0, deadline: performance.now() + LIMIT_MS };
        const ms = await timeOf(manager.prepare(conversation, budget, counter));
        if (ms === undefined) break;
        times.push(ms);
        asked = times.length === LENGTHS.length ? counter.asked : undefined;
      }
      // The first one is for the compiler, unless there is no time for another.
      const isLast = times.length < LENGTHS.length || times.reduce((sum, ms) => sum + ms, 0) > ROUND_LIMIT_MS;
      if (round > 0 || isLast) rounds.push(times);
      if (isLast) break;
    }
    const shown = LENGTHS.map((_, at) => {
      const ms = median(rounds.flatMap((times) => times[at] ?? []));
      return ms?.toFixed(1) ?? `over ${LIMIT_MS / 1_000} s`;
    });
    const growth = median(
      rounds.flatMap((times) => {
        const [short, long] = [times[SHORT_AT], times[LONG_AT]];
        if (short === undefined || long === undefined) return [];
        return [Math.log(long / short) / Math.log(LENGTHS[LONG_AT] / LENGTHS[SHORT_AT])];
      }),
    );
    cells(
      manager.name,
      ...shown,
      growth?.toFixed(2) ?? 'not measured, it was stopped',
      asked?.toLocaleString('en') ?? 'not known, it was stopped',
    );
  }
}

/** Undefined if it was stopped. */
async function timeOf(job: Job): Promise<number | undefined> {
  const start = performance.now();
  try {
    await job.run();
  } catch (error) {
    if (error instanceof Stopped) return undefined;
    throw error;
  }
  return performance.now() - start;
}

// What the engine itself takes

const ENGINE_RUNS = 31;

async function benchWithoutCounting(): Promise<void> {
  const { system, messages } = large();
  const text = JSON.stringify({ system, messages });
  process.stdout.write(
    `\nassemble for 500 messages of 400,000 characters whose sizes are known, beside JSON.parse and JSON.stringify of the same ${Math.round(text.length / 1_000)} kB\n\n`,
  );
  const parsed = JSON.parse(text) as Conversation;
  const exact = tokenizer(await loadEncoding('o200k_base'));
  const sizes = new Map(parsed.messages.map((message) => [message, exact.message(message)]));
  const estimator: Estimator = {
    ...exact,
    text: quarter,
    message: (message) => sizes.get(message) ?? quarter(JSON.stringify(message.content)),
  };
  const total = countContext(estimator, parsed);
  head('', 'ms', 'times JSON');
  for (const step of STEPS) {
    const [json, own]: [number[], number[]] = [[], []];
    for (let run = 0; run < ENGINE_RUNS; run += 1) {
      json.push(timeMs(() => JSON.stringify(JSON.parse(text))));
      const start = performance.now();
      await take(step, parsed, total, estimator);
      own.push(performance.now() - start);
    }
    cells(step.name, median(own)!.toFixed(2), ratioOf(own, json).toFixed(2));
  }
}

/** The median of ratios of neighbours in time, so that both had the same machine. */
const ratioOf = (times: readonly number[], bases: readonly number[]): number =>
  median(times.map((ms, index) => ms / bases[index]!))!;

const quarter = (text: string): number => text.length >> 2;

const COLD_ROUNDS = 9;

/** Each run is a process of its own, in turn with the others. */
async function benchCold(): Promise<void> {
  process.stdout.write(
    '\nThe same with texts that have to be counted by o200k_base and that the process never saw, beside count\n\n',
  );
  const [other, context] = [large(), large()];
  const names = ['count', ...STEPS.map(({ name }) => name)];
  const times = names.map((): number[] => []);
  for (let round = 0; round < COLD_ROUNDS; round += 1) {
    for (const [index, name] of names.entries()) {
      const child = fork(join(import.meta.dirname, 'assembler.js'));
      child.once('exit', (code) => {
        if (code !== 0) throw new Error(`${name} ended with ${code}`);
      });
      const task: Task = { name, other, context };
      child.send(task);
      const [ms] = (await once(child, 'message')) as [number];
      times[index]!.push(ms);
    }
  }
  head('', 'ms', 'times count', 'characters counted, times those of count');
  const characters = await countedCharacters(context);
  for (const [index, name] of names.entries()) {
    const own = times[index]!;
    const [ms, ratio] = [median(own)!, ratioOf(own, times[0]!)];
    cells(name, ms.toFixed(1), ratio.toFixed(2), ((characters[index] ?? 0) / (characters[0] ?? 0)).toFixed(2));
  }
}

/** Of count first, then of each step. */
async function countedCharacters(context: Context): Promise<number[]> {
  const encoding = await loadEncoding('o200k_base');
  let counted = 0;
  const count = (text: string): number => {
    counted += text.length;
    return encoding.count(text);
  };
  const estimator = tokenizer({ ...encoding, count });
  const tokens = countContext(estimator, context);
  const characters = [counted];
  for (const step of STEPS) {
    counted = 0;
    await take(step, context, tokens, estimator);
    characters.push(counted);
  }
  return characters;
}
