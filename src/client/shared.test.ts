import { describe, expect, it } from 'vitest';
import { createShared, type RunState } from './shared.ts';

const never = new AbortController().signal;

describe('shared', () => {
  it('runs once for equal calls that overlap, and anew for later ones and for others', async () => {
    const shared = createShared<number>();
    let runs = 0;
    const work = async (): Promise<number> => (runs += 1);
    expect(await Promise.all([shared('a', never, work), shared('a', never, work), shared('b', never, work)])).toEqual([
      1, 1, 2,
    ]);
    expect(await shared('a', never, work)).toBe(3);
  });

  it('ends the run only when all have left, and starts no other before it is at rest', async () => {
    const shared = createShared<string>();
    const log: string[] = [];
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const work = async ({ signal }: RunState): Promise<string> => {
      log.push('start');
      await released;
      log.push(signal.aborted ? 'left' : 'stayed with');
      signal.throwIfAborted();
      return 'done';
    };
    const [one, two] = [new AbortController(), new AbortController()];
    const calls = [shared('a', one.signal, work), shared('a', two.signal, work)];
    one.abort(new Error('one'));
    await expect(calls[0]).rejects.toThrow('one');
    two.abort(new Error('two'));
    await expect(calls[1]).rejects.toThrow('two');
    const next = shared('a', never, work);
    const three = new AbortController();
    const impatient = shared('a', three.signal, work);
    three.abort(new Error('three'));
    await expect(impatient).rejects.toThrow('three');
    await expect(shared('a', AbortSignal.abort(new Error('four')), work)).rejects.toThrow('four');
    expect(log).toEqual(['start']);
    release();
    expect(await next).toBe('done');
    expect(log).toEqual(['start', 'left', 'start', 'stayed with']);
  });

  it('hands over what is committed, even to one who leaves then', async () => {
    const shared = createShared<string>();
    const controller = new AbortController();
    const result = shared('a', controller.signal, async ({ commit }) => {
      commit();
      controller.abort(new Error('too late'));
      await Promise.resolve();
      return 'answer';
    });
    expect(await result).toBe('answer');
  });

  it('does not let a run commit that everybody has left', async () => {
    const shared = createShared<string>();
    const controller = new AbortController();
    let committed: unknown;
    const result = shared('a', controller.signal, async ({ commit }) => {
      controller.abort(new Error('left'));
      await Promise.resolve();
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
      try {
        commit();
        committed = true;
      } catch (error) {
        committed = error;
        throw error;
      }
      return 'answer';
    });
    await expect(result).rejects.toThrow('left');
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect(committed).toMatchObject({ message: 'left' });
  });
});
