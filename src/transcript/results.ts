/**
 * Where a conversation's function results stand and which call each of them answers, which cuts between messages part no
 * such pair, and where user turns begin. Pure; it repairs nothing.
 */
import type { AgentMessage, ContentBlock, FunctionResultBlock, FunctionResultMessage, UserMessage } from './message.ts';

/**
 * A result, and where it stands: as a message of its own, or as a block of a user message. Only the place tells which, since
 * unknown fields may make either look like the other.
 */
export type ResultPlace = {
  /** Index of the message that the result is or stands in. */
  readonly message: number;
  /** Index of the message with the call that it answers, if there is one. */
  readonly call: number | undefined;
  /** As the message says; a block has it from its call. */
  readonly function_id: string | undefined;
} & (
  | { readonly block: undefined; readonly result: FunctionResultMessage }
  /** Of a block, its index in the content. */
  | { readonly block: number; readonly result: FunctionResultBlock }
);

/** Set on a result whose provider has no place for another text in it. */
export const FIXED = Symbol('fixed');

/** Whether something else may be put in the place of what a result says. */
export const isReplaceable = ({ result }: ResultPlace): boolean => !(FIXED in result);

/** The calls of one id in the newest message that has any, and how many of them were answered. */
interface OpenCalls {
  readonly message: number;
  readonly function_ids: string[];
  answered: number;
}

/**
 * All results in transcript order. Only assistants call. Ids may come again in later turns, so each result answers a call of
 * the newest message before it that has the id; where that has several, they are answered in their order, and further results answer the last.
 */
export function placeResults(messages: readonly AgentMessage[]): ResultPlace[] {
  const calls = new Map<string, OpenCalls>();
  const places: ResultPlace[] = [];
  const answer = (id: string): { call: number | undefined; function_id: string | undefined } => {
    const open = calls.get(id);
    const function_id = open?.function_ids[Math.min(open.answered, open.function_ids.length - 1)];
    if (open) open.answered += 1;
    return { call: open?.message, function_id };
  };
  for (const [index, message] of messages.entries()) {
    if (message.role === 'custom') continue;
    if (message.role === 'function_result') {
      const { function_id, function_call_id } = message;
      places.push({ ...answer(function_call_id), function_id, message: index, block: undefined, result: message });
      continue;
    }
    for (const [at, block] of message.content.entries()) {
      if (block.type === 'function_call' && message.role === 'assistant') {
        const open = calls.get(block.id);
        if (open?.message === index) open.function_ids.push(block.function_id);
        else calls.set(block.id, { message: index, function_ids: [block.function_id], answered: 0 });
      } else if (block.type === 'function_result' && message.role === 'user') {
        places.push({ ...answer(block.function_call_id), message: index, block: at, result: block });
      }
    }
  }
  return places;
}

/**
 * For each index, whether a conversation may begin there without parting a call from its result: at an assistant message
 * or a user message without results, where no pair stands on both sides.
 */
export function safeStarts(messages: readonly AgentMessage[], places: readonly ResultPlace[]): boolean[] {
  /** The last message that answers a call of this one or of an earlier one. */
  let answeredUntil = -1;
  const lastAnswers = new Map<number, number>();
  for (const { call, message } of places) if (call !== undefined) lastAnswers.set(call, message);
  return messages.map((message, index) => {
    const parts = index <= answeredUntil;
    answeredUntil = Math.max(answeredUntil, lastAnswers.get(index) ?? -1);
    return !parts && (message.role === 'assistant' || (message.role === 'user' && !message.content.some(isResult)));
  });
}

/** A user message begins a turn, except one that brings nothing but results: that belongs to the turn before it. */
export function beginsTurn(message: AgentMessage): message is UserMessage {
  return message.role === 'user' && (message.content.length === 0 || !message.content.every(isResult));
}

/** What a result says from now on. `details` are a message's only. */
export type Change = Pick<FunctionResultMessage, 'content' | 'details'>;
export type Replacement = Pick<ResultPlace, 'message' | 'block'> & { readonly by: Change };

/** The conversation with these results replaced. Every other message stays the very same object. */
export function replaceResults(
  messages: readonly AgentMessage[],
  replacements: readonly Replacement[],
): readonly AgentMessage[] {
  const copies = [...messages];
  const contents = new Map<number, ContentBlock[]>();
  for (const { message, block, by } of replacements) {
    const holder = messages[message];
    if (!holder) continue;
    if (block === undefined) {
      copies[message] = { ...holder, ...by };
      continue;
    }
    const content = contents.get(message) ?? [...holder.content];
    contents.set(message, content);
    const part = content[block];
    if (part) content[block] = { ...part, ...by };
    copies[message] = { ...holder, content };
  }
  return copies;
}

const isResult = (block: ContentBlock): block is FunctionResultBlock => block.type === 'function_result';
