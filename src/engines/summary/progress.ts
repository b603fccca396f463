/** How far the work is, as the newest texts and calls tell it. */
import { failureOf, labelOf, tasksOf } from './call.ts';
import { holdsFact } from './facts.ts';
import { requestOf } from './intent.ts';
import type { Call } from './reading.ts';
import { isIntending, isQuestion, isReporting } from './signals.ts';
import { clip, type Text, weight } from './text.ts';

/** Shorter sentences ("Done.", "Perfect!") lead over to the next. */
const MIN_SENTENCE_WEIGHT = 24;
const MAX_BULLET_CHARS = 300;
const MAX_INTENTIONS = 3;

const lastOf = (texts: readonly Text[], role: Text['role']): Text | undefined =>
  texts.findLast((text) => text.role === role);

/** What the assistant said it had done, newest first, the ends of its turns before the steps of the last one. */
export function doneOf(texts: readonly Text[], calls: readonly Call[]): string[] {
  const withCalls = new Set(calls.map(({ index }) => index));
  const found = texts.flatMap((reply, at) => {
    if (reply.role !== 'assistant') return [];
    const closing = !reply.callsAfter && texts[at + 1]?.role !== 'assistant';
    const told = statements(reply).filter((text) => !isIntending(text) && !isQuestion(text));
    // What ends a turn with calls in it reports of them, in whatever language.
    const hasWorked = withCalls.has(reply.index - 2) || withCalls.has(reply.index - 1);
    const reports = told.filter(isReporting);
    const report = reports.find(holdsFact) ?? reports[0] ?? (closing && hasWorked ? told[0] : undefined);
    return report === undefined ? [] : [{ closing, report }];
  });
  return found
    .toReversed()
    .toSorted((a, b) => Number(b.closing) - Number(a.closing))
    .map(({ report }) => report);
}

/** The newest calls, unless their turn has ended or they failed. */
export function goingOf(texts: readonly Text[], calls: readonly Call[]): string[] {
  const newest = calls.at(-1)?.index ?? -1;
  const reply = lastOf(texts, 'assistant');
  if (reply !== undefined && !reply.callsAfter && reply.index > newest) return [];
  return calls
    .filter((call) => call.index === newest && failureOf(call) === undefined && tasksOf(call) === undefined)
    .map((call) => (call.result ? labelOf(call) : `${labelOf(call)} (no result yet)`));
}

/** The newest request, if nobody has taken it up yet. */
export function waitingOf(texts: readonly Text[], calls: readonly Call[]): Text | undefined {
  const newest = texts.at(-1);
  return newest?.role === 'user' && newest.index > (calls.at(-1)?.index ?? -1) ? newest : undefined;
}

/** The request that waits, or what the newest reply to the newest request says that it will do, or asks. */
export function nextOf(texts: readonly Text[], waiting: Text | undefined): string[] {
  const newest = texts.at(-1);
  if (waiting) return [clip(requestOf(waiting), MAX_BULLET_CHARS)];
  if (newest?.role !== 'assistant') return [];
  return statements(newest)
    .filter((text) => isIntending(text) || isQuestion(text))
    .slice(-MAX_INTENTIONS);
}

/** Sentences that say something, lists last, without those that only lead over to a list. */
function statements({ sentences }: Text): string[] {
  const telling = sentences.filter(
    ({ text }, index) =>
      weight(text) >= MIN_SENTENCE_WEIGHT && (!/[:：]$/.test(text) || index === sentences.length - 1),
  );
  return [...telling.filter(({ listed }) => !listed), ...telling.filter(({ listed }) => listed)].map(({ text }) =>
    clip(text.replace(/[:：]$/, ''), MAX_BULLET_CHARS),
  );
}
