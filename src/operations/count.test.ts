import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { anyMessage, anyTool, readTranscript, TRANSCRIPTS } from '../../test/transcripts.ts';
import requestSchema from '../../test/vectors/contracts/context.count-tokens.request.schema.json' with { type: 'json' };
import responseSchema from '../../test/vectors/contracts/context.count-tokens.response.schema.json' with { type: 'json' };
import providerSchema from '../../test/vectors/contracts/provider.openai-codex.stream.request.schema.json' with { type: 'json' };
import { MAX_ENCODED_TEXT_BYTES } from '../engines/overlong.ts';
import type { Problem } from '../problem.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';
import { count } from './count.ts';
import { DEFAULT_CONTEXT } from './run-context.ts';
import { validate } from './validate.ts';

const ajv = new Ajv({ strict: false, validateFormats: false });
const byContract = ajv.compile(requestSchema);
const blockByProvider = ajv.compile({
  ...providerSchema.definitions.ContentBlock,
  definitions: providerSchema.definitions,
});
const answerByContract = ajv.compile(responseSchema);
const byOwnJsonSchema = new Ajv2020({ strict: false }).compile(z.toJSONSchema(count.input, { io: 'input' }));

const model = { id: 'gpt-5' };
const timestamp = 1_796_032_800_000;
const user = (...content: object[]): object => ({ role: 'user', content, timestamp });
const holding = (...messages: unknown[]): object => ({ model, messages });

/** Every field that the wire shapes know, once. */
const FULL = {
  model: { id: 'gpt-5', provider: 'openai', limits: { context_window: 400_000, max_output_tokens: 9, input_limit: 1 } },
  system_prompt: 'Be brief.',
  tools: [
    { name: 'f', description: 'd', parameters: { type: 'object' }, label: 'F', execution_mode: 'parallel' },
    { name: 'g', description: '' },
  ],
  messages: [
    user({ type: 'text', text: 'hi' }, { type: 'image', data: 'AAAA', mime: 'image/png' }),
    {
      role: 'assistant',
      content: [
        { type: 'thinking', text: 'hm', signature: 's' },
        { type: 'function_call', id: 'c', function_id: 'f', arguments: { a: 1 } },
        { type: 'function_call', id: 'd', function_id: 'g' },
      ],
      timestamp,
      model: 'm',
      provider: 'p',
      stop_reason: 'function_call',
      native_stop_reason: 'tool_use',
      error_kind: 'transient',
      error_message: 'e',
      usage: { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 5, cost_usd: 0.5 },
      warnings: ['w'],
    },
    {
      role: 'function_result',
      content: [{ type: 'text', text: 'ok' }],
      timestamp,
      function_call_id: 'c',
      function_id: 'f',
      details: { exit_code: 0 },
      is_error: false,
    },
    user({ type: 'function_result', function_call_id: 'd', content: [{ type: 'text', text: 'r' }], is_error: true }),
    { role: 'custom', content: [], timestamp, custom_type: 't', display: 'd', details: [1] },
  ],
};

type Path = readonly (string | number)[];

/** The place of every value in a JSON value, itself excluded. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inside]) => {
    const here = [...path, Array.isArray(value) ? Number(key) : key];
    return [here, ...pathsIn(inside, here)];
  });
}

/** A copy with another value at a path, or with nothing there. */
function changed(value: unknown, path: Path, to: unknown): unknown {
  const copy: unknown = structuredClone(value);
  const parent = path.slice(0, -1).reduce((here, key) => Reflect.get(Object(here), key) as unknown, copy);
  const key = path.at(-1) ?? '';
  if (to === undefined && Array.isArray(parent)) parent.splice(Number(key), 1);
  else if (to === undefined) Reflect.deleteProperty(Object(parent), key);
  else Reflect.set(Object(parent), key, to);
  return copy;
}

function problemOf(value: unknown): Problem | undefined {
  const checked = validate(count, value);
  return checked.ok ? undefined : checked.problem;
}
const refused = (path: string, detail: string): Problem => ({ code: 'context/invalid_request', path, detail });

async function run(value: unknown) {
  const checked = validate(count, value);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problem));
  const outcome = await count.run(checked.value, DEFAULT_CONTEXT);
  if (outcome.kind !== 'answer') throw new Error(outcome.problem.code);
  return outcome;
}

describe('the record', () => {
  it('is sold for 0.001 USDC, with texts within what the surfaces allow', () => {
    expect(count).toMatchObject({ id: 'count', version: '1.0.0', price: '1000' });
    expect(count.summary.length).toBeLessThanOrEqual(120);
    expect(count.description.length).toBeLessThanOrEqual(500);
  });

  it('has an example that the contract takes, and that is counted exactly', async () => {
    expect(byContract(count.example)).toBe(true);
    expect(await run(count.example)).toMatchObject({ billable: true, data: { estimator: 'tokenizer' } });
  });
});

describe('the input', () => {
  const odd = fc.constantFrom<unknown[]>(
    undefined,
    null,
    '',
    'x',
    'user',
    'text',
    'function_result',
    'parallel',
    -1,
    0,
    1.5,
    7,
    true,
    [],
    {},
    [{}],
    [[]],
    ['x'],
    { id: 'x' },
  );

  it('is what the contract takes, for any change at any place', () => {
    const places = pathsIn(FULL);
    // Where the contract's words go beyond its schema: messages must be there, and null is absent here too.
    const saidInWords = (path: Path, to: unknown): boolean =>
      (path.join() === 'messages' && (to === undefined || to === null)) || (path.at(-1) === 'is_error' && to === null);
    fc.assert(
      fc.property(fc.constantFrom(...places), odd, (path, to) => {
        fc.pre(!saidInWords(path, to));
        const json = changed(FULL, path, to);
        expect([json, problemOf(json) === undefined]).toEqual([json, byContract(json) && isClosed(json)]);
      }),
      { numRuns: 3000 },
    );
  });

  /** Also in words only: no unknown fields in the model. */
  function isClosed(json: unknown): boolean {
    const { limits, ...rest } = (json as { model: Record<string, unknown> }).model;
    return (
      Object.keys(rest).every((key) => key === 'id' || key === 'provider') &&
      Object.keys(limits ?? {}).every((key) => key in FULL.model.limits)
    );
  }

  it('takes the block types of the provider’s document too', () => {
    const blocks = [
      { type: 'file', attachment_id: 'a', mime: 'text/plain', name: 'n', size: 3 },
      { type: 'redacted_thinking', data: 'AAAA' },
    ];
    const places = pathsIn(blocks).filter((path) => path.length > 1);
    fc.assert(
      fc.property(fc.constantFrom(...places), odd, (path, to) => {
        const json = changed(blocks, path, to) as object[];
        const [block = {}] = json.slice(Number(path[0]));
        fc.pre(path[1] !== 'type' || to !== 'text');
        expect([block, problemOf(holding(user(block))) === undefined]).toEqual([block, blockByProvider(block)]);
      }),
      { numRuns: 1000 },
    );
  });

  it('is what its own JSON Schema says', () => {
    fc.assert(
      fc.property(fc.constantFrom(...pathsIn(FULL)), odd, (path, to) => {
        const json = changed(FULL, path, to);
        expect([json, problemOf(json) === undefined]).toEqual([json, byOwnJsonSchema(json)]);
      }),
      { numRuns: 2000 },
    );
    expect(byOwnJsonSchema(FULL)).toBe(true);
  });

  it.each(TRANSCRIPTS)('takes %s', (name) => {
    const { messages, system_prompt } = readTranscript(name);
    expect(problemOf({ model, messages, system_prompt: system_prompt ?? null })).toBeUndefined();
  });

  it('takes any conversation, and hands back the very value', () => {
    fc.assert(
      fc.property(fc.array(anyMessage), fc.array(anyTool), (messages, tools) => {
        const request = { model, messages, tools };
        const checked = validate(count, request);
        expect(checked.ok && checked.value).toBe(request);
      }),
    );
  });

  it('takes null for absent in every optional field', () => {
    const nulls = {
      ...holding({ ...FULL.messages[2], is_error: null, details: null }, user()),
      system_prompt: null,
      tools: null,
      options: null,
    };
    expect(problemOf(nulls)).toBeUndefined();
    expect(problemOf({ ...nulls, model: { id: 'x', provider: null, limits: null } })).toBeUndefined();
    expect(problemOf({ ...nulls, options: { estimator: null } })).toBeUndefined();
  });
});

describe('what is refused', () => {
  it.each<[unknown, string, string]>([
    [{ model }, '/messages', 'messages is required'],
    [{ model, messages: null }, '/messages', 'messages is required'],
    [{}, '/messages', 'messages is required'],
    [{ model, messages: {} }, '/messages', 'expected a list'],
    [{ messages: [] }, '/model', 'this field is required'],
    [{ messages: [], model: 'gpt-5' }, '/model', 'expected an object'],
    [{ messages: [], model: {} }, '/model/id', 'this field is required'],
    [null, '', 'expected an object'],
    [[], '', 'expected an object'],
    [{ ...holding(), max_tokens: 1 }, '/max_tokens', 'no field of this name is known here'],
    [{ ...holding(), options: { encoding: 'x' } }, '/options/encoding', 'no field of this name is known here'],
    [{ messages: [], model: { ...model, name: 'x' } }, '/model/name', 'no field of this name is known here'],
    [
      { messages: [], model: { ...model, limits: { context_window: 1, max_output_tokens: 1, input: 1 } } },
      '/model/limits/input',
      'no field of this name is known here',
    ],
    [
      { ...holding(), options: { estimator: 'gpt-5' } },
      '/options/estimator',
      'expected auto or heuristic or o200k_base or cl100k_base',
    ],
    [holding(7), '/messages/0', 'expected an object'],
    [holding(user(), { content: [], timestamp }), '/messages/1/role', 'this field is required'],
    [
      holding({ role: 'tool', content: [], timestamp }),
      '/messages/0/role',
      'expected user or assistant or function_result or custom',
    ],
    [holding({ role: 'user', content: 'hi', timestamp }), '/messages/0/content', 'expected a list'],
    [holding({ role: 'user', content: [] }), '/messages/0/timestamp', 'this field is required'],
    [holding(user(), user({ text: 'hi' })), '/messages/1/content/0/type', 'this field is required'],
    [
      holding(user({ type: 'text', text: 'hi' }, { type: 'audio' })),
      '/messages/0/content/1/type',
      'expected text or image or file or thinking or redacted_thinking or function_call or function_result',
    ],
    [
      holding(user({ type: 'function_result', function_call_id: 'c', content: [{ type: 'text', text: 1 }] })),
      '/messages/0/content/0/content/0/text',
      'expected text',
    ],
    [{ ...holding(), tools: [{ name: 'f' }] }, '/tools/0/description', 'this field is required'],
  ])('%j', (value, path, detail) => {
    expect(problemOf(value)).toEqual(refused(path, detail));
  });

  it('is not a field that nobody knows in messages, blocks and tools, not even __proto__', () => {
    const strange = JSON.parse('{"__proto__":{"role":"assistant"},"constructor":1,"x":null}') as object;
    expect(
      problemOf({
        ...holding({ ...user({ type: 'text', text: 'hi', ...strange }), ...strange }),
        tools: [{ name: 'f', description: '', ...strange }],
      }),
    ).toBeUndefined();
    expect(problemOf({ ...holding(), ...strange })).toEqual(
      refused('/__proto__', 'no field of this name is known here'),
    );
  });

  it('is text over the bound, where it is encoded', () => {
    const long = user({ type: 'text', text: 'a'.repeat(MAX_ENCODED_TEXT_BYTES + 1) });
    expect(problemOf(holding(user(), long))).toEqual({
      code: 'payload_too_large',
      limit_bytes: 1_048_576,
      path: '/messages/1',
    });
    expect(problemOf({ ...holding(long), model: { id: 'claude-sonnet-4' } })).toBeUndefined();
  });

  it('is one fault of 100,000', () => {
    expect(problemOf(holding(...Array.from({ length: 100_000 }, () => ({ role: 'user' }))))).toEqual(
      refused('/messages/0/content', 'this field is required'),
    );
  });

  it('is never an exception, and never echoes', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.jsonValue().map(holding)), (value) => {
        const parsed = parseStrictJson(JSON.stringify(value));
        if (parsed.ok) validate(count, parsed.value);
      }),
    );
    const secret = 'words-of-the-caller';
    for (const value of [secret, holding(secret), holding({ role: secret }), holding(user({ type: secret }))]) {
      expect(JSON.stringify(problemOf(value))).not.toContain(secret);
    }
  });
});

describe('run', () => {
  const text = 'def f(x): return x ** 2  # 日本語';
  const request = (id: string, estimator?: string): object => ({
    ...holding(user({ type: 'text', text })),
    model: { id },
    options: { estimator: estimator ?? null },
  });

  it.each([
    ['gpt-5', undefined, 'tokenizer', 'o200k_base'],
    ['gpt-4', undefined, 'tokenizer', 'cl100k_base'],
    ['claude-sonnet-4', undefined, 'heuristic', 'none'],
    ['claude-sonnet-4', 'auto', 'heuristic', 'none'],
    ['gpt-5', 'heuristic', 'heuristic', 'none'],
    ['claude-sonnet-4', 'o200k_base', 'tokenizer', 'o200k_base'],
    ['gpt-5', 'cl100k_base', 'tokenizer', 'cl100k_base'],
  ])('for %s with %s counts with the %s (%s)', async (id, estimator, name, encoding) => {
    const { billable, data } = await run(request(id, estimator));
    expect([billable, data.estimator, data.breakdown.estimator, data.versions['tokenizer']]).toEqual([
      true,
      name,
      name,
      encoding,
    ]);
  });

  it('charges for nothing too: it is an answer', async () => {
    expect(await run(holding())).toMatchObject({ billable: true, data: { tokens: 0 } });
  });

  it('answers within its own schema and the contract’s, the same each time', async () => {
    const anyRequest = fc.record(
      {
        messages: fc.array(anyMessage, { maxLength: 4 }),
        model: fc.record({ id: fc.constantFrom('gpt-5', 'gpt-4', 'claude-sonnet-4') }),
        system_prompt: fc.option(fc.string()),
        tools: fc.option(fc.array(anyTool, { maxLength: 2 })),
      },
      { requiredKeys: ['messages', 'model'] },
    );
    await fc.assert(
      fc.asyncProperty(anyRequest, async (value) => {
        const { data } = await run(value);
        expect(count.output.parse(data)).toEqual(data);
        expect(answerByContract(JSON.parse(JSON.stringify(data)))).toBe(true);
        expect((await run(structuredClone(value))).data).toEqual(data);
      }),
    );
  });

  it('lets others run while it counts', async () => {
    const turns: string[] = [];
    setTimeout(() => turns.push('other'));
    const messages = Array.from({ length: 20 }, () => user({ type: 'text', text: `${text} `.repeat(400) }));
    await run(holding(...messages));
    turns.push('counted');
    expect(turns).toEqual(['other', 'counted']);
  });
});
