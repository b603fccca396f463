/**
 * The estimators once more, derived from the contract by brute force and from nothing else: copies are changed and
 * serialised again, and tokens come from tiktoken. For tests to compare with.
 */
import { get_encoding } from 'tiktoken';

type Json = Record<string, unknown>;

const tiktoken = { o200k_base: get_encoding('o200k_base'), cl100k_base: get_encoding('cl100k_base') };

export type ReferenceEstimator = 'heuristic' | keyof typeof tiktoken;

const isDenied = (message: Json): boolean =>
  message['role'] === 'function_result' && (message['details'] as Json | null | undefined)?.['status'] === 'denied';

const blocksOf = (holder: Json): Json[] => holder['content'] as Json[];

export function referenceText(text: string, by: ReferenceEstimator): number {
  return by === 'heuristic'
    ? Math.floor(Buffer.byteLength(text) / 4)
    : tiktoken[by].encode(text.toWellFormed(), [], []).length;
}

export function referenceMessage(message: object, by: ReferenceEstimator): number {
  const copy = JSON.parse(JSON.stringify(message)) as Json;
  let images = 0;
  const emptyImages = (blocks: Json[]): void => {
    for (const block of blocks) {
      if (block['type'] === 'image') {
        images += 1;
        block['data'] = '';
      }
      if (block['type'] === 'function_result') emptyImages(blocksOf(block));
    }
  };
  emptyImages(blocksOf(copy));
  if (by === 'heuristic') {
    if (copy['role'] === 'function_result' && 'details' in copy && !isDenied(copy)) copy['details'] = null;
    return referenceText(JSON.stringify(copy), by) + 4096 * images;
  }
  const results = (blocks: Json[]): string[] =>
    blocks
      .filter(({ type }) => type === 'function_result')
      .flatMap((block) => {
        const own = blocksOf(block).filter(({ type }) => type === 'text');
        return [own.map(({ text }) => text).join(''), ...results(blocksOf(block))];
      });
  const parts = blocksOf(copy).flatMap((block): unknown[] => {
    if (block['type'] === 'text') return [block['text']];
    if (block['type'] === 'function_call')
      return [block['function_id'], 'arguments' in block ? JSON.stringify(block['arguments']) : 'null'];
    return results([block]);
  });
  if (isDenied(copy)) parts.push(JSON.stringify(copy['details']));
  return 4 + referenceText(parts.join('\n'), by) + 4096 * images;
}

export function referenceTool(tool: object, by: ReferenceEstimator): number {
  if (by === 'heuristic') return referenceText(JSON.stringify(tool), by);
  const { name, description, parameters } = JSON.parse(JSON.stringify(tool)) as Json;
  return referenceText(
    JSON.stringify({ name, description, parameters: parameters === undefined ? null : parameters }),
    by,
  );
}
