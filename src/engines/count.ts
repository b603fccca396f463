/**
 * count: the tokens of a request to a model, in all and by what they are spent on; the parts add up to the total exactly.
 * Pure: what to count with and how to let others run are arguments.
 */
import type { AgentFunction, AgentMessage, Role } from '../transcript/message.ts';
import {
  type Estimator,
  type EstimatorChoice,
  messageText,
  selectEstimator,
  toolText,
  utf8Bytes,
} from './estimator.ts';

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

/** 10 ms of counting ordinary text, 60 ms of the worst. */
const PAUSE_AFTER_TOKENS = 32_768;

/**
 * Counts each message, the system prompt and each tool once, and what frames the reply if there is anything at all.
 *
 * @param pause lets others run; it is awaited between two texts after every so many tokens.
 */
export async function count(
  request: CountRequest,
  estimator: Estimator,
  pause: () => Promise<void>,
): Promise<CountResult> {
  const { messages, system_prompt, tools } = request;
  let sincePause = 0;
  const paced = async (tokens: number): Promise<number> => {
    sincePause += tokens;
    if (sincePause >= PAUSE_AFTER_TOKENS) {
      sincePause = 0;
      await pause();
    }
    return tokens;
  };

  const by_role: ByRole = { user: 0, assistant: 0, function_result: 0, custom: 0 };
  for (const message of messages) {
    const tokens = await paced(estimator.message(message));
    by_role[message.role] += tokens;
  }
  let tools_tokens = 0;
  for (const tool of tools ?? []) {
    const tokens = await paced(estimator.tool(tool));
    tools_tokens += tokens;
  }
  const system_prompt_tokens = estimator.text(system_prompt ?? '');
  const inMessages = by_role.user + by_role.assistant + by_role.function_result + by_role.custom;
  const counted = inMessages + system_prompt_tokens + tools_tokens;
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
      by_role: { ...by_role },
      estimator: name,
    },
    versions: { engine: `count/${COUNT_VERSION}`, ...versions },
  };
}

/** A text is encoded in one go, which takes 0.8 s at worst for so many bytes of UTF-8 and 40 ms for ordinary ones. */
export const MAX_ENCODED_TEXT_BYTES = 1_048_576;

const MAX_UTF8_BYTES_PER_UNIT = 3;

/** The path of the first message, prompt or tool whose text is too long to be encoded, if any. The heuristic has no such bound. */
export function findOverlongText(request: CountRequest): (string | number)[] | undefined {
  const { messages, system_prompt, tools, model, options } = request;
  if (selectEstimator(model.id, options?.estimator) === 'heuristic') return undefined;
  const message = messages.findIndex((each) => isOverlong(messageText(each)));
  if (message >= 0) return ['messages', message];
  if (isOverlong(system_prompt ?? '')) return ['system_prompt'];
  const tool = tools?.findIndex((each) => isOverlong(toolText(each))) ?? -1;
  return tool >= 0 ? ['tools', tool] : undefined;
}

function isOverlong(text: string): boolean {
  return text.length * MAX_UTF8_BYTES_PER_UNIT > MAX_ENCODED_TEXT_BYTES && utf8Bytes(text) > MAX_ENCODED_TEXT_BYTES;
}
