/**
 * What the readable sections say of a head, each list with the most telling bullet first. Position, role and shape decide;
 * words are a minor signal. It knows no budget.
 */
import { actionsOf, attachmentsOf, blockedOf, tasksOf } from './call.ts';
import { bySection, type Bullets } from './document.ts';
import { constraintsOf, decisionsOf, goalOf } from './intent.ts';
import { doneOf, goingOf, nextOf, waitingOf } from './progress.ts';
import type { Reading, Said } from './reading.ts';
import { keyOf, sentences, type Text } from './text.ts';

/** What is read for its sentences: the first requests, and the newest texts of either side. */
const FIRST_REQUESTS = 40;
const NEWEST_TEXTS = 120;
/** Of one text no more than some 10,000 characters are read. */
const TEXTS_PER_PAUSE = 16;

export async function bulletsOf(reading: Reading, pause: () => Promise<void>): Promise<Bullets> {
  const texts = await readTexts(reading.said, pause);
  const { calls } = reading;
  const waiting = waitingOf(texts, calls);
  const tasks = calls.map(tasksOf).findLast((list) => list !== undefined) ?? [];
  const inState = (wanted: string) => tasks.filter(({ state }) => state === wanted).map(({ text }) => text);
  return deduplicate({
    goal: goalOf(texts, waiting),
    constraints: constraintsOf(texts),
    done: [...inState('done').toReversed(), ...doneOf(texts, calls)],
    inProgress: [...inState('inProgress'), ...goingOf(texts, calls)],
    blocked: [...inState('blocked'), ...blockedOf(calls)],
    decisions: decisionsOf(texts),
    next: [...inState('next'), ...nextOf(texts, waiting)],
    actions: actionsOf(calls),
    context: attachmentsOf(reading.attachments),
    files: [],
  });
}

/** Where a bullet may stand that several sections have; the first of these keeps it. */
const PRECEDENCE = [
  'goal',
  'decisions',
  'constraints',
  'blocked',
  'inProgress',
  'next',
  'done',
  'actions',
  'context',
  'files',
] as const;

/** More than any budget shows of one section. */
const MAX_BULLETS = 100;

/** Each bullet once, and no sentence that the goal quotes already. */
function deduplicate(bullets: Bullets): Bullets {
  const goal = bullets.goal.join('\n');
  const said = new Set<string>();
  const unique = bySection<string[]>(() => []);
  for (const section of PRECEDENCE) {
    for (const bullet of bullets[section]) {
      const key = keyOf(bullet);
      if (unique[section].length === MAX_BULLETS) break;
      if (key === '' || said.has(key) || (section !== 'goal' && goal.includes(bullet.replace(/…$/, '')))) continue;
      said.add(key);
      unique[section].push(bullet);
    }
  }
  return unique;
}

async function readTexts(said: readonly Said[], pause: () => Promise<void>): Promise<Text[]> {
  const requests = said.filter(({ role }) => role === 'user');
  const replies = said.filter(({ role }) => role === 'assistant');
  const read = new Set([
    ...requests.slice(0, FIRST_REQUESTS),
    ...requests.slice(-NEWEST_TEXTS),
    ...replies.slice(-NEWEST_TEXTS),
  ]);
  const texts: Text[] = [];
  for (const text of read) {
    texts.push({ ...text, sentences: sentences(text.text) });
    if (texts.length % TEXTS_PER_PAUSE === 0) await pause();
  }
  return texts.toSorted((a, b) => a.index - b.index);
}
