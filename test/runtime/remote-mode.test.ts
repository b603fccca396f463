/** Remote mode over a chain that the test owns: who signs, what outlives a restart, and what keeps it from starting. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLocalChain, type LocalChain } from '../../src/runtime/local-chain.ts';
import { didWeb } from '../../src/runtime/remote-service.ts';
import { newPaidCall, remoteFolder, startRemote, type RemoteFolder } from '../faults/remote.ts';
import { decodeHeader, encodeHeader, postJson, requiredOf } from '../service.ts';

let chain: LocalChain;
let folder: RemoteFolder;
let env: Record<string, string>;
beforeAll(async () => {
  chain = await startLocalChain();
  folder = await remoteFolder(chain);
  env = folder.env({ FACILITATOR_PRIVATE_KEY: chain.facilitatorKey });
});
afterAll(async () => {
  await folder.remove();
  await chain.stop();
});

describe('an answer', () => {
  it('is signed in the name of the public URL, and has nothing of local mode', async () => {
    const service = await startRemote(env);
    expect(service.did).toBe('did:web:localhost%3A4021');
    const document = (await (await fetch(`${service.url}/.well-known/did.json`)).json()) as { id: string };
    expect(document.id).toBe(service.did);
    const call = await newPaidCall(chain, service.endpoint, 100);
    const answer = JSON.parse((await call.send(service.endpoint)).text) as {
      _provenance: { credential: { issuer: string; credentialSubject: Record<string, unknown> } };
    };
    const { credential } = answer._provenance;
    expect(credential.issuer).toBe(service.did);
    expect(credential.credentialSubject).not.toHaveProperty('environment');
    const verdict = await postJson(`${service.url}/api/v1/verify-provenance`, { ...answer, input: call.body });
    expect(await verdict.json()).toMatchObject({ verified: true, checks: { rerun: { result: 'pass' } } });
    expect(requiredOf(await fetch(service.endpoint, { method: 'POST' }))).toMatchObject({
      resource: { url: 'http://localhost:4021/api/v1/conversation-prune' },
    });
    expect((await postJson(`${service.url}/local/faucet`, { address: chain.payTo })).status).toBe(404);
    await service.close();
  });

  it('that was paid for comes back the same after a restart with another key and another price', async () => {
    const first = await startRemote(env);
    const call = await newPaidCall(chain, first.endpoint, 200);
    const answer = await call.send(first.endpoint);
    expect(answer.status).toBe(200);
    await first.close();
    const runs = new Map<number, number>();
    const changed = { SIGNING_KEY: '08'.repeat(32), PRICES: '{"conversation-prune":"7000"}' };
    const second = await startRemote({ ...env, ...changed }, runs);
    expect(await call.send(second.endpoint)).toEqual(answer);
    expect(runs.size).toBe(0);
    expect(await call.charges()).toBe(1);
    await second.close();
  });
});

describe('the start', () => {
  it('is refused with a ledger of another secret, and with another chain behind RPC_URL', async () => {
    const elsewhere = createServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x1' }));
    });
    await new Promise<void>((resolve) => {
      elsewhere.listen(0, '127.0.0.1', resolve);
    });
    const { port } = elsewhere.address() as AddressInfo;
    await expect(startRemote({ ...env, RPC_URL: `http://127.0.0.1:${port}` })).rejects.toThrow('RPC_URL: is chain 1,');
    await expect(startRemote({ ...env, STORE_SECRET: '0a'.repeat(32) })).rejects.toThrow('STORE_SECRET');
    elsewhere.close();
  });

  it('is not kept up by a chain that is silent: it says that it is not ready', async () => {
    const service = await startRemote({ ...env, RPC_URL: 'http://127.0.0.1:9' });
    const ready = await fetch(`${service.url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([503, { ok: false, checks: { chain: false } }]);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await service.close();
  });
});

describe('PAYMENT_IDENTIFIER=required', () => {
  it('is declared, and a payment without an id is a bad request', async () => {
    const service = await startRemote({ ...env, PAYMENT_IDENTIFIER: 'required' });
    const call = await newPaidCall(chain, service.endpoint, 300);
    const answer = await call.send(service.endpoint);
    expect([answer.status, answer.code]).toEqual([400, 'malformed_payment']);
    expect(JSON.parse(answer.text)).toMatchObject({ charged: false });
    const payment = decodeHeader(call.headers['PAYMENT-SIGNATURE'] ?? '');
    expect(payment.extensions).toMatchObject({ 'payment-identifier': { info: { required: true } } });
    const extensions = { 'payment-identifier': { info: { required: true, id: 'pay_0123456789abcdef' } } };
    const paid = { 'PAYMENT-SIGNATURE': encodeHeader({ ...payment, extensions }) };
    expect((await postJson(service.endpoint, call.body, paid)).status).toBe(200);
    await service.close();
  });
});

describe('didWeb', () => {
  it('is the host, and a port with its colon encoded', () => {
    expect(didWeb('https://context.example')).toBe('did:web:context.example');
    expect(didWeb('http://localhost:4021')).toBe('did:web:localhost%3A4021');
  });
});

describe('another signing key', () => {
  const OTHER_KEY = { SIGNING_KEY: '08'.repeat(32) };
  const keysFolder = mkdtempSync(join(tmpdir(), 'context-evidence-kit-keys-'));
  const file = join(keysFolder, 'did.json');
  afterAll(() => rmSync(keysFolder, { recursive: true }));
  type Document = { verificationMethod: { id: string; type: string; revoked?: string }[] };
  const documentOf = async (url: string): Promise<Document> =>
    (await (await fetch(`${url}/.well-known/did.json`)).json()) as Document;

  it('leaves what the one before signed verifiable, until that is revoked', async () => {
    const first = await startRemote(env);
    const call = await newPaidCall(chain, first.endpoint, 300);
    const answer = (await call.send(first.endpoint)).text;
    const before = await documentOf(first.url);
    await first.close();
    const verdictOf = async (service: { url: string }): Promise<unknown> =>
      (await postJson(`${service.url}/api/v1/verify-provenance`, answer)).json();

    const forgetful = await startRemote({ ...env, ...OTHER_KEY });
    expect(await verdictOf(forgetful)).toMatchObject({
      outcome: 'contradicted',
      checks: { issuer: { result: 'fail' } },
    });
    await forgetful.close();

    writeFileSync(file, JSON.stringify(before));
    const second = await startRemote({ ...env, ...OTHER_KEY, RETIRED_KEYS: file });
    expect(await verdictOf(second)).toMatchObject({ outcome: 'verified' });
    const ids = (await documentOf(second.url)).verificationMethod.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(before.verificationMethod.map(({ id }) => id)));
    expect(ids.length).toBe(2 * before.verificationMethod.length);
    await second.close();

    // The key in use is no retired one, and a list of documents is one of their keys.
    writeFileSync(file, JSON.stringify([before, before]));
    const same = await startRemote({ ...env, RETIRED_KEYS: file });
    expect((await documentOf(same.url)).verificationMethod).toEqual(before.verificationMethod);
    await same.close();

    const revoked = before.verificationMethod.map((method) => ({ ...method, revoked: '2026-01-01T00:00:00Z' }));
    writeFileSync(file, JSON.stringify({ verificationMethod: revoked }));
    const third = await startRemote({ ...env, ...OTHER_KEY, RETIRED_KEYS: file });
    const { checks } = (await verdictOf(third)) as { checks: { issuer: { reason: string } } };
    expect(checks.issuer.reason).toContain('revoked');
    await third.close();
  });

  it.each<[string, string | undefined]>([
    ['no file', undefined],
    ['no JSON', '{'],
    ['no document', '[]'],
    ['no key', '{"verificationMethod":[{"type":"Multikey","publicKeyMultibase":"z6Mk"}]}'],
    [
      'a time that is none',
      '{"verificationMethod":[{"type":"Multikey","publicKeyMultibase":"z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2","revoked":"yesterday"}]}',
    ],
  ])('is refused at the start with %s as the file of those before', async (_, content) => {
    rmSync(file, { force: true });
    if (content !== undefined) writeFileSync(file, content);
    await expect(startRemote({ ...env, RETIRED_KEYS: file })).rejects.toThrow('RETIRED_KEYS');
  });
});
