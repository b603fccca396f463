/** How a path is served: one method, and 405 with Allow for every other. */
import type { Env, Handler, Hono } from 'hono';
import { problemResponse } from '../problem.ts';

/** GET brings HEAD with it. */
export function route<E extends Env>(app: Hono<E>, method: 'GET' | 'POST', path: string, handler: Handler<E>): void {
  const allow = method === 'GET' ? ['GET', 'HEAD'] : [method];
  app.on(method, path, handler);
  app.all(path, () => problemResponse({ code: 'method_not_allowed', allow }));
}
