/** Which facts a later turn is most likely to need, and in which group each is shown. Pure; it counts no tokens. */
import { roughTokens } from './facts.ts';
import type { Reading, Sightings } from './reading.ts';

export interface Fact {
  readonly text: string;
  readonly section: 'context' | 'files';
  /** What stands before it, such as `names` or the call that touched the file. */
  readonly group: string;
}

/** What people, the assistant and calls name comes again more often than what merely stood in a result. */
const NAMED_WEIGHT = 4;

/** What the newest messages hold counts so many times more, and half of that so many messages back. */
const NEAR_WEIGHT = 3;
const NEAR_MESSAGES = 8;

/** What belongs to a file that the newest calls are about counts twice. */
const NEAR_FILE_WEIGHT = 1;

/** Files that a call was about are what the work is on. */
const TOUCHED_WEIGHT = 2;

/** Short numbers are line numbers, sizes and times more often than anything else. */
const SHORT_NUMBER = /^[\d.-]{1,6}$/;
const SHORT_NUMBER_WEIGHT = 0.5;

/**
 * How often a fact was named, how near to the end it and its file are, and how little room it takes from others. Many
 * sightings in one kind of place count for less than as many in several. Square roots, which every machine rounds alike.
 *
 * @param back how many messages before the newest one it stands, and where its file was last touched.
 */
function score(text: string, seen: Sightings, back: { readonly fact: number; readonly file: number }): number {
  const named = damped(seen.inUser) + damped(seen.inAssistant) + damped(seen.inCalls);
  const nearness = (1 + NEAR_WEIGHT * near(back.fact)) * (1 + NEAR_FILE_WEIGHT * near(back.file));
  const kind = SHORT_NUMBER.test(text)
    ? SHORT_NUMBER_WEIGHT
    : seen.verb !== undefined && isPath(text)
      ? TOUCHED_WEIGHT
      : 1;
  return ((NAMED_WEIGHT * named + damped(seen.inResults)) * nearness * kind) / roughTokens(text);
}

/** 1 at the newest message, falling to 0. */
const near = (messagesBack: number): number => 1 / (1 + messagesBack / NEAR_MESSAGES);

/** To the power of three quarters. */
const damped = (value: number): number => Math.sqrt(value * Math.sqrt(value));

const isBefore = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** All facts of a head, the likeliest first. Ties go by the text, so that no order of a map shows. */
export async function rankFacts({ facts, calls, messages }: Reading, pause: () => Promise<void>): Promise<Fact[]> {
  const lastTouch = new Map(calls.filter(({ file }) => file !== undefined).map(({ file, index }) => [file, index]));
  const back = ({ lastIndex, file }: Sightings) => ({
    fact: messages - 1 - lastIndex,
    file: messages - 1 - (lastTouch.get(file) ?? -Infinity),
  });
  const basenames = new Set<string>();
  for (const text of facts.keys()) if (isPath(text)) basenames.add(text.slice(text.lastIndexOf('/') + 1));
  const scored = Array.from(facts, ([text, seen]) => ({ text, seen, score: score(text, seen, back(seen)) }));
  await pause();
  return scored
    .toSorted((a, b) => b.score - a.score || isBefore(a.text, b.text))
    .map(({ text, seen }) => ({ text, ...placeOf(text, seen, basenames) }));
}

/** What can stand before a list and be told from it again. */
const GROUP_NAME = /^[\w.:/@-]{1,40}$/;
/** The group of files that no call was about. */
export const MENTIONED = 'mentioned';

function placeOf(text: string, { verb, file }: Sightings, basenames: ReadonlySet<string>): Omit<Fact, 'text'> {
  const named = (name: string | undefined, otherwise: string) =>
    name !== undefined && GROUP_NAME.test(name) ? name : otherwise;
  if (isPath(text) || (verb !== undefined && FILE_NAME.test(text)) || basenames.has(text))
    return { section: 'files', group: named(verb, MENTIONED) };
  return { section: 'context', group: named(file, kindOf(text)) };
}

const FILE_NAME = /\.[A-Za-z][A-Za-z0-9]{0,5}$/;

/** A path of a file: from a root through a folder, or with an extension at its end. Other things with slashes are names. */
function isPath(text: string): boolean {
  if (!text.includes('/') || text.includes('://')) return false;
  return (/^[~/]/.test(text) && text.includes('/', 1)) || FILE_NAME.test(text.slice(text.lastIndexOf('/')));
}

/** What a fact is by its looks. */
export function kindOf(text: string): string {
  if (text.includes('://')) return 'links';
  if (/^(?:v\d[\w.-]*|\d+(?:\.\d+){2,}[\w.-]*)$/.test(text)) return 'versions';
  if (/^[$\d.-]+$/.test(text)) return 'numbers';
  if (/\d.*\d.*\d/.test(text) && !text.includes('/')) return 'ids';
  return 'names';
}
