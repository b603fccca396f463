/** Which facts a later turn is most likely to need, and in which group each is shown. Pure; it counts no tokens. */
import type { Reading, Sightings } from './reading.ts';

export interface Fact {
  readonly text: string;
  readonly section: 'context' | 'files';
  /** What stands before it, such as `names` or the call that touched the file. */
  readonly group: string;
}

/** What people and calls named counts so many times as much as what stood in a result. */
const NAMED_WEIGHT = 4;
/** The assistant repeats in words what it goes on with. */
const SAID_WEIGHT = 4;

function score(text: string, seen: Sightings, messages: number): number {
  const mentions = NAMED_WEIGHT * (seen.inUser + seen.inCalls) + SAID_WEIGHT * seen.inAssistant + seen.inResults;
  const recency = (seen.lastIndex + 1) / messages;
  // A short fact leaves room for others.
  return (mentions * recency) / Math.sqrt(text.length + 4);
}

const isBefore = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** All facts of a head, the likeliest first. Ties go by the text, so that no order of a map shows. */
export function rankFacts({ facts, messages }: Reading): Fact[] {
  const basenames = new Set<string>();
  for (const text of facts.keys()) if (isPath(text)) basenames.add(text.slice(text.lastIndexOf('/') + 1));
  return Array.from(facts, ([text, seen]) => ({ text, seen, score: score(text, seen, messages) }))
    .toSorted((a, b) => b.score - a.score || isBefore(a.text, b.text))
    .map(({ text, seen }) => ({ text, ...placeOf(text, seen.verb, basenames) }));
}

const GROUP_NAME = /^[\w.:/-]{1,40}$/;
const MENTIONED = 'mentioned';

function placeOf(text: string, verb: string | undefined, basenames: ReadonlySet<string>): Omit<Fact, 'text'> {
  if (isPath(text) || (verb !== undefined && FILE_NAME.test(text)) || basenames.has(text))
    return { section: 'files', group: verb !== undefined && GROUP_NAME.test(verb) ? verb : MENTIONED };
  return { section: 'context', group: kindOf(text) };
}

const FILE_NAME = /\.[A-Za-z][A-Za-z0-9]{0,5}$/;

/** A path of a file: from a root, or with an extension at its end. Other things with slashes are names. */
function isPath(text: string): boolean {
  return (
    text.includes('/') &&
    !text.includes('://') &&
    (/^[~/]/.test(text) || FILE_NAME.test(text.slice(text.lastIndexOf('/'))))
  );
}

function kindOf(text: string): string {
  if (text.includes('://')) return 'links';
  if (/^v?\d+(?:\.\d+)+(?:-[\w.]+)?$/.test(text)) return 'versions';
  if (/^[\d.-]+$/.test(text)) return 'numbers';
  if (/\d.*\d.*\d/.test(text) && !text.includes('/')) return 'ids';
  return 'names';
}
