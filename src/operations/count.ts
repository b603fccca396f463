/** The operation count: its texts, price and wire shapes beside the engine that answers it. */
import { z } from 'zod';
import { COUNT_VERSION, count as countTokens, findOverlongText, MAX_ENCODED_TEXT_BYTES } from '../engines/count.ts';
import { defineOperation } from '../operation.ts';
import { loadEstimator, pause } from './estimators.ts';
import { agentFunction, estimatorChoice, messages, modelInput, optional } from './transcript-schema.ts';
import { addTooLarge } from './validate.ts';

const input = z
  .strictObject({
    messages,
    model: modelInput,
    system_prompt: optional(z.string()),
    tools: optional(z.array(agentFunction)),
    options: optional(z.strictObject({ estimator: estimatorChoice })),
  })
  .superRefine((request, context) => {
    const path = findOverlongText(request);
    if (path) addTooLarge(context, path, MAX_ENCODED_TEXT_BYTES);
  });

const tokens = z.int().min(0);
const estimator = z
  .enum(['tokenizer', 'heuristic'])
  .describe('tokenizer: counted by the encoding that versions names. heuristic: four bytes for a token.');
const byRole = z.looseObject({ user: tokens, assistant: tokens, function_result: tokens, custom: tokens });

// Open where the published schema is open, so that more can be told without breaking a reader.
const output = z.looseObject({
  tokens: tokens.describe('Everything together: messages, system prompt, tools and reply priming.'),
  by_role: byRole.describe(
    'The tokens of the messages, by role. custom is never sent to a model; subtract it if need be.',
  ),
  estimator,
  breakdown: z
    .looseObject({
      system_prompt_tokens: tokens,
      tools_tokens: tokens,
      reply_priming_tokens: tokens.describe('What frames the reply: 2 with a tokenizer if there is anything to count.'),
      request_overhead_tokens: tokens.describe('Always 0 here.'),
      by_role: byRole,
      estimator,
    })
    .describe('The parts of tokens. Together they are exactly the total.'),
  versions: z.looseObject({}).describe('What the answer depends on: engine, encoding and the digest of its table.'),
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
  async run(request) {
    const chosen = await loadEstimator(request.model.id, request.options?.estimator);
    return { kind: 'answer', billable: true, data: await countTokens(request, chosen, pause) };
  },
  example: {
    model: { id: 'gpt-5', provider: 'openai' },
    system_prompt:
      'You are a coding agent in the repository of a web shop. Run the tests after every change, and say what you changed in one sentence.',
    tools: [
      {
        name: 'shell::run',
        description: 'Run a command in the repository and return what it prints.',
        parameters: {
          type: 'object',
          properties: {
            command: { type: 'string', description: 'The command line.' },
            timeout_ms: { type: 'integer', minimum: 1 },
          },
          required: ['command'],
        },
      },
      {
        name: 'file::edit',
        description: 'Replace one exact passage of a file with another.',
        parameters: {
          type: 'object',
          properties: { path: { type: 'string' }, old: { type: 'string' }, new: { type: 'string' } },
          required: ['path', 'old', 'new'],
        },
      },
    ],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'The checkout test fails since this morning. Please find out why and fix it.' },
        ],
        timestamp: 1796032800000,
      },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I run the failing test first.' },
          {
            type: 'function_call',
            id: 'call_1',
            function_id: 'shell::run',
            arguments: { command: 'npx vitest run src/checkout.test.ts', timeout_ms: 60000 },
          },
        ],
        model: 'gpt-5',
        provider: 'openai',
        stop_reason: 'function_call',
        timestamp: 1796032803500,
      },
      {
        role: 'function_result',
        function_call_id: 'call_1',
        function_id: 'shell::run',
        content: [
          {
            type: 'text',
            text: 'FAIL  src/checkout.test.ts > totals > adds shipping once\nAssertionError: expected 2480 to be 1990\n  at src/checkout.test.ts:41:27\n\nTests  1 failed | 17 passed (18)',
          },
        ],
        details: { exit_code: 1, duration_ms: 2140 },
        is_error: true,
        timestamp: 1796032806100,
      },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Shipping (490) is added twice. The second time is in applyVoucher.' },
          {
            type: 'function_call',
            id: 'call_2',
            function_id: 'file::edit',
            arguments: {
              path: 'src/checkout.ts',
              old: 'return subtotal - discount + shipping;',
              new: 'return subtotal - discount;',
            },
          },
        ],
        model: 'gpt-5',
        provider: 'openai',
        stop_reason: 'function_call',
        timestamp: 1796032811900,
      },
      {
        role: 'function_result',
        function_call_id: 'call_2',
        function_id: 'file::edit',
        content: [{ type: 'text', text: 'Replaced 1 passage in src/checkout.ts.' }],
        is_error: false,
        timestamp: 1796032812300,
      },
      {
        role: 'custom',
        custom_type: 'ui_marker',
        content: [{ type: 'text', text: 'Checkpoint saved' }],
        display: 'Checkpoint saved',
        timestamp: 1796032812400,
      },
      {
        role: 'assistant',
        content: [
          {
            type: 'text',
            text: 'Fixed: applyVoucher no longer adds shipping, which the total had counted already. All 18 tests pass.',
          },
        ],
        model: 'gpt-5',
        provider: 'openai',
        stop_reason: 'end',
        timestamp: 1796032818000,
      },
    ],
  },
});
