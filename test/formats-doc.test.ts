/** docs/formats.md names every format, every rule and every repair. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FORMATS } from '../src/transcript/formats/list.ts';

const FOLDER = 'src/transcript/formats';
const text = readFileSync('docs/formats.md', 'utf8');
const sources = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => readFileSync(`${FOLDER}/${file}`, 'utf8'))
  .join('\n');

it('names every format', () => {
  for (const { id } of FORMATS) expect(text).toContain(`| \`${id}\` |`);
});

it('names every rule that a check can name, and no other', () => {
  const RULE = '(?:bad|empty|missing|duplicate|lone|orphan|open|result|thinking|too|user|wrong)(?:-[a-z]+)+';
  const rulesIn = (where: string, quote: string): string[] =>
    [
      ...new Set(Array.from(where.matchAll(new RegExp(`${quote}(${RULE})${quote}`, 'g')), ([, rule]) => rule ?? '')),
    ].toSorted();
  const table = text.slice(text.indexOf('| rule |'));
  expect(rulesIn(table, '`')).toEqual(rulesIn(sources, "'"));
});
