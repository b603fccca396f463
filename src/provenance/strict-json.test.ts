import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import jcs from '../../test/vectors/jcs-rfc8785.json' with { type: 'json' };
import type { Problem } from '../problem.ts';
import { ANSWER_LIMITS, parseStrictJson, REQUEST_LIMITS } from './strict-json.ts';

const { levels: LEVELS, values: VALUES } = REQUEST_LIMITS;
const parse = (text: string): unknown => JSON.parse(text);
const utf8 = (text: string) => new TextEncoder().encode(text);
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const code = (source: string | Uint8Array) => {
  const result = parseStrictJson(source);
  return result.ok ? 'ok' : result.problem.code;
};

function expectProblem(source: string | Uint8Array, problem: Problem): void {
  expect(parseStrictJson(source)).toEqual({ ok: false, problem });
}

test.each(jcs.pairs)('RFC 8785 input $name', ({ input }) => {
  expect(parseStrictJson(input)).toEqual({ ok: true, value: parse(input) });
  expect(parseStrictJson(utf8(input))).toEqual({ ok: true, value: parse(input) });
});

describe('syntax', () => {
  test.each([
    ['', 0],
    ['  ', 2],
    ['nul', 3],
    ['nulx', 3],
    ['True', 0],
    ['{', 1],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['[,1]', 1],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{a:1}', 1],
    ['{"a":1]', 6],
    ['[1}', 2],
    ['1 1', 2],
    ['01', 1],
    ['-', 1],
    ['1.', 2],
    ['.5', 0],
    ['1e', 2],
    ['1e+', 3],
    ['+1', 0],
    ['NaN', 0],
    ['"a', 2],
    ['"\t"', 1],
    ['"\\x"', 2],
    ['"\\u12g4"', 5],
    ['"\\', 2],
    ["'a'", 0],
    ['[1]//', 3],
    ['\u00a01', 0],
    ['\ufeff1', 0],
    [']', 0],
    ['[1],', 3],
  ])('%j goes wrong at %i', (text, offset) => {
    expect(() => parse(text)).toThrow(SyntaxError);
    expect(parseStrictJson(text)).toMatchObject({ ok: false, problem: { code: 'invalid_json', offset } });
  });

  test.each([
    ['', ''],
    ['{"a": [1, {"b~/": tru}]}', '/a/1/b~0~1'],
    ['{x', ''],
    ['{"a": {"b": 1, x', '/a/b'],
    ['[[1, 2], [3', '/1/0'],
    ['{"": [}', '//0'],
  ])('%j breaks off at the pointer %j', (text, path) => {
    expect(parseStrictJson(text)).toMatchObject({ ok: false, problem: { code: 'invalid_json', path } });
  });

  it('never quotes the text', () => {
    expect(JSON.stringify(parseStrictJson('{"token": hunter2}'))).not.toContain('hunter2');
  });

  it('agrees with JSON.parse on any text, unless a rule applies', () => {
    const pieces = [
      ...Array.from('{}[]",:\\u0123456789eE+-. \n\t/bnt'),
      'true',
      'false',
      'null',
      '"a"',
      '\\u',
      '\u0001',
      '💡',
    ];
    const garbage = fc.array(fc.constantFrom(...pieces), { maxLength: 20 }).map((parts) => parts.join(''));
    const damaged = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', ...pieces))
      .map(([text, at, piece]) => text.slice(0, at % text.length) + piece + text.slice((at % text.length) + 1));
    fc.assert(
      fc.property(fc.oneof(garbage, damaged, fc.string({ unit: 'binary' })), (text) => {
        const result = parseStrictJson(text);
        if (result.ok) expect(result.value).toEqual(parse(text));
        else if (result.problem.code === 'invalid_json') expect(() => parse(text)).toThrow(SyntaxError);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('UTF-8', () => {
  test.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a character cut short', [0x22, 0xf0, 0x9f, 0x98]],
    ['UTF-16', [0xff, 0xfe, 0x31, 0x00]],
  ])('refuses %s', (_, bytes) => expectProblem(Uint8Array.from(bytes), { code: 'invalid_utf8', path: '' }));

  it('skips a byte order mark', () => {
    expect(parseStrictJson(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31))).toEqual({ ok: true, value: 1 });
  });
});

describe('names used twice', () => {
  test.each([
    ['{"a":1,"a":1}', '/a'],
    ['{"a":1,"\\u0061":2}', '/a'],
    ['{"x":[{"k":{}},{"k":1,"b":2,"k":3}]}', '/x/1/k'],
    ['{"__proto__":1,"__proto__":2}', '/__proto__'],
    ['{"":1,"":2}', '/'],
    ['{"a/b":1,"a\\/b":2}', '/a~1b'],
    ['{"a":{"a":{"a":1,"b":0,"a":1}}}', '/a/a/a'],
  ])('%s', (text, path) => expectProblem(text, { code: 'duplicate_key', path }));

  it('takes equal names in different objects', () => {
    expect(code('{"a":{"a":1},"b":[{"a":1},{"a":1}]}')).toBe('ok');
  });

  it('keeps __proto__ as a key of its own', () => {
    const result = parseStrictJson('{"__proto__": 1}');
    expect(result.ok && Object.entries(result.value ?? {})).toEqual([['__proto__', 1]]);
  });
});

describe('a saved answer', () => {
  it('may be larger than a request, but not without end', () => {
    const { levels, values } = ANSWER_LIMITS;
    const list = (count: number) => `[${'1,'.repeat(count - 1)}1]`;
    for (const text of [nested(levels), list(values)]) {
      expect([code(text), parseStrictJson(text, ANSWER_LIMITS).ok]).toEqual([expect.stringMatching('_'), true]);
    }
    expect(parseStrictJson(nested(levels + 1), ANSWER_LIMITS).ok).toBe(false);
    expect(parseStrictJson(list(values + 1), ANSWER_LIMITS).ok).toBe(false);
  });
});

describe('depth', () => {
  it('ends at 64 levels', () => {
    expect(code(nested(LEVELS))).toBe('ok');
    expectProblem(nested(LEVELS + 1), {
      code: 'nesting_too_deep',
      path: '/0'.repeat(LEVELS),
      limit: LEVELS,
    });
    expectProblem('{"a":'.repeat(65), { code: 'nesting_too_deep', path: '/a'.repeat(64), limit: 64 });
  });

  it('counts levels, not containers', () => {
    expect(code(`[${'[],{},'.repeat(1000)}[]]`)).toBe('ok');
  });
});

describe('half surrogate pairs', () => {
  test.each([
    ['"\ud83d"', ''],
    ['"\\ud83d"', ''],
    ['"\\uDE00"', ''],
    ['["a","x\\ud83dy"]', '/1'],
    ['"\\ud83d\\ud83d\\ude00"', ''],
    ['"\ude00\ud83d"', ''],
    ['"\\ud83d\\n\\ude00"', ''],
    ['{"a":{"\\ud83d":1}}', '/a/\ufffd'],
    ['{"\ud83d":1}', '/\ufffd'],
  ])('%j', (text, path) => expectProblem(text, { code: 'invalid_unicode', path }));

  test.each(['"😀"', '"\\ud83d\\ude00"', '"\\ud83d\ude00"', '"\ud83d\\uDE00"', '"\\ufffd\\u0000"'])(
    '%j is whole',
    (text) => expect(parseStrictJson(text)).toEqual({ ok: true, value: parse(text) }),
  );

  it('judges the string that comes out, however it is spelled', () => {
    const unit = fc.oneof(fc.integer({ min: 0xd7fe, max: 0xe001 }), fc.constantFrom(0x61, 0xdbff, 0xdc00));
    const spelled = fc.tuple(unit, fc.boolean());
    fc.assert(
      fc.property(fc.array(spelled, { maxLength: 6 }), (units) => {
        const string = String.fromCharCode(...units.map(([value]) => value));
        const text = units.map(([value, escape]) =>
          escape ? `\\u${value.toString(16).padStart(4, '0')}` : String.fromCharCode(value),
        );
        expect(code(`"${text.join('')}"`)).toBe(string.isWellFormed() ? 'ok' : 'invalid_unicode');
      }),
    );
  });
});

describe('numbers', () => {
  test.each(['9007199254740992', '-9007199254740992', '9007199254740993', '9007199254740993.0', '1e16', '1e20'])(
    '%s is an integer past 2^53 - 1',
    (text) => expectProblem(`{"n":[0,${text}]}`, { code: 'unsafe_number', path: '/n/1' }),
  );

  test.each(['1e400', '-1e400', `1${'0'.repeat(400)}`, `1${'0'.repeat(30)}`])('%s cannot be read', (text) =>
    expectProblem(text, { code: 'unsafe_number', path: '' }),
  );

  test.each([
    '9007199254740991',
    '-9007199254740991',
    '0.1',
    '1E30',
    '1.7976931348623157e308',
    '5e-324',
    '1e-400',
    '-0',
  ])('%s is taken', (text) => expect(parseStrictJson(text)).toEqual({ ok: true, value: parse(text) }));
});

it('reads back everything that JSON.stringify writes, unless a rule applies', () => {
  const isRefused = (value: unknown): boolean =>
    typeof value === 'number'
      ? Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21
      : typeof value === 'object' && value !== null && Object.values(value).some(isRefused);
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 }), (value) => {
      const text = JSON.stringify(value);
      const expected = parse(text);
      if (isRefused(value)) expect(code(text)).toBe('unsafe_number');
      else {
        expect(parseStrictJson(text)).toEqual({ ok: true, value: expected });
        expect(parseStrictJson(utf8(JSON.stringify(value, null, '\t')))).toEqual({ ok: true, value: expected });
      }
    }),
    { numRuns: 1000 },
  );
});

it('finds a repeated name wherever it is', () => {
  const names = fc.uniqueArray(fc.string({ unit: 'binary', maxLength: 5 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(names, fc.nat(), fc.nat(), (unique, from, to) => {
      const members = unique.map((name) => `${JSON.stringify(name)}:0`);
      expect(code(`{${members.join(',')}}`)).toBe('ok');
      const copy = members[from % members.length] ?? '';
      expect(code(`{${members.toSpliced(to % (members.length + 1), 0, copy).join(',')}}`)).toBe('duplicate_key');
    }),
  );
});

describe('hostile size', () => {
  const EIGHT_MB = 8_000_000;
  const names = (count: number) => Array.from({ length: count }, (_, index) => `"${index}":1`).join(',');
  test.each<[string, () => string, string]>([
    ['100,000 levels', () => nested(100_000), 'nesting_too_deep'],
    ['8 MB of [', () => '['.repeat(EIGHT_MB), 'nesting_too_deep'],
    ['8 MB of backslashes', () => `"${'\\'.repeat(EIGHT_MB)}`, 'invalid_json'],
    ['8 MB of escaped backslashes', () => `"${'\\\\'.repeat(EIGHT_MB / 2)}"`, 'ok'],
    ['8 MB of digits', () => '7'.repeat(EIGHT_MB), 'unsafe_number'],
    ['8 MB of decimals', () => `0.${'7'.repeat(EIGHT_MB)}`, 'ok'],
    ['8 MB of spaces', () => ' '.repeat(EIGHT_MB), 'invalid_json'],
    ['as many names as there may be', () => `{${names(VALUES)}}`, 'ok'],
    ['the last of them the first again', () => `{${names(VALUES - 1)},"0":1}`, 'duplicate_key'],
    ['one name more', () => `{${names(VALUES + 1)}}`, 'too_many_values'],
    ['8 MB of numbers', () => `[${'1,'.repeat(EIGHT_MB / 2)}1]`, 'too_many_values'],
    [
      '8 MB of deep lists',
      () => `[${`${'['.repeat(60)}${']'.repeat(60)},`.repeat(EIGHT_MB / 121)}1]`,
      'too_many_values',
    ],
    ['8 MB of empty objects', () => `[${'{},'.repeat(EIGHT_MB / 3)}1]`, 'too_many_values'],
    ['a name of 8 MB used twice', () => `{"${'a'.repeat(EIGHT_MB)}":{"b":1,"b":2}}`, 'duplicate_key'],
  ])('%s', (_, text, expected) => {
    const result = parseStrictJson(text());
    expect(result.ok ? 'ok' : result.problem.code).toBe(expected);
    if (!result.ok) expect(JSON.stringify(result.problem).length).toBeLessThan(500);
  });
});
