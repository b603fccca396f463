import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLoopbackHost, parseSettings, SettingsError } from './env.ts';

const IDS = ['conversation-prune'];
const faultsOf = (env: Record<string, string>): readonly string[] => {
  try {
    parseSettings(env, IDS);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.faults;
    throw error;
  }
};

describe('settings', () => {
  it('need nothing, and take an empty variable for an absent one', () => {
    const defaults = {
      HOST: '127.0.0.1',
      DATA_DIR: './data',
      NETWORK: 'local',
      PRICES: {},
      BODY_LIMIT_BYTES: 8 * 1_024 * 1_024,
      PAYMENT_IDENTIFIER: 'optional',
      LOG_LEVEL: 'info',
    };
    expect(parseSettings({}, IDS)).toEqual(defaults);
    expect(
      parseSettings({ PORT: '', NETWORK: '', PRICES: '', SIGNING_KEY: '', HOST: '', MODEL_CATALOG: '' }, IDS),
    ).toEqual(defaults);
  });

  it('are read exactly', () => {
    const env = {
      PORT: '0',
      HOST: '::1',
      PRICES: '{"conversation-prune":"1"}',
      BODY_LIMIT_BYTES: '100',
      CONTEXT_CONFIG: 'context.json',
      MODEL_CATALOG: '/etc/models.json',
      LOG_LEVEL: 'silent',
      SIGNING_KEY: 'ab'.repeat(32),
    };
    expect(parseSettings(env, IDS)).toMatchObject({
      PORT: 0,
      HOST: '::1',
      PRICES: { 'conversation-prune': '1' },
      BODY_LIMIT_BYTES: 100,
      CONTEXT_CONFIG: 'context.json',
      MODEL_CATALOG: '/etc/models.json',
      SIGNING_KEY: new Uint8Array(32).fill(0xab),
    });
  });

  it.each<[Record<string, string>, string]>([
    [{ PORT: '65536' }, 'PORT'],
    [{ PORT: '-1' }, 'PORT'],
    [{ PORT: '1e3' }, 'PORT'],
    [{ PORT: ' 80' }, 'PORT'],
    [{ NETWORK: 'ethereum' }, 'NETWORK'],
    [{ PAYMENT_IDENTIFIER: 'maybe' }, 'PAYMENT_IDENTIFIER'],
    [{ SIGNING_KEY: 'ab' }, 'SIGNING_KEY'],
    [{ SIGNING_KEY: 'z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2' }, 'SIGNING_KEY'],
    [{ PRICES: '{' }, 'PRICES'],
    [{ PRICES: '{"conversation-prune":"0"}' }, 'PRICES'],
    [{ PRICES: '{"conversation-prune":"0.005"}' }, 'PRICES'],
    [{ BODY_LIMIT_BYTES: '0' }, 'BODY_LIMIT_BYTES'],
    [{ HOST: '192.0.2.1' }, 'HOST'],
    [{ NODE_ENV: 'production' }, 'NODE_ENV'],
  ])('%j is refused, by name', (env, name) => {
    const faults = faultsOf(env);
    expect(faults.map((fault) => fault.split(':')[0])).toEqual([name]);
  });

  it('list everything that is wrong at once and repeat no value', () => {
    const env = {
      PORT: 'x7q',
      NETWORK: 'x7q',
      SIGNING_KEY: 'x7q',
      PRICES: 'x7q',
      HOST: 'x7q',
      LOG_LEVEL: 'x7q',
      NODE_ENV: 'production',
    };
    const faults = faultsOf(env);
    expect(new Set(faults.map((fault) => fault.split(':')[0]))).toEqual(
      new Set(['PORT', 'NETWORK', 'SIGNING_KEY', 'PRICES', 'LOG_LEVEL', 'HOST', 'NODE_ENV']),
    );
    expect(faults.join()).not.toContain('x7q');
  });

  it('never fail in another way', () => {
    const names = ['PORT', 'HOST', 'NETWORK', 'NODE_ENV', ...Object.keys(REMOTE)];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.oneof(fc.string(), fc.json(), fc.webUrl())), (env) => {
        faultsOf(env);
        faultsOf({ NETWORK: 'base', ...env });
      }),
    );
  });
});

const A = 'https://facilitator.example';
const B = 'https://other.example/x402';
const REMOTE = {
  NETWORK: 'base-sepolia',
  PAY_TO: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
  PUBLIC_URL: 'https://context.example',
  SIGNING_KEY: 'ab'.repeat(32),
  STORE_SECRET: 'cd'.repeat(32),
  RPC_URL: 'https://rpc.example/v2/key',
  FACILITATOR_URL: A,
};

describe('settings of a real network', () => {
  it('are read exactly, with few defaults', () => {
    expect(parseSettings(REMOTE, IDS)).toMatchObject({
      NETWORK: 'base-sepolia',
      PAY_TO: REMOTE.PAY_TO,
      STORE_SECRET: new Uint8Array(32).fill(0xcd),
      CONFIRMATIONS: 2,
      FACILITATOR_TIMEOUT_MS: 15_000,
      FACILITATORS: [{ kind: 'url', url: REMOTE.FACILITATOR_URL, headers: {} }],
      DATABASE_URL: 'data/ledger.db',
    });
    const { FACILITATOR_URL: _, ...withoutFacilitator } = REMOTE;
    const own = {
      ...withoutFacilitator,
      NODE_ENV: 'production',
      HOST: '0.0.0.0',
      FACILITATOR_PRIVATE_KEY: `0x${'12'.repeat(32)}`,
    };
    const more = { DATABASE_URL: 'file:/var/lib/x.db', CONFIRMATIONS: '12', KEY_PEPPER: 'ef'.repeat(32) };
    expect(parseSettings({ ...own, ...more }, IDS)).toMatchObject({
      KEY_PEPPER: new Uint8Array(32).fill(0xef),
      FACILITATORS: [{ kind: 'self', privateKey: own.FACILITATOR_PRIVATE_KEY }],
      DATABASE_URL: '/var/lib/x.db',
      CONFIRMATIONS: 12,
    });
  });

  it('name several facilitators in their order, each with its own headers', () => {
    const privateKey = `0x${'12'.repeat(32)}`;
    const all = {
      ...REMOTE,
      FACILITATOR_URL: `${A}, ${B}`,
      FACILITATOR_HEADERS: `{"${B}":{"Authorization":"x"}}`,
      FACILITATOR_PRIVATE_KEY: privateKey,
    };
    const urls = [
      { kind: 'url', url: A, headers: {} },
      { kind: 'url', url: B, headers: { Authorization: 'x' } },
    ];
    const own = { kind: 'self', privateKey };
    const orders: [string, unknown[]][] = [
      ['', [...urls, own]],
      ['url,self', [...urls, own]],
      ['self, url', [own, ...urls]],
      ['url', urls],
      ['self', [own]],
    ];
    for (const [FACILITATORS, expected] of orders) {
      expect(parseSettings({ ...all, FACILITATORS }, IDS)).toMatchObject({ FACILITATORS: expected });
    }
    const one = { ...REMOTE, FACILITATOR_HEADERS: '{"Authorization":"x"}' };
    expect(parseSettings(one, IDS)).toMatchObject({ FACILITATORS: [{ url: A, headers: { Authorization: 'x' } }] });
  });

  it('lack nothing without being told so, all at once', () => {
    const names = ['SIGNING_KEY', 'PAY_TO', 'PUBLIC_URL', 'STORE_SECRET', 'RPC_URL', 'FACILITATOR_URL'];
    for (const NETWORK of ['base', 'base-sepolia']) {
      const faults = faultsOf({ NETWORK });
      expect(faults.map((fault) => fault.split(':')[0])).toEqual(names);
      expect(faults.every((fault) => fault.includes('is required'))).toBe(true);
    }
  });

  it.each<[Record<string, string>, string]>([
    [{ PAY_TO: '0x209693Bc6afc0C5328bA36FaF03C514EF312287c' }, 'PAY_TO'],
    [{ PAY_TO: REMOTE.PAY_TO.toLowerCase() }, 'PAY_TO'],
    [{ PAY_TO: '0x0000000000000000000000000000000000000000' }, 'PAY_TO'],
    [{ PAY_TO: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }, 'PAY_TO'],
    [{ PUBLIC_URL: 'http://context.example' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'https://context.example/' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'https://context.example/api' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'https://context.example:8443' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'https://192.0.2.1' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'https://[2001:db8::1]' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'context.example' }, 'PUBLIC_URL'],
    [{ STORE_SECRET: 'cd' }, 'STORE_SECRET'],
    [{ STORE_SECRET: 'zz'.repeat(32) }, 'STORE_SECRET'],
    [{ KEY_PEPPER: 'cd'.repeat(33) }, 'KEY_PEPPER'],
    [{ RPC_URL: 'http://rpc.example' }, 'RPC_URL'],
    [{ RPC_URL: 'ws://127.0.0.1' }, 'RPC_URL'],
    [{ FACILITATOR_URL: 'http://facilitator.example' }, 'FACILITATOR_URL'],
    [{ FACILITATOR_URL: `${A},${A}` }, 'FACILITATOR_URL'],
    [{ FACILITATOR_URL: `${A},` }, 'FACILITATOR_URL'],
    [{ FACILITATORS: 'self' }, 'FACILITATORS'],
    [{ FACILITATORS: 'url,url' }, 'FACILITATORS'],
    [{ FACILITATORS: 'other' }, 'FACILITATORS'],
    [{ FACILITATORS: 'url', FACILITATOR_URL: '', FACILITATOR_PRIVATE_KEY: '12'.repeat(32) }, 'FACILITATORS'],
    [{ FACILITATOR_URL: `${A},${B}`, FACILITATOR_HEADERS: '{"Authorization":"x"}' }, 'FACILITATOR_HEADERS'],
    [{ FACILITATOR_HEADERS: `{"${B}":{"Authorization":"x"}}` }, 'FACILITATOR_HEADERS'],
    [{ FACILITATOR_HEADERS: `{"${A}":{"Authorization":"x"},"Authorization":"y"}` }, 'FACILITATOR_HEADERS'],
    [{ FACILITATOR_PRIVATE_KEY: '12', FACILITATOR_URL: '' }, 'FACILITATOR_PRIVATE_KEY'],
    [
      { FACILITATOR_PRIVATE_KEY: '12'.repeat(32), FACILITATOR_HEADERS: '{}', FACILITATOR_URL: '' },
      'FACILITATOR_HEADERS',
    ],
    [{ FACILITATOR_HEADERS: '{"verify":{"x":"y"}}' }, 'FACILITATOR_HEADERS'],
    [{ FACILITATOR_TIMEOUT_MS: '0' }, 'FACILITATOR_TIMEOUT_MS'],
    [{ CONFIRMATIONS: '0' }, 'CONFIRMATIONS'],
    [{ DATABASE_URL: 'postgres://host/db' }, 'DATABASE_URL'],
    [{ DATABASE_URL: 'file:' }, 'DATABASE_URL'],
  ])('%j is refused, by name', (env, name) => {
    expect(faultsOf({ ...REMOTE, ...env }).map((fault) => fault.split(':')[0])).toEqual([name]);
  });

  it('may name a loopback origin, for tests', () => {
    for (const PUBLIC_URL of ['http://127.0.0.1:4021', 'http://localhost', 'http://[::1]:1']) {
      expect(faultsOf({ ...REMOTE, PUBLIC_URL })).toEqual([]);
    }
  });
});

describe('isLoopbackHost', () => {
  it('knows the three names and no look-alike', () => {
    expect(['127.0.0.1', '::1', 'localhost'].every(isLoopbackHost)).toBe(true);
    expect(['localhost.evil.example', '127.0.0.1.nip.io', '0.0.0.0', '::', '127.1', ''].some(isLoopbackHost)).toBe(
      false,
    );
  });
});
