/** Every way in which a facilitator can fail, with money moved and not moved: what the client is told, what it costs, what a restart finds. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { FAULTS, startFacilitator, type Facilitator, type Fault, type Moved } from './facilitator.ts';
import { balanceOf, decodeHeader, emptyWallet, encodeHeader, postJson, PRICE } from '../service.ts';
import {
  answerOf,
  newPaidCall,
  remoteFolder,
  startRemote,
  type Answer,
  type PruneCall,
  type RemoteFolder,
} from './remote.ts';

let chain: LocalChain;
let facilitator: Facilitator;
let folder: RemoteFolder;
let env: Record<string, string>;
beforeAll(async () => {
  chain = await startLocalChain();
  [facilitator, folder] = await Promise.all([startFacilitator(chain), remoteFolder(chain)]);
  env = folder.env({ FACILITATOR_URL: facilitator.url, FACILITATOR_TIMEOUT_MS: '1500' });
});
afterAll(async () => {
  await folder.remove();
  await facilitator.stop();
  await chain.stop();
});

const MOVED: readonly Moved[] = ['before', 'never', 'later'];
const show = ({ status, code }: Answer): string => `${status} ${code}`;
/** A row of its own: here the facilitator is right, and the chain says so too. Only then may a payment end. */
const TRUE_FAILURE = 'failure: no funds, which is true';

it('never charges twice, never keeps an answer that was paid for, and never asks for a second payment while the first may move', async () => {
  const runs = new Map<number, number>();
  const first = await startRemote(env, runs);
  const cases = await Promise.all(
    Object.entries(FAULTS).flatMap(([name, fault], row) =>
      MOVED.map(async (moved, column) => {
        const call = await newPaidCall(chain, first.endpoint, 1_000 + row * MOVED.length + column);
        facilitator.behave(call.nonce, { fault, moved });
        return { name, moved, call };
      }),
    ),
  );
  const poor = await newPaidCall(chain, first.endpoint, 900);
  facilitator.behave(poor.nonce, {
    fault: FAULTS['failure: no funds'] as Fault,
    moved: 'never',
    meanwhile: () => emptyWallet(chain, poor.payer),
  });
  // A facilitator that settles later cannot be honest as well.
  const tried = cases.filter(({ name, moved }) => moved === 'before' || !['none', 'slow answer'].includes(name));
  tried.push({ name: TRUE_FAILURE, moved: 'never', call: poor });
  const answers: Answer[] = [];
  const retried: Answer[] = [];
  // A few at a time, or the honest part of the facilitator would be too slow as well.
  for (let index = 0; index < tried.length; index += MOVED.length) {
    const some = tried.slice(index, index + MOVED.length);
    const told = await Promise.all(some.map(({ call }) => call.send(first.endpoint)));
    answers.push(...told);
    for (const [offset, { call }] of some.entries()) {
      const answer = told[offset];
      if (answer) retried.push(answer.status === 503 ? await call.send(first.endpoint) : answer);
    }
  }
  await first.close();

  for (const { call } of tried) facilitator.behave(call.nonce, undefined);
  await facilitator.settleLate();
  const charged = async (call: PruneCall): Promise<number> => (call === poor ? 0 : call.charges());
  for (const { moved, call } of tried) expect(await charged(call)).toBe(moved === 'never' ? 0 : 1);
  const second = await startRemote(env, runs);
  // The first round of reconciliation has begun with the start; every open row whose money has moved is closed by it.
  await vi.waitFor(
    () => {
      const states = folder.states();
      for (const { moved, call } of tried) {
        if (moved !== 'never') expect(states.get(call.nonce)).toBe('settled');
      }
    },
    { timeout: 10_000 },
  );
  const states = folder.states();
  const resent = [];
  for (const { call } of tried) resent.push(await call.send(second.endpoint));
  const again = await Promise.all(tried.map(({ call }) => call.send(second.endpoint)));

  const rows = [];
  for (const [index, { name, moved, call }] of tried.entries()) {
    const [answer, retry, later, last] = [answers, retried, resent, again].map((list) => list[index]);
    if (!answer || !retry || !later || !last) throw new Error('a call went missing');
    const charges = await charged(call);
    const context = `${name}, moved ${moved}`;
    expect(charges, context).toBeLessThanOrEqual(1);
    expect(runs.get(call.targetTokens), context).toBe(1);
    // Whoever has paid can fetch the answer, always the same one.
    expect(last.status, context).toBe(charges === 1 ? 200 : 402);
    const bytes = [answer, retry, later, last].filter(({ status }) => status === 200);
    expect(new Set(bytes.map(({ text, receipt }) => `${receipt} ${text}`)).size, context).toBeLessThanOrEqual(1);
    for (const { status, retryAfter } of [answer, retry, later]) {
      if (status === 402) expect(name, context).toBe(TRUE_FAILURE);
      if (status === 503) expect(Number(retryAfter), context).toBeGreaterThan(0);
    }
    if (moved === 'before') expect(answer.status, context).toBe(200);
    rows.push([name, moved, show(answer), states.get(call.nonce), show(later), charges, runs.get(call.targetTokens)]);
  }
  await second.close();
  // All that the payee has is what these payers were charged.
  expect(await balanceOf(chain, chain.payTo)).toBe(BigInt(tried.length - 1) * PRICE);
  const head = [
    'facilitator',
    'money moves',
    'first answer',
    'ledger after a restart',
    'resend',
    'charges',
    'engine runs',
  ];
  const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  await expect(`${TITLE}\n${table}\n`).toMatchFileSnapshot('../../docs/faults.md');
}, 60_000);

const TITLE = `# What a caller is told when a facilitator fails

Written by \`test/faults/facilitator.test.ts\`: a real service, a facilitator over HTTP that misbehaves in this way at the settlement of one payment, and a chain with Circle's contract. "Later" is after the answer. Then the service is restarted,
the facilitator works again, and the same request is sent once more with the same payment.
`;

it('serves a caller who hung up while it was settled when he comes back', async () => {
  const runs = new Map<number, number>();
  const service = await startRemote(env, runs);
  const call = await newPaidCall(chain, service.endpoint, 400);
  const hangUp = new AbortController();
  facilitator.behave(call.nonce, {
    moved: 'before',
    fault: (response, truth) => {
      hangUp.abort();
      return FAULTS['none']?.(response, truth);
    },
  });
  const headers = { 'Content-Type': 'application/json', ...call.headers };
  const gone = fetch(service.endpoint, {
    method: 'POST',
    headers,
    body: JSON.stringify(call.body),
    signal: hangUp.signal,
  });
  await expect(gone).rejects.toThrow('aborted');
  const copies = await Promise.all([call.send(service.endpoint), call.send(service.endpoint)]);
  expect(copies.map(({ status }) => status)).toEqual([200, 200]);
  expect(copies[0]).toEqual(copies[1]);
  expect([await call.charges(), runs.get(call.targetTokens)]).toEqual([1, 1]);
  await service.close();
});

it.each([200, 400, 500])('takes a refusal with status %i at verification for one, or for no answer', async (status) => {
  const service = await startRemote(env);
  const call = await newPaidCall(chain, service.endpoint, 300);
  const payment = decodeHeader(call.headers['PAYMENT-SIGNATURE'] ?? '');
  const forged = {
    ...payment,
    payload: { ...payment.payload, signature: `0x${'11'.repeat(64)}1b` },
  };
  facilitator.refusalStatus = status;
  const answer = await answerOf(
    await postJson(service.endpoint, call.body, { 'PAYMENT-SIGNATURE': encodeHeader(forged) }),
  );
  facilitator.refusalStatus = 200;
  expect(answer).toMatchObject(
    status < 500 ? { status: 402, code: 'payment_invalid' } : { status: 503, code: 'facilitator_unavailable' },
  );
  expect(folder.states().has(call.nonce)).toBe(false);
  // The nonce was not taken by who guessed it.
  expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
  await service.close();
});

describe('a facilitator that is down', () => {
  it('at boot: the service starts, says 503 with Retry-After, and is there when the facilitator is', async () => {
    facilitator.setUp(false);
    const service = await startRemote(env);
    const unpaid = await fetch(service.endpoint, { method: 'POST' });
    expect([unpaid.status, unpaid.headers.get('Retry-After'), (await unpaid.json()) as object]).toEqual([
      503,
      '2',
      expect.objectContaining({ code: 'facilitator_unavailable', charged: false }),
    ]);
    expect(unpaid.headers.get('PAYMENT-REQUIRED')).toBeNull();
    facilitator.setUp(true);
    const call = await newPaidCall(chain, service.endpoint, 500);
    facilitator.setUp(false);
    expect(await call.send(service.endpoint)).toMatchObject({ status: 503, code: 'facilitator_unavailable' });
    expect(folder.states().has(call.nonce)).toBe(false);
    facilitator.setUp(true);
    const answer = await call.send(service.endpoint);
    expect(answer.status).toBe(200);
    facilitator.setUp(false);
    expect(await call.send(service.endpoint)).toEqual(answer);
    facilitator.setUp(true);
    await service.close();
  });

  it('is asked with the headers that it wants', async () => {
    const headers = JSON.stringify({ Authorization: 'Bearer t', 'X-Tenant': 'u' });
    const service = await startRemote({ ...env, FACILITATOR_HEADERS: headers });
    for (const path of ['/supported', '/verify', '/settle']) {
      facilitator.seen.paths.length = 0;
      facilitator.seen.headers = {};
      if (path === '/supported') await fetch(service.endpoint, { method: 'POST' });
      else await (await newPaidCall(chain, service.endpoint, 600)).send(service.endpoint);
      expect(facilitator.seen.headers).toMatchObject({ authorization: 'Bearer t', 'x-tenant': 'u' });
    }
    await service.close();
  });
});
