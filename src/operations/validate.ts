/**
 * Checks a parsed JSON value against a zod schema and hands it back as it was supplied, or says in one problem what is
 * wrong and where. It never fills in or copies, and a detail never repeats what the caller sent.
 */
import type { z } from 'zod';
import { jsonPointer, type Result } from '../problem.ts';

/** The value itself where the schema accepts it, else an `invalid_request` problem for the first thing found wrong. */
export function validate<Input>(schema: z.ZodType<Input>, value: unknown): Result<Input> {
  const result = schema.safeParse(value);
  if (isAccepted(value, result)) return { ok: true, value };
  const [first] = result.error?.issues ?? [];
  const { path, detail } = first ? describeIssue(first, value) : { path: [], detail: 'it does not fit the schema' };
  return { ok: false, problem: { code: 'invalid_request', path: jsonPointer(path), detail } };
}

/** The schemas of this house do not transform, so a value that one accepts already is what it describes. */
function isAccepted<Input>(_value: unknown, result: z.ZodSafeParseResult<Input>): _value is Input {
  return result.success;
}

interface Finding {
  readonly path: readonly PropertyKey[];
  readonly detail: string;
}

type Issue = z.core.$ZodIssue;

function describeIssue(issue: Issue, value: unknown): Finding {
  const { path } = issue;
  switch (issue.code) {
    case 'unrecognized_keys':
      return { path: [...path, ...issue.keys.slice(0, 1)], detail: 'no field of this name is known here' };
    case 'invalid_type':
      return isAbsent(value, path)
        ? { path, detail: 'this field is required' }
        : { path, detail: `expected ${TYPE_NAMES[issue.expected] ?? issue.expected}` };
    case 'invalid_value':
      return isAbsent(value, path)
        ? { path, detail: 'this field is required' }
        : { path, detail: `expected ${issue.values.map(String).join(' or ')}` };
    case 'too_big':
      return {
        path,
        detail: `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${unit(issue.origin)}`,
      };
    case 'too_small':
      return {
        path,
        detail: `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unit(issue.origin)}`,
      };
    case 'invalid_union':
      return describeUnion(issue, value);
    // The schemas of this house write their own messages, without the value.
    case 'custom':
      return { path, detail: issue.message };
    case 'invalid_format':
      return { path, detail: `expected the form ${issue.format}` };
    case 'not_multiple_of':
      return { path, detail: `expected a multiple of ${issue.divisor}` };
    case 'invalid_key':
    case 'invalid_element':
      return { path, detail: 'it does not fit the schema' };
  }
}

/** Of several forms the one that fits deepest is taken for the one that was meant. */
function describeUnion(issue: Extract<Issue, { code: 'invalid_union' }>, value: unknown): Finding {
  const inside = issue.errors
    .flatMap((branch) => branch.slice(0, 1))
    .map((first) => describeIssue({ ...first, path: [...issue.path, ...first.path] }, value))
    .toSorted((a, b) => b.path.length - a.path.length);
  const [deepest] = inside;
  return deepest && deepest.path.length > issue.path.length
    ? deepest
    : { path: issue.path, detail: 'it has none of the accepted forms' };
}

function isAbsent(value: unknown, path: readonly PropertyKey[]): boolean {
  let here: unknown = value;
  for (const key of path) here = here instanceof Object ? Reflect.get(here, key) : undefined;
  return here === undefined;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  int: 'an integer',
  number: 'a number',
  string: 'text',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
};

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' items' };

const unit = (origin: string): string => UNITS[origin] ?? '';
