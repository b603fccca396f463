/**
 * Conversations that break others, in every format: what is reported of them, what a repair does and leaves, and what two packages that
 * are made to shorten conversations make of them. It writes docs/repair.md (`vitest -u`), which is the expectation.
 */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  trimMessages,
} from '@langchain/core/messages';
import { type ModelMessage, pruneMessages } from 'ai';
import { beforeAll, describe, expect, it } from 'vitest';
import langchain from '@langchain/core/package.json' with { type: 'json' };
import ai from 'ai/package.json' with { type: 'json' };
import { isJsonObject } from '../src/json.ts';
import { formatOf } from '../src/operations/native.ts';
import { parseRequest } from '../src/request-json.ts';
import { checkEntries } from '../src/transcript/formats/check.ts';
import { readEntries } from '../src/transcript/formats/conversation.ts';
import { FORMATS } from '../src/transcript/formats/list.ts';
import { repairEntries } from '../src/transcript/formats/repair.ts';
import { FAULT_CASES, faultNative } from './fault-natives.ts';

type Native = Readonly<Record<string, unknown>>;
const IDS = FORMATS.map(({ id }) => id);

/** In words of one line: equal ones are counted. */
function listed(words: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return Array.from(counts, ([word, count]) => (count > 1 ? `${word} × ${count}` : word)).join(', ') || '-';
}

const bytes = (request: object): Uint8Array => new TextEncoder().encode(JSON.stringify(request));

/** What a request is read as; the code of the problem where it is none. */
function readAs(format: string, messages: readonly Native[], repair: boolean) {
  const parsed = parseRequest(bytes({ format, messages, repair }));
  if (!parsed.ok) return { problem: parsed.problem.code };
  const { messages: list, split_surrogates: split = [] } = parsed.value as {
    messages: readonly unknown[];
    split_surrogates?: readonly string[];
  };
  const entries = readEntries(formatOf(format), list);
  return entries.ok ? { entries: entries.value, list, split } : { problem: entries.problem.code };
}

interface Outcome {
  readonly reported: string;
  readonly repaired: string;
}

function outcomeOf(format: string, messages: readonly Native[]): Outcome {
  const asItIs = readAs(format, messages, false);
  const reported = asItIs.entries
    ? listed(checkEntries(formatOf(format), asItIs.entries).map(({ rule }) => rule))
    : `400 ${asItIs.problem}`;
  const read = readAs(format, messages, true);
  if (!read.entries) return { reported, repaired: `400 ${read.problem}` };
  const repaired = repairEntries(formatOf(format), read.entries);
  if (!repaired.ok) return { reported, repaired: '400: no message would be left' };
  const { messages: mended, repairs, origins } = repaired.value;
  const left = readEntries(formatOf(format), mended);
  if (!left.ok) throw new Error('what was mended cannot be read');
  expect(checkEntries(formatOf(format), left.value)).toEqual([]);
  // What no repair names, and no call that was named anew or answered brings along, is what was supplied.
  const touched = new Set(repairs.map(({ path }) => Number(path.split('/')[2])));
  const reachesOthers = repairs.some(({ fault }) => /id$|^open-call|^misplaced/.test(fault));
  for (const [index, message] of mended.entries()) {
    const origin = origins[index] ?? -1;
    if (origin >= 0 && !touched.has(origin) && !reachesOthers) expect(message).toBe(read.list[origin]);
  }
  const words = [
    ...read.split.map(() => 'split-surrogate: replaced by U+FFFD'),
    ...repairs.map(({ fault, action }) => `${fault}: ${action}`),
  ];
  return { reported, repaired: listed(words) };
}

/** Of another's answer: what our checker of its format has to say, or what it threw. */
async function byPeer(run: () => Promise<readonly Native[]> | readonly Native[], format: string): Promise<string> {
  try {
    const left = await run();
    const read = readEntries(formatOf(format), left);
    if (!read.ok) return 'passed on, unreadable';
    const rules = listed(checkEntries(formatOf(format), read.value).map(({ rule }) => rule));
    return rules === '-' ? 'legal' : `passed on with ${rules}`;
  } catch (error) {
    return `throws ${error instanceof Error ? error.name : 'something'}`;
  }
}

const ENOUGH_TOKENS = 1_000_000;

async function trimmed(messages: readonly Native[]): Promise<Native[]> {
  const list = messages.map(toLangChain);
  const options = {
    maxTokens: ENOUGH_TOKENS,
    tokenCounter: () => 1,
    strategy: 'last',
    startOn: 'human',
    includeSystem: true,
  } as const;
  return (await trimMessages(list, options)).map(fromLangChain);
}

function toLangChain({ role, content, tool_calls, tool_call_id }: Native): BaseMessage {
  const said = content as string;
  if (role === 'system') return new SystemMessage(said);
  if (role === 'tool') return new ToolMessage({ content: said, tool_call_id: String(tool_call_id) });
  if (role !== 'assistant') return new HumanMessage({ content: said });
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isJsonObject) : [];
  return new AIMessage({
    content: said ?? '',
    tool_calls: calls.map(({ id }) => ({ id: String(id), name: 'f', args: {} })),
  });
}

function fromLangChain(message: BaseMessage): Native {
  const { content } = message;
  if (ToolMessage.isInstance(message)) return { role: 'tool', tool_call_id: message.tool_call_id, content };
  if (!AIMessage.isInstance(message)) return { role: message.type === 'system' ? 'system' : 'user', content };
  const tool_calls = (message.tool_calls ?? []).map(({ id }) => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
  }));
  return tool_calls.length > 0
    ? { role: 'assistant', content: content || null, tool_calls }
    : { role: 'assistant', content };
}

function pruned(messages: readonly Native[]): Native[] {
  // A model's messages as the package has them; what is wrong with them is the point.
  const list = messages as unknown as ModelMessage[];
  return pruneMessages({
    messages: list,
    toolCalls: 'before-last-2-messages',
    emptyMessages: 'remove',
  });
}

describe('every fault in every format', () => {
  const rows: string[][] = [];
  beforeAll(async () => {
    for (const fault of FAULT_CASES) {
      const outcomes = IDS.map((format) => ({ format, ...outcomeOf(format, faultNative(format, fault)) }));
      const told = (field: keyof Outcome): string => {
        const groups = groupBy(outcomes, (each) => each[field]);
        if (groups.size === 1) return outcomes[0]![field];
        return Array.from(groups, ([text, of]) => `${of.map(({ format }) => format).join(', ')}: ${text}`).join('<br>');
      };
      rows.push([
        fault.name.replaceAll('_', ' '),
        told('reported'),
        told('repaired'),
        await byPeer(() => trimmed(faultNative('openai-chat', fault)), 'openai-chat'),
        await byPeer(() => pruned(faultNative('ai-sdk', fault)), 'ai-sdk'),
      ]);
    }
  });

  it('is reported, mended and told as docs/repair.md has it', async () => {
    const head = [
      'input',
      'without repair: rules that `/api/v1/check` names',
      'with `repair: true`: `fault: action`',
      `trimMessages of @langchain/core ${langchain.version}, with tokens enough`,
      `pruneMessages of ai ${ai.version}`,
    ];
    const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
    await expect(`${TEXT}\n${table}\n`).toMatchFileSnapshot('../docs/repair.md');
  });
});

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

const TEXT = `# What repair does

Small conversations that have broken other services, in every format: what is wrong with them, what \`repair: true\` does about it, and
what two packages that shorten conversations make of the same. Where formats differ, they are named. After the repair the provider's
checker finds nothing, and what no line of the report names is what was supplied. Written by \`test/fault-table.test.ts\`.
`;
