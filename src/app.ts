/** Composes the rooms into one Hono app. It holds no logic: which path belongs to which room, and nothing else. */
import { Hono, type Handler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { requestId } from 'hono/request-id';
import type { Operation } from './operation.ts';
import { createGate, type GateDependencies } from './payment/gate.ts';
import { createHttpAdapter } from './payment/http.ts';
import { problemResponse } from './problem.ts';
import type { DidDocument } from './provenance/did.ts';
import { readJsonBody } from './surfaces/json-body.ts';
import { operationPath, PATHS, samplePath } from './surfaces/links.ts';
import { createSample } from './surfaces/samples.ts';
import { serviceIndex } from './surfaces/service-index.ts';
import { createVerifyHandler } from './surfaces/verify-provenance.ts';

export interface AppDependencies extends GateDependencies {
  readonly operations: readonly Operation[];
  readonly publicUrl: string;
  readonly didDocument: DidDocument;
  readonly bodyLimitBytes: number;
  /** Whether a paid call could be served now. */
  readonly ready: () => Promise<boolean>;
}

/** A web-standard app: `app.fetch` runs it on any runtime. Every answer carries X-Request-Id. */
export function createApp(dependencies: AppDependencies): Hono {
  const { operations, publicUrl, issuer, usdc, payTo, didDocument, bodyLimitBytes, ready, onError } = dependencies;
  const app = new Hono();
  app.use(requestId(), async (c, next) => {
    await next();
    // Again: an answer that a room built itself has not got the header that the middleware set beforehand.
    c.header('X-Request-Id', c.get('requestId'));
  });
  app.use(bodyLimit({ maxSize: bodyLimitBytes, onError: () => tooLarge(bodyLimitBytes) }));
  app.notFound(() => problemResponse({ code: 'not_found' }));
  app.onError((error) => {
    onError('request_failed', error);
    return problemResponse({ code: 'internal_error' });
  });

  const get = (path: string, handler: Handler): void => route(app, 'GET', path, handler);
  const post = (path: string, handler: Handler): void => route(app, 'POST', path, handler);

  const pay = createHttpAdapter(createGate(dependencies), (operation) => publicUrl + operationPath(operation));
  for (const operation of operations) {
    const sample = createSample(operation, issuer);
    post(operationPath(operation), async (c) => pay(operation, c.req.raw.headers, await readJsonBody(c.req.raw)));
    get(samplePath(operation), async (c) => c.json(await sample()));
  }
  const { name, version } = issuer.generator;
  const payment = { network: usdc.caip2, asset: usdc.address, payTo };
  const index = serviceIndex({ name, version, publicUrl, did: issuer.did, payment, operations });
  get(PATHS.home, (c) => c.json(index));
  get(PATHS.did, (c) => c.json(didDocument));
  get(PATHS.health, (c) => c.json({ ok: true }));
  get(PATHS.ready, async (c) => ((await ready()) ? c.json({ ok: true }) : c.json({ ok: false }, 503)));
  const verify = createVerifyHandler(dependencies);
  for (const path of [PATHS.verify, PATHS.verifyAlias]) post(path, async (c) => verify(await readJsonBody(c.req.raw)));
  return app;
}

/** The rest of the body is not read, so the connection cannot carry another request. */
function tooLarge(limit_bytes: number): Response {
  const response = problemResponse({ code: 'payload_too_large', limit_bytes });
  response.headers.set('Connection', 'close');
  return response;
}

/** One method for a path (GET brings HEAD); any other answers 405 with Allow. */
export function route(app: Hono, method: 'GET' | 'POST', path: string, handler: Handler): void {
  const allow = method === 'GET' ? ['GET', 'HEAD'] : [method];
  app.on(method, path, handler);
  app.all(path, () => problemResponse({ code: 'method_not_allowed', allow }));
}
