/** Other packages that make a conversation smaller, each called as its users would, on one neutral form of messages. */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  trimMessages,
} from '@langchain/core/messages';
import { type ModelMessage, pruneMessages } from 'ai';
import { ClearToolUsesEdit } from 'langchain';

/** What every package can say: a system prompt and users talk, the assistant talks and calls, results have messages of their own. */
export type Turn =
  | { readonly role: 'system' | 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly Call[] }
  | { readonly role: 'result'; readonly id: string; readonly name: string; readonly text: string };
interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** Makes a conversation smaller; `count` says what one turn takes. */
export type Shrink = (
  turns: readonly Turn[],
  budget: number,
  count: (turn: Turn) => number,
) => Promise<readonly Turn[]>;

export const PEERS: Readonly<Record<string, Shrink>> = {
  'trimMessages (defaults)': (turns, budget, count) => trim(turns, budget, count, {}),
  'trimMessages (system, from a user)': (turns, budget, count) =>
    trim(turns, budget, count, { includeSystem: true, startOn: 'human' }),
  'ai pruneMessages': async (turns) =>
    fromAi(
      pruneMessages({
        messages: turns.flatMap(toAi),
        reasoning: 'before-last-message',
        toolCalls: 'before-last-2-messages',
        emptyMessages: 'remove',
      }),
    ),
  ClearToolUsesEdit: async (turns, budget, count) => {
    const messages = turns.map(toLangChain);
    const edit = new ClearToolUsesEdit({ trigger: { tokens: budget }, keep: { messages: 1 } });
    const countTokens = (list: BaseMessage[]): number => sumOf(list.flatMap(fromLangChain), count);
    await edit.apply({ messages, model: undefined as never, countTokens });
    return messages.flatMap(fromLangChain);
  },
};

async function trim(
  turns: readonly Turn[],
  maxTokens: number,
  count: (turn: Turn) => number,
  options: object,
): Promise<Turn[]> {
  const tokenCounter = (list: BaseMessage[]): number => sumOf(list.flatMap(fromLangChain), count);
  const trimmed = await trimMessages(turns.map(toLangChain), { maxTokens, strategy: 'last', tokenCounter, ...options });
  return trimmed.flatMap(fromLangChain);
}

const sumOf = (turns: readonly Turn[], count: (turn: Turn) => number): number =>
  turns.reduce((total, turn) => total + count(turn), 0);

function toLangChain(turn: Turn): BaseMessage {
  switch (turn.role) {
    case 'system':
      return new SystemMessage(turn.text);
    case 'user':
      return new HumanMessage(turn.text);
    case 'assistant': {
      const tool_calls = turn.calls.map(({ id, name, input }) => ({
        id,
        name,
        args: input as Record<string, unknown>,
      }));
      return new AIMessage({ content: turn.text, tool_calls });
    }
    case 'result':
      return new ToolMessage({ content: turn.text, tool_call_id: turn.id, name: turn.name });
  }
}

/** Of what a package gave back; a message that is none (trimMessages gives `undefined` in a list) is nothing. */
function fromLangChain(message: BaseMessage | undefined): Turn[] {
  if (message === undefined) return [];
  const { text } = message;
  if (message instanceof ToolMessage) {
    return [{ role: 'result', id: message.tool_call_id, name: message.name ?? '', text }];
  }
  if (message instanceof AIMessage) {
    const calls = (message.tool_calls ?? []).map(({ id = '', name, args }) => ({ id, name, input: args }));
    return [{ role: 'assistant', text, calls }];
  }
  return [{ role: message instanceof SystemMessage ? 'system' : 'user', text }];
}

function toAi(turn: Turn): ModelMessage[] {
  switch (turn.role) {
    case 'system':
    case 'user':
      return [{ role: turn.role, content: turn.text }];
    case 'assistant':
      return [
        {
          role: 'assistant',
          content: [
            ...(turn.text === '' ? [] : [{ type: 'text' as const, text: turn.text }]),
            ...turn.calls.map(({ id, name, input }) => ({
              type: 'tool-call' as const,
              toolCallId: id,
              toolName: name,
              input,
            })),
          ],
        },
      ];
    case 'result': {
      const output = { type: 'text' as const, value: turn.text };
      return [{ role: 'tool', content: [{ type: 'tool-result', toolCallId: turn.id, toolName: turn.name, output }] }];
    }
  }
}

function fromAi(messages: readonly ModelMessage[]): Turn[] {
  return messages.flatMap((message): Turn[] => {
    if (message.role === 'system' || message.role === 'user') {
      return [{ role: message.role, text: typeof message.content === 'string' ? message.content : '' }];
    }
    if (message.role === 'tool') {
      return message.content.flatMap((part): Turn[] => {
        if (part.type !== 'tool-result' || part.output.type !== 'text') return [];
        return [{ role: 'result', id: part.toolCallId, name: part.toolName, text: part.output.value }];
      });
    }
    const parts = typeof message.content === 'string' ? [] : message.content;
    const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const calls = parts.flatMap((part) =>
      part.type === 'tool-call' ? [{ id: part.toolCallId, name: part.toolName, input: part.input }] : [],
    );
    return [{ role: 'assistant', text, calls }];
  });
}
