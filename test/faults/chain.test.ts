/** A chain that cannot be asked, one that stops making blocks, and one that takes a block back: nothing is guessed meanwhile. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTestClient, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BASE_SEPOLIA } from '../../src/payment/networks.ts';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { postJson } from '../service.ts';
import { FAULTS, startFacilitator, type Facilitator } from './facilitator.ts';
import { answerOf, newPaidCall, remoteFolder, startRemote, type RemoteFolder } from './remote.ts';

let chain: LocalChain;
let facilitator: Facilitator;
let folder: RemoteFolder;
let node: Awaited<ReturnType<typeof startNode>>;
beforeEach(async () => {
  chain = await startLocalChain();
  [facilitator, folder, node] = await Promise.all([
    startFacilitator(chain),
    remoteFolder(chain),
    startNode(chain.rpcUrl),
  ]);
});
afterEach(async () => {
  await folder.remove();
  await facilitator.stop();
  node.server.close();
  await chain.stop();
});

const anvil = () =>
  createTestClient({ mode: 'anvil', chain: BASE_SEPOLIA, transport: http(chain.rpcUrl) }).extend(publicActions);

/** The service's own way to the chain, which can be cut while the facilitator keeps its own. */
async function startNode(rpcUrl: string) {
  const proxy = { up: true, url: '', server: undefined as unknown as Server };
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (!proxy.up) return response.destroy();
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(rpcUrl, { method: 'POST', headers, body: Buffer.concat(chunks) });
    return response.writeHead(200, headers).end(await answer.text());
  };
  proxy.server = createServer((request, response) => {
    forward(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    proxy.server.listen(0, '127.0.0.1', resolve);
  });
  proxy.url = `http://127.0.0.1:${(proxy.server.address() as AddressInfo).port}`;
  return proxy;
}

const KEY = { 'Idempotency-Key': 'call-1' };
const settings = (more: Record<string, string> = {}) =>
  folder.env({ FACILITATOR_URL: facilitator.url, RPC_URL: node.url, FACILITATOR_TIMEOUT_MS: '1500', ...more });

describe('a chain that cannot be asked', () => {
  it('lets nothing begin that it could not decide', async () => {
    const runs = new Map<number, number>();
    const service = await startRemote(settings(), runs);
    const call = await newPaidCall(chain, service.endpoint, 100);
    node.up = false;
    expect((await fetch(`${service.url}/readyz`)).status).toBe(503);
    // The running one knows the newest block for a few seconds more.
    const restarted = await startRemote(settings(), runs);
    expect(await call.send(restarted.endpoint)).toMatchObject({ status: 503, code: 'facilitator_unavailable' });
    expect([runs.size, folder.states().size, await call.charges()]).toEqual([0, 0, 0]);
    node.up = true;
    expect(await call.send(restarted.endpoint)).toMatchObject({ status: 200 });
    await Promise.all([service.close(), restarted.close()]);
  });

  it('keeps an outcome open, also for an unpaid copy, until it can be asked again', async () => {
    const service = await startRemote(settings());
    const call = await newPaidCall(chain, service.endpoint, 100, KEY);
    facilitator.behave(call.nonce, {
      moved: 'before',
      fault: (response, truth) => {
        node.up = false;
        return FAULTS['none']?.(response, truth);
      },
    });
    expect(await call.send(service.endpoint)).toMatchObject({
      status: 503,
      code: 'settlement_unknown',
      retryAfter: '2',
    });
    expect(await call.charges()).toBe(1);
    const unpaid = await postJson(service.endpoint, call.body, KEY);
    expect(unpaid.headers.get('PAYMENT-REQUIRED')).toBeNull();
    const told = await answerOf(unpaid);
    expect(told).toMatchObject({ status: 503, code: 'settlement_unknown', retryAfter: '2' });
    expect(JSON.parse(told.text)).not.toHaveProperty('accepts');
    expect(JSON.parse(told.text)).toMatchObject({ charged: 'unknown' });
    node.up = true;
    const answer = await call.send(service.endpoint);
    expect(answer.status).toBe(200);
    expect(await call.send(service.endpoint)).toEqual(answer);
    expect(await call.charges()).toBe(1);
    expect((await postJson(service.endpoint, call.body, { 'Idempotency-Key': 'two words' })).status).toBe(400);
    await service.close();
  });
});

describe('a chain that stops making blocks', () => {
  it('leaves a transfer in its queue: 503 until it is mined, then the answer, for one charge', async () => {
    const runs = new Map<number, number>();
    const service = await startRemote(settings(), runs);
    const call = await newPaidCall(chain, service.endpoint, 100, KEY);
    await anvil().setAutomine(false);
    expect(await call.send(service.endpoint)).toMatchObject({ status: 503, code: 'settlement_unknown' });
    expect(await answerOf(await postJson(service.endpoint, call.body, KEY))).toMatchObject({ status: 503 });
    expect(await call.send(service.endpoint)).toMatchObject({ status: 503, code: 'settlement_unknown' });
    expect(await call.charges()).toBe(0);
    await service.close();
    await anvil().mine({ blocks: 1 });
    await anvil().setAutomine(true);
    const restarted = await startRemote(settings(), runs);
    await vi.waitFor(() => expect(folder.states().get(call.nonce)).toBe('settled'), { timeout: 5_000 });
    expect(await call.send(restarted.endpoint)).toMatchObject({ status: 200 });
    expect([await call.charges(), runs.get(100)]).toEqual([1, 1]);
    await restarted.close();
  });
});

describe('a chain that takes a block back', () => {
  it('does not count a transfer before its depth, and settles again what was undone', async () => {
    const runs = new Map<number, number>();
    const service = await startRemote(settings({ CONFIRMATIONS: '2' }), runs);
    const call = await newPaidCall(chain, service.endpoint, 100, KEY);
    const before = await anvil().snapshot();
    // The transfer is in the newest block, and there it stays.
    expect(await call.send(service.endpoint)).toMatchObject({ status: 503, code: 'settlement_unknown' });
    expect(await call.charges()).toBe(1);
    expect(await answerOf(await postJson(service.endpoint, call.body, KEY))).toMatchObject({ status: 503 });
    await anvil().revert({ id: before });
    expect(await call.charges()).toBe(0);
    expect(folder.states().get(call.nonce)).toBe('unknown');
    await service.close();

    // The facilitator that sent it counts on a transaction that is no more; this one starts afresh.
    const { facilitatorKey } = chain;
    const restarted = await startRemote(
      folder.env({ RPC_URL: node.url, CONFIRMATIONS: '2', FACILITATOR_PRIVATE_KEY: await freshKey(facilitatorKey) }),
      runs,
    );
    const mining = setInterval(
      () =>
        void anvil()
          .mine({ blocks: 1 })
          .catch(() => {}),
      300,
    );
    const answer = await call.send(restarted.endpoint);
    clearInterval(mining);
    expect(answer).toMatchObject({ status: 200 });
    expect([await call.charges(), runs.get(100)]).toEqual([1, 1]);
    await restarted.close();
  });

  /** Another account with money for gas. */
  async function freshKey(taken: string): Promise<string> {
    const key = taken.replace(/.{4}$/, '0001') as `0x${string}`;
    await anvil().setBalance({ address: privateKeyToAccount(key).address, value: 10n ** 20n });
    return key;
  }
});
