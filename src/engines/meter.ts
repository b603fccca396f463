/** Counts many texts one after another and lets others run in between. */

/** 10 ms of counting ordinary text; 0.1 s of nothing but spaces, of which a token has many. */
const PAUSE_AFTER_TOKENS = 32_768;

export interface Meter {
  /** What each item comes to, in tokens. */
  each<T>(items: Iterable<T>, tokensOf: (item: T) => number): Promise<number[]>;
}

/**
 * @param pause is awaited before the first text, as many calls may have come at once, and then after every so many tokens,
 * whatever list they are of.
 */
export function createMeter(pause: () => Promise<void>): Meter {
  let sincePause = PAUSE_AFTER_TOKENS;
  return {
    each: async (items, tokensOf) => {
      const counts: number[] = [];
      for (const item of items) {
        if (sincePause >= PAUSE_AFTER_TOKENS) {
          sincePause = 0;
          await pause();
        }
        const tokens = tokensOf(item);
        counts.push(tokens);
        sincePause += tokens;
      }
      return counts;
    },
  };
}

export const sum = (counts: readonly number[]): number => counts.reduce((total, tokens) => total + tokens, 0);
