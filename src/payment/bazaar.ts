/**
 * The x402 extension `bazaar` (specs/extensions/bazaar.md): how an operation is called, for catalogues that see its payments. It
 * reads the operation, and shortens what a header has no room for, so that everything it says stays true.
 */
import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { DEFAULT_CONTEXT } from '../operations/run-context.ts';
import { validate } from '../operations/validate.ts';
import { isJsonObject, type JsonObject } from '../provenance/canonical.ts';

export const BAZAAR = 'bazaar';

/**
 * Bytes of JSON. A payment repeats the challenge, in base64, and nginx takes no header line above 8 KiB: beside the rest of a
 * payment (3 KB of JSON) that leaves this much.
 */
export const DECLARATION_MAX_BYTES = 2_600;
const INPUT_EXAMPLE_MAX_BYTES = 800;
const OUTPUT_EXAMPLE_MAX_BYTES = 500;
/** A long example hardly has a short answer, and would keep the first challenge waiting. */
const RUN_EXAMPLE_MAX_BYTES = 4_000;
/** How many levels of a schema are told at most, where it is too long. */
const MAX_LEVELS = 5;

/** What the challenge of an operation says of it; nothing where it is not called over HTTP. */
export type Discovery = (operation: Operation, resourceUrl: string) => Promise<Record<string, unknown>>;

/** Works each declaration out once. What fails is reported, and the challenge goes without: it can be paid all the same. */
export function createDiscovery(report: (event: string, error: unknown) => void): Discovery {
  const known = new Map<string, Promise<Record<string, unknown>>>();
  const work = async (operation: Operation, resourceUrl: string): Promise<Record<string, unknown>> => {
    if (!/^https?:/.test(resourceUrl)) return {};
    try {
      return declareBazaar(operation, resourceUrl, await exampleOutput(operation));
    } catch (error) {
      report('discovery_failed', error);
      return {};
    }
  };
  return (operation, resourceUrl) => {
    const declared = known.get(resourceUrl) ?? work(operation, resourceUrl);
    known.set(resourceUrl, declared);
    return declared;
  };
}

/** What the engine makes of the example, by its defaults, so that it costs nothing; undefined where it is too long to be shown. */
async function exampleOutput(operation: Operation): Promise<unknown> {
  if (bytesOf(operation.example) > RUN_EXAMPLE_MAX_BYTES) return undefined;
  const outcome = await operation.run(operation.example, DEFAULT_CONTEXT);
  const example = outcome.kind === 'answer' ? { data: outcome.data } : undefined;
  return example && bytesOf(example) <= OUTPUT_EXAMPLE_MAX_BYTES ? example : undefined;
}

/** @param output an example of the answer, where there is a short one. */
export function declareBazaar(operation: Operation, resourceUrl: string, output?: unknown): Record<string, unknown> {
  const body = shortExample(operation);
  if (body === undefined) return {};
  const declare = (bodySchema: JsonObject): Record<string, unknown> => ({
    info: {
      input: { type: 'http', method: 'POST', bodyType: 'json', body },
      ...(output !== undefined && { output: { type: 'json', example: output } }),
    },
    schema: {
      $schema: DRAFT,
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { const: 'http' },
            method: { enum: ['POST'] },
            bodyType: { enum: ['json'] },
            body: bodySchema,
          },
          required: ['type', 'method', 'bodyType', 'body'],
          additionalProperties: false,
        },
        ...(output !== undefined && {
          output: { type: 'object', properties: { type: { type: 'string' }, example: { type: 'object' } } },
        }),
      },
      required: ['input'],
    },
  });
  const candidates = schemasOf(operation, new URL('/', resourceUrl).href).map(declare);
  const declaration = candidates.find((candidate) => bytesOf(candidate) <= DECLARATION_MAX_BYTES) ?? candidates.at(-1);
  return { [BAZAAR]: declaration };
}

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';
const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;

/** The example, its lists cut to as many items as there is room for; an input that the operation takes. */
function shortExample(operation: Operation): unknown {
  const { example } = operation;
  if (!isJsonObject(example)) return example;
  const lists = Object.values(example).filter(Array.isArray);
  for (let items = Math.max(0, ...lists.map(({ length }) => length)); items >= 0; items -= 1) {
    const cut = Object.fromEntries(
      Object.entries(example).map(([name, value]) => [name, Array.isArray(value) ? value.slice(0, items) : value]),
    );
    if (bytesOf(cut) <= INPUT_EXAMPLE_MAX_BYTES && validate(operation, cut).ok) return cut;
  }
  return undefined;
}

/** The input's schema, and what is left of it with ever fewer levels, with descriptions and without. */
function schemasOf({ input }: Operation, whereItIsInFull: string): readonly JsonObject[] {
  const full = without(z.toJSONSchema(input, { io: 'input' }) as JsonObject, '$schema');
  const description = `Shortened; in full at ${whereItIsInFull}`;
  const levels = Array.from({ length: MAX_LEVELS }, (_, index) => MAX_LEVELS - index);
  const outlines = levels.flatMap((depth) =>
    [true, false].map((described) => ({ description, ...outline(full, { root: full, depth, described }) })),
  );
  return isJsonObject(full['$defs']) ? outlines : [full, ...outlines];
}

interface Cut {
  readonly root: JsonObject;
  readonly depth: number;
  readonly described: boolean;
}

/** A schema that takes all that `schema` takes, and may take more: references resolved, nothing below `depth` levels. */
function outline(schema: unknown, cut: Cut): JsonObject {
  if (!isJsonObject(schema)) return {};
  const { $ref, description, properties, items, additionalProperties, oneOf, anyOf, required } = schema;
  if (typeof $ref === 'string') return outline(definition($ref, cut.root), cut);
  const described = cut.described && description !== undefined ? { description } : {};
  const options = oneOf ?? anyOf;
  if (Array.isArray(options)) {
    // One-of would have to tell apart what may look the same by now.
    const kinds = new Map(options.map((option) => outline(option, cut)).map((kind) => [JSON.stringify(kind), kind]));
    return kinds.size === 1
      ? { ...described, ...[...kinds.values()][0] }
      : { ...described, anyOf: [...kinds.values()] };
  }
  if (cut.depth === 0) return { ...described, ...rules(schema, KINDS) };
  const deeper = { ...cut, depth: cut.depth - 1 };
  return {
    ...described,
    ...rules(schema, RULES),
    ...(isJsonObject(properties) && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, outline(part, deeper)])),
    }),
    ...(items !== undefined && { items: outline(items, deeper) }),
    ...(required !== undefined && { required }),
    ...(additionalProperties === false && { additionalProperties }),
  };
}

/** What is told of a value; whatever else a schema says would only forbid more. */
const KINDS = ['type', 'enum', 'const'];
const RULES = [...KINDS, 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern'];

/** Without the bounds of integers that JSON can say exactly, which all have. */
function rules(schema: JsonObject, names: readonly string[]): JsonObject {
  const told = names.filter((name) => name in schema && Math.abs(Number(schema[name])) !== Number.MAX_SAFE_INTEGER);
  return Object.fromEntries(told.map((name) => [name, schema[name]]));
}

const without = (record: JsonObject, name: string): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([key]) => key !== name));

function definition(reference: string, root: JsonObject): unknown {
  const name = reference.slice('#/$defs/'.length);
  return isJsonObject(root['$defs']) ? root['$defs'][name] : undefined;
}

/** The same in the words of x402 v1, where discovery had no specification: `outputSchema` of an entry of `accepts`. */
export function outputSchemaOf(extensions: Record<string, unknown>): JsonObject | undefined {
  const declared = extensions[BAZAAR];
  const bodySchema = ['schema', 'properties', 'input', 'properties', 'body'].reduce<unknown>(
    (value, name) => (isJsonObject(value) ? value[name] : undefined),
    declared,
  );
  if (!isJsonObject(declared) || !isJsonObject(declared['info']) || !isJsonObject(bodySchema)) return undefined;
  const { input, output } = declared['info'];
  if (!isJsonObject(input)) return undefined;
  return {
    input: { ...without(input, 'body'), bodyFields: fieldsOf(bodySchema), discoverable: true },
    ...(isJsonObject(output) && { output: output['example'] }),
  };
}

/** The fields of a body; where it has several forms, those of all of them, and a field that differs is any of what it is there. */
function fieldsOf({ anyOf, properties }: JsonObject): JsonObject {
  const forms: readonly unknown[] = Array.isArray(anyOf) ? anyOf : [{ properties }];
  const fields = new Map<string, Map<string, unknown>>();
  for (const form of forms) {
    if (!isJsonObject(form) || !isJsonObject(form['properties'])) continue;
    for (const [name, schema] of Object.entries(form['properties'])) {
      fields.set(name, (fields.get(name) ?? new Map<string, unknown>()).set(JSON.stringify(schema), schema));
    }
  }
  return Object.fromEntries(
    Array.from(fields, ([name, kinds]) => [
      name,
      kinds.size === 1 ? [...kinds.values()][0] : { anyOf: [...kinds.values()] },
    ]),
  );
}
