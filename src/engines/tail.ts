/** Which newest messages compaction keeps as they are. It looks at sizes and structure only, and never parts a call from its result. Pure. */
import type { AgentMessage } from '../transcript/message.ts';
import { beginsTurn, placeResults, safeStarts } from '../transcript/results.ts';

const TAIL_SHARE_OF_USABLE = 1 / 4;
const TAIL_MIN_TOKENS = 2_000;
const TAIL_MAX_TOKENS = 8_000;

/** What the tail may take of so many usable tokens. */
export function tailBudget(usable: number): number {
  return Math.min(TAIL_MAX_TOKENS, Math.max(TAIL_MIN_TOKENS, Math.floor(usable * TAIL_SHARE_OF_USABLE)));
}

interface TailBounds {
  readonly turns: number;
  /** In tokens. */
  readonly budget: number;
  /** Whether a user's message has to stand first. */
  readonly userFirst?: boolean | null | undefined;
  /** Whether that message is within the budget too. */
  readonly openingCounts?: boolean;
}

export interface Tail {
  /**
   * The index of the first message that stays: of the longest tail that begins safely, fits and has no more turns than wanted, or
   * else of the newest turn that begins safely. 0 where nothing can be left out, undefined where nothing is to stay (no turn is
   * wanted, or there is none).
   */
  readonly start: number | undefined;
  /** With `userFirst`, the user's message that has to stand before it. */
  readonly opening: number | undefined;
}

/**
 * @param messages without custom ones.
 * @param sizes in tokens, of each message.
 */
export function selectTail(
  messages: readonly AgentMessage[],
  sizes: readonly number[],
  { turns, budget, userFirst, openingCounts = false }: TailBounds,
): Tail {
  const openings = userFirst ? openingsOf(messages) : [];
  const before = (index: number): number => (openingCounts ? (sizes[openings[index] ?? -1] ?? 0) : 0);
  const start = startOf(messages, sizes, { turns, budget, before });
  return { start, opening: start === undefined ? undefined : openings[start] };
}

/** What stays of a list, the opening among it. */
export const keptOf = <T>(list: readonly T[], { start = list.length, opening }: Tail): T[] =>
  opening === undefined ? list.slice(start) : [...list.slice(opening, opening + 1), ...list.slice(start)];

/** For each message of an assistant, the newest user's before it that a conversation can begin with. */
function openingsOf(messages: readonly AgentMessage[]): readonly (number | undefined)[] {
  let opening: number | undefined;
  return messages.map((message, index) => {
    if (opensConversation(message)) opening = index;
    return message.role === 'assistant' ? opening : undefined;
  });
}

const opensConversation = (message: AgentMessage): boolean =>
  beginsTurn(message) && message.content.length > 0 && !message.content.some(({ type }) => type === 'function_result');

function startOf(
  messages: readonly AgentMessage[],
  sizes: readonly number[],
  { turns, budget, before }: { turns: number; budget: number; before: (start: number) => number },
): number | undefined {
  const starts = messages.flatMap((message, index) => (beginsTurn(message) ? [index] : []));
  if (turns === 0 || starts.length === 0) return undefined;
  const safe = safeStarts(messages, placeResults(messages));
  const oldest = starts.at(-turns) ?? starts[0] ?? 0;
  // A turn that begins unsafely is carried by an older one.
  const from = starts.findLast((start) => start <= oldest && safe[start]) ?? oldest;
  let first: number | undefined;
  let size = 0;
  for (let index = messages.length - 1; index >= from; index -= 1) {
    size += sizes[index] ?? 0;
    if (size > budget) break;
    if (safe[index] && size + before(index) <= budget) first = index;
  }
  return first ?? starts.findLast((start) => start > 0 && safe[start]) ?? 0;
}
