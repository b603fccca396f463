/**
 * The most of some material that a budget holds: bullets by shares of the sections, and what is left for facts. Every text is
 * counted as a whole before it goes out, so no rounding of parts adds up.
 */
import type { Estimator } from '../estimator.ts';
import { bySection, type Bullets, render, type Section } from './document.ts';
import { mentions } from './mentions.ts';
import type { Material } from './merge.ts';
import type { Fact } from './rank.ts';

/** What share of the room for bullets each section may take; what it leaves goes to the next. In order of importance. */
const SHARES: readonly (readonly [Section, number])[] = [
  ['goal', 0.24],
  ['constraints', 0.16],
  ['decisions', 0.12],
  ['blocked', 0.08],
  ['inProgress', 0.08],
  ['next', 0.1],
  ['done', 0.12],
  ['actions', 0.1],
  ['context', 1],
  ['files', 1],
];

/** The share of the budget for bullets; facts say more per token, but a reader needs sentences first. */
const PROSE_SHARE = 0.34;
/** More where all facts find room, less where the headings leave none. */
const SCALES = [2.4, 1.6, 1, 0.6, 0.35, 0.2, 0.1, 0] as const;

export interface Room {
  readonly budgetTokens: number;
  readonly estimator: Estimator;
  readonly pause: () => Promise<void>;
}

/** What of the material is shown. */
export interface Choice {
  readonly bullets: Bullets;
  readonly facts: readonly Fact[];
  readonly text: string;
}

/** Undefined where not even the headings have room. */
export async function fit(material: Material, room: Room): Promise<Choice | undefined> {
  for (const scale of SCALES) {
    await room.pause();
    const bullets = choose(material.bullets, scale * PROSE_SHARE * room.budgetTokens, room.estimator);
    const choice = await withFacts(bullets, material.facts, room, scale > 1);
    if (choice) return choice;
  }
  return undefined;
}

function choose(material: Bullets, tokens: number, { text: count }: Estimator): Bullets {
  const chosen = bySection<string[]>(() => []);
  let allowed = 0;
  let used = 0;
  for (const [section, share] of SHARES) {
    allowed = Math.min(tokens, allowed + share * tokens);
    for (const bullet of material[section]) {
      const cost = count(`- ${bullet}\n`) + 1;
      if (used + cost > allowed) break;
      used += cost;
      chosen[section].push(bullet);
    }
  }
  return chosen;
}

async function withFacts(
  bullets: Bullets,
  facts: readonly Fact[],
  room: Room,
  all: boolean,
): Promise<Choice | undefined> {
  const { budgetTokens, estimator, pause } = room;
  // No fact is said twice, nor where a bullet or a longer fact says it.
  const said = mentions(Object.values(bullets).flat());
  const unsaid: Fact[] = [];
  for (const fact of facts) {
    if (unsaid.length >= budgetTokens) break;
    if (said.add(fact.text)) unsaid.push(fact);
  }
  const attempt = (count: number): Choice => {
    const shown = unsaid.slice(0, count);
    return { bullets, facts: shown, text: render(withLists(bullets, shown)) };
  };
  const fits = ({ text }: Choice) => estimator.text(text) <= budgetTokens;
  if (all) {
    const whole = attempt(unsaid.length);
    return facts.length <= budgetTokens && fits(whole) ? whole : undefined;
  }
  let best = attempt(0);
  if (!fits(best)) return undefined;
  let [low, high] = [0, unsaid.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const tried = attempt(middle);
    if (fits(tried)) {
      best = tried;
      low = middle;
    } else high = middle - 1;
    await pause();
  }
  return best;
}

/** Facts as bullets, one for each group, the groups and their facts in order of rank. */
function withLists(bullets: Bullets, facts: readonly Fact[]): Bullets {
  const groups = { context: new Map<string, string[]>(), files: new Map<string, string[]>() };
  for (const { section, group, text } of facts) {
    const list = groups[section].get(group);
    if (list) list.push(text);
    else groups[section].set(group, [text]);
  }
  const lists = (section: 'context' | 'files') =>
    Array.from(groups[section], ([group, list]) => `${group}: ${list.join(' ')}`);
  return {
    ...bullets,
    context: [...bullets.context, ...lists('context')],
    files: [...bullets.files, ...lists('files')],
  };
}
