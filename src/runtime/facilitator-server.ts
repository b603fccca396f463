/**
 * A facilitator for the operator's other sellers, over the standard routes of x402: `/verify`, `/settle`, `/supported`. It spends
 * the operator's gas, so it serves only who has the token, and settles only payments of USDC to the addresses it was told.
 */
import type { FacilitatorClient } from '@x402/core/server';
import { isPaymentPayloadV2, isPaymentRequirementsV2 } from '@x402/core/schemas';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { Hono } from 'hono';
import type { Address } from 'viem';
import type { Usdc } from '../payment/networks.ts';
import { problemResponse, type Problem, type Result } from '../problem.ts';
import { isJsonObject, sha256 } from '../provenance/canonical.ts';
import { requireJsonBody } from '../surfaces/json-body.ts';
import { route } from '../surfaces/route.ts';

export interface FacilitatorServerOptions {
  readonly facilitator: FacilitatorClient;
  readonly usdc: Usdc;
  /** Bearer token of the sellers. */
  readonly token: string;
  /** To whom payments may go. */
  readonly payTo: readonly Address[];
  /** Told of what broke, without anything of a payment. */
  readonly report: (event: string, error: unknown) => void;
}

/** A payment has some 2 KB; of a contract wallet's signature some more. */
const BODY_LIMITS = { bytes: 65_536 };

interface Order {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

export function createFacilitatorApp(options: FacilitatorServerOptions): Hono {
  const { facilitator, report } = options;
  const app = new Hono();
  app.notFound(() => problemResponse({ code: 'not_found' }));
  app.onError((error) => {
    report('facilitator_failed', error);
    return problemResponse({ code: 'internal_error' });
  });
  route(app, 'GET', '/healthz', (c) => c.json({ ok: true }));
  app.use(async (c, next) => {
    if (await holdsToken(c.req.header('Authorization'), options.token)) return next();
    return problemResponse({ code: 'unauthorized' });
  });
  route(app, 'GET', '/supported', async (c) => c.json(await facilitator.getSupported()));
  for (const act of ['verify', 'settle'] as const) {
    route(app, 'POST', `/${act}`, async (c) => {
      const order = readOrder(await requireJsonBody(c.req.raw, BODY_LIMITS), options);
      if (!order.ok) return problemResponse(order.problem);
      const { paymentPayload, paymentRequirements } = order.value;
      return c.json(await facilitator[act](paymentPayload, paymentRequirements));
    });
  }
  return app;
}

/** By digests, so that the time it takes says nothing of the token. */
async function holdsToken(header: string | undefined, token: string): Promise<boolean> {
  const [given, wanted] = await Promise.all([sha256(header ?? ''), sha256(`Bearer ${token}`)]);
  return given.every((byte, index) => byte === wanted[index]);
}

function readOrder(body: Result<unknown>, { usdc, payTo }: FacilitatorServerOptions): Result<Order> {
  if (!body.ok) return body;
  const refuse = (path: string, detail: string): Result<Order> => {
    const problem: Problem = { code: 'invalid_request', path, detail };
    return { ok: false, problem };
  };
  if (!isJsonObject(body.value)) return refuse('', 'expected an object');
  const { paymentPayload, paymentRequirements } = body.value;
  if (!isPaymentPayloadV2(paymentPayload)) return refuse('/paymentPayload', 'expected a payment of x402 v2');
  if (!isPaymentRequirementsV2(paymentRequirements))
    return refuse('/paymentRequirements', 'expected requirements of x402 v2');
  const { network, asset, payTo: receiver } = paymentRequirements;
  const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
  if (network !== usdc.caip2)
    return refuse('/paymentRequirements/network', 'it is not the network that is served here');
  if (!isSame(asset, usdc.address)) return refuse('/paymentRequirements/asset', 'only USDC is settled here');
  if (!payTo.some((allowed) => isSame(allowed, receiver))) {
    return refuse('/paymentRequirements/payTo', 'payments to this address are not settled here');
  }
  return { ok: true, value: { paymentPayload, paymentRequirements } as Order };
}
