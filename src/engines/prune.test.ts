import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, call, conversation, custom, inline, result, text, user } from '../../test/conversation.ts';
import { referenceText } from '../../test/reference-count.ts';
import { canonicalJson } from '../provenance/canonical.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { DEFAULT_CONFIG } from './config.ts';
import { heuristic, tokenizer } from './estimator.ts';
import { prune, type PruneOptions, type PruneResult } from './prune.ts';

const o200k = tokenizer(await loadEncoding('o200k_base'));
const pause = async (): Promise<void> => {};
const run = (messages: readonly AgentMessage[], options: PruneOptions, estimator = heuristic): Promise<PruneResult> =>
  prune({ messages, options }, DEFAULT_CONFIG, estimator, pause);

/** So many tokens by the heuristic. */
const ofTokens = (tokens: number): string => 'word'.repeat(tokens);
const all = { protect_recent_tokens: 0, min_free_tokens: 0, max_output_chars: 0 };
const placeholder = (tokens: number): string => `[output pruned: was ~${tokens} tokens]`;
const freedFrom = (tokens: number): number => tokens - heuristic.text(placeholder(tokens));

const old = [user('look'), assistant(call('c1')), result('c1', ofTokens(2_000)), assistant('found')];
const recent = [user('fix it'), user('and test')];

describe('prune', () => {
  it('puts a placeholder in the place of an old, long result and keeps everything else', async () => {
    const messages = [...old, ...recent];
    const pruned = await run(messages, all);
    expect(pruned).toMatchObject({
      pruned_parts: 1,
      pruned_tokens: freedFrom(2_000),
      scanned_parts: 1,
      estimator: 'heuristic',
    });
    expect(pruned.messages).toEqual(messages.with(2, result('c1', placeholder(2_000))));
    for (const index of [0, 1, 3, 4, 5]) expect(pruned.messages[index]).toBe(messages[index]);
  });

  const kept: readonly [string, AgentMessage[], PruneOptions, scanned: number][] = [
    ['with fewer than two user turns', [assistant(call('c1')), result('c1', ofTokens(99)), user('a')], all, 0],
    ['in the last two user turns', [user('a'), user('b'), assistant(call('c1')), result('c1', ofTokens(99))], all, 0],
    [
      'where a user message brings only results, which begins no turn',
      [user('a'), assistant(call('c1')), user(inline('c1', text(ofTokens(99)))), user('b')],
      all,
      0,
    ],
    ['of protected functions', [...old, ...recent], { ...all, protected_functions: ['shell::run'] }, 0],
    [
      'of protected functions in a user message',
      [user('a'), assistant(call('c1')), user(inline('c1', text(ofTokens(99)))), ...recent],
      { ...all, protected_functions: ['shell::run'] },
      0,
    ],
    ['in the newest tokens', [...old, ...recent], { ...all, protect_recent_tokens: 2_000 }, 1],
    ['that is short', [...old, ...recent], { ...all, max_output_chars: 8_000 }, 1],
    [
      'of as many code points, not UTF-16 units',
      [user('a'), result('c', '😀'.repeat(100)), ...recent],
      { ...all, max_output_chars: 100 },
      1,
    ],
    ['where too little would be freed', [...old, ...recent], { ...all, min_free_tokens: freedFrom(2_000) + 1 }, 1],
    ['that a placeholder would not shorten', [user('a'), result('c', ofTokens(7)), ...recent], all, 1],
    ['that is a placeholder', [user('a'), result('c', placeholder(123_456_789)), ...recent], all, 1],
    ['by default, so few as these', [...old, ...recent], {}, 1],
    [
      'of images only',
      [user('a'), result('c', [{ type: 'image', data: 'AAAA', mime: 'image/png' }]), ...recent],
      all,
      1,
    ],
  ];
  it.each(kept)('leaves a result %s', async (_, messages, options, scanned_parts) => {
    const pruned = await run(messages, options);
    expect(pruned).toMatchObject({ pruned_parts: 0, pruned_tokens: 0, scanned_parts });
    expect(pruned.messages).toEqual(messages);
  });

  it('fills the protected window from the newest result, and from the last block of a message', async () => {
    const blocks = user(inline('c2', text(ofTokens(60))), inline('c3', text(ofTokens(50))), 'beside');
    const messages = [...old, assistant(call('c2'), call('c3')), blocks, ...recent];
    const pruned = await run(messages, { ...all, protect_recent_tokens: 60 });
    expect(pruned).toMatchObject({
      pruned_parts: 2,
      scanned_parts: 3,
      pruned_tokens: freedFrom(2_000) + freedFrom(60),
    });
    expect(pruned.messages[5]).toEqual(
      user(inline('c2', text(placeholder(60))), inline('c3', text(ofTokens(50))), 'beside'),
    );
  });

  it('joins the text blocks of a result without anything between, and replaces them by one', async () => {
    const image: ContentBlock = { type: 'image', data: 'AAAA', mime: 'image/png' };
    const messages = [
      user('a'),
      result('c', [text(ofTokens(50)), image, text(ofTokens(49))], { is_error: true, x: 1 }),
      ...recent,
    ];
    const pruned = await run(messages, all);
    expect(pruned.messages[1]).toEqual(result('c', placeholder(99), { is_error: true, x: 1 }));
  });

  it('goes by the operator’s configuration where the request says nothing', async () => {
    const config = { ...DEFAULT_CONFIG, protect_recent_tokens: 0, min_free_tokens: 1, max_output_chars: 10 };
    const pruned = await prune({ messages: [...old, ...recent], options: null }, config, heuristic, pause);
    expect(pruned.pruned_parts).toBe(1);
    expect(pruned.versions).toEqual({ engine: 'prune/1.0.0', tokenizer: 'none', config });
  });
});

/** Rule by rule and without any care for speed. */
function reference(messages: readonly AgentMessage[], options: Required<PruneOptions>, by: 'heuristic' | 'o200k_base') {
  const textOf = (content: readonly ContentBlock[]) =>
    content.map((each) => (each.type === 'text' ? each.text : '')).join('');
  const isTurn = (each: AgentMessage | undefined) =>
    each?.role === 'user' && (each.content.length === 0 || each.content.some(({ type }) => type !== 'function_result'));
  const turns = [...messages.keys()].filter((index) => isTurn(messages[index]));
  const before = turns.at(-2) ?? 0;
  const functionOf = (id: string, until: number): string | undefined => {
    for (const message of messages.slice(0, until).toReversed()) {
      for (const block of message.content)
        if (block.type === 'function_call' && block.id === id) return block.function_id;
    }
    return undefined;
  };
  let [scanned, window, freed] = [0, 0, 0];
  const out = structuredClone(messages) as unknown as { content: ContentBlock[] }[];
  const replacements: (() => void)[] = [];
  const look = (
    content: readonly ContentBlock[],
    function_id: string | undefined,
    replace: (by: ContentBlock[]) => void,
  ) => {
    if (options.protected_functions?.includes(function_id ?? '')) return;
    scanned += 1;
    const tokens = referenceText(textOf(content), by);
    window += tokens;
    if (window <= (options.protect_recent_tokens ?? 0)) return;
    if (Array.from(textOf(content)).length <= (options.max_output_chars ?? 0)) return;
    const short = `[output pruned: was ~${tokens} tokens]`;
    if (textOf(content).startsWith('[output pruned: was ~') || referenceText(short, by) >= tokens) return;
    freed += tokens - referenceText(short, by);
    replacements.push(() => replace([text(short)]));
  };
  for (let index = before - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === 'function_result')
      look(message.content, message.function_id, (content) => {
        out[index]!.content = content;
      });
    if (message?.role !== 'user') continue;
    for (let at = message.content.length - 1; at >= 0; at -= 1) {
      const block = message.content[at];
      if (block?.type === 'function_result') {
        look(block.content, functionOf(block.function_call_id, index), (content) => {
          out[index]!.content[at] = { ...block, content };
        });
      }
    }
  }
  if (freed < (options.min_free_tokens ?? 0))
    return { messages, pruned_parts: 0, pruned_tokens: 0, scanned_parts: scanned };
  for (const replace of replacements) replace();
  return { messages: out, pruned_parts: replacements.length, pruned_tokens: freed, scanned_parts: scanned };
}

describe.each([
  ['heuristic', heuristic],
  ['o200k_base', o200k],
] as const)('by %s', (by, estimator) => {
  const options = fc.record({
    protect_recent_tokens: fc.constantFrom(0, 100, 1_000),
    min_free_tokens: fc.constantFrom(0, 1, 500),
    max_output_chars: fc.constantFrom(0, 50, 1_000),
    protected_functions: fc.constantFrom([], ['shell::run'], ['file::read']),
    estimator: fc.constant(null),
  });

  it('it does what the rules say, once and for all', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, options, async (messages, each) => {
        const before = canonicalJson(messages);
        const pruned = await run(messages, each, estimator);
        expect(pruned).toMatchObject(reference(messages, each, by));
        const again = await run(pruned.messages, each, estimator);
        expect(again).toMatchObject({ messages: pruned.messages, pruned_parts: 0, pruned_tokens: 0 });
        expect(canonicalJson(messages)).toBe(before);
      }),
    );
  });
});

it('keeps notes where they are', async () => {
  const messages = [custom(), ...old, custom(), ...recent];
  expect((await run(messages, all)).messages.filter(({ role }) => role === 'custom')).toEqual([custom(), custom()]);
});
