/**
 * One JSON line per event on standard error. It takes names and numbers only: no content, key, token or signature may
 * be handed to it, and of an error it keeps the class and the stack's places, not the message.
 */
import type { Settings } from './env.ts';

export type Log = (level: 'error' | 'info', event: string, fields?: Readonly<Record<string, string | number>>) => void;

const RANK = { silent: 0, error: 1, info: 2 } as const;

export function createLog(threshold: Settings['LOG_LEVEL'], write: (line: string) => void): Log {
  return (level, event, fields = {}) => {
    if (RANK[level] > RANK[threshold]) return;
    write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })}\n`);
  };
}

/** An error's message may quote what a caller sent; its class and where it was thrown may not. */
export function errorFields(error: unknown): Readonly<Record<string, string>> {
  if (!(error instanceof Error)) return { error: typeof error };
  const { stack = '', message } = error;
  // The stack repeats the message in front of the places, and a message can look like a place.
  const places = stack
    .slice(stack.indexOf(message) + message.length)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
  return {
    error: error.name,
    stack: places
      .slice(0, STACK_MAX_LINES)
      .map((line) => line.trim())
      .join(' | '),
  };
}

const STACK_MAX_LINES = 8;
