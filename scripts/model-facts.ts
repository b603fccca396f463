/** What the model table's source gets wrong, lacks or does not say, by hand, each with the page that says it. Values only. */
import type { ModelEntry } from '../src/engines/model-catalog.ts';

/** OpenAI's models are described at `<this>/<id>`. */
const OPENAI = 'https://developers.openai.com/api/docs/models';

export interface Correction {
  readonly provider: string;
  readonly ids: readonly string[];
  readonly fields: Partial<ModelEntry>;
  readonly because: string;
  readonly documented: string;
}

export const CORRECTIONS: readonly Correction[] = [
  {
    provider: 'openai',
    ids: (
      'gpt-5.4 gpt-5.5 gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra ' +
      'gpt-6-astra gpt-6-luna gpt-6-sol gpt-6.1-sol gpt-6.1-terra gpt-6.2-astra gpt-6.2-sol'
    ).split(' '),
    fields: { context_window: 1_050_000 },
    because: 'the source has 272,000, from where on input costs more; the window is wider',
    documented: OPENAI,
  },
];

/** Models that are sold and that the source leaves out. */
export const ADDITIONS: readonly (ModelEntry & { readonly documented: string })[] = [
  {
    id: 'gpt-3.5-turbo',
    provider: 'openai',
    context_window: 16_385,
    max_output_tokens: 4_096,
    supports_vision: false,
    documented: `${OPENAI}/gpt-3.5-turbo`,
  },
  ...['gpt-oss-120b', 'gpt-oss-20b'].map((id) => ({
    id,
    provider: 'openai',
    context_window: 131_072,
    max_output_tokens: 131_072,
    supports_vision: false,
    documented: `${OPENAI}/${id}`,
  })),
];

export interface InputLimit {
  readonly provider: string;
  readonly applies: (model: ModelEntry) => boolean;
  readonly input_limit: (model: ModelEntry) => number;
  readonly documented: string;
}

/** The first that applies holds. */
export const INPUT_LIMITS: readonly InputLimit[] = [
  {
    provider: 'openai',
    // "A total context length of 400,000 tokens": 272,000 of input, 128,000 of reasoning and output.
    applies: ({ context_window }) => context_window === 400_000,
    input_limit: () => 272_000,
    documented: 'https://openai.com/index/introducing-gpt-5-for-developers/',
  },
  {
    provider: 'openai',
    applies: ({ context_window }) => context_window === 1_050_000,
    input_limit: () => 922_000,
    documented: OPENAI,
  },
  {
    provider: 'openai-codex',
    // What Codex calls the window is the input's part of the same 400,000.
    applies: ({ context_window }) => context_window === 272_000,
    input_limit: () => 272_000,
    documented: 'https://github.com/openai/codex/issues/2002',
  },
  {
    provider: 'google',
    // Google states an input and an output token limit, and they do not share a window.
    applies: () => true,
    input_limit: ({ context_window }) => context_window,
    documented: 'https://ai.google.dev/gemini-api/docs/models',
  },
];

export interface ThinkingBudgets {
  readonly provider: string;
  readonly id: RegExp;
  readonly budgets: NonNullable<ModelEntry['thinking_budgets']>;
  readonly documented: string;
}

/**
 * Only where a level comes to a number of tokens. OpenAI's efforts, the levels of Gemini from 3 on and the adaptive thinking of
 * Claude from 4.6 on do not, so those models have none.
 */
export const THINKING_BUDGETS: readonly ThinkingBudgets[] = [
  {
    provider: 'google',
    id: /^gemini-2\.5-(?:pro|flash)/,
    budgets: { minimal: 1_024, low: 1_024, medium: 8_192, high: 24_576 },
    documented: 'https://ai.google.dev/gemini-api/docs/openai (Thinking)',
  },
  {
    provider: 'anthropic',
    id: /^claude-(?:3-7-sonnet|(?:opus|sonnet|haiku)-4(?:-[015])?(?:-20[0-9]{6})?$)/,
    // Anthropic takes budget_tokens and knows no levels; this is how the client behind the source spends them.
    budgets: { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384, xhigh: 16_384 },
    documented:
      '@earendil-works/pi-ai 1.6.0, DEFAULT_THINKING_BUDGETS and clampReasoning in dist/api/simple-options.js',
  },
];
