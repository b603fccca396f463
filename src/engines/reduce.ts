/**
 * The last resort of assemble: puts references in the place of function results, the largest first, until a request fits.
 * A reference says what was there, how long it was, and by which digest the original can be told. Pure.
 */
import { canonicalJson, sha256, toHex } from '../provenance/canonical.ts';
import type { AgentMessage } from '../transcript/message.ts';
import {
  type FunctionResult,
  placeResults,
  replaceResults,
  type Replacement,
  type ResultPlace,
} from '../transcript/results.ts';
import { resultText } from '../transcript/walk.ts';
import { type Estimator, utf8Bytes } from './estimator.ts';
import { type Meter, sum } from './meter.ts';
import { textContent } from './prune.ts';

const PREVIEW_CODE_POINTS = 160;
const RETRIEVAL_HINT = 'The whole result is in the session’s own transcript, under this function_call_id.';
const PREFIX = '[function result reduced for context budget] ';
/** What begins like a reference and is no longer than this is one already. */
const REFERENCE_MAX_CHARS = 1_200;

export interface Reducible {
  readonly messages: readonly AgentMessage[];
  /** In tokens, of each message. */
  readonly sizes: readonly number[];
  /** The same messages as the caller sent them. */
  readonly originals: readonly AgentMessage[];
  /** Index of the first message that may be touched. */
  readonly from: number;
}

/** Frees `excess` tokens, or as many as can be freed. */
export async function reduceResults(
  { messages, sizes, originals, from }: Reducible,
  excess: number,
  estimator: Estimator,
  meter: Meter,
): Promise<{ readonly messages: readonly AgentMessage[]; readonly sizes: readonly number[] }> {
  const places = placeResults(messages).filter(({ message, result }) => message >= from && !isReference(result));
  const estimates = await meter.each(places, ({ message, result }) =>
    'role' in result ? (sizes[message] ?? 0) : estimate(result, estimator),
  );
  const queue = places
    .map((place, index) => ({ place, was: estimates[index] ?? 0 }))
    .toSorted((a, b) => b.was - a.was)
    .values();

  const counted = new Map<AgentMessage, number>();
  const knowing: Estimator = { ...estimator, message: (each) => counted.get(each) ?? estimator.message(each) };
  let state = { messages, sizes };
  // Results that share a message may count less together than apart, so what is left to free is counted again after each
  // batch. Batches grow: a message is counted a few times only, however many results it has.
  for (let [left, atLeast] = [excess, 1]; left > 0; atLeast *= 2) {
    const batch: Replacement[] = [];
    for (let promised = 0; promised < left || batch.length < atLeast;) {
      const { value: next, done } = queue.next();
      if (done) break;
      const by = await reference(next.place, next.was, originals, estimator);
      const tokens = estimate(by, estimator);
      if ('role' in by) counted.set(by, tokens);
      const gain = next.was - tokens;
      if (gain <= 0) continue;
      promised += gain;
      batch.push({ ...next.place, by });
    }
    if (batch.length === 0) break;
    const reduced = replaceResults(state.messages, batch);
    const resized = await resize(state, reduced, knowing, meter);
    left -= sum(state.sizes) - sum(resized);
    state = { messages: reduced, sizes: resized };
  }
  return state;
}

/** What each message counts now, where only those that are not the same object as before have to be counted again. */
export async function resize(
  before: Pick<Reducible, 'messages' | 'sizes'>,
  messages: readonly AgentMessage[],
  estimator: Estimator,
  meter: Meter,
): Promise<number[]> {
  const isSame = (message: AgentMessage, index: number): boolean => message === before.messages[index];
  return meter.each(messages.entries(), ([index, message]) =>
    isSame(message, index) ? (before.sizes[index] ?? 0) : estimator.message(message),
  );
}

/** What a result counts by itself. */
function estimate(result: FunctionResult, estimator: Estimator): number {
  return estimator.message('role' in result ? result : { role: 'user', content: [result], timestamp: 0 });
}

async function reference(
  { message, block, result, function_id }: ResultPlace,
  was: number,
  originals: readonly AgentMessage[],
  estimator: Estimator,
): Promise<FunctionResult> {
  const original = originalOf(originals[message], block) ?? result;
  const text = resultText(original.content);
  const json = canonicalJson(original);
  const { details } = 'role' in original ? original : { details: undefined };
  const fields = {
    kind: 'function_result_reference',
    function_id: function_id ?? null,
    function_call_id: result.function_call_id,
    original_bytes: utf8Bytes(json),
    original_estimated_tokens: original === result ? was : estimate(original, estimator),
    sha256: toHex(await sha256(json)),
    preview: preview(text || JSON.stringify(details ?? null)),
    retrieval_hint: RETRIEVAL_HINT,
  };
  const content = textContent(PREFIX + JSON.stringify(fields));
  return 'role' in result ? { ...result, content, details: { context_reference: fields } } : { ...result, content };
}

function originalOf(message: AgentMessage | undefined, block: number | undefined): FunctionResult | undefined {
  if (block === undefined) return message?.role === 'function_result' ? message : undefined;
  const part = message?.content[block];
  return part?.type === 'function_result' ? part : undefined;
}

/** The first code points of a text. */
function preview(text: string): string {
  const start = Array.from(text.slice(0, 2 * PREVIEW_CODE_POINTS))
    .slice(0, PREVIEW_CODE_POINTS)
    .join('');
  return start.length < text.length ? `${start}…` : start;
}

/** Whether a result was reduced before. */
export function isReference({ content }: FunctionResult): boolean {
  const text = resultText(content);
  return text.startsWith(PREFIX) && text.length <= REFERENCE_MAX_CHARS;
}
