/** What people want: the goal, what binds the work, and what was decided, in their own words. */
import { holdsFact } from './facts.ts';
import { isBinding, isDeciding, isQuestion } from './signals.ts';
import { clip, oneLine, type Sentence, type Text, weight, withoutMarkup } from './text.ts';

/** A request says something from so many Latin letters on ("continue" and "yes" do not). */
const MIN_REQUEST_WEIGHT = 16;
/** Before a request says so much nothing is left out of it. */
const MIN_GOAL_WEIGHT = 40;
/** An answer to a question is short; what is longer is a request of its own. */
const MAX_ANSWER_WEIGHT = 80;
const MIN_DECISION_WEIGHT = 24;

const MAX_GOAL_CHARS = 400;
const MAX_BULLET_CHARS = 300;
const MAX_QUESTION_CHARS = 140;
/** `Here is the issue text:` */
const MAX_LEAD_IN_CHARS = 60;

/** Before the newest request, where it is not the first. */
export const LATEST = 'Latest: ';

const isLeadIn = (sentence: string): boolean => /[:：]$/.test(sentence);

/** What the first messages ask, and the newest request where it is another one. One that nobody took up is a next step. */
export function goalOf(texts: readonly Text[], waiting: Text | undefined): string[] {
  const requests = texts.filter(({ role }) => role === 'user');
  const asking = requests.filter(says);
  const opening = asking.filter(({ index }) => index <= (asking[0]?.index ?? 0) + 1).slice(0, 2);
  const first = (opening.length > 0 ? opening : requests.slice(0, 1)).map(requestOf).filter(Boolean);
  const latest = asking.findLast((request) => questionBefore(texts, request) === undefined && request !== waiting);
  return latest && !opening.includes(latest) ? [...first, LATEST + clip(requestOf(latest), MAX_BULLET_CHARS)] : first;
}

function says({ sentences }: Text): boolean {
  return sentences.reduce((total, { text }) => total + weight(text), 0) >= MIN_REQUEST_WEIGHT;
}

/** The beginning of a request in its own words, without lead-ins, and without what binds it: that stands below. */
export function requestOf({ text, sentences }: Text): string {
  let request = '';
  for (const { text: sentence, listed } of sentences) {
    if (isLeadIn(sentence) && sentence.length < MAX_LEAD_IN_CHARS) continue;
    if (request === '') request = sentence.replace(/[:：]$/, '');
    else if (listed || request.length + sentence.length > MAX_GOAL_CHARS) break;
    else if (weight(request) < MIN_GOAL_WEIGHT || !isBinding(sentence)) request = `${request} ${sentence}`;
  }
  return clip(request === '' ? oneLine(withoutMarkup(text.slice(0, 2_000))) : request, MAX_GOAL_CHARS);
}

/** What people asked to keep to: sentences that bind, and items of their lists, the first message before others. */
export function constraintsOf(texts: readonly Text[]): string[] {
  const requests = texts.filter((text) => text.role === 'user' && questionBefore(texts, text) === undefined);
  const opening = requests.find(says)?.index ?? 0;
  const first = requests.findLast(({ index }) => index <= opening + 1);
  const found = requests.flatMap((request) =>
    request.sentences.map((sentence, index) => ({
      text: sentence.text,
      score: bindingScore(sentence) + (request === first && index > 0 ? 0.5 : 0),
    })),
  );
  return best(found.filter(({ text, score }) => score >= 1 && weight(text) >= MIN_REQUEST_WEIGHT));
}

function bindingScore({ text, listed }: Sentence): number {
  if (isQuestion(text) || isLeadIn(text)) return 0;
  return (isBinding(text) ? 2 : 0) + (listed ? 1 : 0) - (weight(text) > MAX_BULLET_CHARS ? 0.5 : 0);
}

/** Answers to questions, with the question, and what either side says it chose and why; the newest first. */
export function decisionsOf(texts: readonly Text[]): string[] {
  const found = texts.flatMap((text, at) => {
    const recency = at / texts.length;
    const question = text.role === 'user' ? questionBefore(texts, text) : undefined;
    if (question !== undefined) return [{ text: `${question} → ${requestOf(text)}`, score: 2 + recency }];
    return text.sentences
      .filter(({ text: sentence }) => isDeciding(sentence) && !isQuestion(sentence) && !isLeadIn(sentence))
      .filter(({ text: sentence }) => weight(sentence) >= MIN_DECISION_WEIGHT)
      .map(({ text: sentence }) => ({
        text: sentence,
        score: (text.role === 'user' ? 2 : 1.5) + (holdsFact(sentence) ? 0.5 : 0) + recency,
      }));
  });
  return best(found);
}

/** The question that a short text of a person answers; undefined where it is a request of its own. */
function questionBefore(texts: readonly Text[], answer: Text): string | undefined {
  const before = texts[texts.indexOf(answer) - 1];
  if (before?.role !== 'assistant' || answer.sentences.length === 0) return undefined;
  if (answer.sentences.some(({ text }) => isQuestion(text)) || weight(answer.text) > MAX_ANSWER_WEIGHT)
    return undefined;
  const question = before.sentences.slice(-2).findLast(({ text }) => isQuestion(text));
  return question && clip(question.text, MAX_QUESTION_CHARS);
}

const best = (found: readonly { readonly text: string; readonly score: number }[]): string[] =>
  found.toSorted((a, b) => b.score - a.score).map(({ text }) => clip(text, MAX_BULLET_CHARS));
