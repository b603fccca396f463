/** The estimator that a request asks for. */
import { type Estimator, type EstimatorChoice, heuristic, selectEstimator, tokenizer } from '../engines/estimator.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';

export async function loadEstimator(modelId: string, choice?: EstimatorChoice | null): Promise<Estimator> {
  const selected = selectEstimator(modelId, choice);
  return selected === 'heuristic' ? heuristic : tokenizer(await loadEncoding(selected));
}
