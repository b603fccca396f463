/** TEMPORARY; replaced by the branch `summary`. */
import type { Summarizer } from './summarizer.ts';
export const deterministicSummarizer: Summarizer = {
  name: 'temporary',
  deterministic: true,
  summarize: async ({ head, budgetTokens, estimator }) => {
    let text = `## Goal ${head.length}`;
    while (estimator.text(text) > budgetTokens) text = text.slice(0, text.length >> 1);
    return text;
  },
};
