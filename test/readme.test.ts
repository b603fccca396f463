/** What the README says of the context operations is what holds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DEFAULT_CONFIG } from '../src/engines/config.ts';
import { parseModelTable } from '../src/operations/context-config.ts';

const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
const section = readme.split('### Context operations')[1]?.split('\n## ')[0] ?? '';

it('lists every default of CONTEXT_CONFIG', () => {
  const rows = Array.from(section.matchAll(/^\| `(\w+)` \| (\w+) \|/gm), ([, name, value]) => [name, value]);
  expect(rows).toEqual(Object.entries(DEFAULT_CONFIG).map(([name, value]) => [name, String(value)]));
});

it('shows a MODEL_CATALOG that is taken', () => {
  const [, example = ''] = /```json\n(.*?)```/s.exec(section) ?? [];
  expect(parseModelTable(example)).toMatchObject({ ok: true, value: { models: [{ id: 'house-model' }] } });
});
