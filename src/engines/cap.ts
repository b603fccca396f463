/** Cuts the middle out of every function result that says more than a caller wants any result to say. Pure. */
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import {
  isReplaceable,
  placeResults,
  replaceResults,
  type Replacement,
  type ResultPlace,
} from '../transcript/results.ts';
import type { Estimator } from './estimator.ts';
import { type Meter, sum } from './meter.ts';
import { resultTokens } from './prune.ts';
import { isReference, type Reducible } from './reduce.ts';

/** What stays is under the cap by a margin, so that a second pass finds nothing to do. */
const TARGET_SHARE = 0.9;
const HEAD_SHARE = 0.6;
/** The marker alone, with the largest number that a request can bring, is under the target of such a cap. */
export const CAP_MIN_TOKENS = 20;

export interface Capped {
  readonly messages: readonly AgentMessage[];
  readonly capped_parts: number;
  readonly capped_tokens: number;
}

/**
 * The messages with the text of each result at most `cap` tokens; images and other blocks of a result stay where they are.
 *
 * @param from index of the first message that may be touched.
 */
export async function capResults(
  { messages, sizes }: Pick<Reducible, 'messages' | 'sizes'>,
  from: number,
  cap: number,
  estimator: Estimator,
  meter: Meter,
): Promise<Capped> {
  const places = placeResults(messages).filter(
    (place) => place.message >= from && isReplaceable(place) && !isReference(place),
  );
  const tokens = await meter.each(places, (place) =>
    place.result.content.filter(isText).length > 1
      ? estimator.text(countedText(place))
      : resultTokens(place, estimator, sizes),
  );
  const over = places.map((place, index) => ({ ...place, was: tokens[index] ?? 0 })).filter(({ was }) => was > cap);
  const replacements: Replacement[] = [];
  const now = await meter.each(over, (place) => {
    const { message, block, result, was } = place;
    const cut = cutMiddle(countedText(place), was, cap, estimator);
    replacements.push({ message, block, by: { content: withText(result.content, cut.text) } });
    return cut.tokens;
  });
  return {
    messages: replaceResults(messages, replacements),
    capped_parts: over.length,
    capped_tokens: sum(over.map(({ was }) => was)) - sum(now),
  };
}

/** Guesses after which a text that fits is good enough; each counts about as many tokens as the cap has. */
const MAX_GUESSES = 5;
/** A guess that fills so much of the target is not improved. */
const FILLED_SHARE = 0.97;

/** Beginning and end of a text of `was` tokens, with a marker between them, in at most TARGET_SHARE of `cap` tokens. */
function cutMiddle(text: string, was: number, cap: number, estimator: Estimator): { text: string; tokens: number } {
  const marker = `\n[… capped: was ~${was} tokens …]\n`;
  const target = Math.floor(cap * TARGET_SHARE);
  let best = { text: marker, tokens: estimator.text(marker) };
  let [fits, tooMany] = [0, text.length];
  let kept = Math.floor((text.length * target) / was);
  for (let guess = 0; guess < MAX_GUESSES && fits < kept && kept < tooMany; guess += 1) {
    const candidate =
      headOf(text, Math.floor(kept * HEAD_SHARE)) + marker + tailOf(text, Math.floor(kept * (1 - HEAD_SHARE)));
    const tokens = estimator.text(candidate);
    if (tokens <= target) {
      best = { text: candidate, tokens };
      if (tokens >= target * FILLED_SHARE) break;
      fits = kept;
    } else {
      tooMany = kept;
    }
    const share = Math.floor((kept * target) / tokens);
    // Between what fitted and what did not, whatever the density of the text promises.
    kept = share > fits && share < tooMany ? share : Math.floor((fits + tooMany) / 2);
  }
  return best;
}

/** Neither cuts a pair of surrogates in two. */
const headOf = (text: string, length: number): string => text.slice(0, length - (isInsidePair(text, length) ? 1 : 0));
const tailOf = (text: string, length: number): string => {
  const start = text.length - length;
  return text.slice(start + (isInsidePair(text, start) ? 1 : 0));
};
const isInsidePair = (text: string, index: number): boolean => (text.codePointAt(index - 1) ?? 0) > 0xffff;

const isText = (block: ContentBlock): block is Extract<ContentBlock, { type: 'text' }> => block.type === 'text';

/** What a result says as it counts in a request: the texts of a message stand on lines of their own, those of a block do not. */
function countedText({ block, result }: ResultPlace): string {
  const texts = result.content.filter(isText).map(({ text }) => text);
  return texts.join(block === undefined ? '\n' : '');
}

function withText(content: readonly ContentBlock[], text: string): ContentBlock[] {
  const first = content.findIndex(isText);
  return content.flatMap((block, index): ContentBlock[] =>
    block.type !== 'text' ? [block] : index === first ? [{ ...block, text }] : [],
  );
}
