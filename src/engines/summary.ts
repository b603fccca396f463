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
import { type Material, materialOf, MAX_SUMMARY_CHARS, merge, sayingOf } from './summary/merge.ts';
import { rankFacts } from './summary/rank.ts';
import { read } from './summary/reading.ts';

/** Raised with every change of the text for the same request. */
export const SUMMARIZER_VERSION = 1;

export const deterministicSummarizer = {
  name: `deterministic/${SUMMARIZER_VERSION}`,
  deterministic: true,
  summarize,
} satisfies Summarizer;

async function summarize({ head, previousSummary, ...room }: SummaryRequest): Promise<string> {
  const reading = await read(head, room.pause);
  const bullets = await bulletsOf(reading, room.pause);
  const news: Material = { bullets, facts: await rankFacts(reading, room.pause) };
  const fresh = isEmpty(news) ? undefined : await fit(news, room);
  if (previousSummary === undefined || previousSummary.trim() === '') return fresh?.text ?? '';

  let summary = previousSummary;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    await room.pause();
    const earlier = materialOf(summary);
    const stands =
      summary.length <= MAX_SUMMARY_CHARS && isSummary(summary) && room.estimator.text(summary) <= room.budgetTokens;
    if (stands && (fresh === undefined || says(earlier, summary, fresh))) return summary;
    const material = merge(earlier, news);
    const next = isEmpty(material) ? '' : ((await fit(material, room))?.text ?? '');
    if (next === summary) return summary;
    summary = next;
  }
  return summary;
}

/** Merging again what was merged hardly ever changes more than once: what found no room makes some for others. */
const MAX_ROUNDS = 8;

const isEmpty = ({ bullets, facts }: Material): boolean =>
  facts.length === 0 && SECTIONS.every((section) => bullets[section].length === 0);

/** Whether an earlier summary says already all that the new part comes to. */
function says(earlier: Material, text: string, { bullets, facts }: Choice): boolean {
  const said = mentions([text]);
  const isSaid = sayingOf(SECTIONS.flatMap((section) => earlier.bullets[section]));
  const isDone = sayingOf(earlier.bullets.done);
  return (
    facts.every((fact) => said.has(fact.text)) &&
    // That something is done now is news, though it was said before.
    SECTIONS.every((section) => bullets[section].every(section === 'done' ? isDone : isSaid))
  );
}
