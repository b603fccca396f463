/**
 * What the readable sections say of a head, each list with the most telling bullet first. Position, role and shape decide;
 * words are a minor signal. It knows no budget.
 */
import { failureOf, labelOf, tasksOf } from './call.ts';
import { bySection, type Bullets } from './document.ts';
import type { Call, Reading, Said } from './reading.ts';
import { isBinding, isDeciding, isIntending, isQuestion } from './signals.ts';
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

export function bulletsOf(reading: Reading): Bullets {
  const texts = readTexts(reading.said);
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

/** Within a section each only once; and nothing is next that is under way or done. */
function deduplicate(bullets: Bullets): Bullets {
  const everywhere = new Set<string>();
  const unique = bySection<string[]>(() => []);
  for (const section of [
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
  ] as const) {
    for (const bullet of bullets[section]) {
      const key = keyOf(bullet);
      if (everywhere.has(key)) continue;
      everywhere.add(key);
      unique[section].push(bullet);
    }
  }
  return unique;
}

function readTexts(said: readonly Said[]): Text[] {
  const requests = said.filter(({ role }) => role === 'user');
  const replies = said.filter(({ role }) => role === 'assistant');
  const read = new Set([
    ...requests.slice(0, FIRST_REQUESTS),
    ...requests.slice(-NEWEST_TEXTS),
    ...replies.slice(-NEWEST_TEXTS),
  ]);
  return [...read].map((text) => ({ ...text, sentences: sentences(text.text) })).toSorted((a, b) => a.index - b.index);
}

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

/** The beginning of a request in its own words. */
function requestOf({ text, sentences: all }: Text): string {
  let request = '';
  for (const { text: sentence } of all) {
    if (request.length + sentence.length > MAX_GOAL_CHARS && request !== '') break;
    request = request === '' ? sentence : `${request} ${sentence}`;
  }
  return clip(request === '' ? oneLine(withoutMarkup(text.slice(0, 2_000))) : request, MAX_GOAL_CHARS);
}

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
  const lastCall = calls.at(-1);
  const isAnswered = last !== undefined && !last.callsAfter && last.index > (lastRequest?.index ?? -1);
  const open = calls
    .filter(({ result }) => !result)
    .slice(-3)
    .map((call) => `${labelOf(call)} (no result yet)`);
  const isWorking = last !== undefined && !isAnswered && last.index > (lastRequest?.index ?? -1);

  const steps = isWorking ? statements(last).filter((text) => !isQuestion(text)) : [];
  const inProgress = isWorking ? [...open.toReversed(), ...steps.slice(-1)] : open.toReversed();
  const finals = replies.filter(
    (reply) => !reply.callsAfter || (reply !== last && reply.index < (lastRequest?.index ?? 0)),
  );
  const closing = finals.filter(({ index, callsAfter }) => !callsAfter || isLastOfTurn(index, requests, replies));
  const told = [...closing, ...replies.filter((reply) => reply !== last && !closing.includes(reply))];
  const done = told
    .toSorted((a, b) => Number(closing.includes(b)) - Number(closing.includes(a)) || b.index - a.index)
    .flatMap((reply) =>
      statements(reply)
        .filter((text) => !isIntending(text) && !isQuestion(text) && !text.endsWith(':'))
        .slice(0, 1),
    );
  const intentions = last
    ? statements(last)
        .filter((text) => isIntending(text) || isQuestion(text))
        .toReversed()
    : [];
  const waiting = !isAnswered && !isWorking && lastRequest && lastCall === undefined ? [requestOf(lastRequest)] : [];
  return { done, inProgress, next: [...intentions, ...waiting].map((text) => clip(text, MAX_BULLET_CHARS)) };
}

function isLastOfTurn(index: number, requests: readonly Text[], replies: readonly Text[]): boolean {
  const nextRequest = requests.find((request) => request.index > index)?.index ?? Infinity;
  return !replies.some((reply) => reply.index > index && reply.index < nextRequest);
}

/** Sentences that say something. */
function statements({ sentences: all }: Text): string[] {
  return all
    .filter(({ text }) => weight(text) >= MIN_SENTENCE_WEIGHT)
    .map(({ text }) => clip(text.replace(/[:：]$/, ''), MAX_BULLET_CHARS));
}

// Calls

/** Failures so many calls back are history. */
const RECENT_CALLS = 16;

/** Recent calls that failed, and that the same call did not follow with success. */
function blockedOf({ calls }: Reading): string[] {
  const repaired = new Set<string>();
  const blocked: string[] = [];
  for (const call of calls.slice(-RECENT_CALLS).toReversed()) {
    const label = labelOf(call);
    const failure = failureOf(call);
    if (failure === undefined && call.result) repaired.add(label);
    else if (failure !== undefined && !repaired.has(label)) {
      repaired.add(label);
      blocked.push(`${label} → ${failure}`);
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
