/**
 * Many paid calls at once in local mode: distinct ones, and copies of one. PAYMENT_CALLS says how many; the figures are printed. Payers, service and
 * chain share the machine.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { conversationPrune } from '../../src/operations/conversation-prune.ts';
import {
  balanceOf,
  EXAMPLE,
  newWallet,
  payWith,
  postJson,
  PRICE,
  requiredOf,
  startTestService,
  type TestService,
} from '../service.ts';
import { answerOf, type Answer } from './remote.ts';

const CALLS = Number(process.env['PAYMENT_CALLS'] ?? 200);
const CALLS_PER_PAYER = 10;

/** The service takes its operations when it starts. */
const run = vi.spyOn(conversationPrune, 'run');
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  await service.close();
  run.mockRestore();
});

interface Measured {
  readonly answers: readonly Answer[];
  readonly seconds: number;
}

async function atOnce(sends: readonly (() => Promise<Answer>)[]): Promise<Measured> {
  run.mockClear();
  const start = performance.now();
  const answers = await Promise.all(sends.map((send) => send()));
  return { answers, seconds: (performance.now() - start) / 1_000 };
}

const transactionsOf = (answers: readonly Answer[]): Set<string> =>
  new Set(
    answers.flatMap(({ receipt }) =>
      receipt === null ? [] : [(JSON.parse(atob(receipt)) as { transaction: string }).transaction],
    ),
  );

const earned = (): Promise<bigint> => balanceOf(service.chain, service.chain.payTo);

it(
  'answers distinct calls that come at once, and charges each once',
  async () => {
    const before = await earned();
    const wallets = await Promise.all(
      Array.from({ length: Math.ceil(CALLS / CALLS_PER_PAYER) }, () => newWallet(service)),
    );
    const funds = await Promise.all(wallets.map(({ account }) => balanceOf(service.chain, account.address)));
    const required = requiredOf(await fetch(service.endpoint, { method: 'POST' }));
    const sends = await Promise.all(
      Array.from({ length: CALLS }, async (_, index) => {
        const payment = await wallets[Math.floor(index / CALLS_PER_PAYER)]?.sign(required);
        const body = { ...EXAMPLE, targetTokens: 1_000 + index };
        return async () => answerOf(await postJson(service.endpoint, body, payWith(payment ?? '')));
      }),
    );

    const { answers, seconds } = await atOnce(sends);
    const runs = run.mock.calls.length;
    const resent = await Promise.all(sends.map((send) => send()));
    const left = await Promise.all(wallets.map(({ account }) => balanceOf(service.chain, account.address)));
    const spent = wallets.map((_, index) => Number(((funds[index] ?? 0n) - (left[index] ?? 0n)) / PRICE));
    const received = ((await earned()) - before) / PRICE;
    const figures = {
      answered: answers.filter(({ status }) => status === 200).length,
      settled: transactionsOf(answers).size,
      spent: spent.reduce((sum, each) => sum + each, 0),
      received: Number(received),
      engineRuns: runs,
      equalWhenSentAgain: resent.filter(({ text, receipt }, index) => {
        const answer = answers[index];
        return answer?.text === text && answer.receipt === receipt;
      }).length,
      engineRunsAfterAll: run.mock.calls.length,
    };
    console.log(`${CALLS} distinct calls at once, ${seconds.toFixed(1)} s:`, figures);
    expect(answers.filter(({ status }) => status !== 200).map(({ status, code }) => `${status} ${code}`)).toEqual([]);
    expect(figures).toEqual(Object.fromEntries(Object.keys(figures).map((name) => [name, CALLS])));
    expect(spent.every((each, index) => each === Math.min(CALLS_PER_PAYER, CALLS - index * CALLS_PER_PAYER))).toBe(
      true,
    );
    // Each its own answer: the manifest names the target that was asked for.
    expect(new Set(answers.map(({ text }) => text)).size).toBe(CALLS);
    expect(service.errors).toEqual([]);
  },
  30_000 + CALLS * 1_000,
);

it(
  'answers copies of one call that come at once with the same bytes, and charges once',
  async () => {
    const [before, wallet] = [await earned(), await newWallet(service)];
    const funds = await balanceOf(service.chain, wallet.account.address);
    const payment = await wallet.sign(requiredOf(await fetch(service.endpoint, { method: 'POST' })));
    const send = async (): Promise<Answer> => answerOf(await postJson(service.endpoint, EXAMPLE, payWith(payment)));

    const { answers, seconds } = await atOnce(Array.from({ length: CALLS }, () => send));
    const figures = {
      answered: answers.filter(({ status }) => status === 200).length,
      settled: transactionsOf(answers).size,
      spent: Number((funds - (await balanceOf(service.chain, wallet.account.address))) / PRICE),
      received: Number(((await earned()) - before) / PRICE),
      engineRuns: run.mock.calls.length,
      differentAnswers: new Set(answers.map(({ text, receipt }) => `${receipt} ${text}`)).size,
    };
    console.log(`${CALLS} copies of one call at once, ${seconds.toFixed(1)} s:`, figures);
    expect(figures).toEqual({ answered: CALLS, settled: 1, spent: 1, received: 1, engineRuns: 1, differentAnswers: 1 });
    expect(service.errors).toEqual([]);
  },
  30_000 + CALLS * 1_000,
);
