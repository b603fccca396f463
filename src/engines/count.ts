/**
 * count: the tokens of a request to a model, in all and by what they are spent on; the parts add up to the total exactly.
 * Pure: what to count with and how to let others run are arguments.
 */
import type { AgentFunction, AgentMessage, Role } from '../transcript/message.ts';
import type { Estimator, EstimatorChoice } from './estimator.ts';
import { createMeter, sum } from './meter.ts';

/** Raise it whenever the same request could give other bytes. */
export const COUNT_VERSION = '1.0.0';

/** Null is absent everywhere. */
export interface CountRequest {
  /** Oldest first. */
  readonly messages: readonly AgentMessage[];
  readonly model: ModelInput;
  readonly system_prompt?: string | null;
  readonly tools?: readonly AgentFunction[] | null;
  readonly options?: { readonly estimator?: EstimatorChoice | null } | null;
}

export interface ModelInput {
  readonly id: string;
  readonly provider?: string | null;
  /** In tokens. */
  readonly limits?: {
    readonly context_window: number;
    readonly max_output_tokens: number;
    readonly input_limit?: number | null;
  } | null;
}

// The answer's parts are aliases, not interfaces: only an alias fits a schema of open objects.

/** In tokens. */
export type ByRole = { -readonly [R in Role]: number };

export type Breakdown = {
  system_prompt_tokens: number;
  tools_tokens: number;
  reply_priming_tokens: number;
  request_overhead_tokens: number;
  by_role: ByRole;
  estimator: Estimator['name'];
};

export type CountResult = {
  tokens: number;
  by_role: ByRole;
  estimator: Estimator['name'];
  breakdown: Breakdown;
  /** `engine`, `tokenizer` (`none` for the heuristic) and then its `tokenizerTableDigest`. */
  versions: Record<string, string>;
};

/**
 * Counts each message, the system prompt and each tool once, and what frames the reply if there is anything at all.
 *
 * @param pause lets others run; see `createMeter`.
 */
export async function count(
  request: CountRequest,
  estimator: Estimator,
  pause: () => Promise<void>,
): Promise<CountResult> {
  const { messages, system_prompt, tools } = request;
  const meter = createMeter(pause);
  const sizes = await meter.each(messages, (message) => estimator.message(message));
  const by_role = byRole(messages, sizes);
  const tools_tokens = sum(await meter.each(tools ?? [], (tool) => estimator.tool(tool)));
  const system_prompt_tokens = estimator.text(system_prompt ?? '');
  const counted = sum(sizes) + system_prompt_tokens + tools_tokens;
  const reply_priming_tokens = counted > 0 ? estimator.replyPrimingTokens : 0;
  const { name, versions } = estimator;
  return {
    tokens: counted + reply_priming_tokens,
    by_role,
    estimator: name,
    breakdown: {
      system_prompt_tokens,
      tools_tokens,
      reply_priming_tokens,
      // What a provider adds beside these is the caller's to know; this request has no field for it.
      request_overhead_tokens: 0,
      by_role,
      estimator: name,
    },
    versions: { engine: `count/${COUNT_VERSION}`, ...versions },
  };
}

/** The tokens of the messages by role, given what each of them counts. */
export function byRole(messages: readonly AgentMessage[], sizes: readonly number[]): ByRole {
  const totals: ByRole = { user: 0, assistant: 0, function_result: 0, custom: 0 };
  for (const [index, { role }] of messages.entries()) totals[role] += sizes[index] ?? 0;
  return totals;
}
