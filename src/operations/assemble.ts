/** The operation assemble: its texts, price and wire shapes beside the engine that answers it. */
import { z } from 'zod';
import {
  assemble as assembleContext,
  ASSEMBLE_VERSION,
  type AssembleOptions,
  type AssembleResult,
  digestOf,
} from '../engines/assemble.ts';
import { CAP_MIN_TOKENS } from '../engines/cap.ts';
import { THINKING_LEVELS } from '../engines/model-catalog.ts';
import { defineOperation } from '../operation.ts';
import { lastEntryAt, writeRequest } from '../transcript/formats/conversation.ts';
import {
  addOverlongText,
  breakdown,
  functionIds,
  modelInput,
  openingIndex,
  summaryOptions,
  tokens,
  versions,
} from './context-schema.ts';
import { loadEstimator } from './estimators.ts';
import { exampleConversation, exampleSystemPrompt, exampleTools } from './example-conversation.ts';
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
import { agentMessage, amount, besideMessages, messages, optional } from './transcript-schema.ts';

const common = {
  model: modelInput,
  options: optional(
    z.strictObject({
      ...summaryOptions,
      reserved_tokens: amount.describe('Set aside for what is added later; 10 % of the window, at most 20000.'),
      thinking_level: optional(z.enum(THINKING_LEVELS)).describe(
        'Sets the model’s thinking budget of this level aside.',
      ),
      request_overhead_tokens: amount.describe('What your request takes beside prompt, messages and tools.'),
      allow_prune: optional(z.boolean()),
      allow_compaction: optional(z.boolean()),
      protected_functions: functionIds.describe(
        'Results of these are not pruned; if nothing else helps they are reduced.',
      ),
      max_result_tokens: optional(z.int().min(CAP_MIN_TOKENS)).describe(
        'Cuts the middle out of every result that says more. Off by default.',
      ),
      cache_breakpoint: optional(z.int().min(-1)).describe(
        'Index of the last message of a cached prefix: nothing up to it is changed, and nothing is compacted.',
      ),
    }),
  ),
};
const input = z.discriminatedUnion('format', [
  z.strictObject({ format: neutralFormat, messages, ...besideMessages, ...common }).superRefine((request, context) => {
    addOverlongText(request, context);
    addBadBreakpoint(request, context);
  }),
  z.strictObject({ ...nativeFields, ...common }).superRefine((request, context) => {
    addUnreadable(request, context);
    addBadBreakpoint(request, context);
  }),
]);

function addBadBreakpoint(
  request: {
    readonly messages: readonly unknown[];
    readonly options?: { readonly cache_breakpoint?: number | null } | null;
  },
  context: z.RefinementCtx,
): void {
  if ((request.options?.cache_breakpoint ?? -1) < request.messages.length) return;
  const message = 'there is no message of this index';
  context.addIssue({ code: 'custom', path: ['options', 'cache_breakpoint'], message });
}

const output = z.looseObject({
  system_prompt: z.string().optional().describe('Yours, and after it the summary if there is one.'),
  system: z
    .unknown()
    .describe(
      'With a provider’s format: the same as it takes it beside the array; absent where it stands in the array.',
    ),
  messages: z
    .union([z.array(agentMessage), nativeMessages])
    .describe('What to send to the model: without custom messages; empty only where there was nothing else.'),
  token_count: tokens.describe('Everything together; never more than usable.'),
  usable: tokens,
  effective_max_output_tokens: tokens,
  model_resolved: z
    .enum(['inline', 'router', 'fallback'])
    .describe('Whether the limits are yours, the catalogue’s, or the fallback of 8192/1024.'),
  applied: z
    .looseObject({
      initial_token_count: tokens,
      pruned: z.boolean(),
      pruned_tokens: tokens,
      compacted: z.boolean(),
      capped_parts: tokens.optional(),
      capped_tokens: tokens.optional(),
      summary: z.string().optional().describe('Keep it, and send it as previous_summary next time.'),
      tail_start_index: tokens.optional().describe('Index in your messages of the first one that stays.'),
      opening_message_index: openingIndex,
      tokens_before: tokens.optional().describe('Of the messages that were summarised.'),
      summarized_head_tokens: tokens.optional().describe('The same as tokens_before.'),
      prefix: z
        .looseObject({ messages: tokens, tokens, sha256: z.string() })
        .optional()
        .describe('The cached prefix, unchanged: SHA-256 of the RFC 8785 JSON of its messages.'),
    })
    .describe('What was done to make it fit.'),
  breakdown,
  repairs: repairsOutput,
  versions,
});

const BUSY_RETRY_AFTER_SECONDS = 5;

export const assemble = defineOperation({
  id: 'assemble',
  version: ASSEMBLE_VERSION,
  title: 'Build the context of the next model call so that it fits the window',
  summary: 'Build the context of the next model call so that it fits the window',
  description:
    'Takes the whole history and gives back system prompt and messages that fit what the model can take, by an exact count. Only as far as needed it prunes old results, summarises the older part (without a model) and reduces results to references. Calls and results stay together, custom messages stay out, and with cache_breakpoint the cached prefix stays byte for byte. If nothing can make it fit the answer is context/overflow, not charged.',
  roi: 'One call before each model call, and no request is ever refused for its length.',
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
    const whole = { ...neutral, model: request.model, options: optionsFor(native, request.options ?? null) };
    let isLeased = false;
    const assembled = await assembleContext(whole, {
      config,
      model,
      estimator,
      summarizer,
      pause,
      withLease: async (work) => {
        isLeased = true;
        return leases.hold(await leaseKeyOf(whole), config.lease_ttl_secs, work);
      },
    });
    if (assembled.kind === 'overflow') {
      const { kind: _, ...overflow } = assembled;
      return { kind: 'problem', billable: false, problem: { code: 'context/overflow', ...overflow } };
    }
    if (assembled.kind === 'busy') {
      return {
        kind: 'problem',
        billable: false,
        problem: { code: 'busy', retry_after_seconds: BUSY_RETRY_AFTER_SECONDS },
      };
    }
    const result = native ? await inNativeTerms(native, request, assembled.result) : assembled.result;
    const versionsUsed = {
      engine: `assemble/${ASSEMBLE_VERSION}`,
      ...estimator.versions,
      ...((result.applied.compacted || isLeased) && {
        summarizer: summarizer.name,
        lease: isLeased ? 'held' : 'none',
      }),
      config,
      model: modelVersions(model),
    };
    // What a model was asked for may come out another time, whether or not it was used.
    return { kind: 'answer', billable: true, reproducible: !isLeased, data: { ...result, versions: versionsUsed } };
  },
  example: {
    model: { id: 'gpt-5', limits: { context_window: 2000, max_output_tokens: 500 } },
    system_prompt: exampleSystemPrompt,
    tools: exampleTools,
    messages: exampleConversation,
  },
});

async function inNativeTerms(
  native: NativeRead,
  { system, options }: { readonly system?: unknown; readonly options?: AssembleOptions | null },
  { system_prompt, messages: left, applied, ...rest }: AssembleResult,
) {
  const { format, entries, system: instructions = '' } = native.conversation;
  const said = writeRequest(native.conversation, left, system);
  // Whatever stands in the prompt beside the caller's instructions is the summary.
  const summary = system_prompt.slice(instructions.trimEnd().length).trim();
  const cachedUntil = lastEntryAt(native.conversation, options?.cache_breakpoint ?? -1);
  const { prefix, tail_start_index: tail, opening_message_index: opening } = applied;
  const cached = entries.slice(0, cachedUntil + 1).map(({ native: element }) => element);
  return {
    ...(summary ? format.addInstruction(said, summary) : said),
    ...rest,
    applied: {
      ...applied,
      ...(tail !== undefined && { tail_start_index: elementIndex(native, tail) }),
      ...(opening !== undefined && { opening_message_index: elementIndex(native, opening) }),
      ...(prefix && { prefix: { ...prefix, messages: cached.length, sha256: await digestOf(cached) } }),
    },
    ...reportOf(native),
  };
}
