/** The free sample of an operation: its example's request, and the answer that the engine gives to it, signed. */
import { execute, type AnswerIssuer } from '../operations/execute.ts';
import { DEFAULT_CONTEXT } from '../operations/run-context.ts';
import type { Operation, RunContext } from '../operation.ts';
import { requestDigest } from '../provenance/canonical.ts';
import type { Envelope } from '../provenance/envelope.ts';

export interface Sample {
  readonly request: unknown;
  readonly response: Envelope<unknown>;
}

export async function createSample(operation: Operation, issuer: AnswerIssuer, run: RunContext): Promise<Sample> {
  const request = operation.example;
  const inputDigest = await requestDigest(operation.id, request);
  const execution = await execute(operation, request, { run, inputDigest, issuer, sample: true });
  if (execution.kind !== 'answer') throw new Error(`the example of ${operation.id} has no answer`);
  return { request, response: execution.envelope };
}

/** The committed samples: path and text of each. Unsigned, so that they are the same on every machine. */
export async function generatedSamples(
  operations: readonly Operation[],
): Promise<readonly (readonly [string, string])[]> {
  return Promise.all(
    operations.map(async (operation) => {
      const outcome = await operation.run(operation.example, DEFAULT_CONTEXT);
      if (outcome.kind !== 'answer') throw new Error(`the example of ${operation.id} has no answer`);
      const text = JSON.stringify({ request: operation.example, data: outcome.data }, null, 2);
      return [`samples/${operation.id}.json`, `${text}\n`] as const;
    }),
  );
}
