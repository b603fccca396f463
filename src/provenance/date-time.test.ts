import * as fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { parseDateTimeStamp, toDateTimeStamp } from './date-time.ts';

test.each([
  ['2023-02-24T23:36:38Z', Date.UTC(2023, 1, 24, 23, 36, 38)],
  ['2024-07-25T17:41:36.449Z', Date.UTC(2024, 6, 25, 17, 41, 36, 449)],
  ['2024-02-29T00:00:00+14:00', Date.UTC(2024, 1, 28, 10)],
  ['2026-11-30T20:00:00-05:30', Date.UTC(2026, 11, 1, 1, 30)],
])('%s is a time', (text, time) => expect(parseDateTimeStamp(text)).toBe(time));

test.each([
  '2023-02-24T23:36:38',
  '2023-02-24',
  '2023-02-30T00:00:00Z',
  '2023-02-29T00:00:00Z',
  '2023-13-01T00:00:00Z',
  '2023-00-01T00:00:00Z',
  '2023-01-00T00:00:00Z',
  '2023-01-01T25:00:00Z',
  '2023-01-01T00:60:00Z',
  '2023-01-01T00:00:61Z',
  '2023-01-01T00:00:00+15:00',
  '2023-01-01T00:00:00z',
  '2023-01-01 00:00:00Z',
  ' 2023-01-01T00:00:00Z',
  '2023-01-01T00:00:00Z\n',
  'Sat 25 Feb 2023 07:16:31 PM CST',
  '',
  1_677_280_000_000,
  null,
  undefined,
  ['2023-02-24T23:36:38Z'],
])('%j is none', (value) => expect(parseDateTimeStamp(value)).toBeUndefined());

it('writes whole seconds that it reads back', () => {
  const dates = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true });
  fc.assert(
    fc.property(dates, (date) => {
      const text = toDateTimeStamp(date);
      expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(parseDateTimeStamp(text)).toBe(Math.floor(date.getTime() / 1000) * 1000);
    }),
  );
});
