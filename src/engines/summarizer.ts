/** The port behind which a history is put into words: by an algorithm, or by a model. Types and the budget; no summary is made here. */
import type { AgentMessage } from '../transcript/message.ts';
import type { Estimator } from './estimator.ts';

export interface SummaryRequest {
  /** What the summary stands for from now on, oldest first, without custom messages. */
  readonly head: readonly AgentMessage[];
  /** What an earlier compaction said of the messages before `head`. */
  readonly previousSummary: string | undefined;
  /** The summary's `estimator.text` is never more. */
  readonly budgetTokens: number;
  readonly estimator: Estimator;
  /** Awaited now and then, so that others run. */
  readonly pause: () => Promise<void>;
}

export interface Summarizer {
  /** Named in the evidence, with its version. */
  readonly name: string;
  /** Whether the same request always gives the same text. */
  readonly deterministic: boolean;
  /** Empty where there is nothing to say, undefined where no summary can be had. */
  summarize(request: SummaryRequest): Promise<string | undefined>;
}
