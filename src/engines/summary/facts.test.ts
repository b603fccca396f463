import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eachFact, isFact } from './facts.ts';
import { mentions } from './mentions.ts';

function factsOf(text: string): string[] {
  const found: string[] = [];
  eachFact(text, (fact) => found.push(fact));
  return found;
}

describe('facts', () => {
  it.each([
    ['see src/gate.ts, and ./a/b.', ['src/gate.ts', './a/b']],
    ['at https://x.org/a?b=1#c.', ['https://x.org/a?b=1#c']],
    ['write to jo.doe+x@mail.example.com!', ['jo.doe+x@mail.example.com']],
    ['call getUserById(user_id)', ['getUserById', 'user_id']],
    ['v2.1 or 1.22.3-rc.1', ['v2.1', '1.22.3-rc.1']],
    ['order #W2586676 of 3482 at $481.50', ['W2586676', '3482', '$481.50']],
    ['commit 9367cf0, error TS2345, ENOENT', ['9367cf0', 'TS2345', 'ENOENT']],
    ['NODE_ENV=production', ['NODE_ENV']],
    ['main.ts:120:7', ['main.ts', '120']],
    ['请修改src/支付/gate.ts文件', ['/gate.ts']],
    ['12→const retryMs = 500;', ['retryMs', '500']],
    ['\u001b[1mdone\u001b[22m in file.ts', ['file.ts']],
    [String.raw`{\n\t\tuserName: \tmain.ts`, ['userName', 'main.ts']],
    ['</system-reminder>', []],
    ['Plain words, and Names; 12 of them... // really', []],
    ['', []],
  ])('of %j', (text, facts) => {
    expect(factsOf(text)).toEqual(facts);
  });

  it('are not taken from data', () => {
    expect(factsOf('QUJDRA'.repeat(100))).toEqual([]);
  });

  it('each stand in the text, with no letter, digit or _ beside them, and are facts themselves', () => {
    const piece = fc.constantFrom(
      'a',
      'B',
      '1',
      '/',
      '.',
      '-',
      '_',
      '$',
      '@',
      ':',
      '=',
      '\\',
      ' ',
      '\n',
      '日',
      '<',
      '>',
      '12:',
      '://',
      '..',
    );
    const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, (said) => {
        for (const fact of factsOf(said)) {
          const places = Array.from({ length: said.length }, (_, at) => at).filter((at) => said.startsWith(fact, at));
          const alone = places.filter(
            (at) => !/\w/.test(said[at - 1] ?? '') && !/\w/.test(said[at + fact.length] ?? ''),
          );
          expect(alone.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a fact', () => {
  it.each(['src/a.ts', 'getUser', '12345', 'https://x.org/a'])('is %s', (text) => expect(isFact(text)).toBe(true));
  it.each(['', 'word', 'src/a.ts and', 'a b', 'x'.repeat(999)])('is not %j', (text) =>
    expect(isFact(text)).toBe(false),
  );
});

describe('mentions', () => {
  it('knows what stands inside a longer fact, but no part of a word', () => {
    const said = mentions(['read packages/tui/src/editor-view.ts']);
    for (const fact of ['packages/tui/src/editor-view.ts', 'tui/src', 'editor-view.ts', 'editor-view'])
      expect(said.has(fact)).toBe(true);
    for (const fact of ['dit', 'src/ed', 'packages/tui/src/editor-view.tsx']) expect(said.has(fact)).toBe(false);
  });

  it('takes each fact once', () => {
    const said = mentions([]);
    expect([said.add('a/b.ts'), said.add('a/b.ts'), said.add('b.ts'), said.add('c/a/b.ts')]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });
});
