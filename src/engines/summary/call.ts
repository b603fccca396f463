/** A call in a few words, and what became of it. */
import { isFailure } from './signals.ts';
import { clip, oneLine } from './text.ts';
import type { Call } from './reading.ts';

const MAX_VALUES = 4;
const MAX_VALUE_CHARS = 80;
const MAX_KEY_CHARS = 20;
const MAX_PATH_CHARS = 300;
const PATH = /^[~.\w@/-]*\/([\w@.-]+)$/;

/** The function and its short arguments: `grep: TODO, path=src`. A path is shortened to its file, which stands below. */
export function labelOf(call: Call): string {
  const values = shortValues(call.arguments);
  const name = clip(oneLine(call.name), MAX_VALUE_CHARS);
  return values.length > 0 ? `${name}: ${values.join(', ')}` : name;
}

function shortValues(args: unknown): string[] {
  if (typeof args !== 'object' || args === null) return [textOf(args)].map(shortValue).filter(Boolean);
  const values = Object.entries(args)
    .map(([key, value]) => ({ key, text: textOf(value), short: shortValue(textOf(value)) }))
    .filter(({ short }) => short !== '');
  const first = values.find(({ text }) => text.length <= MAX_PATH_CHARS && PATH.test(text)) ?? values[0];
  const others = values.filter((value) => value !== first && value.text.length <= MAX_VALUE_CHARS);
  const named = others
    .slice(0, MAX_VALUES - 1)
    .map(({ key, short }) => `${clip(oneLine(key), MAX_KEY_CHARS)}=${short}`);
  return first ? [first.short, ...named] : [];
}

/** Flags say little, and of an object or a list only the first text is shown. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  return firstLeaf(value) ?? '';
}

/** Of an object or list the first short text in it. */
function firstLeaf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const inner of Object.values(value)) {
    const leaf = firstLeaf(inner);
    if (leaf !== undefined) return leaf;
  }
  return undefined;
}

function shortValue(text: string): string {
  const line = oneLine(text.trimStart().slice(0, 400).split('\n', 1)[0] ?? '');
  const path = PATH.exec(line)?.[1];
  return path ?? clip(line, MAX_VALUE_CHARS);
}

const LINES_READ = 40;
/** A long result is a document, in which a word of errors means nothing. */
const SHORT_RESULT_CHARS = 12_000;
const FIRST_LINES = 5;
const MAX_FAILURE_CHARS = 160;

/** The line of a failed result that says why; undefined where it did not fail. */
export function failureOf({ result }: Call): string | undefined {
  if (!result) return undefined;
  const lines = result.text
    .slice(0, 8_000)
    .split('\n', LINES_READ)
    .map((line) => oneLine(line.replace(/<\/?[\w-]{1,40}>|^\s*[-*•]\s/g, ' ')))
    .filter(Boolean);
  const first = lines[0] ?? '';
  if (lines.slice(0, FIRST_LINES).some((line) => line.startsWith('Traceback')))
    return clip(oneLine(result.text.slice(-400).trimEnd().split('\n').at(-1) ?? first), MAX_FAILURE_CHARS);
  const telling = isFailure(first)
    ? first
    : result.text.length <= SHORT_RESULT_CHARS
      ? lines.slice(0, FIRST_LINES).find(isFailure)
      : undefined;
  if (result.failed) return clip(telling ?? (first || 'failed'), MAX_FAILURE_CHARS);
  return telling === undefined ? undefined : clip(telling, MAX_FAILURE_CHARS);
}

export interface Task {
  readonly text: string;
  readonly state: 'done' | 'inProgress' | 'blocked' | 'next';
}

const STATES: ReadonlyMap<unknown, Task['state']> = new Map([
  ['completed', 'done'],
  ['complete', 'done'],
  ['done', 'done'],
  ['in_progress', 'inProgress'],
  ['in-progress', 'inProgress'],
  ['active', 'inProgress'],
  ['blocked', 'blocked'],
  ['failed', 'blocked'],
  ['pending', 'next'],
  ['todo', 'next'],
  ['open', 'next'],
  ['not_started', 'next'],
]);

/** A list of tasks with their states, as many agents keep one by calls; the shape decides, not the name of the call. */
export function tasksOf({ arguments: args }: Call): Task[] | undefined {
  if (typeof args !== 'object' || args === null) return undefined;
  for (const list of Object.values(args)) {
    if (!Array.isArray(list) || list.length === 0) continue;
    const tasks = list.map(taskOf);
    if (tasks.every((task) => task !== undefined)) return tasks;
  }
  return undefined;
}

function taskOf(item: unknown): Task | undefined {
  if (typeof item !== 'object' || item === null) return undefined;
  const fields: Record<string, unknown> = { ...item };
  const state = STATES.get(fields['status'] ?? fields['state']);
  const text = ['content', 'step', 'title', 'task', 'text', 'description']
    .map((key) => fields[key])
    .find((value) => typeof value === 'string');
  return state === undefined || typeof text !== 'string' ? undefined : { text: oneLine(text), state };
}

// Of all calls

/** Failures so many calls back are history; such as say no more than a number, sooner. */
const RECENT_CALLS = 16;
const RECENT_EXITS = 4;
const EXIT = /^(?:command )?(?:exited with |exit )(?:code|status)? ?\d+\.?$|^(?:failed|error)$/i;

/** Recent calls that failed, and that the same call did not follow with success. */
export function blockedOf(calls: readonly Call[]): string[] {
  const repaired = new Set<string>();
  const blocked: string[] = [];
  for (const [back, call] of calls.slice(-RECENT_CALLS).toReversed().entries()) {
    const label = labelOf(call);
    // What works on a file in the same way is the same call, whatever it writes there.
    const same = call.file === undefined ? label : `${call.name}: ${call.file}`;
    const failure = failureOf(call);
    if (failure !== undefined && EXIT.test(failure) && back >= RECENT_EXITS) continue;
    if (failure === undefined && call.result) repaired.add(same);
    else if (failure !== undefined && !repaired.has(same) && !repaired.has(failure)) {
      repaired.add(same).add(failure);
      blocked.push(`${failure} (${label})`);
    }
  }
  return blocked;
}

const NEWEST_CALLS = 120;

/** The newest first, each way of calling once. */
export function actionsOf(calls: readonly Call[]): string[] {
  const labels = new Set<string>();
  for (const call of calls.slice(-NEWEST_CALLS).toReversed())
    if (tasksOf(call) === undefined) labels.add(labelOf(call));
  return [...labels];
}

export function attachmentsOf(attachments: ReadonlyMap<string, number>): string[] {
  return Array.from(attachments, ([name, times]) => {
    const shown = clip(oneLine(name), MAX_ATTACHMENT_CHARS);
    return times > 1 ? `${shown} ×${times}` : shown;
  });
}
const MAX_ATTACHMENT_CHARS = 100;
