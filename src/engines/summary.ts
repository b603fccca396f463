/**
 * The summariser without a model: what was asked, decided and done in the conversation's own words, and as many of the
 * strings that later turns need as the budget holds. No clock, no I/O, no judgement of meaning; the same request gives
 * the same text on every machine.
 */
import type { Summarizer, SummaryRequest } from './summarizer.ts';
import { bulletsOf } from './summary/bullets.ts';
import { isSummary, SECTIONS } from './summary/document.ts';
import { type Choice, fit } from './summary/fit.ts';
import { mentions } from './summary/mentions.ts';
import { type Material, materialOf, merge } from './summary/merge.ts';
import { rankFacts } from './summary/rank.ts';
import { read } from './summary/reading.ts';
import { keyOf } from './summary/text.ts';

/** Raised with every change of the text for the same request. */
export const SUMMARIZER_VERSION = 1;

export const deterministicSummarizer: Summarizer = {
  name: `deterministic/${SUMMARIZER_VERSION}`,
  deterministic: true,
  summarize,
};

async function summarize({ head, previousSummary, ...room }: SummaryRequest): Promise<string> {
  const reading = await read(head, room.pause);
  const news: Material = { bullets: bulletsOf(reading), facts: rankFacts(reading) };
  await room.pause();
  const fresh = isEmpty(news) ? undefined : await fit(news, room);
  if (previousSummary === undefined || previousSummary.trim() === '') return fresh?.text ?? '';

  const earlier = materialOf(previousSummary);
  const stands = isSummary(previousSummary) && room.estimator.text(previousSummary) <= room.budgetTokens;
  if (stands && (fresh === undefined || says(earlier, previousSummary, fresh))) return previousSummary;
  const material = merge(earlier, news);
  return isEmpty(material) ? '' : ((await fit(material, room))?.text ?? '');
}

const isEmpty = ({ bullets, facts }: Material): boolean =>
  facts.length === 0 && SECTIONS.every((section) => bullets[section].length === 0);

/** Whether an earlier summary says already all that the new part comes to. */
function says(earlier: Material, text: string, { bullets, facts }: Choice): boolean {
  const said = mentions([text]);
  return (
    facts.every((fact) => said.has(fact.text)) &&
    SECTIONS.every((section) => {
      const keys = new Set(earlier.bullets[section].map(keyOf));
      return bullets[section].every((bullet) => keys.has(keyOf(bullet)));
    })
  );
}
