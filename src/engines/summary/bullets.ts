/**
 * What the readable sections say of a head, each list with the most telling bullet first. Position, role and shape decide;
 * words are a minor signal. It knows no budget.
 */
import { failureOf, labelOf, tasksOf } from './call.ts';
import { bySection, type Bullets } from './document.ts';
import type { Call, Reading, Said } from './reading.ts';
import { isBinding, isDeciding, isIntending, isQuestion, isReporting } from './signals.ts';
import { clip, keyOf, oneLine, type Sentence, sentences, weight, withoutMarkup } from './text.ts';

/** What is read for its sentences: the first requests, and the newest texts of either side. */
const FIRST_REQUESTS = 40;
const NEWEST_TEXTS = 120;

/** A request says something from so many Latin letters on ("continue" and "yes" do not). */
const MIN_REQUEST_WEIGHT = 16;
/** A sentence of its own; shorter ones ("Done.", "Perfect!") lead over to the next. */
const MIN_SENTENCE_WEIGHT = 24;

const MAX_GOAL_CHARS = 400;
const MAX_BULLET_CHARS = 300;
export const LATEST = 'Latest: ';

interface Text extends Said {
  readonly sentences: readonly Sentence[];
}

export async function bulletsOf(reading: Reading, pause: () => Promise<void>): Promise<Bullets> {
  const texts = await readTexts(reading.said, pause);
  const requests = texts.filter(({ role }) => role === 'user');
  const replies = texts.filter(({ role }) => role === 'assistant');
  const tasks = reading.calls.findLast((call) => tasksOf(call) !== undefined);
  const taskBullets = bySection<string[]>(() => []);
  for (const { text, state } of (tasks && tasksOf(tasks)) ?? []) taskBullets[state].push(text);

  const progress = progressOf(requests, replies, reading);
  const goal = goalOf(requests);
  return deduplicate({
    goal,
    constraints: constraintsOf(requests),
    done: [...taskBullets.done.toReversed(), ...progress.done],
    inProgress: [...taskBullets.inProgress, ...progress.inProgress],
    blocked: [...taskBullets.blocked, ...blockedOf(reading)],
    decisions: decisionsOf(texts),
    next: [...taskBullets.next, ...progress.next],
    actions: actionsOf(reading.calls),
    context: attachmentsOf(reading),
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

/** Of a text no more than some 10,000 characters are read. */
const TEXTS_PER_PAUSE = 16;

// Goal

/** What the first messages ask, and the newest request where it is another one. */
function goalOf(requests: readonly Text[]): string[] {
  const asking = requests.filter(says);
  const opening = asking.filter(({ index }) => index <= (asking[0]?.index ?? 0) + 1).slice(0, 2);
  const first = (opening.length > 0 ? opening : requests.slice(0, 1)).map(requestOf).filter(Boolean);
  const latest = asking.at(-1);
  return latest && !opening.includes(latest) ? [...first, LATEST + clip(requestOf(latest), MAX_BULLET_CHARS)] : first;
}

const says = ({ sentences: all }: Text): boolean =>
  all.reduce((total, { text }) => total + weight(text), 0) >= MIN_REQUEST_WEIGHT;

/** The beginning of a request in its own words, without lead-ins and the list that follows. */
function requestOf({ text, sentences: all }: Text): string {
  let request = '';
  for (const { text: sentence, listed } of all) {
    if (
      /[:：]$/.test(sentence) &&
      sentence.length < MAX_LEAD_IN_CHARS &&
      request.length + sentence.length < MAX_BULLET_CHARS
    )
      continue;
    if (request !== '' && (listed || request.length + sentence.length > MAX_GOAL_CHARS)) break;
    request = request === '' ? sentence : `${request} ${sentence}`;
  }
  return clip(request === '' ? oneLine(withoutMarkup(text.slice(0, 2_000))) : request, MAX_GOAL_CHARS);
}
const MAX_LEAD_IN_CHARS = 60;

// Constraints and decisions

function constraintsOf(requests: readonly Text[]): string[] {
  const first = requests.find(says);
  const found = requests.flatMap((request) =>
    request.sentences.map(({ text, listed }, index) => ({
      text,
      score:
        (isBinding(text) ? 2 : 0) +
        (listed ? 1 : 0) +
        (request === first && index > 0 ? 0.5 : 0) -
        (isQuestion(text) ? 2 : 0) -
        (text.endsWith(':') ? 2 : 0) -
        (weight(text) > MAX_BULLET_CHARS ? 0.5 : 0),
    })),
  );
  return best(found.filter(({ text, score }) => score >= 1 && weight(text) >= MIN_REQUEST_WEIGHT));
}

function decisionsOf(texts: readonly Text[]): string[] {
  const found = texts.flatMap((text, at) => {
    const answered = text.role === 'user' && texts[at - 1]?.role === 'assistant' ? texts[at - 1] : undefined;
    const isAnswer =
      answered !== undefined && answered.sentences.slice(-2).some(({ text: asked }) => isQuestion(asked));
    return text.sentences.map(({ text: sentence }, index) => ({
      text: sentence,
      score:
        (isAnswer && index === 0 ? 2 : 0) +
        (isDeciding(sentence) ? (text.role === 'user' ? 2 : 1.5) : 0) -
        (isQuestion(sentence) ? 2 : 0) -
        (sentence.endsWith(':') ? 1 : 0) +
        at / texts.length,
    }));
  });
  return best(found.filter(({ text, score }) => score >= 1.5 && weight(text) >= MIN_SENTENCE_WEIGHT));
}

const best = (found: readonly { readonly text: string; readonly score: number }[]): string[] =>
  found.toSorted((a, b) => b.score - a.score).map(({ text }) => clip(text, MAX_BULLET_CHARS));

// Progress

function progressOf(requests: readonly Text[], replies: readonly Text[], { calls }: Reading) {
  const last = replies.at(-1);
  const lastRequest = requests.at(-1);
  const isAnswered = last !== undefined && !last.callsAfter && last.index > (lastRequest?.index ?? -1);
  const current = last !== undefined && last.index > (lastRequest?.index ?? -1) ? plain(last) : [];
  const newest = isAnswered ? [] : calls.filter(({ index }) => index === calls.at(-1)?.index);
  const going = newest.filter((call) => failureOf(call) === undefined && tasksOf(call) === undefined);
  const intentions = current.filter((text) => isIntending(text) || isQuestion(text)).slice(-MAX_INTENTIONS);
  const unanswered = lastRequest && current.length === 0 && going.length === 0 ? [requestOf(lastRequest)] : [];
  return {
    done: doneOf(requests, replies, calls),
    inProgress: going.map((call) => (call.result ? labelOf(call) : `${labelOf(call)} (no result yet)`)),
    next: [...intentions, ...unanswered].map((text) => clip(text, MAX_BULLET_CHARS)),
  };
}

const MAX_INTENTIONS = 3;

/** What the assistant said it had done, the ends of its turns first. */
function doneOf(requests: readonly Text[], replies: readonly Text[], calls: readonly Call[]): string[] {
  const isClosing = (reply: Text) => !reply.callsAfter && isLastOfTurn(reply.index, requests, replies);
  const worked = new Set(calls.map(({ index }) => index));
  const reports = replies.toReversed().flatMap((reply) => {
    const closing = isClosing(reply);
    const facts = plain(reply).filter((text) => !isIntending(text) && !isQuestion(text));
    const report =
      facts.find(isReporting) ??
      (closing && (worked.has(reply.index - 2) || worked.has(reply.index - 1)) ? facts[0] : undefined);
    return report === undefined ? [] : [{ closing, report }];
  });
  return [...reports.filter(({ closing }) => closing), ...reports.filter(({ closing }) => !closing)].map(
    ({ report }) => report,
  );
}

function isLastOfTurn(index: number, requests: readonly Text[], replies: readonly Text[]): boolean {
  const nextRequest = requests.find((request) => request.index > index)?.index ?? Infinity;
  return !replies.some((reply) => reply.index > index && reply.index < nextRequest);
}

/** Sentences that say something, without those that only lead over to a list. */
function plain({ sentences: all }: Text): string[] {
  return all
    .filter(
      ({ text }, index) => weight(text) >= MIN_SENTENCE_WEIGHT && (!/[:：]$/.test(text) || index === all.length - 1),
    )
    .map(({ text }) => clip(text.replace(/[:：]$/, ''), MAX_BULLET_CHARS));
}

// Calls

/** Failures so many calls back are history; such as say no more than a number, sooner. */
const RECENT_CALLS = 16;
const RECENT_EXITS = 4;
const EXIT = /^(?:command )?(?:exited with |exit )(?:code|status)? ?\d+\.?$|^failed$/i;

/** Recent calls that failed, and that the same call did not follow with success. */
function blockedOf({ calls }: Reading): string[] {
  const repaired = new Set<string>();
  const blocked: string[] = [];
  for (const [back, call] of calls.slice(-RECENT_CALLS).toReversed().entries()) {
    const label = labelOf(call);
    const failure = failureOf(call);
    if (failure !== undefined && EXIT.test(failure) && back >= RECENT_EXITS) continue;
    if (failure === undefined && call.result) repaired.add(label);
    else if (failure !== undefined && !repaired.has(label) && !repaired.has(failure)) {
      repaired.add(label).add(failure);
      blocked.push(`${failure} (${label})`);
    }
  }
  return blocked;
}

/** The newest first, each way of calling once. */
function actionsOf(calls: readonly Call[]): string[] {
  const labels = new Set<string>();
  for (const call of calls.slice(-NEWEST_TEXTS).toReversed())
    if (tasksOf(call) === undefined) labels.add(labelOf(call));
  return [...labels];
}

function attachmentsOf({ attachments }: Reading): string[] {
  return Array.from(attachments, ([name, times]) =>
    times > 1 ? `${clip(oneLine(name), 100)} ×${times}` : clip(oneLine(name), 100),
  );
}
