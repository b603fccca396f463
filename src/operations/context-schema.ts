/** What the requests and answers of the context operations share beside the conversation. Unknown fields of a request are refused. */
import { z } from 'zod';
import { SUMMARY_MIN_TOKENS } from '../engines/compact.ts';
import { ESTIMATOR_CHOICES } from '../engines/estimator.ts';
import { findOverlongText, MAX_ENCODED_TEXT_BYTES, type TextsToCount } from '../engines/overlong.ts';
import { amount, optional, wholeAmount } from './transcript-schema.ts';
import { addTooLarge } from './validate.ts';

// Requests

export const modelInput = z
  .strictObject({
    id: z.string().describe('For example gpt-5 or claude-sonnet-4.'),
    provider: optional(z.string()),
    limits: optional(
      z.strictObject({
        context_window: wholeAmount,
        max_output_tokens: wholeAmount,
        input_limit: amount,
      }),
    ).describe('In tokens.'),
  })
  .describe('The model that the conversation is meant for. Its id selects how tokens are counted.');

export const estimatorChoice = optional(z.enum(ESTIMATOR_CHOICES)).describe(
  'auto, the default, goes by the model. o200k_base and cl100k_base count by that encoding, heuristic takes four bytes for a token.',
);

export const functionIds = optional(z.array(z.string()));

const LEASE_KEY_MAX_CHARS = 1_024;

/** The options by which a summary is made. */
export const summaryOptions = {
  previous_summary: optional(z.string()).describe('The summary of an earlier call, which the new one updates.'),
  summary_tokens: optional(z.int().min(SUMMARY_MIN_TOKENS)).describe(
    'The summary is never longer; a tenth of what it stands for, from 256 to 2048.',
  ),
  tail_turns: amount.describe('How many of the newest user turns stay as they are if they fit; 2.'),
  lease_key: optional(z.string().max(LEASE_KEY_MAX_CHARS)).describe(
    'Of your calls with the same key only one compacts at a time. By default the messages are the key.',
  ),
  estimator: estimatorChoice,
  user_first: optional(z.boolean()).describe(
    'The messages begin with a user’s, as some providers want; where the tail does not, the newest one of those summarised stands before it. By default only where the format wants it.',
  ),
};

/** With an encoding, a text is encoded in one go, so each has a bound. */
export function addOverlongText(request: TextsToCount, context: z.RefinementCtx): void {
  const path = findOverlongText(request);
  if (path) addTooLarge(context, path, MAX_ENCODED_TEXT_BYTES);
}

// Answers: open where the published schemas are open, so that more can be told without breaking a reader.

export const tokens = z.int().min(0);

export const openingIndex = tokens
  .optional()
  .describe('With user_first: index in your messages of the one that stands before the tail.');

export const estimatorName = z
  .enum(['tokenizer', 'heuristic'])
  .describe('tokenizer: counted by the encoding that versions names. heuristic: four bytes for a token.');

export const byRole = z.looseObject({ user: tokens, assistant: tokens, function_result: tokens, custom: tokens });

export const breakdown = z
  .looseObject({
    system_prompt_tokens: tokens,
    tools_tokens: tokens,
    reply_priming_tokens: tokens.describe('What frames the reply: 2 with a tokenizer if there is anything to count.'),
    request_overhead_tokens: tokens,
    by_role: byRole,
    estimator: estimatorName,
  })
  .describe('The parts of the total, which they add up to exactly.');

export const versions = z
  .looseObject({})
  .describe(
    'What the answer depends on: engine, encoding and digest of its table, configuration, limits of the model.',
  );
