/** Holds the import arrows of the house: a room may know only the rooms below it, and only runtime knows Node. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '../src');

/** Each room and what it may import; a file directly in src/ is a room of its own. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'json.ts': [],
  'problem.ts': [],
  tokenizer: ['problem.ts'],
  transcript: ['json.ts', 'problem.ts'],
  provenance: ['json.ts', 'problem.ts'],
  'request-json.ts': ['json.ts', 'problem.ts', 'provenance'],
  engines: ['json.ts', 'problem.ts', 'tokenizer', 'transcript', 'provenance'],
  'operation.ts': ['problem.ts', 'engines'],
  operations: [
    'json.ts',
    'request-json.ts',
    'operation.ts',
    'problem.ts',
    'engines',
    'tokenizer',
    'transcript',
    'provenance',
  ],
  surfaces: ['json.ts', 'request-json.ts', 'transcript', 'operations', 'operation.ts', 'problem.ts', 'provenance'],
  payment: ['operations', 'operation.ts', 'problem.ts', 'provenance'],
  client: ['json.ts', 'problem.ts', 'request-json.ts', 'provenance', 'payment'],
  'app.ts': ['request-json.ts', 'surfaces', 'payment', 'operations', 'operation.ts', 'problem.ts', 'provenance'],
  runtime: [
    'json.ts',
    'app.ts',
    'client',
    'surfaces',
    'payment',
    'operations',
    'operation.ts',
    'problem.ts',
    'provenance',
  ],
};
const PURE_ROOMS: ReadonlySet<string> = new Set(['problem.ts', 'tokenizer', 'transcript', 'provenance', 'engines']);

interface Import {
  readonly file: string;
  readonly room: string;
  readonly target: string;
  /** Gone when it runs. */
  readonly isType: boolean;
}

const roomOf = (path: string): string => path.split('/')[0] ?? '';

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
);

function imports(): Import[] {
  return files.flatMap((file) => {
    const text = readFileSync(join(SRC, file), 'utf8');
    const found = text.matchAll(/\bimport (type )?[^;']*?from '([^']+)';|\bimport\('([^']+)'\)|\bfrom '([^']+)';/g);
    return Array.from(found, ([, isType, fixed, lazy, again]) => {
      const target = fixed ?? lazy ?? again ?? '';
      return {
        file,
        isType: isType !== undefined,
        room: roomOf(file),
        target: target.startsWith('.') ? relative(SRC, join(SRC, file, '..', target)) : target,
      };
    });
  });
}

const all = imports();
const inside = all.filter(({ target }) => target.endsWith('.ts'));
const outside = all.filter(({ target }) => !target.endsWith('.ts'));
const show = ({ file, target }: Import): string => `${file} -> ${target}`;

describe('import arrows', () => {
  it('finds the rooms it is about', () => {
    expect(Object.keys(MAY_IMPORT)).toEqual(expect.arrayContaining([...new Set(all.map(({ room }) => room))]));
    expect(inside.length).toBeGreaterThan(20);
  });

  it('point downwards only', () => {
    const wrong = inside.filter(({ room, target }) => {
      const to = roomOf(target);
      return to !== room && !(MAY_IMPORT[room] ?? []).includes(to);
    });
    expect(wrong.map(show)).toEqual([]);
  });

  it('lead to node: from runtime only', () => {
    expect(outside.filter(({ room, target }) => target.startsWith('node:') && room !== 'runtime').map(show)).toEqual(
      [],
    );
  });

  it('lead from the pure rooms to a few packages only', () => {
    const allowed = /^(canonicalize|@noble\/ed25519|js-tiktoken\/ranks\/\w+)$/;
    // The formats are held to their providers' own types.
    const providers = /^(openai|@anthropic-ai\/sdk|ai)(\/|$)/;
    const isAllowed = ({ file, target, isType }: Import): boolean =>
      allowed.test(target) || (isType && providers.test(target) && file.startsWith('transcript/formats/'));
    expect(outside.filter((each) => PURE_ROOMS.has(each.room) && !isAllowed(each)).map(show)).toEqual([]);
  });

  it('leave the pure rooms without clock, randomness and network', () => {
    const impure = /Date\.now\(|new Date\(\)|performance\.|Math\.random|getRandomValues|randomUUID|fetch\(|setTimeout/;
    const wrong = files.filter(
      (file) => PURE_ROOMS.has(roomOf(file)) && impure.test(readFileSync(join(SRC, file), 'utf8')),
    );
    expect(wrong).toEqual([]);
  });

  it('never touch Buffer or process outside runtime', () => {
    const wrong = all
      .filter(({ room }) => room !== 'runtime')
      .filter(({ file }) => /\b(?:Buffer|process)\.\w/.test(readFileSync(join(SRC, file), 'utf8')));
    expect([...new Set(wrong.map(({ file }) => file))]).toEqual([]);
  });
});
