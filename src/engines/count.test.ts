import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { referenceMessage, referenceText, referenceTool } from '../../test/reference-count.ts';
import { anyMessage, anyTool, readTranscript, TRANSCRIPTS } from '../../test/transcripts.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { count, type CountRequest, type CountResult } from './count.ts';
import { type Estimator, heuristic, tokenizer } from './estimator.ts';

// Read as text: one of them holds half a surrogate pair, on which bundlers' JSON loaders break.
const faults = JSON.parse(readFileSync(new URL('../../test/vectors/fault-inputs.json', import.meta.url), 'utf8')) as {
  inputs: Record<string, NeutralMessage[] | { messages: NeutralMessage[] }>;
};

const encodings = { o200k_base: await loadEncoding('o200k_base'), cl100k_base: await loadEncoding('cl100k_base') };
const ESTIMATORS = {
  heuristic,
  o200k_base: tokenizer(encodings.o200k_base),
  cl100k_base: tokenizer(encodings.cl100k_base),
};
const NAMES = ['heuristic', 'o200k_base', 'cl100k_base'] as const;

const model = { id: 'gpt-5' };
const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });
const noPause = (): Promise<void> => Promise.resolve();
const counted = (request: Partial<CountRequest>, estimator: Estimator): Promise<CountResult> =>
  count({ messages: [], model, ...request }, estimator, noPause);

function partsOf({ breakdown }: CountResult): number {
  const { system_prompt_tokens, tools_tokens, reply_priming_tokens, request_overhead_tokens, by_role } = breakdown;
  const messages = by_role.user + by_role.assistant + by_role.function_result + by_role.custom;
  return system_prompt_tokens + tools_tokens + reply_priming_tokens + request_overhead_tokens + messages;
}

const NOBODY = { user: 0, assistant: 0, function_result: 0, custom: 0 };

describe('count', () => {
  it.each([
    ['no messages', {}],
    ['an empty prompt and no tools', { system_prompt: '', tools: [] }],
    ['nulls', { system_prompt: null, tools: null, options: null }],
  ])('is 0 for nothing: %s', async (_, request) => {
    for (const estimator of Object.values(ESTIMATORS)) {
      expect(await counted(request, estimator)).toMatchObject({
        tokens: 0,
        by_role: NOBODY,
        breakdown: { system_prompt_tokens: 0, tools_tokens: 0, reply_priming_tokens: 0, request_overhead_tokens: 0 },
      });
    }
  });

  it('counts a prompt alone: a quarter of its bytes, or its tokens and 2 for the reply', async () => {
    const system_prompt = 'x'.repeat(16);
    expect(await counted({ system_prompt }, heuristic)).toMatchObject({ tokens: 4, by_role: NOBODY });
    const exact = referenceText(system_prompt, 'o200k_base');
    expect(await counted({ system_prompt }, ESTIMATORS.o200k_base)).toMatchObject({
      tokens: exact + 2,
      by_role: NOBODY,
      breakdown: { system_prompt_tokens: exact, reply_priming_tokens: 2 },
    });
  });

  it('counts a message without text as its frame, and then the reply too', async () => {
    const empty: AgentMessage = { role: 'user', content: [], timestamp: 1 };
    expect(await counted({ messages: [empty] }, ESTIMATORS.o200k_base)).toMatchObject({
      tokens: 6,
      by_role: { user: 4 },
    });
  });

  it('says what it counted with', async () => {
    const tokens = { estimator: 'tokenizer', breakdown: { estimator: 'tokenizer' } };
    expect(await counted({}, heuristic)).toMatchObject({
      estimator: 'heuristic',
      breakdown: { estimator: 'heuristic' },
      versions: { engine: 'count/1.0.0', tokenizer: 'none' },
    });
    for (const name of ['o200k_base', 'cl100k_base'] as const) {
      const { tableDigest } = encodings[name];
      const versions = { engine: 'count/1.0.0', tokenizer: name, tokenizerTableDigest: tableDigest };
      expect(await counted({}, ESTIMATORS[name])).toMatchObject({ ...tokens, versions });
    }
  });
});

describe.each(NAMES)('with %s', (name) => {
  const estimator = ESTIMATORS[name];
  const anyRequest = fc.record({
    messages: fc.array(anyMessage, { maxLength: 6 }),
    system_prompt: fc.option(fc.lorem()),
    tools: fc.option(fc.array(anyTool, { maxLength: 3 })),
  });

  it('the parts add up to the total, and each is what the contract says', async () => {
    await fc.assert(
      fc.asyncProperty(anyRequest, async (request) => {
        const result = await counted(request, estimator);
        expect(partsOf(result)).toBe(result.tokens);
        expect(result.breakdown.by_role).toEqual(result.by_role);
        const by_role = { ...NOBODY };
        for (const message of request.messages) by_role[message.role] += referenceMessage(message, name);
        expect(result.by_role).toEqual(by_role);
        expect(result.breakdown.system_prompt_tokens).toBe(referenceText(request.system_prompt ?? '', name));
        const tools = (request.tools ?? []).map((tool) => referenceTool(tool, name));
        expect(result.breakdown.tools_tokens).toBe(tools.reduce((total, tokens) => total + tokens, 0));
      }),
    );
  });

  it('one more message or tool never lowers the total', async () => {
    await fc.assert(
      fc.asyncProperty(anyRequest, anyMessage, anyTool, fc.nat(), async (request, message, tool, place) => {
        const { tokens } = await counted(request, estimator);
        const messages = request.messages.toSpliced(place % (request.messages.length + 1), 0, message);
        expect((await counted({ ...request, messages }, estimator)).tokens).toBeGreaterThanOrEqual(tokens);
        const tools = [...(request.tools ?? []), tool];
        expect((await counted({ ...request, tools }, estimator)).tokens).toBeGreaterThan(tokens);
      }),
    );
  });

  it.each(TRANSCRIPTS)('%s is counted whole', async (transcript) => {
    const { messages, system_prompt } = readTranscript(transcript);
    const result = await counted({ messages, ...(system_prompt !== undefined && { system_prompt }) }, estimator);
    const expected = messages.reduce((total, message) => total + referenceMessage(message, name), 0);
    const priming = name === 'heuristic' ? 0 : 2;
    expect(result.tokens).toBe(expected + referenceText(system_prompt ?? '', name) + priming);
    expect(partsOf(result)).toBe(result.tokens);
  });
});

// Inputs that broke public systems

interface NeutralBlock {
  readonly kind?: string;
  readonly toolCallId?: string;
  readonly content?: string;
  readonly mime?: string;
  readonly data?: string;
}

interface NeutralMessage extends Omit<NeutralBlock, 'content'> {
  readonly role: string;
  readonly content?: string | readonly NeutralBlock[];
}

/** `<N x c>` and `<N chars>` stand for a text of that length. */
const expand = (text: string): string =>
  text
    .replace(/^<(\d+) x (.)>$/, (_, times: string, char: string) => char.repeat(Number(times)))
    .replace(/^<(\d+) chars>$/, (_, chars: string) =>
      'line of output\n'.repeat(Number(chars) / 15).padEnd(Number(chars)),
    );

function toBlock({ kind = 'text', toolCallId = '', content = '', mime = '', data = '' }: NeutralBlock): ContentBlock {
  const text = expand(content);
  switch (kind) {
    case 'tool_call':
      return { type: 'function_call', id: toolCallId, function_id: 'tool', arguments: text };
    case 'tool_result':
      return { type: 'function_result', function_call_id: toolCallId, content: [{ type: 'text', text }] };
    case 'image':
      return { type: 'image', mime, data: expand(data) };
    default:
      return { type: 'text', text };
  }
}

function toMessage({ content = '', ...fields }: NeutralMessage, timestamp: number): AgentMessage {
  const { role, toolCallId = '' } = fields;
  const blocks = typeof content === 'string' ? [toBlock({ ...fields, content })] : content.map(toBlock);
  switch (role) {
    case 'assistant':
      return { role, content: blocks, timestamp, model: 'm', provider: 'p', stop_reason: 'function_call' };
    case 'system':
      return { role: 'custom', content: blocks, timestamp, custom_type: 'system' };
    case 'tool': {
      const text = blocks.flatMap((block) => (block.type === 'function_result' ? block.content : [block]));
      return { role: 'function_result', content: text, timestamp, function_call_id: toolCallId, function_id: 'tool' };
    }
    default:
      return { role: 'user', content: blocks, timestamp };
  }
}

describe('inputs that broke public systems', () => {
  const inputs = Object.entries(faults.inputs).map(([name, input]): [string, AgentMessage[]] => {
    const messages: readonly NeutralMessage[] = Array.isArray(input) ? input : input.messages;
    return [name, messages.map(toMessage)];
  });

  it.each(inputs)('%s is counted as any other', async (_, messages) => {
    for (const name of NAMES) {
      const { tokens } = await counted({ messages }, ESTIMATORS[name]);
      const expected = messages.reduce((total, message) => total + referenceMessage(message, name), 0);
      expect(tokens).toBe(expected + (name === 'heuristic' ? 0 : 2));
    }
  });

  it('cost what they should: an image its price, a special token its letters', async () => {
    const tokensOf = async (name: string): Promise<number> => {
      const [, messages = []] = inputs.find(([each]) => each === name) ?? [];
      return (await counted({ messages }, ESTIMATORS.o200k_base)).tokens;
    };
    expect(await tokensOf('image_base64')).toBe(4096 + 4 + referenceText('what?', 'o200k_base') + 2);
    expect(await tokensOf('special_token')).toBe(
      4 + referenceText('sep is <|endoftext|> and <|im_start|>', 'o200k_base') + 2,
    );
    expect(await tokensOf('lone_surrogate_in')).toBe(4 + referenceText('cut \ufffd', 'o200k_base') + 2);
  });
});

describe('others get their turn', () => {
  it('before the first text and then after so many tokens, be they of messages or tools', async () => {
    let pauses = 0;
    const pause = async (): Promise<void> => {
      pauses += 1;
    };
    const messages = Array.from({ length: 10 }, () => user('x'.repeat(4 * 40_000)));
    await count({ messages, model }, heuristic, pause);
    expect(pauses).toBe(10);
    const small = Array.from({ length: 10 }, () => user('x'.repeat(400)));
    await count({ messages: small, model }, heuristic, pause);
    expect(pauses).toBe(11);
    await count({ messages: [...messages.slice(1), ...small], model }, heuristic, pause);
    expect(pauses).toBe(21);
    const tools = [{ name: 'a', description: 'x'.repeat(4 * 40_000) }];
    await count({ messages: [], model, tools }, heuristic, pause);
    expect(pauses).toBe(22);
  });
});
