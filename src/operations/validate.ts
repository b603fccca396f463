/**
 * Checks a parsed JSON value against a zod schema and hands it back as it was supplied, or says in one problem what is
 * wrong and where. It never fills in or copies, and a detail never repeats what the caller sent.
 */
import type { z } from 'zod';
import { refusedInput, type Operation } from '../operation.ts';
import { type JsonPointer, jsonPointer, type Problem, type Result } from '../problem.ts';

/** What decides whether an input is taken, and what it is called if not. */
export type Validator<Input> = Pick<Operation<Input>, 'input' | 'invalidRequestCode'>;

/** The value itself where the schema accepts it, else the problem of the first thing found wrong. */
export function validate<Input>(validator: Validator<Input>, value: unknown): Result<Input> {
  const result = validator.input.safeParse(value, FIRST_FAULT);
  if (isAccepted(value, result)) return { ok: true, value };
  const [first] = result.error?.issues ?? [];
  return { ok: false, problem: first ? toProblem(first, value, validator) : refusedInput(validator, '', UNFIT) };
}

/** Everything found wrong with a value, in the schema's order; for what an operator writes, and has to mend in one go. */
export function findFaults(schema: z.ZodType, value: unknown): readonly Fault[] {
  const issues: readonly Issue[] = schema.safeParse(value, { error: () => '' }).error?.issues ?? [];
  return issues.flatMap(oneEach).map((issue) => {
    const { path, detail } = describeIssue(issue, value);
    return { path: jsonPointer(path), detail };
  });
}

const oneEach = (issue: Issue): readonly Issue[] =>
  issue.code === 'unrecognized_keys' ? issue.keys.map((key) => ({ ...issue, keys: [key] })) : [issue];

/** Where, and what; never what stands there. */
export interface Fault {
  readonly path: JsonPointer;
  readonly detail: string;
}

/**
 * However many faults a body has, it costs no more than the first. zod keeps this setting for its own `validate`, which
 * finds no path; a test holds it. A message left empty is one that no schema wrote itself.
 */
const FIRST_FAULT = { abortEarly: true, error: () => '' };

function toProblem(issue: Issue, value: unknown, validator: Pick<Operation, 'invalidRequestCode'>): Problem {
  const limit_bytes: unknown = issue.code === 'custom' ? issue.params?.['limit_bytes'] : undefined;
  if (typeof limit_bytes === 'number') {
    return { code: 'payload_too_large', limit_bytes, path: jsonPointer(issue.path) };
  }
  const { path, detail } = describeIssue(issue, value);
  return refusedInput(validator, jsonPointer(path), detail);
}

/** In a schema's own check: the text at `path` is over a bound, which is 413 and not 400. */
export function addTooLarge(context: z.RefinementCtx, path: (string | number)[], limit_bytes: number): void {
  context.addIssue({ code: 'custom', path, params: { limit_bytes } });
}

/** The schemas of this house do not transform, so a value that one accepts already is what it describes. */
function isAccepted<Input>(_value: unknown, result: z.ZodSafeParseResult<Input>): _value is Input {
  return result.success;
}

const REQUIRED = 'this field is required';
const UNFIT = 'it does not fit the schema';

interface Finding {
  readonly path: readonly PropertyKey[];
  readonly detail: string;
}

type Issue = z.core.$ZodIssue;

function describeIssue(issue: Issue, value: unknown): Finding {
  const { path } = issue;
  if (issue.message) return { path, detail: issue.message };
  switch (issue.code) {
    case 'unrecognized_keys':
      return { path: [...path, ...issue.keys.slice(0, 1)], detail: 'no field of this name is known here' };
    case 'invalid_type':
      return isAbsent(value, path)
        ? { path, detail: REQUIRED }
        : { path, detail: `expected ${TYPE_NAMES[issue.expected] ?? issue.expected}` };
    case 'invalid_value':
      return isAbsent(value, path)
        ? { path, detail: REQUIRED }
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
    case 'invalid_format':
      return { path, detail: `expected the form ${issue.format}` };
    case 'not_multiple_of':
      return { path, detail: `expected a multiple of ${issue.divisor}` };
    case 'custom':
    case 'invalid_key':
    case 'invalid_element':
      return { path, detail: UNFIT };
  }
}

/** Where no field tells the forms apart, the one that fits deepest is taken for the one that was meant. */
function describeUnion(issue: Extract<Issue, { code: 'invalid_union' }>, value: unknown): Finding {
  const { path } = issue;
  if ('options' in issue && issue.options) {
    const detail = isAbsent(value, path)
      ? REQUIRED
      : `expected ${issue.options
          .filter((option) => option !== undefined)
          .map(String)
          .join(' or ')}`;
    return { path, detail };
  }
  const inside = issue.errors
    .flatMap((branch) => branch.slice(0, 1))
    .map((first) => describeIssue({ ...first, path: [...path, ...first.path] }, value))
    .toSorted((a, b) => b.path.length - a.path.length);
  const [deepest] = inside;
  return deepest && deepest.path.length > path.length ? deepest : { path, detail: 'it has none of the accepted forms' };
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
