/** The largest accepted call, 500 messages and 400,000 characters: engine, evidence, and the whole paid call over HTTP. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { execute, type AnswerIssuer } from '../src/operations/execute.ts';
import { DEFAULT_CONTEXT } from '../src/operations/run-context.ts';
import { operations } from '../src/operations/list.ts';
import { validate } from '../src/operations/validate.ts';
import { canonicalJson, requestDigest, sha256 } from '../src/provenance/canonical.ts';
import { didDocument, didKey } from '../src/provenance/did.ts';
import { createSigner, verifySignature } from '../src/provenance/ed25519.ts';
import { issuerOf } from '../src/provenance/envelope.ts';
import { parseStrictJson } from '../src/provenance/strict-json.ts';
import { verifyEnvelope } from '../src/provenance/verify.ts';
import { parseSettings } from '../src/runtime/env.ts';
import { startLocalService } from '../src/runtime/local-service.ts';
import { medianMs, row } from './measure.ts';

const WORDS =
  'the agent reads a file, runs the tests, prints {"status": "ok", "line": 42} and goes on to the next step; '.split(
    ' ',
  );

/** Text of mixed words, different in each message, so that no cache of whole texts can help. */
function prose(index: number, length: number): string {
  let text = `${index}: `;
  for (let word = index; text.length < length; word += 7) text += `${WORDS[word % WORDS.length]} `;
  return text.slice(0, length);
}

const request = {
  messages: Array.from({ length: 500 }, (_, index) => ({ role: 'user', content: prose(index, 800), droppable: true })),
  cacheBreakpoint: 20,
  targetTokens: 50_000,
};

export async function benchCall(): Promise<void> {
  const operation = operations.find(({ id }) => id === 'conversation-prune');
  if (!operation) throw new Error('conversation-prune is gone');
  const signer = await createSigner(crypto.getRandomValues(new Uint8Array(32)));
  const did = didKey(signer.publicKey);
  const issuer: AnswerIssuer = {
    ...(await issuerOf(did, signer)),
    generator: { name: 'bench', version: '0' },
    now: () => new Date(),
    newId: () => crypto.randomUUID(),
  };
  const text = JSON.stringify(request);
  const bytes = new TextEncoder().encode(text);
  const inputDigest = await requestDigest(operation.id, request);
  const execution = await execute(operation, request, { run: DEFAULT_CONTEXT, issuer, inputDigest });
  if (execution.kind !== 'answer') throw new Error('no answer');
  const { envelope } = execution;

  const parse = await medianMs(() => JSON.parse(text));
  row('JSON.parse of the request', parse);
  row('strict scan and parse', await medianMs(() => parseStrictJson(bytes)), { name: 'JSON.parse', ms: parse });
  row('validation', await medianMs(() => validate(operation, request)), { name: 'JSON.parse', ms: parse });
  row('request digest', await medianMs(() => requestDigest(operation.id, request)), { name: 'JSON.parse', ms: parse });
  const engine = await medianMs(() => operation.run(request, DEFAULT_CONTEXT));
  row('engine', engine);
  const outcome = await operation.run(request, DEFAULT_CONTEXT);
  const answered = { ...operation, run: async () => outcome };
  const evidence = await medianMs(() => execute(answered, request, { run: DEFAULT_CONTEXT, issuer, inputDigest }));
  const limit = await medianMs(async () => signer.sign(await sha256(canonicalJson(envelope.data))));
  row('canonical JSON + SHA-256 + Ed25519 of the answer', limit);
  row('evidence: manifest, credential, signature', evidence, { name: 'that limit', ms: limit });
  const trusted = await didDocument(did, [signer]);
  const signature = await signer.sign(await sha256(canonicalJson(envelope.data)));
  const verifyLimit = await medianMs(async () => {
    const hash = await sha256(canonicalJson(envelope.data));
    return verifySignature(signature, hash, signer.publicKey);
  });
  row('verification', await medianMs(() => verifyEnvelope({ envelope, trusted, now: new Date() })), {
    name: 'hash and verify once',
    ms: verifyLimit,
  });
  await benchPaidCall(JSON.stringify(operation.example), text);
}

async function benchPaidCall(example: string, text: string): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'context-evidence-kit-bench-'));
  const start = performance.now();
  const settings = parseSettings(
    { PORT: '0', DATA_DIR: dataDir },
    operations.map(({ id }) => id),
  );
  const service = await startLocalService(settings, () => {});
  row('boot of local mode, chain and contract included', performance.now() - start);
  try {
    const account = privateKeyToAccount(generatePrivateKey());
    await service.chain.mint(account.address, 1_000_000n);
    const pay = wrapFetchWithPayment(fetch, new x402Client().register('eip155:*', new ExactEvmScheme(account)));
    const call = async (body: string): Promise<void> => {
      const response = await pay(`${service.url}/api/v1/conversation-prune`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      });
      if (!response.ok) throw new Error(`paid call: ${response.status}`);
      await response.arrayBuffer();
    };
    const small = await medianMs(() => call(example));
    row('paid call of the example (402, sign, pay, settle)', small);
    row('paid call of 500 messages, 400,000 characters', await medianMs(() => call(text)), {
      name: 'the example',
      ms: small,
    });
  } finally {
    await service.close();
    await rm(dataDir, { recursive: true });
  }
}
