import { createServer, get } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { pause } from './pause.ts';

/** Keeps the loop for some milliseconds, as counting between two pauses does. */
function work(): void {
  const end = performance.now() + 3;
  while (performance.now() < end);
}

it('lets sockets be served between the pauses of calls that count at once', async () => {
  const server = createServer((_, response) => response.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let counting = true;
  const count = async (): Promise<void> => {
    for (let pauses = 0; pauses < 60; pauses++) {
      work();
      await pause();
    }
  };
  const served = new Promise<boolean>((resolve) => {
    get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }, (response) => {
      response.resume();
      resolve(counting);
    });
  });
  const counted = Promise.all([count(), count(), count()]).then(() => (counting = false));
  expect(await served).toBe(true);
  await counted;
  server.close();
});

it('gives each turn of the loop to one of them, in the order in which they came', async () => {
  const order: number[] = [];
  const perTurn: number[] = [];
  let counted = 0;
  const caller = async (name: number): Promise<void> => {
    for (let pauses = 0; pauses < 5; pauses++) {
      await pause();
      order.push(name);
      counted += 1;
    }
  };
  const done = Promise.all([0, 1, 2].map(caller));
  while (order.length < 15) {
    const before = counted;
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(counted - before);
  }
  await done;
  expect(Math.max(...perTurn)).toBe(1);
  expect(order).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
});
