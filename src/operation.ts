/**
 * The Operation record: one plain definition that every surface reads. Nothing about an operation is written twice.
 * This file holds the type and its rules; it does no I/O and knows no surface.
 */
import type { z } from 'zod';
import type { ContextConfig } from './engines/config.ts';
import type { ModelCatalog } from './engines/model-catalog.ts';
import type { Summarizer } from './engines/summarizer.ts';
import type { InvalidRequestCode, JsonPointer, Problem } from './problem.ts';

/**
 * What running an operation came to. `billable` is the only place that says whether the caller pays.
 * An answer that is not billable (for example `unsupported`) is still an answer: it is delivered, and nothing is settled.
 */
export type Outcome<Data> =
  | {
      readonly kind: 'answer';
      readonly billable: boolean;
      /** Whether the same input and the versions in `data` always give the same data; true where it is not said. */
      readonly reproducible?: boolean;
      readonly data: Data;
    }
  | { readonly kind: 'problem'; readonly billable: false; readonly problem: Problem };

/** What the operator decides and not the caller; it stays the same for a whole call. */
export interface RunContext {
  readonly config: ContextConfig;
  readonly catalog: ModelCatalog;
  readonly summarizer: Summarizer;
  readonly leases: Leases;
}

/** Sees to it that of the calls of one caller under one key only one works at a time, on whatever machine. */
export interface Leases {
  /** What `work` gives, or undefined where the key is held, or where nobody can say whether it is. */
  hold<T>(key: string, ttlSeconds: number, work: () => Promise<T>): Promise<T | undefined>;
}

/** Every answer names what it depends on; the evidence repeats it. */
export interface AnswerData {
  readonly versions: Readonly<Record<string, unknown>>;
}

/** `Input` is the JSON as the caller supplied it: schemas validate, they never fill in or transform. */
export interface Operation<Input = unknown, Data extends AnswerData = AnswerData> {
  /** Path segment, MCP tool name and file name, e.g. `conversation-prune`. */
  readonly id: string;
  /** Semantic version of the engine. Raise it whenever the same input could give other bytes. */
  readonly version: string;
  readonly title: string;
  /** One sentence. */
  readonly summary: string;
  /** Plain text, a few sentences. */
  readonly description: string;
  /** What the price buys, one sentence. */
  readonly roi: string;
  readonly audience: string;
  /** Atomic USDC units (see PRICE_DECIMALS) as an integer string: `'5000'` is 0.005 USDC. */
  readonly price: string;
  readonly input: z.ZodType<Input>;
  /** What a refused input is called; `invalid_request` by default. */
  readonly invalidRequestCode?: InvalidRequestCode;
  /** What stands in `data`; tests hold every kind of answer against it. */
  readonly output: z.ZodType;
  /** The engine. Deterministic operations are pure: the same input and context give the same data. */
  run(input: Input, context: RunContext): Promise<Outcome<Data>>;
  /** Whether the order of keys in the input can change the answer; the digest of the input does not hold it. */
  readonly dependsOnKeyOrder?: true;
  /** INPUT only; the answer of the free sample is computed by `run`, so it cannot lie. */
  readonly example: Input;
}

/** USDC has six decimals on every chain. */
export const PRICE_DECIMALS = 6;

/** Fits every amount that 64 bits hold. */
export const PRICE = /^[1-9][0-9]{0,17}$/;
const ID = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const SUMMARY_MAX_CHARS = 120;
/** Facilitators refuse a resource with a longer one, silently (x402 issue 2993). */
const DESCRIPTION_MAX_CHARS = 500;

/**
 * Checks the rules that the type cannot express and returns the record unchanged.
 *
 * @throws RangeError for an id that is no kebab-case name, a price that is no positive integer of atomic units, or a text too long.
 */
export function defineOperation<Input, Data extends AnswerData>(
  operation: Operation<Input, Data>,
): Operation<Input, Data> {
  const { id, price, summary, description } = operation;
  if (!ID.test(id)) throw new RangeError(`operation id must be kebab-case: ${id}`);
  if (!PRICE.test(price)) throw new RangeError(`price of ${id} must be atomic units: ${price}`);
  if (summary.length > SUMMARY_MAX_CHARS) throw new RangeError(`summary of ${id} is too long`);
  if (description.length > DESCRIPTION_MAX_CHARS) throw new RangeError(`description of ${id} is too long`);
  return operation;
}

/** The problem of an input that the operation refuses. */
export function refusedInput(
  { invalidRequestCode: code = 'invalid_request' }: Pick<Operation, 'invalidRequestCode'>,
  path: JsonPointer,
  detail: string,
): Problem {
  return { code, path, detail };
}

export const BODY_REQUIRED = 'a JSON body is required';
