/** The operation prune: its texts, price and wire shapes beside the engine that answers it. */
import { z } from 'zod';
import { prune as pruneResults, PRUNE_VERSION } from '../engines/prune.ts';
import { defineOperation } from '../operation.ts';
import { writeRequest } from '../transcript/formats/conversation.ts';
import {
  addOverlongText,
  estimatorChoice,
  estimatorName,
  functionIds,
  modelInput,
  tokens,
  versions,
} from './context-schema.ts';
import { loadEstimator } from './estimators.ts';
import { exampleConversation } from './example-conversation.ts';
import {
  addUnreadable,
  nativeFields,
  nativeMessages,
  neutralFormat,
  repairsOutput,
  reportOf,
  takeEither,
} from './native.ts';
import { pause } from './pause.ts';
import { agentMessage, amount, messages, optional } from './transcript-schema.ts';

const options = optional(
  z.strictObject({
    protect_recent_tokens: amount.describe('The newest so many tokens of results stay; 40000.'),
    min_free_tokens: amount.describe('Less than this is not worth a broken cache, so nothing is touched; 20000.'),
    max_output_chars: amount.describe('A result of no more code points stays; 2000.'),
    protected_functions: functionIds.describe('Results of these functions stay.'),
    estimator: estimatorChoice,
  }),
);
const common = { model: optional(modelInput), options };
const input = z.discriminatedUnion('format', [
  z.strictObject({ format: neutralFormat, messages, ...common }).superRefine(addOverlongText),
  z.strictObject({ ...nativeFields, ...common }).superRefine(addUnreadable),
]);

const output = z.looseObject({
  messages: z
    .union([z.array(agentMessage), nativeMessages])
    .describe('The same messages in the same order; some results are placeholders now.'),
  pruned_parts: tokens.describe('Results that are placeholders now.'),
  pruned_tokens: tokens.describe('Tokens freed, less those of the placeholders.'),
  scanned_parts: tokens.describe('Results that were looked at: older than the last two user turns, and not protected.'),
  estimator: estimatorName,
  repairs: repairsOutput,
  versions,
});

export const prune = defineOperation({
  id: 'prune',
  version: PRUNE_VERSION,
  title: 'Replace old, long function results of an agent conversation by short placeholders',
  summary: 'Replace old, long function results of an agent conversation by short placeholders',
  description:
    'Goes from the newest message back and puts "[output pruned: was ~N tokens]" in the place of function results that are long and old. The last two user turns, the newest 40000 tokens of results and the functions you name stay. No message is removed, and order, ids and the links between calls and results stay. If it would free less than 20000 tokens it changes nothing, so that a prompt cache is not broken for little. Running it twice is the same as once.',
  roi: 'Frees most of what a long agent run holds without a model call and without breaking a call/result pair.',
  audience: 'agent-infra',
  price: '2000',
  input,
  invalidRequestCode: 'context/invalid_request',
  output,
  // Arguments and parameters are counted as the JSON that was sent.
  dependsOnKeyOrder: true,
  async run(request, { config }) {
    const { neutral, native } = takeEither(request);
    const estimator = await loadEstimator(request.model?.id ?? '', request.options?.estimator);
    const whole = { ...neutral, options: request.options ?? null };
    const pruned = await pruneResults(whole, config, estimator, pause);
    const left = native ? writeRequest(native.conversation, pruned.messages, undefined).messages : pruned.messages;
    return { kind: 'answer', billable: true, data: { ...pruned, messages: left, ...reportOf(native) } };
  },
  example: {
    model: { id: 'gpt-5' },
    messages: exampleConversation,
    options: { protect_recent_tokens: 0, min_free_tokens: 100, max_output_chars: 200 },
  },
});
