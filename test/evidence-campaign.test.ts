/**
 * Real answers of the real service, forged in every way that is known: none is taken for what it is not, and no honest one is refused.
 * Short in the suite; `npm run soak:evidence` does all of it and prints the counts.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../src/json.ts';
import { operations } from '../src/operations/list.ts';
import { canonicalJsonIfAny } from '../src/provenance/canonical.ts';
import { didDocument, didKey, verificationMethodId } from '../src/provenance/did.ts';
import { createSigner } from '../src/provenance/ed25519.ts';
import { issueEnvelope } from '../src/provenance/envelope.ts';
import { requestDigest } from '../src/provenance/canonical.ts';
import { ANSWER_LIMITS, parseStrictJson } from '../src/provenance/strict-json.ts';
import { verifyEnvelope } from '../src/provenance/verify.ts';
import { mutantsOf, respelled } from './mutants.ts';
import { nativesOf } from './native-conversations.ts';
import { freshPayment, newKey, payWith, postJson, startTestService, type TestService } from './service.ts';
import { readTranscript } from './transcripts.ts';

const WHOLE = process.env['EVIDENCE_CAMPAIGN'] === 'whole';
const [ANSWERS, SIBLINGS, HONEST] = WHOLE ? [20, 12, 10_000] : [3, 2, 300];

let service: TestService;
let trusted: JsonObject;
const texts: string[] = [];
beforeAll(async () => {
  service = await startTestService();
  trusted = (await (await fetch(`${service.url}/.well-known/did.json`)).json()) as JsonObject;
  const key = await newKey(service, 10_000_000n);
  const ask = async (id: string, body: unknown, paid = false): Promise<void> => {
    const url = `${service.url}/api/v1/${id}`;
    const headers = paid ? payWith(await freshPayment(service, undefined, url)) : { 'X-API-KEY': key };
    const response = await postJson(url, body, headers);
    expect(response.status).toBe(200);
    texts.push(await response.text());
  };
  const { messages, system_prompt } = readTranscript('25-anthropic-parallel-tool-calls');
  for (const { id, example } of operations) {
    await ask(id, example, true);
    const sample = (await (await fetch(`${service.url}/api/v1/samples/${id}`)).json()) as { response: object };
    texts.push(JSON.stringify(sample.response));
  }
  for (const native of nativesOf(messages, system_prompt)) {
    const model = { id: 'gpt-5' };
    await ask('count', { ...native, model });
    await ask('conversation-prune', { ...native, cacheBreakpoint: -1, targetTokens: 200 });
    if (native.format !== 'ai-sdk') await ask('assemble', { ...native, model });
  }
  // The smallest first: the same ways of forging them, in less time.
  texts.sort((a, b) => a.length - b.length);
});
afterAll(() => service.close());

const verifiedText = async (text: string): Promise<boolean> => {
  const parsed = parseStrictJson(text, ANSWER_LIMITS);
  return parsed.ok && (await verifyEnvelope({ envelope: parsed.value, trusted, now: new Date() })).verified;
};
const canonicalOf = (text: string): string | undefined => {
  const parsed = parseStrictJson(text, ANSWER_LIMITS);
  return parsed.ok ? canonicalJsonIfAny(parsed.value) : undefined;
};

it(
  'no forgery is verified, and every other spelling of the same is',
  async () => {
    expect(texts.length).toBeGreaterThanOrEqual(20);
    let [forgeries, spellings] = [0, 0];
    const wrong: string[] = [];
    for (const text of texts.slice(0, ANSWERS)) {
      expect(await verifiedText(text)).toBe(true);
      const answer: unknown = JSON.parse(text);
      const original = canonicalJsonIfAny(answer);
      for (const mutant of mutantsOf(answer, SIBLINGS)) {
        if (canonicalJsonIfAny(mutant) === original) continue;
        forgeries += 1;
        const { verified } = await verifyEnvelope({ envelope: mutant, trusted, now: new Date() });
        if (verified) wrong.push(JSON.stringify(mutant).slice(0, 200));
      }
      for (const other of respelled(text)) {
        const isSame = canonicalOf(other) === original;
        if (isSame) spellings += 1;
        else forgeries += 1;
        if ((await verifiedText(other)) !== isSame) wrong.push(other.slice(0, 200));
      }
    }
    process.stdout.write(
      `${ANSWERS} answers: ${forgeries} forgeries, ${spellings} other spellings, ${wrong.length} judged wrongly\n`,
    );
    expect(wrong).toEqual([]);
    expect(forgeries).toBeGreaterThan(1_000 * ANSWERS);
    expect(spellings).toBeGreaterThan(20 * ANSWERS);
  },
  WHOLE ? 1_800_000 : 60_000,
);

it(
  'no honest answer is refused, whatever it says',
  async () => {
    const signer = await createSigner(new Uint8Array(32).fill(7));
    const did = didKey(signer.publicKey);
    const issuer = { did, verificationMethod: await verificationMethodId(did, signer.publicKey), signer };
    const document = await didDocument(did, [signer]);
    // What a strict reader takes, as requests are read, and answers are made of.
    const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => parseStrictJson(JSON.stringify(value)).ok);
    await fc.assert(
      fc.asyncProperty(json, json, async (data, input) => {
        const now = new Date();
        const issued = await issueEnvelope({
          issuer,
          operation: 'count',
          operationVersion: '1.0.0',
          title: 'Token count',
          generator: { name: 'a', version: '1' },
          deterministic: true,
          versions: { engine: 'count/1.0.0' },
          inputDigest: await requestDigest('count', input),
          data,
          charged: '1000',
          now,
          newId: () => crypto.randomUUID(),
        });
        const parsed = parseStrictJson(JSON.stringify(issued), ANSWER_LIMITS);
        const envelope = parsed.ok && isJsonObject(parsed.value) ? parsed.value : {};
        const { outcome, checks } = await verifyEnvelope({ envelope, input, trusted: document, now });
        expect([outcome, checks.input_digest.result]).toEqual(['verified', 'pass']);
      }),
      { numRuns: HONEST },
    );
  },
  WHOLE ? 600_000 : 60_000,
);
