/**
 * Writes src/engines/model-catalog.generated.ts from two pinned packages that are not dependencies: get them with
 * `npm pack @earendil-works/pi-ai@1.6.0 @mariozechner/pi-ai@0.73.1`, and name the two files. It refuses other ones.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { ModelEntry, ModelTable } from '../src/engines/model-catalog.ts';
import { ADDITIONS, CORRECTIONS, INPUT_LIMITS, THINKING_BUDGETS } from './model-facts.ts';

const OUTPUT = 'src/engines/model-catalog.generated.ts';

const CURRENT = {
  name: '@earendil-works/pi-ai',
  version: '1.6.0',
  integrity: 'sha512-9hL+eygFDEiFp//cydeUfmFsKmEqpmvsNPb10Y1W8+m5K9O+sx1hMStfu6nukrBD5sl6mP4RykCYBBNEgsVLfw==',
};

/** The same project's last release under its first name. It still lists models that are withdrawn by now, and asked for all the same. */
const FORMER = {
  name: '@mariozechner/pi-ai',
  version: '0.73.1',
  integrity: 'sha512-Jh4lXawZYuC83HzSIYuVum9NBqJD49i4JOt3H96cGW/924cwJMOyUs1Mv/e4QPzTXnzrqMoGviNQnvGgSu1LSg==',
  /** When it was published; its data bear no date. */
  as_of: '2026-05-08',
};

/** Who sells models of his own. `openai-codex` is OpenAI's, with limits of its own. */
const PROVIDERS = 'openai openai-codex anthropic google xai mistral deepseek meta moonshotai zai minimax xiaomi'.split(
  ' ',
);
/** Mistral serves models of others, too. */
const OTHERS_AT_MISTRAL = /^(?:deepseek|glm|zai)-/;
/** Withdrawn so long ago that the sources contradict each other. */
const FORGOTTEN = /^(?:gemini-1\.5|grok-2|grok-beta|grok-vision)/;

/** From this share on the output has no bound of its own: it may be whatever the input leaves of the window. */
const OUTPUT_IS_WHATEVER_IS_LEFT_SHARE = 0.75;

const chatModel = z.object({
  id: z.string(),
  contextWindow: z.int().positive(),
  maxTokens: z.int().positive(),
  input: z.array(z.string()),
});
type ChatModel = z.infer<typeof chatModel>;
const manifest = z.object({ generatedAt: z.iso.datetime(), files: z.record(z.string(), z.string()) });
const groups = z.record(z.string(), z.record(z.string(), z.looseObject({ type: z.string() })));
const formerModels = z.object({ MODELS: z.record(z.string(), z.record(z.string(), chatModel)) });

const run = promisify(execFile);

async function unpacked<T>(
  tarball: string,
  { name, integrity }: { name: string; integrity: string },
  read: (folder: string) => Promise<T>,
): Promise<T> {
  const digest = createHash('sha512')
    .update(await readFile(tarball))
    .digest('base64');
  if (`sha512-${digest}` !== integrity) throw new Error(`${tarball} is not the pinned ${name}`);
  const folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-models-'));
  try {
    await run('tar', ['-xzf', tarball, '-C', folder]);
    return await read(join(folder, 'package'));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function readCurrent(folder: string): Promise<{ as_of: string; models: ModelEntry[] }> {
  const data = join(folder, 'dist/providers/data');
  const json = async (file: string): Promise<unknown> => JSON.parse(await readFile(join(data, file), 'utf8'));
  const { generatedAt } = manifest.parse(await json('.manifest.json'));
  const models: ModelEntry[] = [];
  for (const provider of PROVIDERS) {
    const all = Object.values(groups.parse(await json(`${provider}.json`))).flatMap((group) => Object.values(group));
    const chat = all.filter(({ type }) => type === 'chat').map((model) => chatModel.parse(model));
    models.push(...chat.map((model) => entryOf(model, provider)));
  }
  return { as_of: generatedAt.slice(0, 'YYYY-MM-DD'.length), models };
}

async function readFormer(folder: string): Promise<ModelEntry[]> {
  const file: unknown = await import(pathToFileURL(join(folder, 'dist/models.generated.js')).href);
  const { MODELS } = formerModels.parse(file);
  return PROVIDERS.flatMap((provider) =>
    Object.values(MODELS[provider] ?? {})
      .filter(({ id }) => !FORGOTTEN.test(id))
      .map((model) => ({ ...entryOf(model, provider), as_of: FORMER.as_of })),
  );
}

const entryOf = ({ id, contextWindow, maxTokens, input }: ChatModel, provider: string): ModelEntry => ({
  id,
  provider,
  context_window: contextWindow,
  max_output_tokens: maxTokens,
  supports_vision: input.includes('image'),
});

const keyOf = ({ provider, id }: ModelEntry): string => `${provider} ${id}`;

function corrected(models: readonly ModelEntry[]): ModelEntry[] {
  const byKey = new Map(models.map((model) => [keyOf(model), model]));
  for (const { provider, ids, fields } of CORRECTIONS) {
    for (const id of ids) {
      const key = `${provider} ${id}`;
      const model = byKey.get(key);
      // A correction that has become needless must not outlive its reason.
      if (!model) throw new Error(`a correction names ${key}, which the source does not have`);
      const right = { ...model, ...fields };
      if (JSON.stringify(right) === JSON.stringify(model)) throw new Error(`the source has put ${key} right itself`);
      byKey.set(key, right);
    }
  }
  for (const { documented: _, ...model } of ADDITIONS) {
    if (byKey.has(keyOf(model))) throw new Error(`the source has ${keyOf(model)} itself by now`);
    byKey.set(keyOf(model), model);
  }
  return [...byKey.values()];
}

function completed(model: ModelEntry): ModelEntry {
  const { id, provider, context_window, max_output_tokens, supports_vision, as_of } = model;
  const limit = INPUT_LIMITS.find((each) => each.provider === provider && each.applies(model));
  const shared = max_output_tokens >= context_window * OUTPUT_IS_WHATEVER_IS_LEFT_SHARE;
  const input_limit = limit?.input_limit(model) ?? (shared ? context_window : undefined);
  const thinking = THINKING_BUDGETS.find((each) => each.provider === provider && each.id.test(id));
  return {
    id,
    ...(provider !== undefined && { provider }),
    context_window,
    max_output_tokens,
    ...(input_limit !== undefined && { input_limit }),
    ...(thinking && { thinking_budgets: thinking.budgets }),
    ...(supports_vision !== undefined && { supports_vision }),
    ...(as_of !== undefined && { as_of }),
  };
}

const [currentTarball = '', formerTarball = ''] = process.argv.slice(2);
const current = await unpacked(currentTarball, CURRENT, readCurrent);
const known = new Set(current.models.map(keyOf));
const former = (await unpacked(formerTarball, FORMER, readFormer)).filter((model) => !known.has(keyOf(model)));
const models = corrected([...current.models, ...former])
  .filter(({ provider, id }) => provider !== 'mistral' || !OTHERS_AT_MISTRAL.test(id))
  .map(completed);
const table: ModelTable = { as_of: current.as_of, source: `${CURRENT.name} ${CURRENT.version}`, models };

const text = `/**
 * Generated by scripts/generate-models.ts; do not edit. The limits of ${CURRENT.name} ${CURRENT.version} (MIT), whose own manifest says that
 * its data were made on ${current.as_of}; what has another \`as_of\` is of ${FORMER.name} ${FORMER.version} (MIT), published then. Corrections,
 * input limits and thinking budgets: scripts/model-facts.ts.
 */
import type { ModelTable } from './model-catalog.ts';

export const MODEL_TABLE: ModelTable = ${JSON.stringify(table)};
`;
await writeFile(OUTPUT, text);
await run('npx', ['oxfmt', OUTPUT]);
process.stdout.write(`${models.length} models as of ${table.as_of} -> ${OUTPUT}\n`);
