/**
 * The one way through a message: its blocks in reading order, what a result says, and what of its details a model sees.
 * Pure; it counts, changes and judges nothing.
 */
import type { AgentMessage, ContentBlock, FunctionResultBlock } from './message.ts';

/** A block and the innermost `function_result` block that it stands in, if any. */
export interface Visit {
  readonly block: ContentBlock;
  readonly result: FunctionResultBlock | undefined;
}

/** Every block, each result before the blocks inside it. Recursive: the JSON that comes in is nested 64 levels at most. */
export function* walk(content: readonly ContentBlock[], result?: FunctionResultBlock): Generator<Visit, void> {
  for (const block of content) {
    yield { block, result };
    if (block.type === 'function_result') yield* walk(block.content, block);
  }
}

/** What a result says: its text blocks, nothing between them. The blocks of a result inside it are not its own. */
export function resultText(content: readonly ContentBlock[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/**
 * `details` is the application's and stays behind, except where it says that the call was denied: providers then send it to
 * the model. Undefined for every other message.
 */
export function deniedDetails(message: AgentMessage): unknown {
  if (message.role !== 'function_result') return undefined;
  const { details } = message;
  const denied = typeof details === 'object' && details !== null && 'status' in details && details.status === 'denied';
  return denied ? details : undefined;
}
