/** Counts or assembles one large conversation that its process has not seen before, and says how many milliseconds it took. */
import { count } from '../src/engines/count.ts';
import { tokenizer } from '../src/engines/estimator.ts';
import { loadEncoding } from '../src/tokenizer/encoding.ts';
import { type Context, countContext, pause, STEPS, take } from './ours.ts';

/** What it is sent: for the compiler other texts, of about as many tokens, and then those that count. */
export interface Task {
  /** Of a step; else it counts. */
  readonly name: string;
  readonly other: Context;
  readonly context: Context;
}

const WARM_UPS = 10;
/** Then whatever the encoding remembered of them has to go: its memory of 4 MiB is filled with words that nobody says. */
const FORGOTTEN_AFTER_TEXTS = 20;
const WORDS = 5_000;

function unlikeAnything(): string {
  return Array.from(crypto.getRandomValues(new BigUint64Array(WORDS)), (word) =>
    word.toString(36).replaceAll(/\d/g, 'q'),
  ).join(' ');
}

async function answer({ name, other, context }: Task): Promise<number> {
  const estimator = tokenizer(await loadEncoding('o200k_base'));
  const tokens = countContext(estimator, other);
  const step = STEPS.find((each) => each.name === name);
  const run = async ({ system, messages }: Context): Promise<void> => {
    if (step) await take(step, { system, messages }, tokens, estimator);
    else await count({ messages, model: { id: 'gpt-5' }, system_prompt: system }, estimator, pause);
  };
  for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await run(other);
  for (let text = 0; text < FORGOTTEN_AFTER_TEXTS; text += 1) estimator.text(unlikeAnything());
  const start = performance.now();
  await run(context);
  return performance.now() - start;
}

process.once('message', (task: Task) => {
  void answer(task).then((ms) => process.send?.(ms, () => process.disconnect()));
});
