/** `GET /`: what this service is, what it sells, and where everything stands. */
import { formatUnits } from 'viem';
import { z } from 'zod';
import { PRICE_DECIMALS, type Operation } from '../operation.ts';
import { operationPath, PATHS, samplePath } from './links.ts';

export interface ServiceFacts {
  readonly name: string;
  readonly version: string;
  readonly publicUrl: string;
  readonly did: string;
  /** CAIP-2 id of the chain, the token and address that a payment names, and the DID URL of the key of offers and receipts. */
  readonly payment: {
    readonly network: string;
    readonly asset: string;
    readonly payTo: string;
    readonly offerKey: string;
  };
  readonly operations: readonly Operation[];
}

const inUsdc = (atomic: string): string => formatUnits(BigInt(atomic), PRICE_DECIMALS);

export function serviceIndex({ name, version, publicUrl, did, payment, operations }: ServiceFacts): object {
  const url = (path: string): string => publicUrl + path;
  return {
    name,
    version,
    description: 'Keeps an agent’s conversation inside its model’s context window, and proves every answer.',
    issuer: did,
    payment: { protocol: 'x402', x402Version: 2, currency: 'USDC', ...payment },
    operations: operations.map((operation) => ({
      id: operation.id,
      title: operation.title,
      summary: operation.summary,
      description: operation.description,
      roi: operation.roi,
      audience: operation.audience,
      inputSchema: z.toJSONSchema(operation.input, { io: 'input' }),
      outputSchema: z.toJSONSchema(operation.output),
      price: { amount: inUsdc(operation.price), atomic: operation.price, currency: 'USDC', failedCallsCharged: false },
      method: 'POST',
      url: url(operationPath(operation)),
      sample: url(samplePath(operation)),
    })),
    docs: {
      charged: 'Answers of status pass and fail are charged; unknown, unsupported and all errors are not.',
      call: 'POST JSON to an operation. Without payment it answers 402 and PAYMENT-REQUIRED; sign that with any x402 v2 client and send it again with PAYMENT-SIGNATURE. Clients of x402 v1 find theirs in the body and send X-PAYMENT.',
      retry:
        'After a lost answer or a 503, send the same request with the same PAYMENT-SIGNATURE: it is never charged twice.',
      sample: 'GET a sample for an example request and its signed answer, free.',
      verify: `POST {data, _provenance, input?} to ${url(PATHS.verify)}, free.`,
    },
    links: {
      models: url(PATHS.models),
      check: url(PATHS.check),
      verifyProvenance: url(PATHS.verify),
      did: url(PATHS.did),
      health: url(PATHS.health),
      ready: url(PATHS.ready),
    },
  };
}
