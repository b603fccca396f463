/**
 * Several facilitators as one: the first healthy one is asked, in the operator's order. A settlement that one of them may have taken is
 * never sent to another; what became of it is for the chain to say. It knows no transport, and its clock is an argument.
 */
import type { FacilitatorClient } from '@x402/core/server';
import type { Network, PaymentPayload, SupportedResponse } from '@x402/core/types';
import { isAnswer, withDeadline } from './settlement.ts';

export interface Member {
  /** For the log; it holds no secret. */
  readonly name: string;
  readonly client: FacilitatorClient;
  /** Whether this failure proves that the request never reached it. */
  readonly provesUntouched: (error: unknown) => boolean;
}

export interface FailoverOptions {
  /** Of ours: a member that does not settle on it is passed over. */
  readonly network: Network;
  /** How long each member may take for an answer. */
  readonly timeoutMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Told of every answer that could not be had. */
  readonly report: (member: string, error: unknown) => void;
}

/** How long a member that did not answer is asked after all others: a few of its timeouts, and short beside an outage. */
export const ASIDE_MS = 30_000;

interface Seat extends Member {
  /** 0 while it is healthy. */
  asideUntil: number;
  supported?: Promise<SupportedResponse>;
}

/**
 * Health decides who is asked first, and never that nobody is: a payment that breaks a facilitator must not stop the others. Rejects where no
 * member answers, with the last one's error. A refusal is an answer.
 *
 * @throws RangeError without members.
 */
export function createFailover(members: readonly Member[], options: FailoverOptions): FacilitatorClient {
  const { network, timeoutMs, now, report } = options;
  if (members.length === 0) throw new RangeError('there is no facilitator');
  const seats: readonly Seat[] = members.map((member) => ({ ...member, asideUntil: 0 }));
  const holders = createHolders<Seat>(now);

  const inOrder = (): readonly Seat[] => {
    const isAside = ({ asideUntil }: Seat): boolean => asideUntil > now();
    return [...seats.filter((seat) => !isAside(seat)), ...seats.filter(isAside)];
  };

  const ask = async <T>(seat: Seat, question: (client: FacilitatorClient) => Promise<T>): Promise<T> => {
    try {
      const answer = await withDeadline(question(seat.client), timeoutMs);
      seat.asideUntil = 0;
      return answer;
    } catch (error) {
      seat.asideUntil = isAnswer(error) ? 0 : now() + ASIDE_MS;
      if (!isAnswer(error)) report(seat.name, error);
      throw error;
    }
  };

  /** Known before anything else is asked: whoever does not settle on our network would refuse every payment. */
  const supportedBy = (seat: Seat): Promise<SupportedResponse> =>
    (seat.supported ??= ask(seat, async (client) => {
      const supported = await client.getSupported();
      const ours = supported.kinds.some((kind) => kind.network === network && kind.scheme === 'exact');
      if (!ours) throw new Error(`it does not settle on ${network}`);
      return supported;
    }).catch((error: unknown) => {
      delete seat.supported;
      throw error;
    }));

  /** @param mayGoOn whether the next may be asked after this failure; where nothing was asked yet, it may. */
  const firstAnswer = async <T>(
    question: (seat: Seat) => Promise<T>,
    mayGoOn: (seat: Seat, error: unknown) => boolean,
  ): Promise<T> => {
    let last: unknown;
    for (const seat of inOrder()) {
      // One call finds out whether it is back; those that come meanwhile do not wait for that.
      if (seat.asideUntil > 0) seat.asideUntil = now() + ASIDE_MS;
      let asked = false;
      try {
        await supportedBy(seat);
        asked = true;
        return await question(seat);
      } catch (error) {
        if (asked && !mayGoOn(seat, error)) throw error;
        last = error;
      }
    }
    throw last;
  };

  return {
    getSupported: () => firstAnswer(supportedBy, () => true),
    verify: (...call) =>
      firstAnswer(
        (seat) => ask(seat, (client) => client.verify(...call)),
        (_, error) => !isAnswer(error),
      ),
    settle: (...call) => {
      const [payload] = call;
      const holder = holders.get(payload);
      if (holder) return ask(holder, (client) => client.settle(...call));
      return firstAnswer(
        (seat) => {
          holders.set(payload, seat);
          return ask(seat, (client) => client.settle(...call));
        },
        (seat, error) => {
          const untouched = seat.provesUntouched(error);
          if (untouched) holders.delete(payload);
          return untouched;
        },
      );
    },
  };
}

interface Holders<T> {
  get(payload: PaymentPayload): T | undefined;
  set(payload: PaymentPayload, holder: T): void;
  delete(payload: PaymentPayload): void;
}

const SWEEP_MS = 60_000;

/** Who may have taken which authorization, until the chain takes it no more. A restart forgets it: then the chain alone keeps a second one out. */
function createHolders<T>(now: () => number): Holders<T> {
  const held = new Map<string, { readonly holder: T; readonly untilMs: number }>();
  let sweptAt = now();
  /** The gate has read it strictly by now. */
  const read = ({ payload }: PaymentPayload): { key: string; untilMs: number } => {
    const { authorization } = payload as { authorization: Record<'from' | 'nonce' | 'validBefore', string> };
    const { from, nonce, validBefore } = authorization;
    return { key: `${from}|${nonce}`.toLowerCase(), untilMs: Number(validBefore) * 1_000 };
  };
  return {
    get: (payload) => held.get(read(payload).key)?.holder,
    set: (payload, holder) => {
      const { key, untilMs } = read(payload);
      held.set(key, { holder, untilMs });
      if (now() < sweptAt + SWEEP_MS) return;
      sweptAt = now();
      for (const [each, { untilMs: end }] of held) if (end < sweptAt) held.delete(each);
    },
    delete: (payload) => void held.delete(read(payload).key),
  };
}
