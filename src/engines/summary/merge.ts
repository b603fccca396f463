/** An earlier summary and a new head become one: what is still true stays, what is said twice is said once. Pure. */
import { bySection, type Bullets, parse, type Section, SECTIONS } from './document.ts';
import { LATEST } from './bullets.ts';
import { isFact } from './facts.ts';
import type { Fact } from './rank.ts';
import { clip, keyOf, oneLine } from './text.ts';

/** What a summary is made of: bullets with the most telling first, and ranked facts. */
export interface Material {
  readonly bullets: Bullets;
  readonly facts: readonly Fact[];
}

/** A bullet of someone else's summary may be a whole page. */
const MAX_BULLET_CHARS = 600;

/** An earlier summary as material. Its lists of facts are taken apart again. */
export function materialOf(summary: string): Material {
  const bullets = bySection<string[]>(() => []);
  const lists: Fact[][] = [];
  const parsed = parse(summary);
  for (const section of SECTIONS) {
    for (const bullet of parsed[section]) {
      const list = section === 'context' || section === 'files' ? factsOf(section, bullet) : undefined;
      if (list) lists.push(list);
      else bullets[section].push(clip(oneLine(bullet), MAX_BULLET_CHARS));
    }
  }
  return { bullets, facts: interleave(lists) };
}

function factsOf(section: 'context' | 'files', bullet: string): Fact[] | undefined {
  const [, group, list] = /^([^\s]{1,41}): (.+)$/.exec(bullet) ?? [];
  if (group === undefined || list === undefined) return undefined;
  const items = list.split(' ');
  return items.every(isFact) ? items.map((text) => ({ text, section, group })) : undefined;
}

/** The first of each list, then the second of each, and so on. */
export function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  const mixed: T[] = [];
  for (let index = 0; index < longest; index++)
    for (const list of lists) if (index < list.length) mixed.push(list[index] as T);
  return mixed;
}

/** These tell how things stand, so that news replaces what was said before. */
const STATES: ReadonlySet<Section> = new Set(['inProgress', 'blocked', 'next']);

export function merge(earlier: Material, news: Material): Material {
  const bullets = bySection((section) => {
    const [old, fresh] = [earlier.bullets[section], news.bullets[section]];
    if (section === 'goal') return mergeGoal(old, fresh);
    if (STATES.has(section)) return fresh.length > 0 ? fresh : stillOpen(old, news);
    // The newest calls are the ones to go on from.
    if (section === 'actions' || section === 'done') return unique([...fresh, ...old.toReversed()]);
    return unique(interleave([old, fresh]));
  });
  return { bullets, facts: uniqueFacts(interleave([news.facts, earlier.facts])) };
}

/** The first goal stays; of the requests after it only the newest matters. */
function mergeGoal(old: readonly string[], fresh: readonly string[]): string[] {
  if (old.length === 0) return [...fresh];
  const latest = fresh.at(-1);
  const first = old.filter((bullet) => !bullet.startsWith(LATEST));
  if (latest === undefined) return [...old];
  return unique([...first, latest.startsWith(LATEST) ? latest : LATEST + latest]);
}

const stillOpen = (old: readonly string[], { bullets: { done } }: Material): readonly string[] => {
  const finished = new Set(done.map(keyOf));
  return old.filter((bullet) => !finished.has(keyOf(bullet)));
};

function unique(bullets: readonly string[]): string[] {
  const keys = new Set<string>();
  return bullets.filter((bullet) => {
    const key = keyOf(bullet.startsWith(LATEST) ? bullet.slice(LATEST.length) : bullet);
    return !keys.has(key) && keys.add(key);
  });
}

function uniqueFacts(facts: readonly Fact[]): Fact[] {
  const seen = new Set<string>();
  return facts.filter(({ text }) => !seen.has(text) && seen.add(text));
}
