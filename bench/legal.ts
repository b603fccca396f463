/**
 * What a strict provider refuses in a list of messages, whatever its format: OpenAI and Anthropic both. It looks at
 * structure only.
 */
import type { AgentMessage, ContentBlock, FunctionResultBlock } from '../src/transcript/message.ts';

/**
 * The first fault, undefined where there is none. Calls of the last assistant message may be open still.
 *
 * @param beginsWithUser whether the first message has to be a user's.
 */
export function faultOf(messages: readonly AgentMessage[], beginsWithUser: boolean): string | undefined {
  if (messages.length === 0) return 'no message';
  if (beginsWithUser && messages[0]?.role !== 'user') return `begins with ${messages[0]?.role}`;
  /** Calls that the next messages have to answer. */
  let open: string[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    const message = messages[index]!;
    if (role !== 'function_result' && !content.some(saysSomething)) return `${index} is empty`;
    for (const { function_call_id: id } of resultsOf(message)) {
      const at = open.indexOf(id);
      if (id === '' || at < 0) return `${index} answers no call`;
      open.splice(at, 1);
    }
    if (role === 'function_result' || content.every(isResult)) continue;
    if (open.length > 0) return `${index} comes before a result`;
    if (role === 'user' && content.findIndex((block) => !isResult(block)) < content.findLastIndex(isResult))
      return `${index} has something before its results`;
    if (role !== 'assistant') continue;
    open = content.flatMap((block) => (block.type === 'function_call' ? [block.id] : []));
    if (new Set(open).size < open.length) return `${index} has two calls of one id`;
  }
  return undefined;
}

function resultsOf(message: AgentMessage): readonly { readonly function_call_id: string }[] {
  if (message.role === 'function_result') return [message];
  return message.role === 'user' ? message.content.filter(isResult) : [];
}

const isResult = (block: ContentBlock): block is FunctionResultBlock => block.type === 'function_result';

/** Thinking alone is no message. */
function saysSomething(block: ContentBlock): boolean {
  if (block.type === 'text') return block.text.trim() !== '';
  return block.type !== 'thinking' && block.type !== 'redacted_thinking';
}
