/** Requests at the very limits: what was taken and paid for can be verified, and computed again. */
import { expect, it } from 'vitest';
import { assistant, call, result, user } from '../conversation.ts';
import { freshPayment, payWith, postJson, startTestService } from '../service.ts';

const model = { id: 'claude-sonnet-4' };
const BYTES = 8 * 1_024 * 1_024;
const nested = (levels: number): unknown => (levels > 1 ? [nested(levels - 1)] : []);
const sizeOf = (messages: object[]): number => JSON.stringify({ model, messages }).length;

/** Members and items. */
const valuesOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((total, each) => total + 1 + valuesOf(each), 0)
    : 0;

/** Messages with which a request has so many. */
function withValues(values: number): object[] {
  const wide = { type: 'function_call', id: 'c', function_id: 'f', arguments: Array<number>() };
  const messages = [user('go'), { ...assistant(), content: [wide] }, result('c', 'done')];
  wide.arguments = Array<number>(values - valuesOf({ model, messages })).fill(0);
  return messages;
}

it.each<[string, object[]]>([
  // Five levels are the request, its messages, a message, its content and a block.
  ['64 levels', [user('go'), assistant(call('c', 'a::b', nested(59))), result('c', 'done')]],
  ['100,000 values', withValues(100_000)],
  ['8 MiB', [user('go'), user('x'.repeat(BYTES - sizeOf([user('go'), user('')])))]],
])('%s', async (_, messages) => {
  const service = await startTestService();
  const url = `${service.url}/api/v1/prune`;
  const input = { model, messages };
  const response = await postJson(url, input, payWith(await freshPayment(service, undefined, url)));
  expect(response.status).toBe(200);
  const answer = (await response.json()) as object;
  const verdict = await postJson(`${service.url}/api/v1/verify-provenance`, { ...answer, input });
  expect(await verdict.json()).toMatchObject({ verified: true, checks: { rerun: { result: 'pass' } } });
  await service.close();
});

it('one value more is refused, and so is an amount that sums would lose digits of', async () => {
  const service = await startTestService();
  const url = `${service.url}/api/v1/assemble`;
  const payment = await freshPayment(service, undefined, url);
  const refused = async (input: object): Promise<object> => {
    const response = await postJson(url, input, payWith(payment));
    return { status: response.status, ...((await response.json()) as object) };
  };
  expect(await refused({ model, messages: withValues(100_001) })).toMatchObject({
    status: 400,
    code: 'too_many_values',
  });
  const huge = { model, messages: [user('go')], options: { request_overhead_tokens: Number.MAX_SAFE_INTEGER } };
  expect(await refused(huge)).toMatchObject({
    status: 400,
    code: 'context/invalid_request',
    path: '/options/request_overhead_tokens',
    charged: false,
  });
  await service.close();
});
