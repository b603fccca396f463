import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, open, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readContent, watchFile, type FileContent, type WatchedFile } from './watched-file.ts';

let folder: string;
let path: string;
let watched: WatchedFile | undefined;
let told: string[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-watch-'));
  path = join(folder, 'file.json');
  told = [];
});
afterEach(async () => {
  watched?.close();
  await rm(folder, { recursive: true });
});

const textOf = (content: FileContent): string =>
  content.ok ? new TextDecoder().decode(content.bytes) : content.reason;

async function watch(): Promise<void> {
  const first = await readContent(path);
  const fail = (error: unknown): void => void told.push(String(error));
  watched = watchFile(path, first, (content) => void told.push(textOf(content)), fail);
}

const isTold = (...expected: string[]): Promise<void> =>
  vi.waitFor(() => expect(told).toEqual(expected), { timeout: 5_000, interval: 10 });

describe('a watched file', () => {
  it('is told of when it is written over, also within the same size', async () => {
    await writeFile(path, 'one');
    await watch();
    await writeFile(path, 'two');
    await isTold('two');
    await writeFile(path, 'six');
    await isTold('two', 'six');
  });

  it('is told of when another is renamed over it, as editors do', async () => {
    await writeFile(path, 'one');
    await watch();
    await writeFile(`${path}.new`, 'two');
    await rename(`${path}.new`, path);
    await isTold('two');
  });

  it('is told of when a link two folders up moves, as in a mounted ConfigMap', async () => {
    for (const [version, text] of Object.entries({ v1: 'one', v2: 'two' })) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, 'file.json'), text);
    }
    await symlink('v1', join(folder, 'data'));
    await symlink('data/file.json', path);
    await watch();
    await symlink('v2', join(folder, 'data.new'));
    await rename(join(folder, 'data.new'), join(folder, 'data'));
    await isTold('two');
  });

  it('is told of when it goes and when it comes back', async () => {
    await writeFile(path, 'one');
    await watch();
    await unlink(path);
    await isTold('ENOENT');
    await writeFile(path, 'one');
    await isTold('ENOENT', 'one');
  });

  it('is not told of while somebody is still writing', async () => {
    await writeFile(path, 'first');
    await watch();
    await truncate(path);
    const file = await open(path, 'a');
    // It is read several times meanwhile, and never twice the same.
    const begun = performance.now();
    let pieces = 0;
    for (; performance.now() - begun < 800; pieces++) {
      await file.write('x');
      await new Promise((resolve) => setImmediate(resolve));
    }
    await file.close();
    await isTold('x'.repeat(pieces));
  });

  it('is told of no more once it is closed', async () => {
    await writeFile(path, 'one');
    await watch();
    const other: string[] = [];
    const second = watchFile(
      path,
      await readContent(path),
      (content) => void other.push(textOf(content)),
      () => {},
    );
    watched?.close();
    await writeFile(path, 'two');
    await vi.waitFor(() => expect(other).toEqual(['two']), { timeout: 5_000, interval: 10 });
    second.close();
    expect(told).toEqual([]);
  });

  it('passes on what its listener throws, and goes on', async () => {
    await writeFile(path, 'one');
    const errors: unknown[] = [];
    watched = watchFile(
      path,
      await readContent(path),
      (content) => {
        told.push(textOf(content));
        if (told.length === 1) throw new RangeError('listener');
      },
      (error) => void errors.push(error),
    );
    await writeFile(path, 'two');
    await isTold('two');
    await writeFile(path, 'three');
    await isTold('two', 'three');
    expect(errors).toEqual([new RangeError('listener')]);
  });
});

describe('what is no small file', () => {
  it('has a word for why', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    await writeFile(path, '');
    await truncate(path, 4_194_305);
    const reasons = await Promise.all(
      [folder, join(folder, 'pipe'), '/dev/zero', path, join(path, 'inside'), join(folder, 'none'), 'a\0b'].map(
        readContent,
      ),
    );
    expect(reasons.map(textOf)).toEqual([
      ...Array(3).fill('not a file'),
      'too large',
      'ENOTDIR',
      'ENOENT',
      'ERR_INVALID_ARG_VALUE',
    ]);
  });
});
