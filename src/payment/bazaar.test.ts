/** The judge is the extension's own package: its validators, and what a catalogue extracts. */
import {
  extractDiscoveryInfo,
  extractDiscoveryInfoV1,
  isDiscoverableV1,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { operations } from '../operations/list.ts';
import { DEFAULT_CONTEXT } from '../operations/run-context.ts';
import { validate } from '../operations/validate.ts';
import { defineOperation, type Operation } from '../operation.ts';
import { BAZAAR, createDiscovery, declareBazaar, DECLARATION_MAX_BYTES, outputSchemaOf } from './bazaar.ts';

type Declared = Parameters<typeof validateDiscoveryExtension>[0];
interface Info {
  input: { body: unknown; method: string };
  output?: { example: { data: unknown } };
}

const urlOf = ({ id }: Pick<Operation, 'id'>): string => `https://api.example.com/api/v1/${id}`;
const fail = (event: string, error: unknown): never => {
  throw new Error(event, { cause: error });
};
const discovery = createDiscovery(fail);
const declarationOf = async (operation: Operation): Promise<Declared> =>
  (await discovery(operation, urlOf(operation)))[BAZAAR] as Declared;
const infoOf = ({ info }: Declared): Info => info as unknown as Info;
const bodySchemaOf = ({ schema }: Declared): Record<string, unknown> =>
  (schema as unknown as { properties: { input: { properties: { body: Record<string, unknown> } } } }).properties.input
    .properties.body;

describe.each(operations.map((operation) => [operation.id, operation] as const))('%s', (id, operation) => {
  it('is declared as the extension’s package wants it, in few bytes', async () => {
    const declared = await declarationOf(operation);
    expect(validateDiscoveryExtensionSpec(declared as unknown as Record<string, unknown>)).toEqual({ valid: true });
    expect(validateDiscoveryExtension(declared)).toEqual({ valid: true });
    expect(new TextEncoder().encode(JSON.stringify(declared)).length).toBeLessThanOrEqual(DECLARATION_MAX_BYTES);
  });

  it('is catalogued from a payment that repeats the declaration', async () => {
    const extensions = { [BAZAAR]: await declarationOf(operation) };
    const resource = { url: urlOf(operation), description: operation.description, mimeType: 'application/json' };
    const payload = { x402Version: 2, payload: {}, resource, accepted: {}, extensions };
    expect(extractDiscoveryInfo(payload as never, {} as never)).toMatchObject({
      resourceUrl: urlOf(operation),
      method: 'POST',
      discoveryInfo: { input: { bodyType: 'json' } },
    });
  });

  it('is shown with an input that it takes and answers', async () => {
    const { body } = infoOf(await declarationOf(operation)).input;
    expect(validate(operation, body)).toMatchObject({ ok: true });
    expect(await operation.run(body, DEFAULT_CONTEXT)).toMatchObject({ kind: 'answer' });
  });

  it('is told with a schema that takes whatever the operation takes, and knows its members', async () => {
    const schema = bodySchemaOf(await declarationOf(operation));
    const accepts = new Ajv2020({ strict: false }).compile(schema);
    expect(accepts(operation.example)).toBe(true);
    const full = z.toJSONSchema(operation.input, { io: 'input' });
    expect(Object.keys(schema['properties'] ?? {})).toEqual(Object.keys(full.properties ?? {}));
    expect(schema['required']).toEqual(full.required);
    for (const name of full.required ?? []) {
      expect(accepts({ ...(operation.example as object), [name]: undefined })).toBe(false);
      expect(accepts({ ...(operation.example as object), [name]: 7.5 })).toBe(false);
    }
    expect(accepts({ ...(operation.example as object), nobody: 1 })).toBe(false);
    if (JSON.stringify(schema).length < JSON.stringify(full).length) {
      expect(schema['description']).toBe('Shortened; in full at https://api.example.com/');
    }
  });

  it('is told to v1 catalogues too', async () => {
    const outputSchema = outputSchemaOf({ [BAZAAR]: await declarationOf(operation) });
    const requirements = { resource: urlOf(operation), outputSchema } as never;
    expect(isDiscoverableV1(requirements)).toBe(true);
    const info = extractDiscoveryInfoV1(requirements) as unknown as Info;
    expect(info.input).toMatchObject({ type: 'http', method: 'POST', bodyType: 'json' });
    const full = z.toJSONSchema(operation.input, { io: 'input' });
    const names = (full.oneOf ?? [full]).flatMap(({ properties = {} }) => Object.keys(properties));
    const fields = info.input.body as Readonly<Record<string, object>>;
    expect(Object.keys(fields)).toEqual([...new Set(names)]);
    expect(JSON.stringify(fields['messages'])).toContain('"type":"array"');
    const formats = JSON.stringify(fields['format']);
    for (const format of ['agent-messages', 'openai-chat', 'ai-sdk']) expect(formats).toContain(format);
    expect(id).toBe(operation.id);
  });
});

test('an answer is shown where it is short', async () => {
  const count = operations.find(({ id }) => id === 'count');
  if (!count) throw new Error('no count');
  const { output } = infoOf(await declarationOf(count));
  expect(await count.run(count.example, DEFAULT_CONTEXT)).toMatchObject({ data: output?.example.data });
});

const operationOf = (input: z.ZodType, example: unknown, run?: Operation['run']): Operation =>
  defineOperation({
    id: 'made',
    version: '1.0.0',
    title: '',
    summary: '',
    description: '',
    roi: '',
    audience: '',
    price: '1',
    input,
    output: z.unknown(),
    run: run ?? (async () => ({ kind: 'answer', billable: true, data: { versions: {} } })),
    example,
  });

describe('properties', () => {
  const MAP = z.record(z.string(), z.int());
  const BOTH = z.intersection(z.object({ a: z.string() }), z.object({ b: z.array(z.int()) }));
  const PAIR = z.tuple([z.string(), z.int()]);
  const leaf = fc.constantFrom<z.ZodType>(
    z.string(),
    z.int(),
    z.enum(['a', 'b']),
    z.literal(1),
    z.null(),
    z.boolean(),
    MAP,
    BOTH,
    PAIR,
  );
  const { schema: anySchema } = fc.letrec<{ schema: z.ZodType }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 5 },
      leaf,
      tie('schema').map((item) => z.array(item)),
      fc.tuple(tie('schema'), tie('schema')).map(([a, b]) => z.union([a, b])),
      fc
        .dictionary(fc.stringMatching(/^[a-z]{1,8}$/), tie('schema'), { maxKeys: 4 })
        .map((shape) => z.strictObject(shape)),
      tie('schema').map((inner) => inner.optional().describe('what it is '.repeat(20))),
    ),
  }));
  /** A value of a schema: whatever zod takes of arbitrary JSON would hardly ever be one. */
  const valueOf = (schema: z.ZodType): fc.Arbitrary<unknown> => {
    if (schema instanceof z.ZodOptional) return fc.option(valueOf(schema.unwrap() as z.ZodType), { nil: undefined });
    if (schema instanceof z.ZodArray) return fc.array(valueOf(schema.element as z.ZodType), { maxLength: 3 });
    if (schema instanceof z.ZodUnion) return fc.oneof(...schema.options.map((option) => valueOf(option as z.ZodType)));
    if (schema instanceof z.ZodObject) {
      return fc.record(Object.fromEntries(Object.entries(schema.shape).map(([name, part]) => [name, valueOf(part)])));
    }
    if (schema === MAP) return fc.dictionary(fc.string(), fc.integer());
    if (schema === BOTH) return fc.record({ a: fc.string(), b: fc.array(fc.integer()) });
    if (schema === PAIR) return fc.tuple(fc.string(), fc.integer());
    if (schema instanceof z.ZodEnum) return fc.constantFrom(...schema.options);
    if (schema instanceof z.ZodLiteral) return fc.constant(schema.value);
    if (schema instanceof z.ZodNull) return fc.constant(null);
    if (schema instanceof z.ZodBoolean) return fc.boolean();
    return schema instanceof z.ZodString ? fc.string() : fc.integer();
  };

  it('whatever is left of a schema takes all that the whole one takes', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), anySchema, { minKeys: 1, maxKeys: 12 }).chain((shape) => {
          const input = z.strictObject(shape);
          return fc.tuple(fc.constant(input), valueOf(input));
        }),
        ([input, value]) => {
          const json: unknown = JSON.parse(JSON.stringify(value));
          fc.pre(input.safeParse(json).success);
          const declared = declareBazaar(operationOf(input, {}), urlOf({ id: 'made' }))[BAZAAR] as Declared | undefined;
          // An example that the operation refuses is not shown, and then nothing is.
          const shown =
            declared ?? (declareBazaar(operationOf(input, json), urlOf({ id: 'made' }))[BAZAAR] as Declared);
          fc.pre(shown !== undefined);
          expect(validateDiscoveryExtension(shown)).toEqual({ valid: true });
          const accepts = new Ajv2020({ strict: false }).compile(bodySchemaOf(shown));
          expect(accepts(json)).toBe(true);
        },
      ),
      { numRuns: 25 },
    );
  });
});

describe('what cannot be declared', () => {
  it('is left out: an example too long for any header, a transport that is not HTTP', async () => {
    expect(declareBazaar(operationOf(z.unknown(), { text: 'x'.repeat(5_000) }), urlOf({ id: 'made' }))).toEqual({});
    expect(await discovery(operationOf(z.unknown(), {}), 'mcp://tool/made')).toEqual({});
  });

  it('is reported once, and no challenge fails of it', async () => {
    const events: string[] = [];
    const broken = createDiscovery((event) => events.push(event));
    const operation = operationOf(z.unknown(), {}, () => Promise.reject(new Error('broken')));
    for (const _ of [1, 2]) expect(await broken(operation, urlOf(operation))).toEqual({});
    expect(events).toEqual(['discovery_failed']);
  });

  test.each([{}, { bazaar: 1 }, { bazaar: { info: {}, schema: {} } }, { bazaar: { info: { input: 1 }, schema: 2 } }])(
    'has no outputSchema: %j',
    (extensions) => expect(outputSchemaOf(extensions)).toBeUndefined(),
  );
});
