/**
 * What a browser is told: that any page may call and read, which headers it may send and see, and what may be kept. Paths of
 * local mode are open to no other origin, for there is money to be had for nothing.
 */
import type { Context, Env, MiddlewareHandler } from 'hono';

const LOCAL_PREFIX = '/local/';

/** What x402 clients of both protocol versions read, beside the few that a page always sees. */
const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'X-Credits-Remaining',
  'Retry-After',
  'X-Request-Id',
];
/** What they send. The stock client puts a header of answers, Access-Control-Expose-Headers, on its request. */
const ALLOWED = [
  'Content-Type',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'Idempotency-Key',
  'X-API-KEY',
  'Access-Control-Expose-Headers',
];
/** As long as Chromium keeps it at most. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/** A short time, so that a revoked key is soon known. For what is the same for everyone. */
export const PUBLIC_FOR_A_MINUTE = 'public, max-age=60';

/** Sets the headers of an answer that is done, whatever its status. What says nothing about caching must not be kept. */
export function finishHeaders<E extends Env>(c: Context<E>): void {
  if (!c.res.headers.has('Cache-Control')) c.header('Cache-Control', 'no-store');
  if (c.req.path.startsWith(LOCAL_PREFIX)) return;
  c.header('Access-Control-Allow-Origin', '*');
  c.header('Access-Control-Expose-Headers', EXPOSED.join(', '));
}

/** Answers a browser's question whether a page may send its request (Fetch standard, CORS-preflight). Any other OPTIONS goes on. */
export function answerPreflight<E extends Env>(): MiddlewareHandler<E> {
  return async (c, next) => {
    const asked = c.req.method === 'OPTIONS' && c.req.header('Access-Control-Request-Method') !== undefined;
    if (!asked || c.req.path.startsWith(LOCAL_PREFIX)) return next();
    return new Response(null, {
      status: 204,
      headers: {
        'Access-Control-Allow-Methods': 'GET, HEAD, POST',
        'Access-Control-Allow-Headers': ALLOWED.join(', '),
        'Access-Control-Max-Age': String(PREFLIGHT_MAX_AGE_SECONDS),
      },
    });
  };
}
