/** The operation count: its texts, price and wire shapes beside the engine that answers it. */
import { z } from 'zod';
import { COUNT_VERSION, count as countTokens } from '../engines/count.ts';
import { defineOperation } from '../operation.ts';
import {
  addOverlongText,
  breakdown,
  byRole,
  estimatorChoice,
  estimatorName,
  modelInput,
  tokens,
  versions,
} from './context-schema.ts';
import { loadEstimator } from './estimators.ts';
import { exampleConversation, exampleSystemPrompt, exampleTools } from './example-conversation.ts';
import { addUnreadable, nativeFields, neutralFormat, repairsOutput, reportOf, takeEither } from './native.ts';
import { pause } from './pause.ts';
import { besideMessages, messages, optional } from './transcript-schema.ts';

const common = { model: modelInput, options: optional(z.strictObject({ estimator: estimatorChoice })) };
const input = z.discriminatedUnion('format', [
  z.strictObject({ format: neutralFormat, messages, ...besideMessages, ...common }).superRefine(addOverlongText),
  z.strictObject({ ...nativeFields, ...common }).superRefine(addUnreadable),
]);

const output = z.looseObject({
  tokens: tokens.describe('Everything together: messages, system prompt, tools and reply priming.'),
  by_role: byRole.describe(
    'The tokens of the messages, by role. custom is never sent to a model; subtract it if need be.',
  ),
  estimator: estimatorName,
  breakdown,
  repairs: repairsOutput,
  versions,
});

const TITLE = 'Count the tokens of an agent conversation, system prompt and tools for a model';

export const count = defineOperation({
  id: 'count',
  version: COUNT_VERSION,
  title: TITLE,
  summary: TITLE,
  description:
    'Says how many tokens a conversation takes, with its system prompt and tools, in all and by role. Models of OpenAI are counted by their own encoding (o200k_base or cl100k_base); every other model by the rule of four bytes per token, and the answer names which of the two it was. Calls, results and images inside results count too. An image is 4096 tokens whatever its size. With an encoding, one message may hold 1 MiB of text.',
  roi: 'Tells before an expensive model call whether it fits the context window, and which part to shorten if not.',
  audience: 'agent-infra',
  price: '1000',
  input,
  invalidRequestCode: 'context/invalid_request',
  output,
  // Arguments and parameters are counted as the JSON that was sent.
  dependsOnKeyOrder: true,
  async run(request) {
    const { model, options } = request;
    const { neutral, native } = takeEither(request);
    const counted = await countTokens({ ...neutral, model }, await loadEstimator(model.id, options?.estimator), pause);
    return { kind: 'answer', billable: true, data: { ...counted, ...reportOf(native) } };
  },
  example: {
    model: { id: 'gpt-5', provider: 'openai' },
    system_prompt: exampleSystemPrompt,
    tools: exampleTools,
    messages: exampleConversation.slice(0, 7),
  },
});
