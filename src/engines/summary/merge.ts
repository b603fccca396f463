/** An earlier summary and a new head become one: what is still true stays, what is said twice is said once. Pure. */
import { bySection, type Bullets, parse, type Section, SECTIONS } from './document.ts';
import { LATEST } from './intent.ts';
import { isFact } from './facts.ts';
import type { Fact } from './rank.ts';
import { clip, keyOf, oneLine } from './text.ts';

/** What a summary is made of: bullets with the most telling first, and ranked facts. */
export interface Material {
  readonly bullets: Bullets;
  readonly facts: readonly Fact[];
}

/** What goes beyond is no summary, and is not read. */
export const MAX_SUMMARY_CHARS = 131_072;

/** A bullet of someone else's summary may be a whole page. */
const MAX_BULLET_CHARS = 600;
/** The others are context. */
const MAX_GOALS = 4;
/** In one section; a summary that has more is none. */
const MAX_BULLETS = 256;

/** An earlier summary as material. Its lists of facts are taken apart again. */
export function materialOf(summary: string): Material {
  const bullets = bySection<string[]>(() => []);
  const facts: Fact[] = [];
  const parsed = parse(summary.slice(0, MAX_SUMMARY_CHARS));
  for (const section of SECTIONS) {
    for (const bullet of parsed[section]) {
      const list = section === 'context' || section === 'files' ? factsOf(section, bullet) : undefined;
      const into = section === 'goal' && bullets.goal.length >= MAX_GOALS ? 'context' : section;
      if (list) facts.push(...list);
      else if (bullets[into].length < MAX_BULLETS) bullets[into].push(clip(oneLine(bullet), MAX_BULLET_CHARS));
    }
  }
  return { bullets, facts };
}

function factsOf(section: 'context' | 'files', bullet: string): Fact[] | undefined {
  const [, group, list] = /^([^\s]{1,41}): (.+)$/.exec(bullet) ?? [];
  if (group === undefined || list === undefined) return undefined;
  const items = list.split(' ');
  return items.every(isFact) ? items.map((text) => ({ text, section, group })) : undefined;
}

/** The first of each list, then the second of each, and so on. */
export function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const mixed: T[] = [];
  let left = lists;
  for (let index = 0; left.length > 0; index++) {
    left = left.filter(({ length }) => index < length);
    for (const list of left) mixed.push(list[index] as T);
  }
  return mixed;
}

/** The facts of an earlier summary by rank, as far as its lists show it; their order among each other is that of their names. */
function ranked(facts: readonly Fact[]): Fact[] {
  const lists = new Map<string, Fact[]>();
  for (const fact of facts) {
    const name = `${fact.section} ${fact.group}`;
    const list = lists.get(name);
    if (list) list.push(fact);
    else lists.set(name, [fact]);
  }
  return interleave([...lists].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, list]) => list));
}

/** These tell how things stand, so that news replaces what was said before. */
const STATES: ReadonlySet<Section> = new Set(['inProgress', 'blocked', 'next']);

/** What the head says itself takes its place from there; of the rest each keeps its place among its like. */
export function merge(earlier: Material, news: Material): Material {
  const isDone = sayingOf(news.bullets.done);
  const bullets = bySection((section) => {
    const fresh = news.bullets[section];
    const isFresh = sayingOf(fresh);
    const old = earlier.bullets[section].filter((bullet) => !isFresh(bullet));
    if (section === 'goal') return mergeGoal(earlier.bullets.goal, fresh);
    if (STATES.has(section)) return fresh.length > 0 ? fresh : old.filter((bullet) => !isDone(bullet));
    // The newest calls are the ones to go on from.
    if (section === 'actions' || section === 'done') return [...fresh, ...old];
    return interleave([old, fresh]);
  });
  const known = new Set(news.facts.map(({ text }) => text));
  const old = ranked(earlier.facts.filter(({ text }) => !known.has(text)));
  return { bullets, facts: interleave([news.facts, old]) };
}

/** Tells whether one of the bullets is the same, or would be but for what was cut off one of the two. */
export function sayingOf(bullets: readonly string[]): (bullet: string) => boolean {
  const keys = new Set(bullets.map(withoutLatest).map(keyOf));
  const cut = bullets
    .filter((bullet) => bullet.endsWith('…'))
    .map(withoutLatest)
    .map(keyOf);
  return (bullet) => {
    const key = keyOf(withoutLatest(bullet));
    if (keys.has(key) || cut.some((beginning) => beginning !== '' && key.startsWith(beginning))) return true;
    return bullet.endsWith('…') && [...keys].some((said) => said.startsWith(key));
  };
}

const withoutLatest = (bullet: string): string => (bullet.startsWith(LATEST) ? bullet.slice(LATEST.length) : bullet);

/** The first goal stays; of the requests after it only the newest matters. */
function mergeGoal(old: readonly string[], fresh: readonly string[]): string[] {
  if (old.length === 0) return [...fresh];
  const latest = fresh.at(-1);
  const first = old.filter((bullet) => !bullet.startsWith(LATEST));
  if (latest === undefined) return [...old];
  return sayingOf(first)(latest) ? first : [...first, latest.startsWith(LATEST) ? latest : LATEST + latest];
}
