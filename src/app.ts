/** Composes the rooms into one Hono app. It holds no logic: which path belongs to which room, and nothing else. */
import { Hono } from 'hono';
import { etag } from 'hono/etag';
import type { Operation } from './operation.ts';
import type { AnswerIssuer } from './operations/execute.ts';
import type { ContextFor } from './operations/run-context.ts';
import type { ChainView } from './payment/chain.ts';
import type { Gate } from './payment/gate.ts';
import { API_KEY_HEADER, carriesPayment, payOverHttp } from './payment/http.ts';
import type { Usdc } from './payment/networks.ts';
import { problemResponse, type Problem } from './problem.ts';
import type { DidDocument } from './provenance/did.ts';
import { ANSWER_LIMITS } from './provenance/strict-json.ts';
import { parseAnswerWithRequest } from './request-json.ts';
import { createCheckHandler } from './surfaces/check.ts';
import { answerPreflight, finishHeaders, PUBLIC_FOR_A_MINUTE } from './surfaces/cross-origin.ts';
import { readJsonBody, requireJsonBody } from './surfaces/json-body.ts';
import { operationPath, PATHS, samplePath } from './surfaces/links.ts';
import { answerModels } from './surfaces/models.ts';
import { route } from './surfaces/route.ts';
import { createSample } from './surfaces/samples.ts';
import { serviceIndex } from './surfaces/service-index.ts';
import { createVerifyHandler } from './surfaces/verify-provenance.ts';

export interface AppDependencies {
  readonly operations: readonly Operation[];
  readonly gate: Gate;
  readonly chain: ChainView;
  readonly issuer: AnswerIssuer;
  readonly contextFor: ContextFor;
  readonly didDocument: DidDocument;
  /** DID URL of the key that signs offers and receipts. */
  readonly offerKeyId: string;
  readonly usdc: Usdc;
  readonly payTo: string;
  readonly publicUrl: string;
  readonly bodyLimitBytes: number;
  readonly report: (event: string, error: unknown, requestId: string) => void;
  /** Told of every answer; `path` is the route's pattern, never what the caller wrote. */
  readonly onAnswer: (answer: { requestId: string; method: string; path: string; status: number; ms: number }) => void;
}

type Env = { Variables: { requestId: string } };

/** A web-standard app: `app.fetch` runs it on any runtime. Every answer carries X-Request-Id, and says what browsers may do with it. */
export function createApp(dependencies: AppDependencies): Hono<Env> {
  const {
    operations,
    gate,
    chain,
    issuer,
    contextFor,
    didDocument,
    offerKeyId,
    usdc,
    payTo,
    publicUrl,
    bodyLimitBytes,
  } = dependencies;
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    const requestId = crypto.randomUUID();
    const start = performance.now();
    c.set('requestId', requestId);
    // Such a URL has no Request by the fetch standard, so nothing behind here could read it.
    if (c.req.url.slice(0, c.req.url.indexOf('/', 8)).includes('@')) c.res = problemResponse(USER_IN_URL);
    else await next();
    c.header('X-Request-Id', requestId);
    finishHeaders(c);
    const [method, path, { status }] = [c.req.method, c.req.routePath, c.res];
    dependencies.onAnswer({ requestId, method, path, status, ms: Math.round(performance.now() - start) });
  });
  app.use(answerPreflight());
  app.notFound(() => problemResponse({ code: 'not_found' }));
  app.onError((error, c) => {
    dependencies.report('request_failed', error, c.get('requestId'));
    // With a payment or a key in hand nobody can say here whether it was charged.
    if (carriesPayment(c.req.raw.headers)) return problemResponse(unknownOutcome('settlement_unknown'));
    if (c.req.header(API_KEY_HEADER) !== undefined) return problemResponse(unknownOutcome('debit_unknown'));
    return problemResponse({ code: 'internal_error' });
  });

  for (const operation of operations) {
    const resourceUrl = publicUrl + operationPath(operation);
    route(app, 'POST', operationPath(operation), async (c) => {
      const { headers } = c.req.raw;
      const body = await readJsonBody(c.req.raw, { bytes: bodyLimitBytes });
      return payOverHttp(gate, { requestId: c.get('requestId'), operation, resourceUrl, headers, body });
    });
    route(app, 'GET', samplePath(operation), async (c) => c.json(await createSample(operation, issuer, contextFor())));
  }
  const payment = { network: usdc.caip2, asset: usdc.address, payTo, offerKey: offerKeyId };
  const index = serviceIndex({ ...issuer.generator, publicUrl, did: issuer.did, payment, operations });
  route(app, 'GET', PATHS.home, (c) => c.json(index, 200, { 'Cache-Control': PUBLIC_FOR_A_MINUTE }));
  route(app, 'GET', PATHS.did, (c) => c.json(didDocument, 200, { 'Cache-Control': PUBLIC_FOR_A_MINUTE }));
  route(app, 'GET', PATHS.health, (c) => c.json({ ok: true }));
  route(app, 'GET', PATHS.ready, async (c) => {
    const ok = await chain.reachable();
    return c.json({ ok, checks: { chain: ok } }, ok ? 200 : 503);
  });
  app.use(PATHS.models, etag());
  route(app, 'GET', PATHS.models, (c) => answerModels(contextFor().catalog, c.req.query()));
  const check = createCheckHandler(issuer.now);
  route(app, 'POST', PATHS.check, async (c) => check(await requireJsonBody(c.req.raw, { bytes: bodyLimitBytes })));
  const verify = createVerifyHandler({ operations, contextFor, didDocument, now: issuer.now });
  // The answer may give back the whole input, which is sent along with it, and another writer may escape what we do not.
  const answerLimits = { bytes: 3 * bodyLimitBytes, json: ANSWER_LIMITS, parse: parseAnswerWithRequest };
  for (const path of [PATHS.verify, PATHS.verifyAlias]) {
    route(app, 'POST', path, async (c) => verify(await requireJsonBody(c.req.raw, answerLimits)));
  }
  return app;
}

const unknownOutcome = (code: 'settlement_unknown' | 'debit_unknown'): Problem => ({ code, retry_after_seconds: 1 });

const USER_IN_URL = { code: 'invalid_request', path: '', detail: 'a URL with a user name is not served' } as const;
