/** What the context operations bring to their engines: the estimator of a request, and a way to let others run. */
import { type Estimator, type EstimatorChoice, heuristic, selectEstimator, tokenizer } from '../engines/estimator.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';

export async function loadEstimator(modelId: string, choice?: EstimatorChoice | null): Promise<Estimator> {
  const selected = selectEstimator(modelId, choice);
  return selected === 'heuristic' ? heuristic : tokenizer(await loadEncoding(selected));
}

/** A turn of the event loop; a resolved promise alone would not give one. */
export function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}
