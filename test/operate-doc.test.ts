/** docs/operate.md names every setting. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('names every variable that is read', () => {
  const names = Array.from(
    readFileSync('src/runtime/env.ts', 'utf8').matchAll(/^\s+([A-Z]+(?:_[A-Z]+)*): /gm),
    ([, name]) => name,
  );
  const page = readFileSync('docs/operate.md', 'utf8');
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !page.includes(name ?? ''))).toEqual([]);
});
