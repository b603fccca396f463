/** Counts or assembles one large conversation that its process has not seen before, and says how many milliseconds it took. */
import { count } from '../src/engines/count.ts';
import { tokenizer } from '../src/engines/estimator.ts';
import { loadEncoding } from '../src/tokenizer/encoding.ts';
import { large, madeConversation } from './conversations.ts';
import { assembleTo, type Context, countContext, pause, STEPS } from './ours.ts';

const [, , name] = process.argv;
if (process.send && name !== undefined) {
  const conversation = large();
  // For the compiler; other texts, of about as many tokens.
  const other = madeConversation('', { length: 500, rounds: 9 });
  const estimator = tokenizer(await loadEncoding('o200k_base'));
  const tokens = countContext(estimator, other);
  const step = STEPS.find((each) => each.name === name);
  const run = async ({ system, messages }: Context): Promise<void> => {
    if (!step) await count({ messages, model: { id: 'gpt-5' }, system_prompt: system }, estimator, pause);
    else {
      const result = await assembleTo({ system, messages }, Math.floor(tokens * step.share), estimator, step.options);
      if (!result || !step.isWhatHappened(result.applied)) throw new Error(`${name} did not happen`);
    }
  };
  await run(other);
  const start = performance.now();
  await run(conversation);
  process.send(performance.now() - start);
  process.disconnect();
}
