/**
 * A small file that somebody may replace at any time, by writing into it, by a rename or by moving a symbolic link. It is
 * read again and again, as watching by the system's events misses the latter two and network file systems altogether.
 */
import { readFile, stat } from 'node:fs/promises';

/** The whole content, or in a word why there is none: an `ENOENT`-like code, `not a file` or `too large`. */
export type FileContent =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly reason: string };

export interface WatchedFile {
  close(): void;
}

/** What two readings in a row agree on is known after at most three of these, well within a second. */
const POLL_INTERVAL_MS = 200;

const MAX_FILE_BYTES = 4_194_304;

/** Never rejects: a file that cannot be read is an answer too. */
export async function readContent(path: string): Promise<FileContent> {
  try {
    const file = await stat(path);
    // A pipe or a device could be read forever.
    if (!file.isFile()) return { ok: false, reason: 'not a file' };
    if (file.size > MAX_FILE_BYTES) return { ok: false, reason: 'too large' };
    return { ok: true, bytes: await readFile(path) };
  } catch (error) {
    return { ok: false, reason: error instanceof Error && 'code' in error ? String(error.code) : 'unreadable' };
  }
}

/**
 * Tells `onChange` of each content that differs from the one before it, once; `first` is the one already known. A content
 * counts when it is found twice in a row, so that one who is still writing is not read halfway. `onError` gets what
 * `onChange` throws. Keeps no process alive.
 */
export function watchFile(
  path: string,
  first: FileContent,
  onChange: (content: FileContent) => void,
  onError: (error: unknown) => void,
): WatchedFile {
  let told = first;
  let seen = first;
  let reading = false;
  let closed = false;
  const poll = async (): Promise<void> => {
    if (reading) return;
    reading = true;
    const content = await readContent(path);
    reading = false;
    if (closed) return;
    const settled = isSame(content, seen);
    seen = content;
    if (!settled || isSame(content, told)) return;
    told = content;
    onChange(content);
  };
  const timer = setInterval(() => {
    poll().catch(onError);
  }, POLL_INTERVAL_MS).unref();
  return {
    close: () => {
      closed = true;
      clearInterval(timer);
    },
  };
}

function isSame(a: FileContent, b: FileContent): boolean {
  if (!a.ok || !b.ok) return !a.ok && !b.ok && a.reason === b.reason;
  return Buffer.compare(a.bytes, b.bytes) === 0;
}
