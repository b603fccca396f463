/** How long work lets others run in between. */

/**
 * A turn of the event loop for whoever asks, one after another: however many calls count at once, each turn has one of them, so
 * that a socket waits for one piece of work and not for everyone's.
 */
export function pause(): Promise<void> {
  // Workers have a promise settled by the request that made it, and not for another that may have gone.
  if (isWorkers) return loopTurn();
  last = last.then(loopTurn);
  return last;
}

let last = Promise.resolve();

/** As Cloudflare says to tell. */
const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } };
const isWorkers = navigator?.userAgent === 'Cloudflare-Workers';

/**
 * A resolved promise alone would not give one. Timers of several calls that count at once would keep Node from ever looking
 * at its sockets, so it is not a timer where there is another way.
 */
function loopTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve);
  });
}
