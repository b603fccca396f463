import { Ajv } from 'ajv';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import example from '../../test/vectors/contracts/conversation-prune.example.json' with { type: 'json' };
import requestSchema from '../../test/vectors/contracts/conversation-prune.request.schema.json' with { type: 'json' };
import responseSchema from '../../test/vectors/contracts/conversation-prune.response.schema.json' with { type: 'json' };
import { conversationPrune } from './conversation-prune.ts';
import { DEFAULT_CONTEXT } from './run-context.ts';
import { validate } from './validate.ts';

/** Keys that say nothing: the dialect, what every integer of JSON is bound to, and open objects said aloud. */
function normalise(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(normalise);
  if (typeof schema !== 'object' || schema === null) return schema;
  const says = Object.entries(schema).filter(([key, value]) => {
    if (key === '$schema') return false;
    if (key === 'minimum') return value !== Number.MIN_SAFE_INTEGER;
    if (key === 'maximum') return value !== Number.MAX_SAFE_INTEGER;
    return !((key === 'additionalProperties' || key === 'properties') && JSON.stringify(value) === '{}');
  });
  return Object.fromEntries(says.map(([key, value]) => [key, normalise(value)]));
}

function withoutRequired(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutRequired);
  if (typeof schema !== 'object' || schema === null) return schema;
  const rest = Object.entries(schema).filter(([key, value]) => !(key === 'required' && Array.isArray(value)));
  return Object.fromEntries(rest.map(([key, value]) => [key, withoutRequired(value)]));
}

function withoutProperties(schema: z.core.JSONSchema.JSONSchema | undefined, names: readonly string[]): object {
  const properties = Object.entries(schema?.properties ?? {}).filter(([name]) => !names.includes(name));
  return { ...schema, properties: Object.fromEntries(properties) };
}

const message = { role: 'user', tokens: 1 };
const request = { messages: [message], cacheBreakpoint: -1, targetTokens: 0 };
const withMessage = (more: object): object => ({ ...request, messages: [message, { ...message, ...more }] });

function problemOf(value: unknown): [string, string] | undefined {
  const checked = validate(conversationPrune, value);
  if (checked.ok) return undefined;
  const { problem } = checked;
  return problem.code === 'invalid_request' ? [problem.path, problem.detail] : [problem.code, ''];
}

async function run(value: unknown) {
  const checked = validate(conversationPrune, value);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problem));
  const outcome = await conversationPrune.run(checked.value, DEFAULT_CONTEXT);
  if (outcome.kind !== 'answer') throw new Error(outcome.problem.code);
  return outcome;
}

describe('the record', () => {
  it('sells the contract’s example for the contract’s price', async () => {
    expect(conversationPrune).toMatchObject({ id: 'conversation-prune', version: '1.0.0', price: '5000', example });
    expect(await run(example)).toMatchObject({
      billable: true,
      data: { keep: [0, 1, 4, 5], tokensBefore: 6485, tokensAfter: 455 },
    });
  });

  it('has texts within what the surfaces allow', () => {
    expect(conversationPrune.summary.length).toBeLessThanOrEqual(120);
    expect(conversationPrune.description.length).toBeLessThanOrEqual(500);
  });
});

describe('the schemas', () => {
  it('take what the contract takes', () => {
    const [neutral] = z.toJSONSchema(conversationPrune.input, { io: 'input' }).oneOf ?? [];
    expect(normalise(withoutProperties(neutral, ['format']))).toEqual(requestSchema);
  });

  it('answer what the contract answers, and say what is always there', () => {
    // What the contract does not know of: that the answer is in a provider's format, and mended.
    const ours = normalise(withoutProperties(z.toJSONSchema(conversationPrune.output), ['messages', 'repairs']));
    expect(withoutRequired(ours)).toEqual(responseSchema.properties.data);
    expect(ours).toHaveProperty('required', [
      'status',
      'keep',
      'dropped',
      'prefix',
      'notes',
      'witnesses',
      'versions',
      'limits',
      'deterministic',
    ]);
  });

  it('agree with the contract’s schema about mutations of the example', () => {
    const byContract = new Ajv({ strict: false }).compile(requestSchema);
    const odd = fc.oneof(
      fc.constantFrom<unknown[]>(
        undefined,
        null,
        '',
        '😀',
        'x'.repeat(33),
        '😀'.repeat(32),
        '😀'.repeat(200),
        'text',
        'tool_call',
      ),
      fc.constantFrom<unknown[]>(-2, -1, 0, 1.5, 499, 500, 1e8, 1e8 + 1, true, false, [], {}, 'largest-first'),
    );
    const keys = [...Object.keys(requestSchema.properties), 'extra'];
    const messageKeys = [...Object.keys(requestSchema.properties.messages.items.properties), 'extra'];
    const mutation = fc.oneof(
      fc.record({ key: fc.constantFrom(...keys), value: odd }).map(({ key, value }) => ({ ...example, [key]: value })),
      fc
        .record({ key: fc.constantFrom(...messageKeys), value: odd })
        .map(({ key, value }) => withMessage({ [key]: value })),
    );
    fc.assert(
      fc.property(mutation, (mutated) => {
        const json: unknown = JSON.parse(JSON.stringify(mutated));
        expect(problemOf(json) === undefined).toBe(byContract(json));
      }),
      { numRuns: 2000 },
    );
  });

  it('change nothing: absent stays absent', () => {
    const checked = validate(conversationPrune, request);
    expect(checked.ok && checked.value).toBe(request);
    expect(conversationPrune.input.parse(request)).toEqual(request);
  });
});

const content = (chars: number, unit = 'x'): object => ({ ...message, content: unit.repeat(chars) });
const holding = (...messages: object[]): object => ({ ...request, messages });

describe('bounds', () => {
  it.each<[what: string, path: string, detail: string, value: unknown]>([
    ['no message', '/messages', 'at least 1 items', holding()],
    ['501 messages', '/messages', 'at most 500 items', holding(...Array.from({ length: 501 }, () => message))],
    ['long content', '/messages/1/content', 'at most 100000 characters', holding(message, content(100_001))],
    ['a far breakpoint', '/cacheBreakpoint', 'at most 499', { ...request, cacheBreakpoint: 500 }],
    ['a negative count', '/messages/1/tokens', 'at least 0', withMessage({ tokens: -1 })],
    ['an empty role', '/messages/1/role', 'at least 1 characters', withMessage({ role: '' })],
    [
      'too much content',
      '/messages',
      'at most 400000 characters of content in all messages together',
      holding(...Array.from({ length: 4 }, () => content(100_000)), content(1)),
    ],
  ])('%s', (_, path, detail, value) => {
    expect(problemOf(value)).toEqual([path, detail]);
  });

  it('are counted in characters, not in UTF-16 units', () => {
    expect(problemOf(holding(...Array.from({ length: 4 }, () => content(100_000, '😀'))))).toBeUndefined();
    expect(problemOf(holding(content(100_001, '😀')))?.[0]).toBe('/messages/0/content');
    expect(problemOf(holding(...Array.from({ length: 4 }, () => content(100_000, '😀')), content(1)))?.[0]).toBe(
      '/messages',
    );
    expect(
      problemOf(withMessage({ role: '😀'.repeat(32), id: '😀'.repeat(100), toolCallId: '😀'.repeat(200) })),
    ).toBeUndefined();
  });

  it('stop a flood before any of its messages is looked at', () => {
    let looks = 0;
    const trap = {
      get role(): string {
        looks += 1;
        return '';
      },
    };
    expect(problemOf(holding(...Array.from({ length: 100_000 }, () => trap)))?.[0]).toBe('/messages');
    expect(looks).toBe(0);
  });

  it('refuse unknown fields, __proto__ among them', () => {
    expect(problemOf(withMessage({ text: 'x' }))?.[0]).toBe('/messages/1/text');
    expect(
      problemOf(
        JSON.parse('{"messages":[{"role":"u","__proto__":{"tokens":1}}],"cacheBreakpoint":0,"targetTokens":0}'),
      )?.[0],
    ).toBe('/messages/0/__proto__');
  });
});

describe('run', () => {
  const uncounted = { ...request, messages: [{ role: 'user', content: 'hello world' }] };

  it('counts with the tokenizer asked for, o200k_base by default', async () => {
    const both = await Promise.all([run(uncounted), run({ ...uncounted, tokenizer: 'cl100k_base' })]);
    expect(both.map(({ data }) => [data.tokensBefore, data.versions['tokenizer']])).toEqual([
      [2, 'o200k_base'],
      [2, 'cl100k_base'],
    ]);
  });

  it.each<[string, boolean, object]>([
    ['pass', true, { ...request, targetTokens: 1 }],
    ['fail', true, request],
    ['unknown', false, { ...request, messages: [{ role: 'user' }] }],
    ['unsupported', false, { ...uncounted, tokenizer: 'claude-sonnet' }],
    ['unsupported', false, { ...uncounted, tokenizer: '' }],
    ['unsupported', false, { ...uncounted, tokenizer: 'toString' }],
    ['fail', true, { ...request, tokenizer: 'claude-sonnet' }],
  ])('%s is charged: %s', async (status, billable, value) => {
    expect(await run(value)).toMatchObject({ kind: 'answer', billable, data: { status } });
  });

  it('answers within its own schema and the contract’s', async () => {
    const byContract = new Ajv({ strict: false }).compile(responseSchema.properties.data);
    const anyMessage = fc.record(
      {
        id: fc.string({ maxLength: 3 }),
        role: fc.constantFrom('user', 'assistant'),
        kind: fc.constantFrom('text', 'tool_call', 'tool_result'),
        toolCallId: fc.constantFrom('a', 'b', ''),
        content: fc.string({ maxLength: 5 }),
        tokens: fc.nat(20),
        droppable: fc.boolean(),
      },
      { requiredKeys: ['role'] },
    );
    const anyRequest = fc.record(
      {
        messages: fc.array(anyMessage, { minLength: 1, maxLength: 40 }),
        cacheBreakpoint: fc.integer({ min: -1, max: 45 }),
        targetTokens: fc.nat(200),
        keepRecent: fc.nat(5),
        tokenizer: fc.constantFrom('o200k_base', 'cl100k_base', 'other'),
      },
      { requiredKeys: ['messages', 'cacheBreakpoint', 'targetTokens'] },
    );
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(anyRequest, async (value) => {
        const { data } = await run(value);
        seen.add(data.status);
        expect(conversationPrune.output.parse(data)).toEqual(data);
        expect(byContract(JSON.parse(JSON.stringify(data)))).toBe(true);
      }),
      { numRuns: 500 },
    );
    expect(seen).toEqual(new Set(['pass', 'fail', 'unknown', 'unsupported']));
  });
});
