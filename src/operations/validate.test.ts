import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { addTooLarge, validate } from './validate.ts';

const schema = z.strictObject({
  name: z.string().min(1).max(3),
  size: z.int().min(0).lt(10).exactOptional(),
  colour: z.enum(['red', 'blue']).exactOptional(),
  list: z
    .array(z.strictObject({ 'a/b': z.boolean() }))
    .max(2)
    .exactOptional(),
  even: z.number().multipleOf(2).exactOptional(),
  mail: z.email().exactOptional(),
  odd: z
    .number()
    .refine((n) => n % 2 === 1, 'it must be odd')
    .exactOptional(),
  shape: z
    .union([
      z.strictObject({ kind: z.literal('circle'), radius: z.number() }),
      z.strictObject({ kind: z.literal('square'), side: z.number() }),
    ])
    .exactOptional(),
  block: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('text'), text: z.string() }),
      z.strictObject({ type: z.literal('image'), data: z.string() }),
    ])
    .exactOptional(),
  rates: z.record(z.string().max(3), z.number()).exactOptional(),
  note: z.string({ error: 'a note is text' }).exactOptional(),
});

const problemOf = (value: unknown): [string, string] | undefined => {
  const checked = validate({ input: schema }, value);
  if (checked.ok) return undefined;
  const { problem } = checked;
  return problem.code === 'invalid_request' ? [problem.path, problem.detail] : [problem.code, ''];
};

describe('validate', () => {
  it('hands back the very value', () => {
    const value = { name: 'abc', list: [{ 'a/b': true }] };
    const checked = validate({ input: schema }, value);
    expect(checked.ok && checked.value).toBe(value);
  });

  it.each<[unknown, string, string]>([
    [undefined, '', 'this field is required'],
    [null, '', 'expected an object'],
    [[], '', 'expected an object'],
    [{}, '/name', 'this field is required'],
    [{ name: 5 }, '/name', 'expected text'],
    [{ name: null }, '/name', 'expected text'],
    [{ name: '' }, '/name', 'at least 1 characters'],
    [{ name: 'abcd' }, '/name', 'at most 3 characters'],
    [{ name: 'a', size: 1.5 }, '/size', 'expected an integer'],
    [{ name: 'a', size: -1 }, '/size', 'at least 0'],
    [{ name: 'a', size: 10 }, '/size', 'less than 10'],
    [{ name: 'a', colour: 'green' }, '/colour', 'expected red or blue'],
    [{ name: 'a', list: {} }, '/list', 'expected a list'],
    [{ name: 'a', list: [1, 2, 3] }, '/list', 'at most 2 items'],
    [{ name: 'a', list: [{ 'a/b': true }, { 'a/b': 1 }] }, '/list/1/a~1b', 'expected true or false'],
    [{ name: 'a', even: 3 }, '/even', 'expected a multiple of 2'],
    [{ name: 'a', mail: 'no' }, '/mail', 'expected the form email'],
    [{ name: 'a', odd: 2 }, '/odd', 'it must be odd'],
    [{ name: 'a', shape: { kind: 'circle', radius: 'x' } }, '/shape/radius', 'expected a number'],
    [{ name: 'a', shape: 7 }, '/shape', 'it has none of the accepted forms'],
    [{ name: 'a', block: { type: 'image', data: 1 } }, '/block/data', 'expected text'],
    [{ name: 'a', block: { type: 'sound' } }, '/block/type', 'expected text or image'],
    [{ name: 'a', block: { data: 'x' } }, '/block/type', 'this field is required'],
    [{ name: 'a', block: 7 }, '/block', 'expected an object'],
    [{ name: 'a', note: 7 }, '/note', 'a note is text'],
    [{ name: 'a', rates: { toolong: 1 } }, '/rates/toolong', 'it does not fit the schema'],
    [{ name: 'a', extra: 1 }, '/extra', 'no field of this name is known here'],
    [{ name: 'a', list: [{ 'a/b': true, x: 1 }] }, '/list/0/x', 'no field of this name is known here'],
  ])('%j: %s %s', (value, path, detail) => {
    expect(problemOf(value)).toEqual([path, detail]);
  });

  it('refuses __proto__ and its kin as any unknown field', () => {
    expect(problemOf(JSON.parse('{"name":"a","__proto__":{"size":1}}'))).toEqual([
      '/__proto__',
      'no field of this name is known here',
    ]);
    expect(problemOf(JSON.parse('{"name":"a","list":[{"a/b":true,"__proto__":1}]}'))?.[0]).toBe('/list/0/__proto__');
    expect(problemOf(JSON.parse('{"name":"a","constructor":1}'))?.[0]).toBe('/constructor');
    expect(problemOf(JSON.parse('{"__proto__":{"name":"a"}}'))?.[0]).toBe('/name');
  });

  it('repeats nothing that was sent but a cut key', () => {
    const secret = 'S'.repeat(1000);
    for (const value of [{ name: secret }, { name: 'a', colour: secret }, { name: 'a', [secret]: secret }, secret]) {
      const told = JSON.stringify(problemOf(value));
      expect(told).not.toContain('S'.repeat(65));
      expect(told.length).toBeLessThan(200);
    }
  });

  it('calls a refused input what its operation calls it', () => {
    const checked = validate({ input: schema, invalidRequestCode: 'context/invalid_request' }, {});
    expect(checked).toMatchObject({ problem: { code: 'context/invalid_request', path: '/name' } });
  });

  it('tells what is too large from what is wrong', () => {
    const input = z.strictObject({ text: z.string() }).superRefine(({ text }, context) => {
      if (text.length > 3) addTooLarge(context, ['text'], 3);
    });
    expect(validate({ input }, { text: 'abcd' })).toEqual({
      ok: false,
      problem: { code: 'payload_too_large', limit_bytes: 3, path: '/text' },
    });
    expect(validate({ input }, { text: 1 })).toMatchObject({ problem: { code: 'invalid_request', path: '/text' } });
  });

  it('looks no further than the first fault', () => {
    const input = z.strictObject({ list: z.array(z.looseObject({ n: z.number() })) });
    let looks = 0;
    const trap = {
      get n(): string {
        looks += 1;
        return '';
      },
    };
    expect(validate({ input }, { list: Array.from({ length: 100_000 }, () => trap) })).toMatchObject({
      problem: { path: '/list/0/n' },
    });
    expect(looks).toBeLessThan(10);
  });
});
