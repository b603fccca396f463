/**
 * Equal calls that run at the same time share one run. Each may leave when its own signal is aborted; the run ends early only
 * when all have left, and a later equal call begins only after the one that was left has come to rest.
 */

export interface RunState {
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
  /**
   * From now on the result is handed over whatever a signal says: what follows cannot be undone, so it must not be lost.
   *
   * @throws the signal's reason if all have left already.
   */
  commit(): void;
}

interface Run<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
  committed: boolean;
}

/** A function that runs `work` once for all calls under one key that overlap. */
export function createShared<T>(): (
  key: string,
  signal: AbortSignal,
  work: (state: RunState) => Promise<T>,
) => Promise<T> {
  const running = new Map<string, Run<T>>();

  const start = (key: string, work: (state: RunState) => Promise<T>): Run<T> => {
    const controller = new AbortController();
    const { signal } = controller;
    const commit = (): void => {
      signal.throwIfAborted();
      run.committed = true;
    };
    const result = Promise.resolve()
      .then(() => work({ signal, commit }))
      .finally(() => running.delete(key));
    const run: Run<T> = { result, controller, waiting: 0, committed: false };
    running.set(key, run);
    return run;
  };

  return async (key, signal, work) => {
    signal.throwIfAborted();
    for (let left = running.get(key); left?.controller.signal.aborted; left = running.get(key)) {
      await unlessAborted(
        left.result.catch(() => undefined),
        signal,
      );
    }
    const run = running.get(key) ?? start(key, work);
    run.waiting += 1;
    try {
      return await unlessAborted(run.result, signal, () => run.committed);
    } finally {
      run.waiting -= 1;
      if (run.waiting === 0 && !run.committed) run.controller.abort(signal.reason);
    }
  };
}

function unlessAborted<T>(result: Promise<T>, signal: AbortSignal, committed = (): boolean => false): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      if (!committed()) reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    void result.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
