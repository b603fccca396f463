import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { formatUnits } from 'viem';
import { describe, expect, it } from 'vitest';
import { decodeBase58 } from '../provenance/multikey.ts';
import { createMemoryAccounts, CREDITS_MAX } from './accounts.ts';
import { createKeyMac, formatCredits, issueKey, parseCredits } from './api-keys.ts';

describe('the HMAC of a key', () => {
  it('is HMAC-SHA-256 (RFC 4231, test case 1, its key filled up with zeros)', async () => {
    const pepper = new Uint8Array(32);
    pepper.fill(0x0b, 0, 20);
    expect(await (await createKeyMac(pepper))('Hi There')).toBe(
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    );
  });

  it('equals that of another implementation, for any pepper and text', async () => {
    const pepper = fc.uint8Array({ minLength: 32, maxLength: 32 });
    await fc.assert(
      fc.asyncProperty(pepper, fc.string({ unit: 'grapheme' }), async (secret, text) => {
        const macOf = await createKeyMac(Uint8Array.from(secret));
        expect(await macOf(text)).toBe(createHmac('sha256', secret).update(text).digest('hex'));
      }),
    );
  });
});

describe('a key', () => {
  it('has 256 random bits, is found by its HMAC, and no two are alike', async () => {
    const accounts = createMemoryAccounts();
    const macOf = await createKeyMac(new Uint8Array(32));
    const made = await Promise.all(
      Array.from({ length: 50 }, () => issueKey({ accounts, macOf }, { credits: 1n, now: new Date(1_500) })),
    );
    for (const each of made) {
      expect(each?.key).toMatch(/^cek_/);
      expect(decodeBase58(each?.key.slice(4) ?? '')).toHaveLength(32);
      expect(await accounts.identify(await macOf(each?.key ?? ''))).toBe(each?.id);
      expect(each?.key).not.toContain(each?.id.slice(4));
    }
    expect(new Set(made.map((each) => each?.key)).size).toBe(50);
    expect((await accounts.list())[0]).toEqual({
      id: made[0]?.id,
      createdAt: 1.5,
      toppedUp: 1n,
      balance: 1n,
      reserved: 0n,
      captured: 0n,
    });
    expect(await issueKey({ accounts, macOf }, { credits: CREDITS_MAX + 1n, now: new Date() })).toBeUndefined();
  });
});

describe('amounts', () => {
  it.each([
    ['0', 0n],
    ['1500000', 1_500_000n],
    ['007', 7n],
    ['1.5 USDC', 1_500_000n],
    ['1.5usdc', 1_500_000n],
    ['0.000001 USDC', 1n],
    ['12 usdc', 12_000_000n],
  ])('%j is %d units', (text, units) => {
    expect(parseCredits(text)).toBe(units);
  });

  it.each([
    '',
    '1.5',
    '-1',
    '+1',
    '1e6',
    '0x10',
    ' 1',
    '1 ',
    '١',
    '1,5 USDC',
    '.5 USDC',
    '1. USDC',
    '1.0000001 USDC',
    'USDC',
  ])('%j is none', (text) => {
    expect(parseCredits(text)).toBeUndefined();
  });

  it('come back from both spellings that are printed, to the unit', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, CREDITS_MAX), (units) => {
        expect(parseCredits(String(units))).toBe(units);
        expect(parseCredits(`${formatUnits(units, 6)} USDC`)).toBe(units);
        const [, printed = ''] = /\((.*)\)/.exec(formatCredits(units)) ?? [];
        expect(parseCredits(printed)).toBe(units);
      }),
    );
  });
});
