/**
 * The wire shapes of a conversation: messages, their blocks, and tools. Optional fields accept null as absent. Unknown fields
 * pass, as they belong to whoever made the conversation.
 */
import { z } from 'zod';
import type { AgentFunction, AgentMessage, ContentBlock } from '../transcript/message.ts';

export function optional<Schema extends z.ZodType>(schema: Schema): z.ZodExactOptional<z.ZodNullable<Schema>> {
  return schema.nullable().exactOptional();
}

const anyJson = z.unknown().exactOptional();

/** Beyond any model's window or bill, and so small that thousands of them add up exactly. */
const MAX_AMOUNT = 1e12;
export const wholeAmount = z.int().min(0).max(MAX_AMOUNT);
export const amount = optional(wholeAmount);

const block: z.ZodType<ContentBlock> = z
  .discriminatedUnion('type', [
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({
      type: z.literal('image'),
      data: z.string().describe('Base64 of the image. Its size does not matter: an image has one price.'),
      mime: z.string().describe('For example image/png.'),
    }),
    z.looseObject({
      type: z.literal('file'),
      attachment_id: z.string(),
      mime: z.string(),
      name: z.string(),
      size: z.int().min(0).describe('Bytes.'),
    }),
    z.looseObject({ type: z.literal('thinking'), text: z.string(), signature: optional(z.string()) }),
    z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() }),
    z.looseObject({
      type: z.literal('function_call'),
      id: z.string().describe('Repeated by the result of this call.'),
      function_id: z.string(),
      arguments: anyJson.describe('Any JSON; absent means null.'),
    }),
    z.looseObject({
      type: z.literal('function_result'),
      function_call_id: z.string(),
      get content() {
        return content;
      },
      is_error: optional(z.boolean()),
    }),
  ])
  .meta({ id: 'ContentBlock', description: 'One piece of the content of a message.' });

const content = z.array(block).meta({ id: 'Content', description: 'Blocks in reading order.' });
const timestamp = z.int().describe('Milliseconds since the epoch.');

export const agentMessage: z.ZodType<AgentMessage> = z
  .discriminatedUnion('role', [
    z.looseObject({ role: z.literal('user'), content, timestamp }),
    z.looseObject({
      role: z.literal('assistant'),
      content,
      timestamp,
      model: z.string(),
      provider: z.string(),
      stop_reason: z.enum(['end', 'length', 'function_call', 'aborted', 'error']),
      native_stop_reason: optional(z.string()),
      error_kind: optional(z.enum(['auth_expired', 'rate_limited', 'context_overflow', 'transient', 'permanent'])),
      error_message: optional(z.string()),
      usage: optional(
        z.looseObject({
          input: amount,
          output: amount,
          cache_read: amount,
          cache_write: amount,
          reasoning: amount,
          cost_usd: optional(z.number()),
        }),
      ),
      warnings: optional(z.array(z.string())),
    }),
    z.looseObject({
      role: z.literal('function_result'),
      content,
      timestamp,
      function_call_id: z.string().describe('The id of the call that this answers.'),
      function_id: z.string(),
      details: anyJson.describe('For the application. Not counted, unless its status is "denied".'),
      is_error: optional(z.boolean()),
    }),
    z.looseObject({
      role: z.literal('custom'),
      content,
      timestamp,
      custom_type: z.string(),
      display: optional(z.string()),
      details: anyJson,
    }),
  ])
  .meta({ id: 'AgentMessage', description: 'A message of a conversation, by its role.' });

/** What makes a request's `messages` unusable altogether is said in the words that its callers know. */
export const messages = z
  .array(agentMessage, { error: ({ input }) => (isMissing(input) ? 'messages is required' : undefined) })
  .describe('The conversation, oldest message first.');

const isMissing = (value: unknown): boolean => value === undefined || value === null;

export const agentFunction: z.ZodType<AgentFunction> = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    parameters: anyJson.describe('JSON Schema of the arguments; absent means null.'),
    label: optional(z.string()),
    execution_mode: optional(z.enum(['parallel', 'sequential'])),
  })
  .meta({ id: 'AgentFunction', description: 'A function that the model may call.' });

/** What stands beside the messages. */
export const besideMessages = { system_prompt: optional(z.string()), tools: optional(z.array(agentFunction)) };
