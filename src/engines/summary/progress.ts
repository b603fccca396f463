/** How far the work is, as the newest texts and calls tell it. */
import { failureOf, labelOf, tasksOf } from './call.ts';
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
  const reports = texts.flatMap((reply, at) => {
    if (reply.role !== 'assistant') return [];
    const closing = !reply.callsAfter && texts[at + 1]?.role !== 'assistant';
    const told = statements(reply).filter((text) => !isIntending(text) && !isQuestion(text));
    // What ends a turn with calls in it reports of them, in whatever language.
    const hasWorked = withCalls.has(reply.index - 2) || withCalls.has(reply.index - 1);
    const report = told.find(isReporting) ?? (closing && hasWorked ? told[0] : undefined);
    return report === undefined ? [] : [{ closing, report }];
  });
  return reports
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

/** What the newest reply says that it will do or asks; without one, the request that waits. */
export function nextOf(texts: readonly Text[], calls: readonly Call[]): string[] {
  const reply = lastOf(texts, 'assistant');
  const request = lastOf(texts, 'user');
  const waits = request !== undefined && request.index > Math.max(reply?.index ?? -1, calls.at(-1)?.index ?? -1);
  if (waits) return [clip(requestOf(request), MAX_BULLET_CHARS)];
  return reply
    ? statements(reply)
        .filter((text) => isIntending(text) || isQuestion(text))
        .slice(-MAX_INTENTIONS)
    : [];
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
