/**
 * One request with a body that can be sent again, one answer read to its end, and the bounded retries between the two. It
 * knows nothing of money: the caller says which answers are to be asked for again.
 */
import { isJsonObject } from '../provenance/canonical.ts';
import { ANSWER_LIMITS, parseStrictJson } from '../provenance/strict-json.ts';
import { PaidFetchError, type Charged } from './failure.ts';

/** A call, taken down once: a stream can be read only once, and a retry must send the same bytes. */
export interface Call {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  /** Empty where there is none. */
  readonly body: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  /** The request again, with these headers beside its own. */
  toRequest(extra: Readonly<Record<string, string>>, signal: AbortSignal): Request;
}

/** An answer that was read to its end, so that no fault can hit it any more. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Undefined where the body is no JSON. */
  readonly json: unknown;
  /** A fresh response each time, since a body can be read only once. */
  toResponse(): Response;
}

const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD']);

export async function takeDown(input: RequestInfo | URL, init?: RequestInit): Promise<Call> {
  const template = new Request(input, init);
  const { method, headers, signal } = template;
  const hasBody = !WITHOUT_BODY.has(method);
  const url = new URL(template.url);
  url.hash = '';
  const body = hasBody ? new Uint8Array(await template.arrayBuffer()) : new Uint8Array();
  const toRequest: Call['toRequest'] = (extra, attempt) => {
    const own = new Headers(headers);
    for (const [name, value] of Object.entries(extra)) own.set(name, value);
    return new Request(template, { headers: own, redirect: 'manual', signal: attempt, ...(hasBody && { body }) });
  };
  return { url, method, headers, body, signal, toRequest };
}

export interface RetryPolicy {
  readonly fetch: typeof globalThis.fetch;
  readonly now: () => Date;
  /** How often an attempt is followed by another one. */
  readonly retries: number;
  /** A service that wants more patience than this is asked no more. */
  readonly maxDelayMs: number;
  readonly attemptTimeoutMs: number;
}

/** The first of the delays where the service names none; each further one is twice as long. */
const FIRST_DELAY_MS = 500;

/**
 * Sends the request until `isFinal`, or until the retries are used up: then the last answer it is.
 *
 * @throws PaidFetchError `network_failed` where the last attempt brought none, `redirected`; the signal's reason.
 */
export async function exchange(
  call: Call,
  extra: Readonly<Record<string, string>>,
  policy: RetryPolicy,
  run: { readonly signal: AbortSignal; readonly charged: Charged; readonly isFinal: (answer: Answer) => boolean },
): Promise<Answer> {
  const { signal, charged, isFinal } = run;
  for (let attempt = 0; ; attempt += 1) {
    let answer: Answer | undefined;
    let cause: unknown;
    try {
      answer = await send(call.toRequest(extra, attemptSignal(signal, policy)), policy);
    } catch (error) {
      signal.throwIfAborted();
      cause = error;
    }
    if (answer && isRedirection(answer.status)) throw new PaidFetchError({ code: 'redirected' }, { charged });
    if (answer && isFinal(answer)) return answer;
    const delay = Math.max(retryAfterMs(answer, policy.now()) ?? 0, FIRST_DELAY_MS * 2 ** attempt);
    if (attempt >= policy.retries || delay > policy.maxDelayMs) {
      if (answer) return answer;
      throw new PaidFetchError({ code: 'network_failed', attempts: attempt + 1 }, { charged, cause });
    }
    await pause(delay, signal);
  }
}

const attemptSignal = (signal: AbortSignal, { attemptTimeoutMs }: RetryPolicy): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(attemptTimeoutMs)]);

async function send(request: Request, { fetch }: RetryPolicy): Promise<Answer> {
  const response = await fetch(request);
  const { status, statusText, headers } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const parsed = parseStrictJson(bytes, ANSWER_LIMITS);
  const nullBody = status === 204 || status === 205 || status === 304;
  return {
    status,
    headers,
    bytes,
    json: parsed.ok ? parsed.value : undefined,
    toResponse: () => new Response(nullBody ? null : bytes, { status, statusText, headers }),
  };
}

/** In browsers a redirection that is not followed has the status 0. */
const isRedirection = (status: number): boolean => status === 0 || (status >= 300 && status < 400);

/** RFC 9110 section 10.2.3: seconds, or a date. */
function retryAfterMs(answer: Answer | undefined, now: Date): number | undefined {
  const text = answer?.headers.get('Retry-After');
  if (text === undefined || text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now.getTime();
  return Number.isNaN(ms) ? undefined : ms;
}

/** @throws the signal's reason, as soon as it is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** The `code` of a problem; undefined where the body is none. */
export const problemCode = ({ json }: Answer): unknown => (isJsonObject(json) ? json['code'] : undefined);
