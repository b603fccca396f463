/** A call or result that is to be written under another id. Pure. */
import type { ContentBlock } from '../message.ts';

/** The id that pairs a call and its result; of anything else none. */
export function idOf(block: ContentBlock): string {
  if (block.type === 'function_call') return block.id;
  return block.type === 'function_result' ? block.function_call_id : '';
}

/** Where a call or result has another id than before, and nothing else that is new: then the id alone is written. */
export function isRenamed(before: ContentBlock, after: ContentBlock): boolean {
  const withoutId = (block: ContentBlock): string => JSON.stringify({ ...block, id: '', function_call_id: '' });
  return idOf(before) !== idOf(after) && withoutId(before) === withoutId(after);
}
