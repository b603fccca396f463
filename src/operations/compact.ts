/** The operation compact: its texts, price and wire shapes, and the lease under which its engine runs. */
import { z } from 'zod';
import { compact as compactHistory, COMPACT_VERSION, type CompactResult } from '../engines/compact.ts';
import { defineOperation } from '../operation.ts';
import { keptOf } from '../engines/tail.ts';
import { writeRequest } from '../transcript/formats/conversation.ts';
import {
  addOverlongText,
  estimatorName,
  modelInput,
  openingIndex,
  summaryOptions,
  tokens,
  versions,
} from './context-schema.ts';
import { loadEstimator } from './estimators.ts';
import { exampleConversation } from './example-conversation.ts';
import { leaseKeyOf } from './leases.ts';
import {
  addUnreadable,
  elementIndex,
  nativeFields,
  nativeMessages,
  type NativeRead,
  neutralFormat,
  optionsFor,
  repairsOutput,
  reportOf,
  takeEither,
} from './native.ts';
import { pause } from './pause.ts';
import { modelVersions, resolveModelOr422 } from './resolved-model.ts';
import { amount, messages, optional } from './transcript-schema.ts';

const beside = {
  model: modelInput,
  options: optional(
    z.strictObject({
      ...summaryOptions,
      preserve_recent_tokens: amount.describe(
        'How many tokens the newest messages may keep; a quarter of what is usable, from 2000 to 8000.',
      ),
    }),
  ),
};
const input = z.discriminatedUnion('format', [
  z.strictObject({ format: neutralFormat, messages, ...beside }).superRefine(addOverlongText),
  z.strictObject({ ...nativeFields, ...beside }).superRefine(addUnreadable),
]);

const common = { estimator: estimatorName, repairs: repairsOutput, versions };
const output = z.discriminatedUnion('status', [
  z.looseObject({
    status: z.literal('ok'),
    summary: z.string().describe('Markdown with eight sections. Keep it, and send it as previous_summary next time.'),
    tail_start_index: tokens
      .nullable()
      .describe('Index in your messages from which they stay as they are; null where all were summarised.'),
    opening_message_index: openingIndex,
    tokens_before: tokens.describe('Of the messages that were summarised.'),
    tokens_after: tokens.describe('Of the summary and the messages that stay.'),
    used_prior_summary: z.boolean(),
    messages: nativeMessages
      .optional()
      .describe('With a provider’s format: the messages that stay, all instructions among them.'),
    system: z
      .unknown()
      .optional()
      .describe(
        'With a provider’s format: what stands beside them, with the instructions that had no place among them.',
      ),
    ...common,
  }),
  z.looseObject({ status: z.literal('busy').describe('Another call holds the lease. Not charged.'), ...common }),
  z.looseObject({
    status: z.literal('empty').describe('Nothing to summarise, or no summary that is smaller. Not charged.'),
    ...common,
  }),
  z.looseObject({ status: z.literal('overflow').describe('The summariser failed. Not charged.'), ...common }),
]);

export const compact = defineOperation({
  id: 'compact',
  version: COMPACT_VERSION,
  title: 'Summarise the older part of an agent conversation and keep the newest turns as they are',
  summary: 'Summarise the older part of an agent conversation and keep the newest turns as they are',
  description:
    'Writes a summary of the older messages in eight sections (goal, constraints, progress, decisions, actions, next steps, context, files) and says from which index on the messages stay. The summary is made without a model: the same messages give the same text, and it keeps exact paths, ids, numbers and errors. A call and its result are never parted. With previous_summary it updates that one. busy, empty and overflow are answers that are not charged.',
  roi: 'Replaces a summarising model call of thousands of tokens, and the same history always gives the same summary.',
  audience: 'agent-infra',
  price: '10000',
  input,
  invalidRequestCode: 'context/invalid_request',
  output,
  // Arguments and parameters are counted as the JSON that was sent.
  dependsOnKeyOrder: true,
  async run(request, { config, catalog, summarizer, leases }) {
    const model = resolveModelOr422(request.model, catalog, config);
    if ('problem' in model) return model;
    const estimator = await loadEstimator(request.model.id, request.options?.estimator);
    const { neutral, native } = takeEither(request);
    const history = { ...neutral, model: request.model, options: optionsFor(native, request.options ?? null) };
    const work = () => compactHistory(history, { config, model, estimator, summarizer, pause });
    const key = await leaseKeyOf(history);
    const result = (await leases.hold(key, config.lease_ttl_secs, work)) ?? { status: 'busy' as const };
    const data = {
      ...(native ? tailOf(native, result) : result),
      estimator: estimator.name,
      versions: {
        engine: `compact/${COMPACT_VERSION}`,
        ...estimator.versions,
        summarizer: summarizer.name,
        lease: result.status === 'busy' ? 'none' : 'held',
        config,
        model: modelVersions(model),
      },
    };
    const reproducible = summarizer.deterministic && result.status !== 'busy';
    return { kind: 'answer', billable: result.status === 'ok', reproducible, data };
  },
  example: {
    model: { id: 'gpt-5' },
    messages: exampleConversation,
    options: { preserve_recent_tokens: 400 },
  },
});

/** The answer in the provider's terms. */
function tailOf(native: NativeRead, result: CompactResult | { readonly status: 'busy' }) {
  const { conversation, system } = native;
  if (result.status !== 'ok') return { ...result, ...reportOf(native) };
  const { tail_start_index, opening_message_index: opening, ...rest } = result;
  const left = keptOf(conversation.messages, { start: tail_start_index ?? undefined, opening });
  return {
    ...rest,
    tail_start_index: tail_start_index === null ? null : elementIndex(native, tail_start_index),
    ...(opening !== undefined && { opening_message_index: elementIndex(native, opening) }),
    ...writeRequest(conversation, left, system),
    ...reportOf(native),
  };
}
