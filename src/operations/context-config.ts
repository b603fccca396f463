/**
 * What an operator may decide about the context operations: their configuration and his own table of models, as the text
 * of a JSON file each. A text is taken whole or not at all, and what is said about a bad one never repeats its values.
 */
import { z } from 'zod';
import { DEFAULT_CONFIG, type ContextConfig } from '../engines/config.ts';
import { MODEL_TABLE } from '../engines/model-catalog.generated.ts';
import {
  createCatalog,
  THINKING_LEVELS,
  type ModelCatalog,
  type ModelEntry,
  type ModelTable,
  type ThinkingLevel,
} from '../engines/model-catalog.ts';
import type { Problem } from '../problem.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';
import { findFaults, type Fault } from './validate.ts';

/** What the context operations go by. Immutable: a change gives another one. */
export interface ContextInForce {
  readonly config: ContextConfig;
  readonly catalog: ModelCatalog;
}

/** The built-in table, with the operator's on top. */
export const catalogWith = (overrides?: ModelTable): ModelCatalog => createCatalog(MODEL_TABLE, overrides);

/** What holds where nobody has decided. */
export const CONTEXT_DEFAULTS: ContextInForce = { config: DEFAULT_CONFIG, catalog: catalogWith() };

/** A value, or at most MAX_FAULTS of what is wrong with its text. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** As many as a person mends in one go. */
const MAX_FAULTS = 20;

const DAY_SECS = 86_400;
/** Past 2^31 - 1 ms a timer fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

const tokens = z.int().min(0);

const configSchema = z.strictObject({
  reserved_tokens_cap: tokens.exactOptional(),
  reserved_pct: z.int().min(0).max(100).exactOptional(),
  tail_turns: z.int().min(0).exactOptional(),
  protect_recent_tokens: tokens.exactOptional(),
  min_free_tokens: tokens.exactOptional(),
  max_output_chars: z.int().min(0).exactOptional(),
  lease_ttl_secs: z.int().min(1).max(DAY_SECS).exactOptional(),
  allow_fallback_limits: z.boolean().exactOptional(),
  summarizer_timeout_ms: z.int().min(1).max(MAX_TIMER_MS).exactOptional(),
} satisfies Record<keyof ContextConfig, z.ZodType>);

/** The configuration file, any field of which may be left out. */
export function parseContextConfig(source: Uint8Array | string): Parsed<ContextConfig> {
  const given = parse(configSchema, source);
  return given.ok ? { ok: true, value: { ...DEFAULT_CONFIG, ...given.value } } : given;
}

const MAX_NAME_CHARS = 200;
const MAX_MODELS = 10_000;

const name = z.string().min(1).max(MAX_NAME_CHARS);
const limit = z.int().min(1);
const level = tokens.exactOptional();

const modelSchema = z
  .strictObject({
    id: name,
    provider: name.exactOptional(),
    context_window: limit,
    max_output_tokens: limit,
    input_limit: limit.exactOptional(),
    thinking_budgets: z
      .strictObject(
        Object.fromEntries(THINKING_LEVELS.map((each) => [each, level])) as Record<ThinkingLevel, typeof level>,
      )
      .exactOptional(),
    supports_vision: z.boolean().exactOptional(),
  } satisfies Record<Exclude<keyof ModelEntry, 'as_of'>, z.ZodType>)
  .refine(({ max_output_tokens, context_window }) => max_output_tokens <= context_window, {
    path: ['max_output_tokens'],
    message: 'at most context_window',
  })
  .refine(({ input_limit = 0, context_window }) => input_limit <= context_window, {
    path: ['input_limit'],
    message: 'at most context_window',
  });

const modelsSchema = z.strictObject({
  as_of: z.iso.date(),
  models: z
    .array(modelSchema)
    .max(MAX_MODELS)
    .superRefine((models, context) => {
      const seen = new Set<string>();
      for (const [index, { id, provider }] of models.entries()) {
        const key = JSON.stringify([id, provider]).toLowerCase();
        if (seen.has(key)) {
          context.addIssue({ code: 'custom', path: [index], message: 'this id and provider are there already' });
        }
        seen.add(key);
      }
    }),
});

/** The operator's table of models. */
export function parseModelTable(source: Uint8Array | string): Parsed<ModelTable> {
  return parse(modelsSchema, source);
}

function parse<T>(schema: z.ZodType<T>, source: Uint8Array | string): Parsed<T> {
  const json = parseStrictJson(source);
  if (!json.ok) return { ok: false, faults: [faultOfText(json.problem)] };
  const parsed = schema.safeParse(json.value);
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, faults: findFaults(schema, json.value).slice(0, MAX_FAULTS) };
}

/** The code says it all; what a caller of the API is told about charges is not for an operator. */
function faultOfText(problem: Problem): Fault {
  const path = 'path' in problem ? (problem.path ?? '') : '';
  return { path, detail: 'offset' in problem ? `${problem.code} at offset ${problem.offset}` : problem.code };
}
