import { hkdfSync } from 'node:crypto';
import * as fc from 'fast-check';
import { compactVerify, importJWK } from 'jose';
import { describe, expect, it, test } from 'vitest';
import { canonicalJson, fromHex, toBase64Url, toHex } from './canonical.ts';
import { createSigner } from './ed25519.ts';
import { compactJws, deriveSeed, signJson } from './jws.ts';

// RFC 8037 appendix A: the key of A.1 and A.2, the JWS of A.4.
const SEED = fromHex('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60');
const JWS =
  'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg';

test('a JWS is the one of RFC 8037', async () => {
  const signer = await createSigner(SEED);
  expect(toBase64Url(signer.publicKey)).toBe('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo');
  expect(await compactJws('{"alg":"EdDSA"}', 'Example of Ed25519 signing', signer)).toBe(JWS);
});

describe('signJson', () => {
  it('signs any JSON so that jose reads it again, in one way only', async () => {
    const signer = await createSigner(SEED);
    const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x: toBase64Url(signer.publicKey) }, 'EdDSA');
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), fc.webUrl(), async (payload, kid) => {
        const jws = await signJson(payload, { kid, signer });
        const read = await compactVerify(jws, key);
        expect(read.protectedHeader).toEqual({ alg: 'EdDSA', kid });
        expect(new TextDecoder().decode(read.payload)).toBe(canonicalJson(payload));
        const turned = Object.fromEntries(Object.entries(payload).toReversed());
        expect(await signJson(turned, { kid, signer })).toBe(jws);
      }),
      { numRuns: 50 },
    );
  });
});

describe('deriveSeed', () => {
  it('is HKDF-SHA-256, as another implementation has it', async () => {
    const info = 'context-evidence-kit/v1/offers';
    const expected = hkdfSync('sha256', SEED, new Uint8Array(), info, 32);
    expect(toHex(await deriveSeed(SEED, 'offers'))).toBe(Buffer.from(expected).toString('hex'));
  });

  it('gives another key for each purpose and seed', async () => {
    const seeds = [
      SEED,
      await deriveSeed(SEED, 'a'),
      await deriveSeed(SEED, 'b'),
      await deriveSeed(new Uint8Array(32), 'a'),
    ];
    expect(new Set(seeds.map(toHex)).size).toBe(4);
  });
});
