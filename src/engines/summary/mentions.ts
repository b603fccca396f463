/** Which facts a text says already, alone or inside longer ones. It holds strings only, and searches no text twice. */
import { eachFact, isWordAt } from './facts.ts';

/** A fact of more parts than these is taken apart no further. */
const MAX_BORDERS = 24;

export interface Mentions {
  has(fact: string): boolean;
  /** Whether the fact was new. */
  add(fact: string): boolean;
}

export function mentions(texts: readonly string[]): Mentions {
  const said = new Set<string>();
  const say = (fact: string): void => {
    if (said.has(fact)) return;
    const borders = bordersOf(fact);
    for (const [index, start] of borders.entries())
      for (const end of borders.slice(index + 1)) said.add(fact.slice(start, end));
  };
  for (const text of texts) eachFact(text, say);
  return {
    has: (fact) => said.has(fact),
    add(fact) {
      if (said.has(fact)) return false;
      say(fact);
      return true;
    },
  };
}

/** Where a part of the fact may begin or end, with no letter, digit or `_` cut off on the other side. */
function bordersOf(fact: string): number[] {
  const borders: number[] = [];
  for (let at = 0; at <= fact.length && borders.length < MAX_BORDERS; at++) {
    const outer = at === 0 || at === fact.length;
    if (outer || !isWordAt(fact, at - 1) || !isWordAt(fact, at)) borders.push(at);
  }
  if (borders.at(-1) !== fact.length) borders.push(fact.length);
  return borders;
}
