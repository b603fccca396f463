/** Every transcript in every format: what comes back, and whether its provider would take it. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conversation } from '../../test/conversation.ts';
import { nativesOf, type NativeConversation } from '../../test/native-conversations.ts';
import { readTranscript, TRANSCRIPTS } from '../../test/transcripts.ts';
import { canonicalJson } from '../provenance/canonical.ts';
import { checkEntries } from '../transcript/formats/check.ts';
import { readConversation, readEntries, writeRequest } from '../transcript/formats/conversation.ts';
import { FORMATS } from '../transcript/formats/list.ts';
import { repairEntries } from '../transcript/formats/repair.ts';
import { assemble } from './assemble.ts';
import { conversationPrune } from './conversation-prune.ts';
import { formatOf } from './native.ts';
import { DEFAULT_CONTEXT } from './run-context.ts';
import { validate } from './validate.ts';

const faultsOf = (format: string, messages: readonly unknown[]) => {
  const read = readEntries(formatOf(format), messages);
  if (!read.ok) throw new Error(JSON.stringify(read.problem));
  return checkEntries(formatOf(format), read.value);
};

const transcriptIn = (name: (typeof TRANSCRIPTS)[number]): NativeConversation[] => {
  const { messages, system_prompt } = readTranscript(name);
  return nativesOf(messages, system_prompt);
};

/** A session in which calls were broken off. */
const FAULTY = '01-pi-large-session';

const cases = TRANSCRIPTS.flatMap((name) =>
  transcriptIn(name).map((native) => {
    const format = formatOf(native.format);
    const read = readEntries(format, native.messages);
    if (name !== FAULTY || !read.ok) return [native.format, name, native] as const;
    const repaired = repairEntries(format, read.value);
    return [native.format, name, repaired.ok ? { ...native, messages: repaired.value.messages } : native] as const;
  }),
);

it.each(transcriptIn(FAULTY))(
  '$format: calls that were broken off are found, and nothing else',
  ({ format, messages }) => {
    expect(new Set(faultsOf(format, messages).map(({ rule }) => rule))).toEqual(new Set(['open-call']));
  },
);

async function run(
  operation: typeof assemble | typeof conversationPrune,
  input: unknown,
): Promise<Record<string, unknown>> {
  const taken = validate(operation as typeof assemble, input);
  if (!taken.ok) throw new Error(JSON.stringify(taken.problem));
  const outcome = await (operation as typeof assemble).run(taken.value, DEFAULT_CONTEXT);
  return outcome.kind === 'answer' ? { ...outcome.data } : { problem: outcome.problem };
}

const tokensOf = async ({ format, messages, system }: NativeConversation): Promise<number> => {
  const target = { cacheBreakpoint: -1, targetTokens: 100_000_000 };
  const beside = system === undefined ? {} : { system };
  return Number((await run(conversationPrune, { format, messages, ...beside, ...target }))['tokensBefore']);
};

describe.each(cases)('%s of %s', (format, _, native) => {
  const { messages, system } = native;
  const beside = system === undefined ? {} : { system };

  it('is taken by the provider as it is', () => {
    expect(faultsOf(format, messages)).toEqual([]);
  });

  it('comes back as the very objects where nothing was changed', () => {
    const read = readConversation(formatOf(format), { messages, ...beside });
    if (!read.ok) throw new Error(JSON.stringify(read.problem));
    const { messages: back } = writeRequest(read.value, read.value.messages, undefined);
    expect(back.every((message, index) => message === messages[index])).toBe(true);
    expect(canonicalJson(back)).toBe(canonicalJson(messages));
  });

  it('is as legal after conversation-prune at 75, 50 and 25 %', async () => {
    const tokens = await tokensOf(native);
    for (const share of [0.75, 0.5, 0.25]) {
      const target = { cacheBreakpoint: 0, targetTokens: Math.floor(tokens * share), keepRecent: 2 };
      const answer = await run(conversationPrune, { format, messages, ...beside, ...target });
      const kept = answer['messages'] as object[];
      expect(faultsOf(format, kept)).toEqual([]);
      expect(kept).toEqual((answer['keep'] as number[]).map((index) => messages[index]));
    }
  });

  it('is as legal after assemble at 75, 50 and 25 %', async () => {
    const tokens = await tokensOf(native);
    for (const share of [0.75, 0.5, 0.25]) {
      const context_window = Math.max(700, Math.ceil((tokens * share) / 0.8));
      const model = { id: 'gpt-5', limits: { context_window, max_output_tokens: Math.floor(context_window / 10) } };
      const answer = await run(assemble, { format, messages, ...beside, model });
      if ('problem' in answer) continue;
      expect(faultsOf(format, answer['messages'] as object[])).toEqual([]);
    }
  });
});

describe.each(FORMATS.map(({ id }) => id))('any conversation in %s', (format) => {
  const native = conversation.map((messages) => {
    const all = nativesOf(messages);
    return all.find((each) => each.format === format)?.messages ?? [];
  });
  /** With elements lost, doubled and out of place. */
  const disturbed = fc
    .tuple(
      native,
      fc.array(fc.tuple(fc.constantFrom('lost', 'doubled', 'moved'), fc.nat(), fc.nat()), { maxLength: 3 }),
    )
    .map(([messages, faults]) => {
      const list = [...messages];
      for (const [kind, a, b] of faults) {
        const [from, to] = [a % (list.length || 1), b % (list.length || 1)];
        const [taken] = kind === 'doubled' ? list.slice(from, from + 1) : list.splice(from, 1);
        if (taken && kind !== 'lost') list.splice(to, 0, structuredClone(taken));
      }
      return list;
    });
  const MENDABLE = /id$|result|call|^empty-(?:message|block)$/;
  const mended = (messages: readonly unknown[]) => {
    const read = readEntries(formatOf(format), messages);
    if (!read.ok) throw new Error(JSON.stringify(read.problem));
    const repaired = repairEntries(formatOf(format), read.value);
    fc.pre(repaired.ok);
    return repaired.value;
  };

  it('is repaired: nothing that can be mended is left, a second time finds nothing', () => {
    fc.assert(
      fc.property(disturbed, (messages) => {
        const { messages: legal } = mended(messages);
        expect(faultsOf(format, legal).filter(({ rule }) => MENDABLE.test(rule))).toEqual([]);
        expect(mended(legal)).toMatchObject({ messages: legal, repairs: [] });
      }),
      { numRuns: 500 },
    );
  });

  it('is refused for nothing new after conversation-prune and assemble', async () => {
    await fc.assert(
      fc.asyncProperty(
        disturbed,
        fc.nat({ max: 100 }),
        fc.integer({ min: -1, max: 3 }),
        async (all, percent, breakpoint) => {
          const { messages } = mended(all);
          fc.pre(messages.length > 0);
          const rules = new Set(faultsOf(format, messages).map(({ rule }) => rule));
          const cacheBreakpoint = Math.min(breakpoint, messages.length - 1);
          const whole = await run(conversationPrune, {
            format,
            messages,
            cacheBreakpoint: -1,
            targetTokens: 100_000_000,
          });
          const targetTokens = Math.floor((Number(whole['tokensBefore']) * percent) / 100);
          const pruned = await run(conversationPrune, {
            format,
            messages,
            cacheBreakpoint,
            targetTokens,
            keepRecent: percent % 5,
          });
          const model = { id: 'gpt-5', limits: { context_window: 400 + 20 * targetTokens, max_output_tokens: 10 } };
          const options = breakpoint < 0 ? {} : { cache_breakpoint: cacheBreakpoint };
          const assembled = await run(assemble, { format, messages, model, options });
          for (const kept of [pruned['messages'], assembled['messages'] ?? []] as object[][]) {
            expect(faultsOf(format, kept).filter(({ rule }) => kept.length > 0 && !rules.has(rule))).toEqual([]);
          }
          const prefix = messages.slice(0, cacheBreakpoint + 1);
          expect((pruned['messages'] as object[]).slice(0, prefix.length)).toEqual(prefix);
        },
      ),
      { numRuns: 200 },
    );
  });
});
