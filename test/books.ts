/**
 * Whether the money adds up: what the payee has on the chain, what the ledger calls settled, and what was paid for on the wire are one sum. It believes
 * nothing that the service says of itself; answers are seen as they come in over HTTP.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import Database from 'libsql';
import type { SettleResponse } from '@x402/core/types';

/** Atomic units of USDC, from three witnesses. */
export interface Books {
  /** On the chain, since the books were opened. */
  readonly received: bigint;
  /** Of the ledger's rows that are settled. */
  readonly settled: bigint;
  /** Of distinct transactions that answers named; undefined where another process gave them. */
  readonly answered?: bigint | undefined;
}

/** What does not add up, with the difference; undefined where all of it does. */
export function imbalanceOf({ received, settled, answered }: Books): string | undefined {
  const differences = [
    difference('on the chain', received, 'in settled rows', settled),
    ...(answered === undefined ? [] : [difference('on the chain', received, 'in paid answers', answered)]),
  ].filter((each) => each !== undefined);
  return differences.length > 0 ? `the books do not balance: ${differences.join('; ')}` : undefined;
}

function difference(one: string, a: bigint, other: string, b: bigint): string | undefined {
  if (a === b) return undefined;
  const more = a > b ? a - b : b - a;
  return `${a} ${one}, ${b} ${other}: ${more} more ${a > b ? one : other}`;
}

/** Transfers are still being written down where a caller has hung up. */
const PATIENCE_MS = 2_000;
const INTERVAL_MS = 50;

/** Rejects, with what is missing where, if the books do not balance within a few seconds. */
export async function expectBalance(read: () => Promise<Books>, patienceMs = PATIENCE_MS): Promise<void> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const imbalance = imbalanceOf(await read());
    if (imbalance === undefined) return;
    if (performance.now() >= end) throw new Error(imbalance);
    await new Promise((resolve) => {
      setTimeout(resolve, INTERVAL_MS);
    });
  }
}

/** Sum of the settled rows of a ledger's file. */
export function settledIn(databasePath: string): bigint {
  const database = new Database(databasePath);
  const rows = database.prepare(`SELECT requirements FROM payment WHERE state = 'settled'`).all();
  database.close();
  return rows
    .map((row) => BigInt((JSON.parse((row as { requirements: string }).requirements) as { amount: string }).amount))
    .reduce((sum, amount) => sum + amount, 0n);
}

/** Path of each transaction that an answer named, by the port of the server that gave it. */
const seen = new Map<number, Map<string, string>>();

function see(port: number, path: string, status: number, receipt: string | undefined): void {
  if (status !== 200 || receipt === undefined) return;
  const { success, transaction } = JSON.parse(atob(receipt)) as SettleResponse;
  const pathname = decodeURIComponent(new URL(path, 'http://localhost').pathname);
  // One transaction that pays for two operations counts twice.
  const answers = seen.get(port) ?? new Map<string, string>();
  if (success) seen.set(port, answers.set(`${transaction} ${pathname}`, pathname));
}

const RECEIPTS: ReadonlySet<string> = new Set(['payment-response', 'x-payment-response']);

/** What `fetch` gets, by https://undici.nodejs.org/#/docs/api/DiagnosticsChannel. */
interface Fetched {
  readonly request: { readonly origin: string; readonly path: string };
  readonly response: { readonly statusCode: number; readonly headers: readonly Uint8Array[] };
}
subscribe('undici:request:headers', (message) => {
  const { request, response } = message as Fetched;
  const words = response.headers.map((word) => new TextDecoder().decode(word));
  const at = words.findIndex((word, index) => index % 2 === 0 && RECEIPTS.has(word.toLowerCase()));
  see(Number(new URL(request.origin).port), request.path, response.statusCode, at < 0 ? undefined : words[at + 1]);
});

/** What proxies get, which use node:http. */
subscribe('http.client.response.finish', (message) => {
  const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
  const [receipt] = [...RECEIPTS].map((name) => response.headers[name]).filter((value) => typeof value === 'string');
  see(request.socket?.remotePort ?? 0, request.path, response.statusCode ?? 0, receipt);
});

/** A port may have been another server's. */
export const openBooks = (url: string): void => void seen.delete(Number(new URL(url).port));

/** Sum of the prices of the distinct paid answers of the server at `url` that came into this process. */
export function answeredBy(url: string, priceOf: (path: string) => bigint): bigint {
  return [...(seen.get(Number(new URL(url).port))?.values() ?? [])]
    .map(priceOf)
    .reduce((sum, price) => sum + price, 0n);
}
