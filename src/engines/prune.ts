/**
 * prune: replaces old, long function results by a line that says how long they were. Messages, order, ids and the links
 * between calls and results stay. Pure.
 */
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { beginsTurn, isReplaceable, placeResults, replaceResults, type ResultPlace } from '../transcript/results.ts';
import { resultText } from '../transcript/walk.ts';
import type { ContextConfig } from './config.ts';
import type { ModelInput } from './count.ts';
import type { Estimator, EstimatorChoice } from './estimator.ts';
import { createMeter, type Meter, sum } from './meter.ts';

/** Raise it whenever the same request could give other bytes. */
export const PRUNE_VERSION = '1.0.0';

/** Null is absent everywhere. */
export interface PruneRequest {
  /** Oldest first. */
  readonly messages: readonly AgentMessage[];
  readonly model?: ModelInput | null;
  readonly options?: PruneOptions | null;
}

export interface PruneOptions {
  readonly protect_recent_tokens?: number | null;
  readonly min_free_tokens?: number | null;
  readonly max_output_chars?: number | null;
  readonly protected_functions?: readonly string[] | null;
  readonly estimator?: EstimatorChoice | null;
}

export type PruneResult = {
  messages: readonly AgentMessage[];
  pruned_parts: number;
  /** Net: without what the placeholders cost. */
  pruned_tokens: number;
  scanned_parts: number;
  estimator: Estimator['name'];
  versions: Record<string, unknown>;
};

export async function prune(
  { messages, options }: PruneRequest,
  config: ContextConfig,
  estimator: Estimator,
  pause: () => Promise<void>,
): Promise<PruneResult> {
  const rules: PruneRules = {
    protect_recent_tokens: options?.protect_recent_tokens ?? config.protect_recent_tokens,
    min_free_tokens: options?.min_free_tokens ?? config.min_free_tokens,
    max_output_chars: options?.max_output_chars ?? config.max_output_chars,
    protected_functions: new Set(options?.protected_functions),
    from: 0,
  };
  const pruned = await pruneResults({ messages }, rules, estimator, createMeter(pause));
  const { pruned_parts, pruned_tokens, scanned_parts } = pruned;
  return {
    messages: pruned.messages,
    pruned_parts,
    pruned_tokens,
    scanned_parts,
    estimator: estimator.name,
    versions: { engine: `prune/${PRUNE_VERSION}`, ...estimator.versions, config },
  };
}

export interface PruneRules {
  readonly protect_recent_tokens: number;
  readonly min_free_tokens: number;
  readonly max_output_chars: number;
  readonly protected_functions: ReadonlySet<string>;
  /** Index of the first message that may be touched. */
  readonly from: number;
}

/** Messages that were not touched are the very same objects. */
export interface Pruned {
  readonly messages: readonly AgentMessage[];
  readonly pruned_parts: number;
  readonly pruned_tokens: number;
  readonly scanned_parts: number;
}

/** The turns that are left alone whatever their size. */
const UNTOUCHED_TURNS = 2;

export async function pruneResults(
  { messages, sizes }: { readonly messages: readonly AgentMessage[]; readonly sizes?: readonly number[] },
  rules: PruneRules,
  estimator: Estimator,
  meter: Meter,
): Promise<Pruned> {
  const before = startOfRecentTurns(messages);
  // Newest first; of one message, the last block first.
  const scanned = placeResults(messages)
    .filter(({ message, function_id }) => {
      const isProtected = function_id !== undefined && rules.protected_functions.has(function_id);
      return message >= rules.from && message < before && !isProtected;
    })
    .toReversed();
  const tokens = await meter.each(scanned, (place) => resultTokens(place, estimator, sizes));
  let recent = 0;
  const candidates = scanned.flatMap((place, index) => {
    const was = tokens[index] ?? 0;
    recent += was;
    if (recent <= rules.protect_recent_tokens || !isReplaceable(place)) return [];
    const text = resultText(place.result.content);
    if (!isLonger(text, rules.max_output_chars) || PLACEHOLDER.test(text)) return [];
    const placeholder = `[output pruned: was ~${was} tokens]`;
    const freed = was - estimator.text(placeholder);
    return freed > 0 ? [{ ...place, by: { content: textContent(placeholder) }, freed }] : [];
  });
  const freed = sum(candidates.map((candidate) => candidate.freed));
  const scanned_parts = scanned.length;
  if (freed < rules.min_free_tokens) {
    return { messages, pruned_parts: 0, pruned_tokens: 0, scanned_parts };
  }
  return {
    messages: replaceResults(messages, candidates),
    pruned_parts: candidates.length,
    pruned_tokens: freed,
    scanned_parts,
  };
}

const PLACEHOLDER = /^\[output pruned: was ~\d+ tokens\]$/;

/** 0 where there are fewer turns, so that nothing stands before it. */
function startOfRecentTurns(messages: readonly AgentMessage[]): number {
  let turns = 0;
  const start = messages.findLastIndex((message) => beginsTurn(message) && (turns += 1) === UNTOUCHED_TURNS);
  return Math.max(0, start);
}

/** The tokens of what a result says, with as little counting as that takes. */
export function resultTokens(
  { message, block, result }: ResultPlace,
  estimator: Estimator,
  sizes?: readonly number[],
): number {
  const size = sizes?.[message];
  const known = block === undefined && size !== undefined ? estimator.textOf(result, size) : undefined;
  return known ?? estimator.text(resultText(result.content));
}

export function textContent(text: string): ContentBlock[] {
  return [{ type: 'text', text }];
}

/** Whether a text has more than `limit` code points. */
function isLonger(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  if (text.length > 2 * limit) return true;
  let codePoints = 0;
  for (const _ of text) codePoints += 1;
  return codePoints > limit;
}
