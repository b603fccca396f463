/** The check of the books fails when it should: each of the three sums is falsified behind the service's back. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import Database from 'libsql';
import { BASE_SEPOLIA } from '../src/payment/networks.ts';
import { createInProcessFacilitator } from '../src/runtime/facilitator.ts';
import { LOCAL_POLLING_INTERVAL_MS, startLocalChain } from '../src/runtime/local-chain.ts';
import { imbalanceOf } from './books.ts';
import { newPaidCall, remoteFolder, startRemote } from './faults/remote.ts';
import {
  decodeHeader,
  EXAMPLE,
  freshPayment,
  payWith,
  postJson,
  PRICE,
  startTestService,
  type TestService,
} from './service.ts';

describe('imbalanceOf', () => {
  it.each([
    [{ received: 5n, settled: 5n, answered: 5n }, undefined],
    [{ received: 5n, settled: 5n }, undefined],
    [{ received: 0n, settled: 0n, answered: 0n }, undefined],
    [{ received: 7n, settled: 5n }, '7 on the chain, 5 in settled rows: 2 more on the chain'],
    [{ received: 5n, settled: 7n }, '5 on the chain, 7 in settled rows: 2 more in settled rows'],
    [{ received: 5n, settled: 5n, answered: 4n }, '5 on the chain, 4 in paid answers: 1 more on the chain'],
    [
      { received: 6n, settled: 5n, answered: 7n },
      '6 on the chain, 5 in settled rows: 1 more on the chain; 6 on the chain, 7 in paid answers: 1 more in paid answers',
    ],
  ])('%o: %s', (books, expected) => {
    const prefix = expected === undefined ? undefined : `the books do not balance: ${expected}`;
    expect(imbalanceOf(books)).toBe(prefix);
  });
});

describe('a service', () => {
  let service: TestService;
  beforeEach(async () => {
    service = await startTestService();
    const answer = await postJson(service.endpoint, EXAMPLE, payWith(await freshPayment(service)));
    expect(answer.status).toBe(200);
  });
  afterEach(() => service.close().catch(() => {}));

  it('closes where one call was paid for', async () => {
    await service.close();
  });

  it('does not where a payment was settled without an answer', async () => {
    const payment = decodeHeader(await freshPayment(service));
    const { success } = await facilitatorOn(service.chain).settle(payment, payment.accepted);
    expect(success).toBe(true);
    await expect(service.close()).rejects.toThrow(
      `${2n * PRICE} on the chain, ${PRICE} in settled rows: ${PRICE} more on the chain; ` +
        `${2n * PRICE} on the chain, ${PRICE} in paid answers: ${PRICE} more on the chain`,
    );
  });
});

it('a folder of remote mode is not removed quietly where a row was settled without money', async () => {
  const chain = await startLocalChain();
  const folder = await remoteFolder(chain);
  const service = await startRemote(folder.env({ FACILITATOR_PRIVATE_KEY: chain.facilitatorKey }));
  const call = await newPaidCall(chain, service.endpoint, 100);
  expect(await call.send(service.endpoint)).toMatchObject({ status: 200 });
  await service.close();
  const database = new Database(folder.databasePath);
  database.exec(
    `INSERT INTO payment SELECT 'x', state, payer, 'x', valid_before, mac, probe, identifier, requirements, from_block, holder, lease_until, releases, sealed_answer, settlement FROM payment`,
  );
  database.close();
  await expect(folder.remove()).rejects.toThrow(`${PRICE} on the chain, ${2n * PRICE} in settled rows`);
  await chain.stop();
});

const facilitatorOn = ({ rpcUrl, facilitatorKey: privateKey }: TestService['chain']) =>
  createInProcessFacilitator({ chain: BASE_SEPOLIA, rpcUrl, privateKey, pollingIntervalMs: LOCAL_POLLING_INTERVAL_MS });
