/** Several facilitators over HTTP, some of which misbehave: who is asked, who never is, and what it costs the payer. */
import { HTTPFacilitatorClient } from '@x402/core/server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ASIDE_MS, createFailover } from '../../src/payment/facilitators.ts';
import { BASE_SEPOLIA_USDC } from '../../src/payment/networks.ts';
import { isUnconnected } from '../../src/runtime/facilitator.ts';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { decodeHeader } from '../service.ts';
import { FAULTS, startFacilitator, type Facilitator, type Fault } from './facilitator.ts';
import { newPaidCall, remoteFolder, startRemote, type RemoteFolder } from './remote.ts';

const TIMEOUT_MS = 500;

let chain: LocalChain;
let folder: RemoteFolder;
let first: Facilitator;
let second: Facilitator;
beforeAll(async () => {
  chain = await startLocalChain();
});
afterAll(() => chain.stop());
beforeEach(async () => {
  [first, second, folder] = await Promise.all([startFacilitator(chain), startFacilitator(chain), remoteFolder(chain)]);
});
afterEach(async () => {
  await Promise.all([first.stop(), second.stop(), folder.remove()]);
});

const env = (more: Record<string, string> = {}): Record<string, string> =>
  folder.env({
    FACILITATOR_URL: `${first.url},${second.url}`,
    FACILITATOR_TIMEOUT_MS: String(TIMEOUT_MS),
    ...more,
  });
const asked = ({ seen }: Facilitator, path: string): number => seen.paths.filter((each) => each === path).length;
const paths = (facilitator: Facilitator) => ['/verify', '/settle'].map((path) => asked(facilitator, path));

describe('the order', () => {
  it('is that of FACILITATOR_URL, then the own one; and another with FACILITATORS', async () => {
    // All of them are well, so nobody has to be given up early.
    const both = env({ FACILITATOR_PRIVATE_KEY: chain.facilitatorKey, FACILITATOR_TIMEOUT_MS: '15000' });
    const orders: [Record<string, string>, number[][]][] = [
      [
        both,
        [
          [1, 1],
          [0, 0],
        ],
      ],
      [
        { ...both, FACILITATOR_URL: `${second.url}, ${first.url}` },
        [
          [0, 0],
          [1, 1],
        ],
      ],
      [
        { ...both, FACILITATORS: 'self,url' },
        [
          [0, 0],
          [0, 0],
        ],
      ],
      [
        { ...both, FACILITATORS: 'self' },
        [
          [0, 0],
          [0, 0],
        ],
      ],
    ];
    for (const [index, [settings, expected]] of orders.entries()) {
      for (const { seen } of [first, second]) seen.paths.length = 0;
      const service = await startRemote(settings);
      const call = await newPaidCall(chain, service.endpoint, 100 + index);
      expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
      expect([first, second].map(paths)).toEqual(expected);
      expect(service.errors).toEqual([]);
      await service.close();
    }
  });

  it('passes over one that settles on other networks only', async () => {
    first.network = 'eip155:1';
    const service = await startRemote(env());
    for (const target of [100, 101]) {
      const call = await newPaidCall(chain, service.endpoint, target);
      expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
    }
    expect([first, second].map(paths)).toEqual([
      [0, 0],
      [2, 2],
    ]);
    await service.close();
  });

  it('sends each its own headers, and nobody another one’s', async () => {
    const headers = {
      [first.url]: { Authorization: 'Bearer first' },
      [second.url]: { Authorization: 'Bearer second' },
    };
    first.verifyFault = FAULTS['500 with JSON'];
    const service = await startRemote(env({ FACILITATOR_HEADERS: JSON.stringify(headers) }));
    const call = await newPaidCall(chain, service.endpoint, 100);
    expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
    expect([first, second].map(({ seen }) => seen.headers.authorization)).toEqual(['Bearer first', 'Bearer second']);
    await service.close();
  });
});

const BROKEN = Object.entries(FAULTS).filter(([name]) =>
  /^(5|429|connection|answer cut|no answer|invalid JSON|JSON of)/.test(name),
);

describe('a facilitator that does not answer /verify', () => {
  it.each(BROKEN)('is put aside, and the next one serves the same call: %s', async (_, fault) => {
    first.verifyFault = fault;
    const service = await startRemote(env());
    for (const target of [100, 101, 102]) {
      const call = await newPaidCall(chain, service.endpoint, target);
      expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
      expect(await call.charges()).toBe(1);
    }
    expect([first, second].map(paths)).toEqual([
      [1, 0],
      [3, 3],
    ]);
    expect(service.errors).toEqual(['facilitator_unanswered']);
    await service.close();
  });

  it('is asked all the same where no other one answers', async () => {
    first.verifyFault = FAULTS['500 with JSON'];
    second.setUp(false);
    const service = await startRemote(env());
    const call = await newPaidCall(chain, service.endpoint, 100);
    expect(await call.send(service.endpoint)).toMatchObject({ status: 503, code: 'facilitator_unavailable' });
    first.verifyFault = undefined;
    expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
    expect(await call.charges()).toBe(1);
    await service.close();
  });

  it('does not pass on what the first one refuses', async () => {
    const service = await startRemote(env());
    const call = await newPaidCall(chain, service.endpoint, 100);
    first.verifyFault = (response) =>
      response
        .writeHead(400, { 'Content-Type': 'application/json' })
        .end('{"isValid":false,"invalidReason":"computer_says_no"}');
    expect(await call.send(service.endpoint)).toMatchObject({ status: 402, code: 'payment_invalid' });
    expect([first, second].map(paths)).toEqual([
      [1, 0],
      [0, 0],
    ]);
    await service.close();
  });
});

describe('a settlement', () => {
  it('goes to the next one where nobody could connect to the first: certainly nothing was sent', async () => {
    const service = await startRemote(env());
    const call = await newPaidCall(chain, service.endpoint, 100);
    first.leavesAfterVerify = true;
    expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
    expect([first, second].map(paths)).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(await call.charges()).toBe(1);
    await service.close();
  });

  const UNCERTAIN = Object.entries(FAULTS).filter(([name]) => !/^(none|slow)/.test(name));
  it.each(UNCERTAIN)('is never sent to another one where the first may have it: %s', async (_, fault) => {
    for (const [target, moved] of [
      [100, 'before'],
      [101, 'never'],
      [102, 'later'],
    ] as const) {
      const service = await startRemote(env());
      const call = await newPaidCall(chain, service.endpoint, target);
      first.behave(call.nonce, { fault, moved });
      const answer = await call.send(service.endpoint);
      expect(answer).toMatchObject(moved === 'before' ? { status: 200 } : { status: 503, code: 'settlement_unknown' });
      if (moved === 'never') expect(await call.send(service.endpoint)).toMatchObject({ status: 503 });
      first.behave(call.nonce, undefined);
      if (moved === 'later') await first.settleLate();
      const resent = await call.send(service.endpoint);
      expect(resent).toMatchObject({ status: 200 });
      if (moved === 'before') expect(resent).toEqual(answer);
      expect([await call.charges(), asked(second, '/settle')]).toEqual([1, 0]);
      await service.close();
    }
  });

  it.each([
    ['lands: the answer', true],
    ['does not land: unknown, and no failure', false],
  ])('of which a second one says "nonce used", when the first one’s transfer %s', async (_, lands) => {
    const before = await startRemote(env());
    const call = await newPaidCall(chain, before.endpoint, 100);
    first.behave(call.nonce, { fault: FAULTS['connection reset'] as Fault, moved: 'later' });
    expect(await call.send(before.endpoint)).toMatchObject({ status: 503, code: 'settlement_unknown' });
    await before.close();
    // A restart forgets who has it, and the first one is gone.
    second.behave(call.nonce, {
      fault: FAULTS['nonce_already_used'] as Fault,
      moved: 'never',
      meanwhile: async () => {
        if (lands) await first.settleLate();
      },
    });
    const after = await startRemote(
      env({ FACILITATOR_URL: second.url, FACILITATOR_PRIVATE_KEY: chain.facilitatorKey }),
    );
    const answer = await call.send(after.endpoint);
    expect(answer).toMatchObject(lands ? { status: 200 } : { status: 503, code: 'settlement_unknown' });
    expect([await call.charges(), paths(second)]).toEqual([lands ? 1 : 0, [0, 1]]);
    await after.close();
  });
});

describe('the health of a facilitator', () => {
  const NETWORK = BASE_SEPOLIA_USDC.caip2;

  it('comes back with its answers: after a while one call tries it, and the others follow', async () => {
    let now = Date.now();
    const reports: string[] = [];
    const members = [first, second].map(({ url }) => ({
      name: url,
      client: new HTTPFacilitatorClient({ url, timeoutMs: TIMEOUT_MS }),
      provesUntouched: isUnconnected,
    }));
    const failover = createFailover(members, {
      network: NETWORK,
      timeoutMs: TIMEOUT_MS,
      now: () => now,
      report: (member) => reports.push(member),
    });
    const service = await startRemote(env());
    const call = await newPaidCall(chain, service.endpoint, 100);
    await service.close();
    for (const { seen } of [first, second]) seen.paths.length = 0;
    const payment = decodeHeader(call.headers['PAYMENT-SIGNATURE'] ?? '');
    const verify = async (): Promise<number[]> => {
      expect(await failover.verify(payment, payment.accepted)).toMatchObject({ isValid: true });
      return [first, second].map((each) => asked(each, '/verify'));
    };

    expect(await verify()).toEqual([1, 0]);
    first.setUp(false);
    const before = first.seen.paths.length;
    expect([await verify(), first.seen.paths.length - before]).toEqual([[2, 1], 1]);
    expect(await verify()).toEqual([2, 2]);
    now += ASIDE_MS - 1;
    expect(await verify()).toEqual([2, 3]);
    // It is tried, by one of those who come at once, and is still down.
    now += 1;
    await Promise.all(Array.from({ length: 5 }, verify));
    expect([first, second].map((each) => asked(each, '/verify'))).toEqual([3, 8]);
    first.setUp(true);
    expect(await verify()).toEqual([3, 9]);
    now += ASIDE_MS;
    expect(await verify()).toEqual([4, 9]);
    expect(await verify()).toEqual([5, 9]);
    expect(reports).toEqual([first.url, first.url]);
  });

  it('is not judged by what it refuses', async () => {
    first.verifyFault = (response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"isValid":false,"invalidReason":"no"}');
    const service = await startRemote(env());
    for (const target of [100, 101]) {
      const call = await newPaidCall(chain, service.endpoint, target);
      expect(await call.send(service.endpoint)).toMatchObject({ status: 402 });
    }
    expect([first, second].map(paths)).toEqual([
      [2, 0],
      [0, 0],
    ]);
    expect(service.errors).toEqual([]);
    await service.close();
  });
});
