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

/** Of the same texts, as these are remembered after the first time. */
const WARM_UPS = 10;

async function answer({ name, other, context }: Task): Promise<number> {
  const estimator = tokenizer(await loadEncoding('o200k_base'));
  const tokens = countContext(estimator, other);
  const step = STEPS.find((each) => each.name === name);
  const run = async ({ system, messages }: Context): Promise<void> => {
    if (step) await take(step, { system, messages }, tokens, estimator);
    else await count({ messages, model: { id: 'gpt-5' }, system_prompt: system }, estimator, pause);
  };
  for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await run(other);
  const start = performance.now();
  await run(context);
  return performance.now() - start;
}

process.once('message', (task: Task) => {
  void answer(task).then((ms) => process.send?.(ms, () => process.disconnect()));
});
