/** What the context operations bring to their engines: the estimator of a request, and a way to let others run. */
import { type Estimator, type EstimatorChoice, heuristic, selectEstimator, tokenizer } from '../engines/estimator.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';

export async function loadEstimator(modelId: string, choice?: EstimatorChoice | null): Promise<Estimator> {
  const selected = selectEstimator(modelId, choice);
  return selected === 'heuristic' ? heuristic : tokenizer(await loadEncoding(selected));
}

/**
 * A turn of the event loop; a resolved promise alone would not give one. Timers of several calls that count at once would keep
 * Node from ever looking at its sockets, so it is not a timer where there is another way.
 */
export function pause(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve);
  });
}
