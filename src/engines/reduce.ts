/**
 * The last resort of assemble: puts references in the place of function results, the largest first, until a request fits.
 * A reference says what was there, how long it was, and by which digest the original can be told. Pure.
 */
import { isJsonObject } from '../json.ts';
import { canonicalJson, sha256, toHex } from '../provenance/canonical.ts';
import type { AgentMessage } from '../transcript/message.ts';
import {
  type Change,
  isReplaceable,
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
const REFERENCE_KIND = 'function_result_reference';

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
  // Nothing was added or taken away, so the same results stand in the same places.
  const sent = placeResults(originals);
  const places = placeResults(messages)
    .map((place, index) => ({ place, original: sent[index] ?? place }))
    .filter(({ place }) => place.message >= from && isReplaceable(place) && !isReference(place));
  const estimates = await meter.each(places, ({ place }) =>
    place.block === undefined ? (sizes[place.message] ?? 0) : estimate(place, estimator),
  );
  const queue = places
    .map((each, index) => ({ ...each, was: estimates[index] ?? 0 }))
    .toSorted((a, b) => b.was - a.was)
    .values();

  const counted = new Map<AgentMessage, number>();
  const knowing: Estimator = { ...estimator, message: (each) => counted.get(each) ?? estimator.message(each) };
  let state = { messages, sizes };
  // Results that share a message may count less together than apart, so what is left to free is counted again after each
  // batch. Batches grow: a message is counted a few times only, however many results it has.
  for (let [left, atLeast] = [excess, 0]; left > 0; atLeast = 2 * atLeast || 1) {
    const batch: (Replacement & { readonly tokens: number })[] = [];
    for (let promised = 0; promised < left || batch.length < atLeast;) {
      const { value: next, done } = queue.next();
      if (done) break;
      const { place, original, was } = next;
      const by = await reference(original, original.result === place.result ? was : estimate(original, estimator));
      const tokens = estimate(place, estimator, by);
      const gain = was - tokens;
      if (gain <= 0) continue;
      promised += gain;
      batch.push({ ...place, by, tokens });
    }
    if (batch.length === 0) break;
    const reduced = replaceResults(state.messages, batch);
    for (const { message, block, tokens } of batch) {
      const changed = reduced[message];
      if (block === undefined && changed) counted.set(changed, tokens);
    }
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

/** What a result counts by itself, as it is or changed; a block as the only one of a message. */
function estimate(place: ResultPlace, estimator: Estimator, by?: Change): number {
  return estimator.message(
    place.block === undefined
      ? { ...place.result, ...by }
      : { role: 'user', content: [{ ...place.result, ...by }], timestamp: 0 },
  );
}

/** @param place of the result as it was sent, in which it was so many tokens. */
async function reference({ block, result, function_id }: ResultPlace, tokens: number): Promise<Change> {
  const json = canonicalJson(result);
  const details = block === undefined ? result.details : undefined;
  const fields = {
    kind: REFERENCE_KIND,
    function_id: function_id ?? null,
    function_call_id: result.function_call_id,
    original_bytes: utf8Bytes(json),
    original_estimated_tokens: tokens,
    sha256: toHex(await sha256(json)),
    preview: preview(resultText(result.content) || (details === undefined ? '' : JSON.stringify(details))),
    retrieval_hint: RETRIEVAL_HINT,
  };
  const content = textContent(PREFIX + JSON.stringify(fields));
  return block === undefined ? { content, details: { context_reference: fields } } : { content };
}

/** The first code points of a text. */
function preview(text: string): string {
  const start = Array.from(text.slice(0, 2 * PREVIEW_CODE_POINTS))
    .slice(0, PREVIEW_CODE_POINTS)
    .join('');
  return start.length < text.length ? `${start}…` : start;
}

/** Whether a result was reduced before. */
export function isReference({ result }: ResultPlace): boolean {
  const text = resultText(result.content);
  if (!text.startsWith(PREFIX)) return false;
  const fields = parse(text.slice(PREFIX.length));
  // A long preview would be content that hides behind the words of a reference.
  return isJsonObject(fields) && fields['kind'] === REFERENCE_KIND && isShort(fields['preview']);
}

const isShort = (text: unknown): boolean =>
  typeof text === 'string' && Array.from(text.slice(0, 2 * PREVIEW_CODE_POINTS + 2)).length <= PREVIEW_CODE_POINTS + 1;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no reference
  }
}
