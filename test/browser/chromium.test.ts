/** The whole life of a paid call in a real browser, from a page of another origin: challenge, signature, answer, evidence, and a retry. */
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { rolldown } from 'rolldown';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startProxy, type Proxy } from '../client/proxy.ts';
import { balanceOf, EXAMPLE, postJson, PRICE, startTestService, type TestService } from '../service.ts';
import type { Call, Outcome, Paying } from './page.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const present = existsSync(CHROMIUM);
if (!present) {
  process.stdout.write(
    `Skipped, since there is no Chromium at ${CHROMIUM}: what a browser sees. CHROMIUM names another.\n`,
  );
}

/** One script, as a page loads it; nothing of Node may be in it. */
async function bundle(): Promise<string> {
  const build = await rolldown({ input: join(import.meta.dirname, 'page.ts'), platform: 'browser' });
  const { output } = await build.generate({ format: 'iife', codeSplitting: false });
  await build.close();
  const [script, ...others] = output;
  expect([others, script?.imports]).toEqual([[], []]);
  return script?.code ?? '';
}

describe.skipIf(!present)('a page of another origin', () => {
  let service: TestService;
  let proxy: Proxy;
  let pages: Server;
  let browser: Browser;
  let page: Page;
  let key: `0x${string}`;

  beforeAll(async () => {
    const script = await bundle();
    service = await startTestService();
    proxy = await startProxy(service.url);
    pages = createServer((request, response) => {
      const isScript = request.url === '/page.js';
      response.writeHead(200, { 'Content-Type': isScript ? 'text/javascript' : 'text/html' });
      response.end(isScript ? script : '<!doctype html><meta charset="utf-8"><script src="/page.js"></script>');
    });
    await new Promise<void>((resolve) => {
      pages.listen(0, '127.0.0.1', resolve);
    });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    page = await (await browser.newContext()).newPage();
  });
  afterAll(async () => {
    await browser?.close();
    pages?.close();
    await proxy?.close();
    await service?.close();
  });

  const origin = (): string => `http://localhost:${(pages.address() as AddressInfo).port}`;
  beforeEach(async () => {
    proxy.script();
    proxy.scriptPaid();
    key = generatePrivateKey();
    await postJson(`${service.url}/local/faucet`, { address: privateKeyToAccount(key).address });
    await page.goto(origin());
  });

  /** Each test's request is one of its own. */
  let unique = 0;
  const newBody = (): string => JSON.stringify({ ...EXAMPLE, targetTokens: EXAMPLE.targetTokens + (unique += 1) });
  const run = (what: keyof Paying, call: Partial<Call> = {}): Promise<Outcome> => {
    const url = `${proxy.url}/api/v1/conversation-prune`;
    const whole: Call = { url, body: JSON.stringify(EXAMPLE), key, retries: 2, ...call };
    return page.evaluate(([name, argument]) => (globalThis as unknown as { paying: Paying }).paying[name](argument), [
      what,
      whole,
    ] as const);
  };
  const charged = async (): Promise<bigint> =>
    10_000_000n - (await balanceOf(service.chain, privateKeyToAccount(key).address));

  it('is challenged, and can read what to sign', async () => {
    const { status, headers, body } = await run('unpaid');
    expect([status, body]).toMatchObject([402, { code: 'payment_required', accepts: [{ scheme: 'exact' }] }]);
    expect(headers?.['payment-required']).toBeTruthy();
    expect(headers?.['x-request-id']).toBeTruthy();
  });

  it('pays, and gets a verified answer with its receipt', async () => {
    const { status, headers, body, signatures } = await run('paid');
    expect([status, signatures]).toEqual([200, 1]);
    expect(body).toMatchObject({ data: { status: 'pass', keep: [0, 1, 4, 5] }, _provenance: {} });
    expect(headers?.['payment-response']).toBeTruthy();
    expect(await charged()).toBe(PRICE);
  });

  it('pays with the stock client too', async () => {
    const { status, headers } = await run('stock', { body: newBody() });
    expect([status, typeof headers?.['payment-response'], await charged()]).toEqual([200, 'string', PRICE]);
  });

  it.each(['lost', 'cut in the middle', 'bad gateway', 'settlement unknown'] as const)(
    'is charged once when an answer goes astray: %s',
    async (fault) => {
      proxy.scriptPaid(fault);
      const { status, signatures } = await run('paid', { body: newBody() });
      expect([status, signatures, await charged()]).toEqual([200, 1, PRICE]);
    },
  );

  it('is charged once when it is loaded anew before its answer came', async () => {
    const body = newBody();
    // After a reset Chromium sends a request again by itself, a POST too; an answer that breaks off it hands on as it is.
    proxy.scriptPaid('cut in the middle');
    expect(await run('paid', { body, retries: 0 })).toEqual({ error: 'network_failed', signatures: 1 });
    await page.reload();
    const { status, signatures } = await run('paid', { body });
    expect([status, signatures, await charged()]).toEqual([200, 0, PRICE]);
  });

  it('does not pay for what nobody vouches for', async () => {
    proxy.scriptPaid({
      rewrite: ({ status, headers, body }) => ({
        status,
        headers,
        body: Buffer.from(body.toString().replace('"tokensBefore":6', '"tokensBefore":7')),
      }),
    });
    const body = newBody();
    expect(await run('paid', { body })).toEqual({ error: 'answer_unverified', signatures: 1 });
    expect(await run('paid', { body })).toMatchObject({ status: 200, signatures: 0 });
    expect(await charged()).toBe(PRICE);
  });

  it('gets nothing out of the faucet', async () => {
    const stranger = privateKeyToAccount(generatePrivateKey()).address;
    const url = `${service.url}/local/faucet`;
    const { error } = await run('unpaid', { url, body: JSON.stringify({ address: stranger }) });
    expect(error).toContain('Failed to fetch');
    expect(await balanceOf(service.chain, stranger)).toBe(0n);
  });
});
