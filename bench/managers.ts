/**
 * Ours and others that make a conversation fit a budget, behind one face. Each gets the conversation in its own form, made
 * beforehand, and the same counter; the others' counter remembers each message that it has counted, which is to their advantage.
 */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  trimMessages,
} from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { type AssistantContent, type ModelMessage, pruneMessages, type UserContent } from 'ai';
import { ClearToolUsesEdit } from 'langchain';
import type { AssembleOptions } from '../src/engines/assemble.ts';
import { type ContextConfig, DEFAULT_CONFIG } from '../src/engines/config.ts';
import type { Estimator } from '../src/engines/estimator.ts';
import { prune } from '../src/engines/prune.ts';
import type { AgentMessage, ContentBlock, FunctionResultMessage } from '../src/transcript/message.ts';
import { resultText } from '../src/transcript/walk.ts';
import type { Conversation } from './conversations.ts';
import { assembleTo, type Context, pause } from './ours.ts';

export interface Job {
  /** The messages as this manager sees them. */
  readonly messages: readonly AgentMessage[];
  /** Does the work, which alone is timed. What it gives reads the outcome: undefined where it said that nothing would fit. */
  readonly run: () => Promise<() => Context | undefined>;
}

export interface Manager {
  readonly name: string;
  readonly short: string;
  prepare(conversation: Conversation, budget: number, counter: Counter): Job;
}

// Counting

/** Counts messages for the managers. */
export interface Counter {
  readonly estimator: Estimator;
  /** How many counts of a message or text it was asked for so far. */
  asked: number;
  /** As `performance.now` has it; who counts later is stopped. */
  readonly deadline: number;
}

export class Stopped extends Error {}

/** The estimator, which is asked for one message or text after another. */
function observed(counter: Counter): Estimator {
  const { estimator } = counter;
  return {
    ...estimator,
    message: (message) => {
      ask(counter, 1);
      return estimator.message(message);
    },
    text: (text) => {
      ask(counter, 1);
      return estimator.text(text);
    },
  };
}

/** A count of whole lists, as the others want it. */
function listCounter<T extends object>(
  counter: Counter,
  tokensOf: (item: T) => number,
): (items: readonly T[]) => number {
  const known = new WeakMap<T, number>();
  return (items) => {
    ask(counter, items.length);
    let total = 0;
    for (const item of items) {
      let tokens = known.get(item);
      if (tokens === undefined) known.set(item, (tokens = tokensOf(item)));
      total += tokens;
    }
    return total > 0 ? total + counter.estimator.replyPrimingTokens : 0;
  };
}

function ask(counter: Counter, counts: number): void {
  counter.asked += counts;
  if (performance.now() > counter.deadline) throw new Stopped();
}

// Ours

function assembling(name: string, short: string, options: AssembleOptions): Manager {
  return {
    name,
    short,
    prepare: (conversation, budget, counter) => ({
      messages: conversation.messages,
      run: async () => {
        const result = await assembleTo(conversation, budget, observed(counter), options);
        return () => result && { system: result.system_prompt, messages: result.messages };
      },
    }),
  };
}

/** As much as `prune` can do for small windows: half of the budget is protected, and every result that shrinks is worth it. */
const eager = (budget: number): ContextConfig => ({
  ...DEFAULT_CONFIG,
  protect_recent_tokens: budget >> 1,
  min_free_tokens: 1,
  max_output_chars: 200,
});

const pruning: Manager = {
  name: 'our prune, half the budget protected',
  short: 'prune',
  prepare: ({ system, messages }, budget, counter) => ({
    messages,
    run: async () => {
      const pruned = await prune({ messages }, eager(budget), observed(counter), pause);
      return () => ({ system, messages: pruned.messages });
    },
  }),
};

// The others

/** In their formats a result is a message of its own, wherever it stood. */
function apart(messages: readonly AgentMessage[]): AgentMessage[] {
  return messages.flatMap((message): AgentMessage[] => {
    const { role, content, timestamp } = message;
    if (role !== 'user' || !content.some(({ type }) => type === 'function_result')) return [message];
    return content.map((block) =>
      block.type === 'function_result'
        ? { role: 'function_result', ...block, function_id: 'shell::run', timestamp }
        : { role: 'user', content: [block], timestamp },
    );
  });
}

/** The largest of n, n/2, n/4, ... 1 and 0 with which it fits, else 0: what a user without a budget has to look for. */
async function most<T>(n: number, attempt: (keep: number) => T | Promise<T>, fits: (made: T) => boolean): Promise<T> {
  for (let keep = n; keep > 0; keep >>= 1) {
    const made = await attempt(keep);
    if (fits(made)) return made;
  }
  return attempt(0);
}

const isCall = (block: ContentBlock) => block.type === 'function_call';

// LangChain

/** The id is the index in the list. */
function toLangChain(message: AgentMessage, index: number): BaseMessage {
  const id = String(index);
  if (message.role === 'function_result') {
    const { content, function_call_id, function_id } = message;
    return new ToolMessage({
      id,
      content: langChainContent(content),
      tool_call_id: function_call_id,
      name: function_id,
    });
  }
  const content = langChainContent(message.content);
  if (message.role !== 'assistant') return new HumanMessage({ id, content });
  const tool_calls = message.content.filter(isCall).map((block) => ({
    type: 'tool_call' as const,
    id: block.id,
    name: block.function_id,
    args: { input: block.arguments },
  }));
  return new AIMessage({ id, content, tool_calls });
}

function langChainContent(content: readonly ContentBlock[]) {
  const said = content.filter(({ type }) => type !== 'function_call');
  if (said.every((block) => block.type === 'text') && said.length <= 1) return said[0]?.text ?? '';
  return said.map((block) => {
    if (block.type === 'text') return { type: 'text' as const, text: block.text };
    if (block.type === 'thinking') return { type: 'thinking' as const, thinking: block.text };
    const url = block.type === 'image' ? `data:${block.mime};base64,${block.data}` : '';
    return { type: 'image_url' as const, image_url: { url } };
  });
}

/** What the message is now: as it was, less the calls that are gone; or new, if it has no id: what stands for a result. */
function fromLangChain(message: BaseMessage, originals: readonly AgentMessage[]): AgentMessage {
  if (message.id === undefined && ToolMessage.isInstance(message)) {
    const { tool_call_id: function_call_id, name: function_id = '', text } = message;
    const content = [{ type: 'text' as const, text }];
    return { role: 'function_result', function_call_id, function_id, content, timestamp: 0 };
  }
  const original = originals[Number(message.id)];
  if (original === undefined) throw new Error(`nobody knows the message ${message.id}`);
  if (!AIMessage.isInstance(message)) return original;
  const ids = message.tool_calls?.map(({ id }) => id);
  return { ...original, content: original.content.filter((block) => !isCall(block) || ids?.includes(block.id)) };
}

function trimming(name: string, short: string, options: { includeSystem?: true; startOn?: 'human' }): Manager {
  return {
    name,
    short,
    prepare: ({ system, messages }, maxTokens, counter) => {
      const originals = apart(messages);
      const list = [new SystemMessage(system), ...originals.map(toLangChain)];
      const tokenCounter = listCounter<BaseMessage>(counter, (message) =>
        SystemMessage.isInstance(message)
          ? counter.estimator.text(system)
          : counter.estimator.message(fromLangChain(message, originals)),
      );
      return {
        messages: originals,
        run: async () => {
          const trimmed = await trimMessages(list, { ...options, maxTokens, strategy: 'last', tokenCounter });
          return () => {
            // It can hold undefined.
            const kept = trimmed.filter(Boolean);
            const [first] = kept;
            const hasSystem = first !== undefined && SystemMessage.isInstance(first);
            return {
              system: hasSystem ? system : '',
              messages: kept.slice(hasSystem ? 1 : 0).map((message) => fromLangChain(message, originals)),
            };
          };
        },
      };
    },
  };
}

const MODEL = new FakeListChatModel({ responses: [] });

/** @param keep how many results stay; undefined for as many as fit. */
function clearing(name: string, short: string, keep?: number): Manager {
  return {
    name,
    short,
    prepare: ({ system, messages }, budget, counter) => {
      const originals = apart(messages);
      const list = originals.map(toLangChain);
      const tokensOf = (message: BaseMessage) => counter.estimator.message(fromLangChain(message, originals));
      return {
        messages: originals,
        run: async () => {
          const ofList = listCounter<BaseMessage>(counter, tokensOf);
          const systemTokens = counter.estimator.text(system);
          const countTokens = (items: BaseMessage[]) => ofList(items) + systemTokens;
          const clear = async (keepNow: number) => {
            // It changes the list that it is given.
            const copy = [...list];
            const edit = new ClearToolUsesEdit({ trigger: { tokens: budget + 1 }, keep: { messages: keepNow } });
            await edit.apply({ messages: copy, model: MODEL, countTokens });
            return copy;
          };
          const results = originals.filter(({ role }) => role === 'function_result').length;
          const cleared =
            keep === undefined ? await most(results, clear, (made) => countTokens(made) <= budget) : await clear(keep);
          return () => ({ system, messages: cleared.map((message) => fromLangChain(message, originals)) });
        },
      };
    },
  };
}

// AI SDK

interface AiForm {
  readonly messages: ModelMessage[];
  /** Which messages and parts were made from what; it hands them over as they are. */
  readonly origin: Map<object, AgentMessage | ContentBlock>;
}

function toAiSdk(messages: readonly AgentMessage[]): AiForm {
  const origin: AiForm['origin'] = new Map();
  const from = <T extends object>(made: T, source: AgentMessage | ContentBlock): T => {
    origin.set(made, source);
    return made;
  };
  const list = messages.map((message): ModelMessage => {
    if (message.role === 'function_result') {
      const output = { type: 'text' as const, value: resultText(message.content) };
      const { function_call_id: toolCallId, function_id: toolName } = message;
      const part = { type: 'tool-result' as const, toolCallId, toolName, output };
      return { role: 'tool', content: [from(part, message)] };
    }
    if (message.role === 'user')
      return from({ role: 'user', content: message.content.map((block) => userPart(block)) }, message);
    const parts = message.content.map((block) => from(assistantPart(block), block));
    return { role: 'assistant', content: parts };
  });
  return { messages: list, origin };
}

type Parts<T> = Extract<T, readonly unknown[]>[number];

function userPart(block: ContentBlock): Parts<UserContent> {
  if (block.type === 'image') return { type: 'file', mediaType: block.mime, data: block.data };
  return { type: 'text', text: block.type === 'text' ? block.text : '' };
}

function assistantPart(block: ContentBlock): Parts<AssistantContent> {
  if (block.type === 'function_call')
    return { type: 'tool-call', toolCallId: block.id, toolName: block.function_id, input: block.arguments };
  if (block.type === 'thinking') return { type: 'reasoning', text: block.text };
  return { type: 'text', text: block.type === 'text' ? block.text : '' };
}

function fromAiSdk(message: ModelMessage, origin: AiForm['origin']): AgentMessage {
  if (message.role === 'user') return origin.get(message) as AgentMessage;
  const parts = (message.content as readonly object[]).map((part) => origin.get(part));
  if (message.role === 'tool') return parts[0] as FunctionResultMessage;
  const content = parts as ContentBlock[];
  return { role: 'assistant', content, timestamp: 0, model: 'm', provider: 'p', stop_reason: 'end' };
}

/** @param keep in how many of the last messages calls stay; undefined for as many as fit. */
function aiPruning(name: string, short: string, keep?: number): Manager {
  return {
    name,
    short,
    prepare: ({ system, messages }, budget, counter) => {
      const originals = apart(messages);
      const { messages: list, origin } = toAiSdk(originals);
      const { estimator } = counter;
      return {
        messages: originals,
        run: async () => {
          const ofList = listCounter<ModelMessage>(counter, (message) => estimator.message(fromAiSdk(message, origin)));
          const systemTokens = estimator.text(system);
          const pruneBefore = (last: number) =>
            pruneMessages({
              messages: list,
              reasoning: 'before-last-message',
              toolCalls: `before-last-${last}-messages`,
            });
          const pruned =
            keep === undefined
              ? await most(list.length, pruneBefore, (made) => ofList(made) + systemTokens <= budget)
              : pruneBefore(keep);
          return () => ({ system, messages: pruned.map((message) => fromAiSdk(message, origin)) });
        },
      };
    },
  };
}

/** Ours are the first four; each of the others as its documentation shows it, then with what serves it best. */
export const MANAGERS: readonly Manager[] = [
  assembling('our assemble', 'assemble', {}),
  assembling('our assemble, user_first', 'user first', { user_first: true }),
  assembling('our assemble, nothing summarised', 'no summary', { allow_compaction: false }),
  pruning,
  trimming('trimMessages, defaults', 'trim', {}),
  trimming('trimMessages, includeSystem and startOn human', 'trim+', { includeSystem: true, startOn: 'human' }),
  aiPruning('pruneMessages, before-last-2-messages', 'ai', 2),
  aiPruning('pruneMessages, the largest N that fits', 'ai+', undefined),
  clearing('ClearToolUsesEdit, keep 3', 'clear', 3),
  clearing('ClearToolUsesEdit, the largest keep that fits', 'clear+', undefined),
];
