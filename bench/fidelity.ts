/**
 * Forward-reference recall: how much of what a conversation needs later its summary still holds. A transcript is cut into a
 * head, which is summarised, and the tail that really followed. *Anchors* are the specific strings of the head: paths, URLs,
 * identifiers, numbers, versions, error lines. *Needed* are those that people, the assistant or its calls use again in the
 * tail; recall is the share of them that the summary holds letter by letter. No model is asked, and strings are all it sees:
 * whether a summary reads well it cannot tell.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode, encode as encodeText } from 'gpt-tokenizer/encoding/o200k_base';
import { tokenizer } from '../src/engines/estimator.ts';
import { deterministicSummarizer } from '../src/engines/summary.ts';
import { loadEncoding } from '../src/tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../src/transcript/message.ts';
import { cells, head as tableHead, medianMs, row } from './measure.ts';

export const BUDGETS_TOKENS = [512, 1_024, 2_048] as const;
/** A head is cut where it has about these shares of the conversation. */
const CUTS = [0.7, 0.5];
/** A head of fewer budgets than this is left out: keeping it whole would be no test. */
const MIN_HEAD_BUDGETS = 2;
const MIN_NEEDED = 5;
const CHARS_PER_TOKEN = 4;

const PLAIN = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
const encode = (text: string): number[] => encodeText(text, PLAIN);

function clip(text: string, budget: number): string {
  const tokens = encode(text);
  return tokens.length <= budget ? text : decode(tokens.slice(0, budget));
}

// Anchors

/** Line-number gutters of listings, and closing tags. */
const NOISE = /^[ \t]*\d+(?:→|\t|:| ?\|)|<\/[\w.:-]+>/gm;
const ERROR_LINE =
  /\b(?:[A-Z]\w*(?:Error|Exception|Warning)|Error|error\[\w+\]|error [A-Z]+\d+|panic|fatal): [^\n\r]{3,}/g;
const RUN = /[A-Za-z0-9_$@~./:%#?&=+\\-]{3,}/g;
const URL_RUN = /^[a-z][a-z0-9+]*:\/\/./i;
const ADDRESS = /^[\w.+-]+@[\w-]+(\.[\w-]+)+$/;
const EDGE = /^(?:[^A-Za-z0-9_~/.$@]|\/{2,}|\.{2,}(?![./]))+|[^A-Za-z0-9_$]+$/g;
const SPECIFIC = [
  /[A-Za-z0-9~.]?\/[A-Za-z0-9_.@~-]/, // path
  /[A-Za-z0-9][_.-]+[A-Za-z0-9]/, // snake_case, kebab-case, dotted.name, 1.2.3, uuid
  /[a-z][A-Z]|[A-Z]{2,}[a-z]{2}/, // camelCase, HTTPServer
  /^(?=.*\d)(?=.*[a-f])[0-9a-f]{6,}$/i, // hexadecimal id
  /^\d{3,}$/, // number
  /^(?:v\d|[A-Z]{1,5}\d{3,}$|E(?:NO|CONN|ADDR|PERM|ACC|EXIST|PIPE|IS|NOT|TIME|INVAL)[A-Z]*$)/, // v2.1, TS2345, ENOENT
];

const trim = (text: string): string => text.replace(EDGE, '');
const isKept = (text: string): boolean => (text.length >= 4 || /^\d{3}$/.test(text)) && text.length <= 120;
const isSpecific = (text: string): boolean =>
  isKept(text) && (ADDRESS.test(text) || SPECIFIC.some((shape) => shape.test(text)));

function anchorsOf(raw: string): string[] {
  const text = raw.replace(NOISE, ' ');
  const errors = Array.from(text.matchAll(ERROR_LINE), ([line]) => trim(line)).filter(isKept);
  const runs = Array.from(text.matchAll(RUN), ([run]) => trim(run));
  const found = runs.flatMap((whole) => {
    if (URL_RUN.test(whole)) return isKept(whole) ? [whole] : [];
    const parts = ADDRESS.test(whole) ? [whole] : whole.split(/[:=&?%#+\\]+/);
    return parts.map(trim).filter(isSpecific);
  });
  return [...errors, ...found];
}

function leaves(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number') return [String(value)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [];
}

/** The texts of a message that carry anchors; those of results only where asked for. */
function textsOf(message: AgentMessage, results: boolean): string[] {
  if (message.role === 'custom' || (message.role === 'function_result' && !results)) return [];
  const of = (block: ContentBlock): string[] => {
    if (block.type === 'text') return [block.text];
    if (block.type === 'function_call') return leaves(block.arguments);
    return block.type === 'function_result' && results ? block.content.flatMap(of) : [];
  };
  return message.content.flatMap(of);
}

// Cases

export interface Case {
  readonly name: string;
  /** The index of the first message of the tail. */
  readonly cut: number;
  readonly head: readonly AgentMessage[];
  /** Each anchor of the head with how often and where last it stands. */
  readonly anchors: ReadonlyMap<string, { readonly count: number; readonly last: number }>;
  readonly needed: readonly string[];
  readonly text: string;
  readonly tokens: readonly number[];
}

function render(message: AgentMessage): string {
  if (message.role === 'custom') return '';
  const shown = (block: ContentBlock): string => {
    if (block.type === 'text') return block.text;
    if (block.type === 'image') return '[image]';
    if (block.type === 'function_call') return `[call ${block.function_id}] ${JSON.stringify(block.arguments ?? null)}`;
    return block.type === 'function_result' ? `[result] ${block.content.map(shown).join('\n')}` : '';
  };
  const label = message.role === 'function_result' ? `result ${message.function_id}` : message.role;
  return `[${label}] ${message.content.map(shown).filter(Boolean).join('\n')}`;
}

const mayBegin = ({ role, content }: AgentMessage): boolean =>
  role === 'assistant' || (role === 'user' && !content.some(({ type }) => type === 'function_result'));

/** The cases of all transcripts in a folder. */
export function readCases(folder = join(process.cwd(), 'test/transcripts')): Case[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return files
    .toSorted()
    .flatMap((file) => {
      const { messages } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { messages: AgentMessage[] };
      const cuts = new Set(CUTS.map((share) => cutAt(messages, share)));
      return [...cuts].filter((cut) => cut > 0).map((cut) => caseOf(file.replace('.json', ''), cut, messages));
    })
    .filter(({ needed }) => needed.length >= MIN_NEEDED);
}

/** The place where a tail may begin that is nearest to a share of the whole; 0 if there is none. */
function cutAt(messages: readonly AgentMessage[], share: number): number {
  const sizes = messages.map((message) => Math.ceil(render(message).length / CHARS_PER_TOKEN));
  const total = sizes.reduce((a, b) => a + b, 0);
  let [best, gap, before] = [0, Infinity, 0];
  for (const [index, message] of messages.entries()) {
    const distance = Math.abs(before / total - share);
    if (index > 0 && mayBegin(message) && distance < gap) [best, gap] = [index, distance];
    before += sizes[index]!;
  }
  return best;
}

function caseOf(name: string, cut: number, messages: readonly AgentMessage[]): Case {
  const head = messages.slice(0, cut);
  const anchors = new Map<string, { count: number; last: number }>();
  for (const [last, message] of head.entries())
    for (const anchor of textsOf(message, true).flatMap(anchorsOf))
      anchors.set(anchor, { count: (anchors.get(anchor)?.count ?? 0) + 1, last });
  const later = new Set(messages.slice(cut).flatMap((message) => textsOf(message, false).flatMap(anchorsOf)));
  const text = head.map(render).filter(Boolean).join('\n\n');
  const needed = [...later].filter((anchor) => anchors.has(anchor)).toSorted();
  return { name, cut, head, anchors, needed, text, tokens: encode(text) };
}

export const isTest = ({ tokens }: Case, budget: number): boolean => tokens.length >= MIN_HEAD_BUDGETS * budget;

/** The share of what is needed that a summary holds, 0 to 1. Beyond its budget it is cut. */
export function recall({ needed }: Case, summary: string, budget: number): number {
  const shown = clip(summary, budget);
  return needed.filter((anchor) => contains(shown, anchor)).length / needed.length;
}

const isWord = (character: string | undefined): boolean => character !== undefined && /[A-Za-z0-9_]/.test(character);

function contains(summary: string, anchor: string): boolean {
  for (let at = summary.indexOf(anchor); at >= 0; at = summary.indexOf(anchor, at + 1))
    if (!isWord(summary[at - 1]) && !isWord(summary[at + anchor.length])) return true;
  return false;
}

export const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

// What it is compared with

type Method = (of: Case, budget: number) => string | Promise<string>;

/** Whole items in order until the budget is full. */
function fill(items: readonly string[], budget: number, separator = '\n'): string {
  const taken: string[] = [];
  for (let used = 0, index = 0; used < budget && index < items.length; index++) {
    taken.push(items[index]!);
    used += encode(items[index]! + separator).length;
  }
  return clip(taken.join(separator), budget);
}

function spacedSentences({ text }: Case, budget: number): string {
  const all = text
    .split(/\n+|(?<=[.!?])\s+|(?<=[。！？])/)
    .map((sentence) => sentence.trim().slice(0, 300))
    .filter((sentence) => sentence.length > 3);
  const pick = (count: number) =>
    Array.from({ length: count }, (_, index) => all[Math.floor(((index + 0.5) * all.length) / count)]).join('\n');
  let [low, high] = [1, all.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (encode(pick(middle)).length <= budget) low = middle;
    else high = middle - 1;
  }
  return clip(pick(low), budget);
}

function firstAndLast({ text, tokens }: Case, budget: number): string {
  if (tokens.length <= budget) return text;
  return `${decode(tokens.slice(0, budget / 2))}\n${decode(tokens.slice(-budget / 2))}`;
}

const o200k = tokenizer(await loadEncoding('o200k_base'));

export const summarized: Method = ({ head }, budgetTokens) =>
  deterministicSummarizer.summarize({
    head,
    previousSummary: undefined,
    budgetTokens,
    estimator: o200k,
    pause: () => Promise.resolve(),
  });

const METHODS: Readonly<Record<string, Method>> = {
  ours: summarized,
  'list of anchors': ({ anchors, cut }, budget) => {
    const score = ({ count, last }: { count: number; last: number }) => count * ((last + 1) / cut);
    const ranked = [...anchors].toSorted(([a, of], [b, other]) => score(other) - score(of) || (a < b ? -1 : 1));
    return fill(
      ranked.map(([anchor]) => anchor),
      budget,
    );
  },
  'last tokens': ({ tokens }, budget) => decode(tokens.slice(-budget)),
  'first and last': firstAndLast,
  'spaced sentences': spacedSentences,
  'user messages': ({ head }, budget) => {
    const users = head.filter(({ role }) => role === 'user').toReversed();
    return fill(
      users.map((message) => textsOf(message, false).join('\n')),
      budget,
      '\n\n',
    );
  },
};

/** Bytes of the longest head; what a request may have. */
const LONGEST_HEAD_BYTES = 8 * 2 ** 20;

export async function benchFidelity(): Promise<void> {
  const cases = readCases();
  const names = [...new Set(cases.map(({ name }) => name))];
  const isEven = ({ name }: Case) => names.indexOf(name) % 2 === 0;
  process.stdout.write('\nMean recall over all cuts (every other transcript / the others)\n\n');
  tableHead('method', ...BUDGETS_TOKENS.map((budget) => `${budget} tokens`));
  for (const [name, method] of Object.entries(METHODS)) {
    const columns: string[] = [];
    for (const budget of BUDGETS_TOKENS) {
      const tests = cases.filter((test) => isTest(test, budget));
      const scored: (readonly [Case, number])[] = [];
      for (const test of tests) scored.push([test, recall(test, await method(test, budget), budget)]);
      const of = (wanted: (test: Case) => boolean) =>
        mean(scored.filter(([test]) => wanted(test)).map(([, score]) => score)).toFixed(3);
      columns.push(`${of(() => true)} (${of(isEven)} / ${of((test) => !isEven(test))})`);
    }
    cells(name, ...columns);
  }
  await benchTime(cases);
}

async function benchTime(cases: readonly Case[]): Promise<void> {
  process.stdout.write('\nSummarising to 2,048 tokens, against one JSON.stringify of the head\n\n');
  const longest = cases.toSorted((a, b) => b.tokens.length - a.tokens.length)[0]!;
  const copies = Math.floor(LONGEST_HEAD_BYTES / JSON.stringify(longest.head).length);
  const heads = {
    'longest transcript': longest.head,
    '8 MiB of it': Array(copies).fill(longest.head).flat() as AgentMessage[],
  };
  for (const [name, head] of Object.entries(heads)) {
    const stringify = { name: 'stringify', ms: await medianMs(() => JSON.stringify(head), 5) };
    row(name, await medianMs(() => summarized({ ...longest, head }, 2_048), 5), stringify);
  }
}
