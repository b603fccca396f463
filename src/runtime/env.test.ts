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
    [{ NETWORK: 'base' }, 'NETWORK'],
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
      NETWORK: 'base',
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
    const names = ['PORT', 'HOST', 'NETWORK', 'SIGNING_KEY', 'PRICES', 'BODY_LIMIT_BYTES', 'LOG_LEVEL', 'NODE_ENV'];
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...names), fc.oneof(fc.string(), fc.json())),
        (env) => void faultsOf(env),
      ),
    );
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
