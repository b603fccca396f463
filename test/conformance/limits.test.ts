/** Requests at the very limits: what was taken and paid for can be verified, and computed again. */
import { expect, it } from 'vitest';
import { assistant, call, result, user } from '../conversation.ts';
import { freshPayment, payWith, postJson, startTestService } from '../service.ts';

const model = { id: 'claude-sonnet-4' };
const BYTES = 8 * 1_024 * 1_024;
const nested = (levels: number): unknown => (levels > 1 ? [nested(levels - 1)] : []);
const sizeOf = (messages: object[]): number => JSON.stringify({ model, messages }).length;

it.each<[string, object[]]>([
  // Five levels are the request, its messages, a message, its content and a block.
  ['64 levels', [user('go'), assistant(call('c', 'a::b', nested(59))), result('c', 'done')]],
  ['100,000 values', [user(...Array<string>(33_320).fill('')), assistant('well')]],
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
