/**
 * The operation conversation-prune: its texts, price and wire shapes beside the engine that answers it. The schemas
 * validate only; defaults belong to the engine, since the request is digested as supplied.
 */
import { z } from 'zod';
import {
  CONVERSATION_PRUNE_VERSION,
  conversationPrune as prune,
  DEFAULT_TOKENIZER,
  needsTokenizer,
  type PruneRequest,
  type PruneResult,
} from '../engines/conversation-prune.ts';
import { messageText } from '../engines/estimator.ts';
import { type NativePruneRequest, pruneNative } from '../engines/native-prune.ts';
import type { JsonObject } from '../json.ts';
import { defineOperation } from '../operation.ts';
import { messageOf } from '../transcript/formats/conversation.ts';
import { type Encoding, isEncodingName, loadEncoding } from '../tokenizer/encoding.ts';
import {
  addUnreadable,
  isNative,
  type NativeInput,
  nativeFields,
  nativeMessages,
  neutralFormat,
  readNative,
  repairsOutput,
  reportOf,
  takeNative,
} from './native.ts';

const MAX_MESSAGES = 500;
const MAX_CONTENT_CHARS = 100_000;
const MAX_TOTAL_CONTENT_CHARS = 400_000;
const MAX_ID_CHARS = 100;
const MAX_ROLE_CHARS = 32;
const MAX_TOOL_CALL_ID_CHARS = 200;
const MAX_TOKENIZER_NAME_CHARS = 64;
const MAX_TOKENS = 100_000_000;
const MAX_KEEP_RECENT_MESSAGES = 100;

const TOO_MUCH = `at most ${MAX_TOTAL_CONTENT_CHARS} characters of content in all messages together`;

const NO_SUCH_MESSAGE = 'expected the index of a message';

const KINDS = ['text', 'tool_call', 'tool_result'] as const;

const message = z.strictObject({
  id: z.string().max(MAX_ID_CHARS).exactOptional(),
  role: z.string().min(1).max(MAX_ROLE_CHARS).describe('user, assistant, tool, system, ...'),
  kind: z
    .enum(KINDS)
    .describe(
      'tool_call: assistant message holding a tool call; tool_result: its output. Pairs are matched by toolCallId. Default text.',
    )
    .exactOptional(),
  toolCallId: z
    .string()
    .max(MAX_TOOL_CALL_ID_CHARS)
    .describe('Pairs a tool_call with its tool_result.')
    .exactOptional(),
  content: z
    .string()
    .max(MAX_CONTENT_CHARS)
    .describe('Message text, used only to count tokens when tokens is absent.')
    .exactOptional(),
  tokens: z.int().min(0).max(MAX_TOKENS).describe('Caller-supplied token count; always accepted.').exactOptional(),
  pinned: z.boolean().describe('Never dropped.').exactOptional(),
  droppable: z
    .boolean()
    .describe('A text message that may be dropped (tool pairs are droppable by default).')
    .exactOptional(),
});

const common = {
  cacheBreakpoint: z
    .int()
    .min(-1)
    .max(MAX_MESSAGES - 1)
    .describe('Index of the last message inside the cached prefix; -1 when nothing is cached.'),
  targetTokens: z.int().min(0).max(MAX_TOKENS).describe('Total tokens to get at or under.'),
  keepRecent: z
    .int()
    .min(0)
    .max(MAX_KEEP_RECENT_MESSAGES)
    .describe('Most recent messages that are never dropped. Default 4.')
    .exactOptional(),
  strategy: z
    .enum(['oldest-first', 'largest-first'])
    .describe('Order in which droppable units are removed. Default oldest-first.')
    .exactOptional(),
  tokenizer: z
    .string()
    .max(MAX_TOKENIZER_NAME_CHARS)
    .describe(
      'o200k_base or cl100k_base. Any other name (including Claude models) returns status unsupported for items that need counting; caller token counts are always accepted.',
    )
    .exactOptional(),
};

const indices = z
  .array(
    z
      .int()
      .min(0)
      .max(MAX_MESSAGES - 1),
  )
  .max(MAX_MESSAGES);

const neutralInput = z.strictObject({
  format: neutralFormat,
  messages: z
    .array(message)
    .min(1)
    .max(MAX_MESSAGES)
    .refine((messages) => fitInTotal(messages.map(({ content = '' }) => content)), TOO_MUCH)
    .describe(`Up to ${MAX_MESSAGES}; ${MAX_TOTAL_CONTENT_CHARS} characters of content in total.`),
  ...common,
});

const input = z.discriminatedUnion('format', [
  neutralInput,
  z
    .strictObject({
      ...nativeFields,
      messages: nativeFields.messages.min(1).max(MAX_MESSAGES),
      ...common,
      pinned: indices.describe('Indices of messages that are never dropped.').exactOptional(),
      droppable: indices
        .describe(
          'Indices of messages that may be dropped though they are no calls and results. Instructions, the newest user message and, where the provider wants a user first, the first one stay.',
        )
        .exactOptional(),
    })
    .superRefine(addUnreadable)
    .superRefine(({ messages, pinned = [], droppable = [] }, context) => {
      for (const [field, list] of Object.entries({ pinned, droppable })) {
        const beyond = list.findIndex((index) => index >= messages.length);
        if (beyond >= 0) context.addIssue({ code: 'custom', path: [field, beyond], message: NO_SUCH_MESSAGE });
      }
    })
    .refine(fitsInTotalRead, { error: TOO_MUCH, path: ['messages'] }),
]);

// Open where the published schema is open, so that more evidence can come without breaking a reader. Whatever stands in
// every answer is required, which the published schema leaves unsaid.
const output = z.looseObject({
  status: z
    .enum(['pass', 'fail', 'unknown', 'unsupported'])
    .describe(
      'pass: every rule held. fail: a rule was violated (see witnesses). unknown: the input lacks the evidence to decide. unsupported: outside what this engine covers. Missing evidence is never a pass.',
    ),
  keep: z.array(z.int()).max(MAX_MESSAGES).describe('Indices of messages to keep, ascending.'),
  messages: nativeMessages
    .optional()
    .describe('With a provider’s format: the messages to keep, as they were supplied.'),
  repairs: repairsOutput,
  dropped: z
    .array(
      z.strictObject({
        index: z.int(),
        id: z.string().exactOptional(),
        role: z.string(),
        kind: z.string(),
        tokens: z.int(),
        reason: z.enum(['stale-tool-pair', 'droppable']),
        pairedWith: z.int().exactOptional(),
      }),
    )
    .max(MAX_MESSAGES),
  tokensBefore: z.int().exactOptional(),
  tokensAfter: z.int().exactOptional(),
  targetMet: z.boolean().exactOptional(),
  prefix: z.strictObject({
    messages: z.int(),
    tokens: z.int().exactOptional(),
    sha256: z.string().describe('SHA-256 of the RFC 8785 canonical JSON of the prefix messages exactly as supplied.'),
  }),
  notes: z.array(z.string()).max(20),
  witnesses: z.array(
    z.looseObject({
      ruleId: z.string(),
      detail: z.string(),
      path: z.string().describe('JSON pointer or dotted path into the input.'),
      offset: z.int().exactOptional(),
      index: z.int().exactOptional(),
      expected: z.unknown().describe('What the rule required.'),
      actual: z.unknown().describe('What the input had.'),
    }),
  ),
  versions: z
    .looseObject({})
    .describe(
      'Every semantic dependency of this answer (engine, tables and their as-of dates, tokenizer, calendar, rounding profile).',
    ),
  limits: z.array(z.string()),
  deterministic: z.boolean().describe('Always true: pure code, no model.'),
});

export const conversationPruneExample: z.infer<typeof neutralInput> = {
  messages: [
    { role: 'system', content: 'You are a support agent.', tokens: 400 },
    { role: 'user', content: 'Look up order 1042.', tokens: 20 },
    { role: 'assistant', kind: 'tool_call', toolCallId: 't1', tokens: 30 },
    { role: 'user', kind: 'tool_result', toolCallId: 't1', tokens: 6000 },
    { role: 'assistant', content: 'Order 1042 shipped.', tokens: 15 },
    { role: 'user', content: 'Thanks. Now order 1043.', tokens: 20 },
  ],
  cacheBreakpoint: 1,
  targetTokens: 1000,
  keepRecent: 2,
};

const TITLE = 'Choose which old messages to drop to hit a token target without touching the cached prompt prefix';

export const conversationPrune = defineOperation({
  id: 'conversation-prune',
  version: CONVERSATION_PRUNE_VERSION,
  title: TITLE,
  summary: TITLE,
  description:
    "Takes a conversation, the index of the last message in the provider's cached prefix and a token target; returns what to drop: whole tool call and result pairs, so that no result loses its call, and messages marked droppable, oldest or largest first. Never dropped: the prefix, the last keepRecent messages, pinned ones. The prefix stays byte-identical; its digest proves it. Does not summarize, edit or reorder messages, and does not know any provider's minimum cacheable size or TTL.",
  roi: `Shrinks a long agent transcript, up to ${MAX_MESSAGES} messages per call, without busting the prompt cache.`,
  audience: 'agent-infra',
  price: '5000',
  input,
  output,
  async run(request) {
    const data: PruneResult = isNative(request)
      ? await pruneInFormat(request)
      : await prune(request, await encodingFor(request));
    return { kind: 'answer', billable: data.status === 'pass' || data.status === 'fail', data };
  },
  example: conversationPruneExample,
});

async function pruneInFormat(
  request: NativePruneRequest & NativeInput,
): Promise<PruneResult & { messages: readonly JsonObject[] }> {
  const { tokenizer = DEFAULT_TOKENIZER } = request;
  const native = takeNative(request);
  const encoding = isEncodingName(tokenizer) ? await loadEncoding(tokenizer) : undefined;
  const { result, messages } = await pruneNative(request, native.conversation, encoding);
  return { ...result, messages, ...reportOf(native) };
}

/** A table is loaded only for a request that needs it; the engine tells a missing one from an unneeded one. */
async function encodingFor({ messages, tokenizer = DEFAULT_TOKENIZER }: PruneRequest): Promise<Encoding | undefined> {
  return needsTokenizer(messages) && isEncodingName(tokenizer) ? loadEncoding(tokenizer) : undefined;
}

function fitsInTotalRead(request: NativeInput): boolean {
  const read = readNative(request);
  // What cannot be read has been said already.
  return !read.ok || fitInTotal(read.value.conversation.entries.map((entry) => messageText(messageOf(entry))));
}

function fitInTotal(contents: readonly string[]): boolean {
  // UTF-16 units are never fewer than code points, so only what is over in units has to be counted.
  const units = contents.reduce((total, { length }) => total + length, 0);
  return (
    units <= MAX_TOTAL_CONTENT_CHARS ||
    contents.reduce((total, text) => total + codePoints(text), 0) <= MAX_TOTAL_CONTENT_CHARS
  );
}

/** Characters as JSON Schema counts them. */
function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
