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
import { loadEstimator, pause } from './estimators.ts';
import { exampleConversation, exampleSystemPrompt, exampleTools } from './example-conversation.ts';
import { agentFunction, messages, optional } from './transcript-schema.ts';

const input = z
  .strictObject({
    messages,
    model: modelInput,
    system_prompt: optional(z.string()),
    tools: optional(z.array(agentFunction)),
    options: optional(z.strictObject({ estimator: estimatorChoice })),
  })
  .superRefine(addOverlongText);

const output = z.looseObject({
  tokens: tokens.describe('Everything together: messages, system prompt, tools and reply priming.'),
  by_role: byRole.describe(
    'The tokens of the messages, by role. custom is never sent to a model; subtract it if need be.',
  ),
  estimator: estimatorName,
  breakdown,
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
    const chosen = await loadEstimator(request.model.id, request.options?.estimator);
    return { kind: 'answer', billable: true, data: await countTokens(request, chosen, pause) };
  },
  example: {
    model: { id: 'gpt-5', provider: 'openai' },
    system_prompt: exampleSystemPrompt,
    tools: exampleTools,
    messages: exampleConversation.slice(0, 7),
  },
});
