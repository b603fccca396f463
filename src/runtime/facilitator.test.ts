import { createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { isUnconnected } from './facilitator.ts';

const failureOf = async (url: string, signal?: AbortSignal): Promise<unknown> =>
  fetch(url, { method: 'POST', body: 'x', ...(signal && { signal }) }).then(
    () => undefined,
    (error: unknown) => error,
  );

async function listening(onConnection: (socket: Socket) => void) {
  const server = createServer(onConnection);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
    });
  return { port: (server.address() as AddressInfo).port, close };
}

describe('isUnconnected', () => {
  it('is so of a port where nobody listens, by address and by a name with several, and of a name without address', async () => {
    const { port, close } = await listening(() => {});
    await close();
    for (const host of ['127.0.0.1', '[::1]', 'localhost'])
      expect(isUnconnected(await failureOf(`http://${host}:${port}/`))).toBe(true);
    expect(isUnconnected(await failureOf('http://nobody.invalid/'))).toBe(true);
  });

  it('is not so of a connection that is cut, an answer that is no HTTP, and one that is late', async () => {
    const cut = await listening((socket) => socket.once('data', () => socket.destroy()));
    const reset = await listening((socket) => socket.once('data', () => socket.resetAndDestroy()));
    const nonsense = await listening((socket) => socket.once('data', () => socket.end('hello\r\n\r\n')));
    const silent = await listening((socket) => socket.resume());
    for (const { port } of [cut, reset, nonsense]) {
      const failure = await failureOf(`http://127.0.0.1:${port}/`);
      expect(failure).toBeInstanceOf(Error);
      expect(isUnconnected(failure)).toBe(false);
    }
    const late = await failureOf(`http://127.0.0.1:${silent.port}/`, AbortSignal.timeout(50));
    expect(late).toBeInstanceOf(Error);
    expect(isUnconnected(late)).toBe(false);
    await Promise.all([cut, reset, nonsense, silent].map(({ close }) => close()));
  });

  it('is not so of anything else', () => {
    const halfway = new AggregateError([
      Object.assign(new Error('a'), { syscall: 'connect', code: 'ECONNREFUSED' }),
      Object.assign(new Error('b'), { syscall: 'read', code: 'ECONNRESET' }),
    ]);
    for (const value of [undefined, null, 'ECONNREFUSED', {}, new Error('connect'), new AggregateError([]), halfway]) {
      expect(isUnconnected(value)).toBe(false);
    }
  });
});
