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
import {
  type Conversation,
  faultyConversations,
  large,
  madeConversation,
  madeConversations,
  realConversations,
} from './conversations.ts';
import { faultOf } from './legal.ts';
import { type Counter, type Job, type Manager, MANAGERS, Stopped } from './managers.ts';
import { cells, head, median, medianMs, row } from './measure.ts';
import { assembleTo, type Context, countContext, STEPS } from './ours.ts';

const SHARES = [0.75, 0.5, 0.25] as const;
const RUNS = 3;

export async function benchEngines(): Promise<void> {
  const estimator = tokenizer(await loadEncoding('o200k_base'));
  await benchOutcomes(estimator);
  await benchGrowth(estimator);
  await benchWithoutCounting();
  await benchCold();
}

// What comes out

interface Verdict {
  readonly refused: boolean;
  readonly fault: string | undefined;
  readonly overBudget: boolean;
  readonly lostUser: boolean;
  readonly lostSystem: boolean;
  /** Of the messages, without the system prompt; undefined where all are as they were. */
  readonly firstChanged: number | undefined;
  readonly ms: number;
}

async function benchOutcomes(estimator: Estimator): Promise<void> {
  const conversations = [...realConversations(), ...faultyConversations(), ...madeConversations()];
  const rows: { legal: boolean; verdicts: Verdict[] }[] = [];
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
  const [sound, faulty] = [rows.filter(({ legal }) => legal), rows.filter(({ legal }) => !legal)];
  head(
    `${rows.length} cases`,
    `illegal, of ${sound.length} that were legal`,
    `illegal, of ${faulty.length} that were not`,
    'over the budget',
    'said that nothing fits',
    'lost the last user message',
    'lost the system prompt',
    'worst, ms',
  );
  for (const [index, { name }] of MANAGERS.entries()) {
    const count = (of: typeof rows, is: (verdict: Verdict) => boolean): string =>
      String(of.filter(({ verdicts }) => is(verdicts[index]!)).length);
    cells(
      name,
      count(sound, ({ fault }) => fault !== undefined),
      count(faulty, ({ fault }) => fault !== undefined),
      count(rows, ({ overBudget }) => overBudget),
      count(rows, ({ refused }) => refused),
      count(rows, ({ lostUser }) => lostUser),
      count(rows, ({ lostSystem }) => lostSystem),
      Math.max(...rows.map(({ verdicts }) => verdicts[index]!.ms)).toFixed(1),
    );
  }
  const faults = new Map<string, number>();
  for (const { verdicts } of sound)
    for (const [index, { fault }] of verdicts.entries()) {
      if (fault === undefined) continue;
      const key = `${MANAGERS[index]!.short}: ${fault.replace(/^\d+ /, 'a message ')}`;
      faults.set(key, (faults.get(key) ?? 0) + 1);
    }
  const list = Array.from(faults, ([fault, times]) => `${fault} (${times})`);
  process.stdout.write(`\nWhat was illegal of the legal ones: ${list.join('; ') || 'nothing'}.\n`);
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
  const ms = median(times) ?? 0;
  if (!context) {
    return {
      refused: true,
      fault: undefined,
      overBudget: false,
      lostUser: false,
      lostSystem: false,
      firstChanged: undefined,
      ms,
    };
  }
  const lastUser = messages.findLast(beginsTurn);
  return {
    refused: false,
    fault: faultOf(context.messages, messages[0]?.role === 'user'),
    overBudget: countContext(estimator, context) > budget,
    lostUser: lastUser !== undefined && !context.messages.some((message) => isSame(message, lastUser)),
    lostSystem: !context.system.startsWith(conversation.system.trimEnd()),
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
const GROWTH_SHARE = 0.5;
const LIMIT_MS = 20_000;

async function benchGrowth(estimator: Estimator): Promise<void> {
  process.stdout.write(
    '\nMilliseconds for so many messages of an agent at half of their tokens, and how many messages the counter was asked for; in brackets ' +
      'by what power of the number it grew since the column before\n\n',
  );
  head('', ...LENGTHS.map((length) => `${length.toLocaleString('en')} messages`), 'counts asked for, at the most');
  const conversations = LENGTHS.map((length) => madeConversation('', { length, rounds: 9 }));
  for (const manager of MANAGERS) {
    const shown: string[] = [];
    let asked = 0;
    let before: { length: number; ms: number } | undefined;
    for (const conversation of conversations) {
      const budget = Math.floor(countContext(estimator, conversation) * GROWTH_SHARE);
      const length = conversation.messages.length;
      const times: number[] = [];
      const start = performance.now();
      try {
        for (let run = 0; run <= RUNS; run += 1) {
          const counter: Counter = { estimator, asked: 0, deadline: performance.now() + LIMIT_MS };
          const job = manager.prepare(conversation, budget, counter);
          const since = performance.now();
          await job.run();
          if (run > 0 || performance.now() - start > LIMIT_MS / RUNS) times.push(performance.now() - since);
          asked = counter.asked;
          if (performance.now() - start > LIMIT_MS / RUNS) break;
        }
      } catch (error) {
        if (!(error instanceof Stopped)) throw error;
      }
      const ms = median(times);
      if (ms === undefined) {
        shown.push(`stopped after ${LIMIT_MS / 1_000} s`);
        break;
      }
      const power = before && Math.log(ms / before.ms) / Math.log(length / before.length);
      shown.push(ms.toFixed(1) + (power === undefined ? '' : ` (${power.toFixed(2)})`));
      before = { length, ms };
    }
    while (shown.length < LENGTHS.length) shown.push('not run');
    cells(manager.name, ...shown, asked.toLocaleString('en'));
  }
}

// What the engine itself takes

async function benchWithoutCounting(): Promise<void> {
  process.stdout.write('\nassemble for 500 messages of 400,000 characters whose sizes are known\n\n');
  const { system, messages } = large();
  const text = JSON.stringify({ system, messages });
  const parsed = JSON.parse(text) as Conversation;
  const base = await medianMs(() => JSON.stringify(JSON.parse(text)));
  row(`JSON.parse and JSON.stringify, ${Math.round(text.length / 1_000)} kB`, base);
  const exact = tokenizer(await loadEncoding('o200k_base'));
  const sizes = new Map(parsed.messages.map((message) => [message, exact.message(message)]));
  const estimator: Estimator = {
    ...exact,
    text: quarter,
    message: (message) => sizes.get(message) ?? quarter(JSON.stringify(message.content)),
  };
  const total = countContext(estimator, parsed);
  for (const { name, share, options, isWhatHappened } of STEPS) {
    const budget = Math.floor(total * share);
    const run = () => assembleTo(parsed, budget, estimator, options);
    const result = await run();
    if (!result || !isWhatHappened(result.applied)) throw new Error(`${name} did not happen`);
    row(name, await medianMs(run, 31), { name: 'JSON', ms: base });
  }
}

const quarter = (text: string): number => text.length >> 2;

const COLD_ROUNDS = 7;

/** Each run is a process of its own, in turn with the others. */
async function benchCold(): Promise<void> {
  process.stdout.write('\nThe same counted by o200k_base, texts that the process never saw\n\n');
  const names = ['count', ...STEPS.map(({ name }) => name)];
  const times = names.map((): number[] => []);
  for (let round = 0; round < COLD_ROUNDS; round += 1) {
    for (const [index, name] of names.entries()) {
      const child = fork(join(import.meta.dirname, 'assembler.js'), [name]);
      const [ms] = (await once(child, 'message')) as [number];
      times[index]!.push(ms);
    }
  }
  const base = { name: 'count', ms: median(times[0]!)! };
  for (const [index, name] of names.entries()) row(name, median(times[index]!)!, base);
}
