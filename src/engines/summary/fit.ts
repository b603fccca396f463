/**
 * The most of some material that a budget holds: bullets by shares of the sections, and what is left for facts. Every text is
 * counted as a whole before it goes out, so no rounding of parts adds up.
 */
import type { Estimator } from '../estimator.ts';
import { bySection, type Bullets, render, type Section } from './document.ts';
import { mentions } from './mentions.ts';
import type { Material } from './merge.ts';
import { type Fact, kindOf, MENTIONED } from './rank.ts';
import { clip } from './text.ts';

/** What share of the room for bullets each section may take; what it leaves goes to the next. In order of importance. */
const SHARES: readonly (readonly [Section, number])[] = [
  ['goal', 0.28],
  ['constraints', 0.16],
  ['decisions', 0.12],
  ['blocked', 0.08],
  ['inProgress', 0.08],
  ['next', 0.08],
  ['done', 0.1],
  ['actions', 0.1],
  ['context', 1],
  ['files', 1],
];

/**
 * How many tokens bullets may take: so many in any case, and a share of the budget. Facts say more per token, but a reader
 * needs sentences first.
 */
const PROSE_TOKENS = 70;
const PROSE_SHARE = 0.14;
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
    const bullets = choose(material.bullets, scale * (PROSE_TOKENS + PROSE_SHARE * room.budgetTokens), room.estimator);
    const choice = await withFacts(bullets, material.facts, room, scale > 1);
    if (choice) return choice;
  }
  return undefined;
}

function choose(material: Bullets, tokens: number, estimator: Estimator): Bullets {
  const count = (text: string) => estimator.text(text);
  const chosen = bySection<string[]>(() => []);
  let allowed = 0;
  let used = 0;
  for (const [section, share] of SHARES) {
    allowed = Math.min(tokens, allowed + share * tokens);
    for (const [index, bullet] of material[section].entries()) {
      const left = section === 'goal' ? goalRoom(index) : allowed - used;
      const shown = shortened(bullet, left - BULLET_FRAME_TOKENS, count);
      if (shown === undefined) break;
      used += count(shown) + BULLET_FRAME_TOKENS;
      chosen[section].push(shown);
    }
  }
  return chosen;

  /** The first goal and the newest are both shown, however long either is. */
  function goalRoom(index: number): number {
    return Math.max((allowed - used) / (material.goal.length - index), Math.min(MIN_GOAL_TOKENS, tokens - used));
  }
}

const MIN_GOAL_TOKENS = 24;
/** `- ` and the end of the line. */
const BULLET_FRAME_TOKENS = 2;
/** A bullet cut to less would say nothing. */
const MIN_BULLET_TOKENS = 10;

/** The bullet, or as much of its beginning as there is room for; undefined where that would say nothing. */
function shortened(bullet: string, tokens: number, count: (text: string) => number): string | undefined {
  const whole = count(bullet);
  if (whole <= tokens) return bullet;
  if (tokens < MIN_BULLET_TOKENS) return undefined;
  for (
    let chars = Math.floor((bullet.length * tokens) / whole);
    chars >= MIN_BULLET_TOKENS;
    chars = Math.floor(chars * 0.9)
  ) {
    const clipped = clip(bullet, chars);
    if (count(clipped) <= tokens) return clipped;
  }
  return undefined;
}

/** Most facts take more than two tokens with the gap behind them, so no more than this are looked at. */
const FACTS_PER_TOKEN = 0.5;

/**
 * Tells of one fact after the other whether it is new. None is shown twice, nor where a longer one or a bullet says it; but
 * files that calls touched are listed though a bullet names them.
 */
function newTo(bullets: Bullets): (fact: Fact) => boolean {
  const said = mentions(Object.values(bullets).flat());
  const listed = mentions([]);
  return ({ text, group, section }) => {
    const isTouched = section === 'files' && group !== MENTIONED;
    if (!isTouched && said.has(text)) return false;
    return listed.add(text);
  };
}

async function withFacts(
  bullets: Bullets,
  facts: readonly Fact[],
  room: Room,
  all: boolean,
): Promise<Choice | undefined> {
  const { budgetTokens, estimator, pause } = room;
  const most = Math.ceil(budgetTokens * FACTS_PER_TOKEN);
  if (all && facts.length > most) return undefined;
  const attempt = (count: number): Choice => {
    const shown = unsaid.slice(0, count);
    return { bullets, facts: shown, text: render(withLists(bullets, shown)) };
  };
  const fits = ({ text }: Choice) => estimator.text(text) <= budgetTokens;
  const unsaid: Fact[] = [];
  let best = attempt(0);
  if (!fits(best)) return undefined;
  const isNew = newTo(bullets);
  for (const fact of facts) {
    if (unsaid.length >= most) break;
    if (isNew(fact)) unsaid.push(fact);
  }
  if (all) {
    const whole = attempt(unsaid.length);
    return fits(whole) ? whole : undefined;
  }
  // What each takes alone says nearly how many have room; from there it is a few steps, each twice as long, and then halves.
  let [low, high] = [0, unsaid.length];
  let next = affordable(unsaid, budgetTokens - estimator.text(best.text), estimator);
  for (let step = FIRST_STEP_FACTS; low < high; step *= 2) {
    if (next <= low || next > high) next = Math.ceil((low + high) / 2);
    const tried = attempt(next);
    if (fits(tried)) {
      best = tried;
      low = next;
      next += step;
    } else {
      high = next - 1;
      next -= step;
    }
    await pause();
  }
  return best;
}

const FIRST_STEP_FACTS = 8;

/** How many of the first facts come to so many tokens, with a gap behind each. */
function affordable(facts: readonly Fact[], tokens: number, estimator: Estimator): number {
  let left = tokens;
  const tooMany = facts.findIndex(({ text }) => (left -= estimator.text(` ${text}`)) < 0);
  return tooMany < 0 ? facts.length : tooMany;
}

/** Facts as bullets, one for each group, the groups and their facts in order of rank. */
function withLists(bullets: Bullets, facts: readonly Fact[]): Bullets {
  const files = facts.filter(({ section }) => section === 'files');
  const rest = facts.filter(({ section }) => section === 'context');
  const sizes = new Map<string, number>();
  for (const { group } of rest) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const isLarge = ({ group }: Fact) => (sizes.get(group) ?? 0) >= MIN_GROUP_FACTS;
  return {
    ...bullets,
    context: [...bullets.context, ...lists(rest, (fact) => (isLarge(fact) ? fact.group : kindOf(fact.text)))],
    files: [...bullets.files, ...lists(files, ({ group }) => group)],
  };
}

/** A file of which less is said is not worth a line of its own. */
const MIN_GROUP_FACTS = 4;

function lists(facts: readonly Fact[], groupOf: (fact: Fact) => string): string[] {
  const groups = new Map<string, string[]>();
  for (const fact of facts) {
    const list = groups.get(groupOf(fact));
    if (list) list.push(fact.text);
    else groups.set(groupOf(fact), [fact.text]);
  }
  return Array.from(groups, ([group, list]) => `${group}: ${list.join(' ')}`);
}
