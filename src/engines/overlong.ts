/** Finds the text of a request that is too long to be encoded. Pure; it counts nothing. */
import type { AgentFunction, AgentMessage } from '../transcript/message.ts';
import { type EstimatorChoice, messageText, selectEstimator, toolText, utf8Bytes } from './estimator.ts';

/** A text is encoded in one go, which takes 0.2 s at worst for so many bytes of UTF-8 and 40 ms for ordinary ones. */
export const MAX_ENCODED_TEXT_BYTES = 1_048_576;

const MAX_UTF8_BYTES_PER_UNIT = 3;

/** The part of a context operation's request that is counted. */
export interface TextsToCount {
  readonly messages: readonly AgentMessage[];
  readonly model?: { readonly id: string } | null;
  readonly system_prompt?: string | null;
  readonly tools?: readonly AgentFunction[] | null;
  readonly options?: { readonly estimator?: EstimatorChoice | null; readonly previous_summary?: string | null } | null;
}

/** The path of the first message, prompt, tool or summary whose text is over the bound, if any. The heuristic has no bound. */
export function findOverlongText(request: TextsToCount): (string | number)[] | undefined {
  const { messages, model, system_prompt, tools, options } = request;
  if (selectEstimator(model?.id ?? '', options?.estimator) === 'heuristic') return undefined;
  const message = messages.findIndex((each) => isOverlong(messageText(each)));
  if (message >= 0) return ['messages', message];
  if (isOverlong(system_prompt ?? '')) return ['system_prompt'];
  if (isOverlong(options?.previous_summary ?? '')) return ['options', 'previous_summary'];
  const tool = tools?.findIndex((each) => isOverlong(toolText(each))) ?? -1;
  return tool >= 0 ? ['tools', tool] : undefined;
}

function isOverlong(text: string): boolean {
  return text.length * MAX_UTF8_BYTES_PER_UNIT > MAX_ENCODED_TEXT_BYTES && utf8Bytes(text) > MAX_ENCODED_TEXT_BYTES;
}
