import { describe, expect, it } from 'vitest';
import { createLog, errorFields } from './log.ts';

describe('log', () => {
  it('writes one JSON line per event, at and above its level', () => {
    const lines: string[] = [];
    const log = createLog('error', (line) => lines.push(line));
    log('info', 'quiet');
    log('error', 'loud', { count: 1 });
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
      { time: expect.any(String), level: 'error', event: 'loud', count: 1 },
    ]);
    expect(lines[0]?.endsWith('\n')).toBe(true);
    createLog('silent', () => expect.fail())('error', 'x');
  });

  it('keeps of an error where it was thrown, not what it says', () => {
    const error = new TypeError('words of the caller\n    at words of the caller too');
    const fields = errorFields(error);
    expect(fields['error']).toBe('TypeError');
    expect(fields['stack']).toContain('log.test.ts');
    expect(JSON.stringify(errorFields(error))).not.toContain('words of the caller');
    expect(errorFields('words')).toEqual({ error: 'string' });
  });
});
