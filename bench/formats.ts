/**
 * What each provider would take of what is left of a real conversation, ours beside others: ours works on the provider's own messages;
 * what the others leave in their own forms is written in the provider's.
 */
import type { Estimator } from '../src/engines/estimator.ts';
import { assemble } from '../src/operations/assemble.ts';
import { conversationPrune } from '../src/operations/conversation-prune.ts';
import { formatOf } from '../src/operations/native.ts';
import { DEFAULT_CONTEXT } from '../src/operations/run-context.ts';
import { validate } from '../src/operations/validate.ts';
import { checkEntries } from '../src/transcript/formats/check.ts';
import { readEntries } from '../src/transcript/formats/conversation.ts';
import { FORMATS } from '../src/transcript/formats/list.ts';
import { repairEntries } from '../src/transcript/formats/repair.ts';
import { type NativeConversation, nativesOf } from '../test/native-conversations.ts';
import { type Conversation, realConversations } from './conversations.ts';
import { MANAGERS } from './managers.ts';
import { cells, head, median, timeMs } from './measure.ts';
import { type Context, countContext } from './ours.ts';

const SHARES = [0.75, 0.5, 0.25] as const;

/** The others at their best, and what one would write first. */
const OTHERS = MANAGERS.filter(({ short }) => ['trim+', 'ai+', 'clear+'].includes(short));

interface Outcome {
  /** Undefined where it said that nothing fits. */
  readonly faults: number | undefined;
  readonly inBudget: boolean;
}

export async function benchFormats(estimator: Estimator): Promise<void> {
  const others = ['the oldest dropped', ...OTHERS.map(({ name }) => name)];
  process.stdout.write(
    '\nReal conversations at 75, 50 and 25 % of their tokens, as each provider has them: taken by its checker / of these within the budget. ' +
      'Those that it would not take as they are stay out.\n\n',
  );
  head('format, cases', 'conversation-prune', 'assemble', ...others);
  for (const { id } of FORMATS) {
    const rows: Outcome[][] = [];
    for (const conversation of realConversations()) {
      const native = nativeOf(id, conversation);
      if (faultsOf(native) > 0) continue;
      for (const share of SHARES) rows.push(await outcomesOf(native, conversation, share, estimator));
    }
    const columns = Array.from({ length: 2 + others.length }, (_, at) => rows.map((row) => row[at]!));
    cells(`${id}, ${rows.length}`, ...columns.map(summaryOf));
  }
  benchRepair();
}

function summaryOf(outcomes: readonly Outcome[]): string {
  const taken = outcomes.filter(({ faults }) => faults === 0);
  const refused = outcomes.filter(({ faults }) => faults === undefined).length;
  const said = refused > 0 ? `, ${refused} said not to fit` : '';
  return `${taken.length} / ${taken.filter(({ inBudget }) => inBudget).length}${said}`;
}

function nativeOf(format: string, { messages, system }: Context): NativeConversation {
  const native = nativesOf(messages, system).find((each) => each.format === format);
  if (!native) throw new RangeError(format);
  return native;
}

function faultsOf({ format, messages }: Pick<NativeConversation, 'format' | 'messages'>): number {
  const read = readEntries(formatOf(format), messages);
  return read.ok ? checkEntries(formatOf(format), read.value).length : 1;
}

async function outcomesOf(
  native: NativeConversation,
  conversation: Conversation,
  share: number,
  estimator: Estimator,
): Promise<Outcome[]> {
  const { format } = native;
  const before = await run(conversationPrune, { ...native, cacheBreakpoint: -1, targetTokens: 100_000_000 });
  const targetTokens = Math.floor(Number(before?.['tokensBefore']) * share);
  const pruned = await run(conversationPrune, { ...native, cacheBreakpoint: -1, targetTokens });
  const budget = Math.floor(countContext(estimator, conversation) * share);
  const limits = { context_window: budget, max_output_tokens: 0 };
  const assembled = await run(assemble, { ...native, model: { id: 'gpt-5', limits }, options: { reserved_tokens: 0 } });
  const outcomes: Outcome[] = [
    { faults: faultsOf({ format, messages: messagesOf(pruned) }), inBudget: pruned?.['targetMet'] === true },
    { faults: assembled && faultsOf({ format, messages: messagesOf(assembled) }), inBudget: true },
  ];
  const contexts: (Context | undefined)[] = [oldestDropped(conversation, budget, estimator)];
  for (const manager of OTHERS) {
    const job = manager.prepare(conversation, budget, { estimator, asked: 0, deadline: Infinity });
    contexts.push((await job.run())());
  }
  for (const context of contexts) {
    outcomes.push({
      faults: context && faultsOf(nativeOf(format, context)),
      inBudget: context !== undefined && countContext(estimator, context) <= budget,
    });
  }
  return outcomes;
}

const messagesOf = (data: Readonly<Record<string, unknown>> | undefined): object[] =>
  (data?.['messages'] ?? []) as object[];

/** Undefined where the answer is a problem. */
async function run(
  operation: typeof assemble | typeof conversationPrune,
  input: object,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const taken = validate(operation as typeof assemble, input);
  if (!taken.ok) throw new Error(JSON.stringify(taken.problem));
  const outcome = await (operation as typeof assemble).run(taken.value, DEFAULT_CONTEXT);
  return outcome.kind === 'answer' ? outcome.data : undefined;
}

function oldestDropped({ system, messages }: Conversation, budget: number, estimator: Estimator): Context {
  let left = messages;
  while (left.length > 1 && countContext(estimator, { system, messages: left }) > budget) left = left.slice(1);
  return { system, messages: left };
}

const REPAIRED_SIZES = [2_000, 4_000, 8_000, 16_000] as const;

/** How the time of a repair grows, where every call has the id of every other. */
function benchRepair(): void {
  process.stdout.write(
    '\nRepair of n calls of one id and their n results, as a multiple of JSON.parse of the same:\n\n',
  );
  head('format', ...REPAIRED_SIZES.map((size) => `n ${size}`), 'growth');
  for (const format of FORMATS) {
    const ratios: number[] = [];
    const times: number[] = [];
    for (const size of REPAIRED_SIZES) {
      const { messages } = nativeOf(format.id, sameIds(size));
      const read = readEntries(format, messages);
      if (!read.ok) throw new Error(format.id);
      const text = JSON.stringify(messages);
      const ms = median(Array.from({ length: 5 }, () => timeMs(() => repairEntries(format, read.value)))) ?? 0;
      const parsing = median(Array.from({ length: 5 }, () => timeMs(() => void JSON.parse(text)))) ?? 1;
      times.push(ms);
      ratios.push(ms / parsing);
    }
    const growth =
      Math.log((times.at(-1) ?? 1) / (times[0] ?? 1)) / Math.log(REPAIRED_SIZES.at(-1)! / REPAIRED_SIZES[0]);
    cells(format.id, ...ratios.map((ratio) => ratio.toFixed(1)), growth.toFixed(2));
  }
}

function sameIds(size: number): Context {
  const calls = Array.from(
    { length: size },
    () => ({ type: 'function_call', id: 'a', function_id: 'f', arguments: {} }) as const,
  );
  const results = Array.from({ length: size }, () => {
    const content = [{ type: 'text', text: 'ok' }] as const;
    return { role: 'function_result', function_call_id: 'a', function_id: 'f', content, timestamp: 0 } as const;
  });
  const user = { role: 'user', content: [{ type: 'text', text: 'go' }], timestamp: 0 } as const;
  const by = { model: 'm', provider: 'p', stop_reason: 'function_call', timestamp: 0 } as const;
  return { system: '', messages: [user, { role: 'assistant', content: calls, ...by }, ...results, user] };
}
