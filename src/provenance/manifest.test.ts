import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it, test } from 'vitest';
import example from '../../test/vectors/c2pa-crjson-example.json' with { type: 'json' };
import schema from '../../test/vectors/crJSON-schema.c2pa-rs-24d17555.json' with { type: 'json' };
import { canonicalJson, requestDigest, parseDigest, sha256, toBase64 } from './canonical.ts';
import { parseDateTimeStamp } from './date-time.ts';
import { buildManifest, findManifestFault, type ManifestExpectation, type ManifestFacts } from './manifest.ts';

const data = { verdict: 'ok', score: 0.5 };
const inputHash = parseDigest(await requestDigest('count', { text: 'hello' })) ?? new Uint8Array();
const dataHash = await sha256(canonicalJson(data));
let ids = 0;
const facts: ManifestFacts = {
  operation: 'count',
  operationVersion: '1.2.0',
  title: 'Token count',
  generator: { name: 'context-evidence-kit', version: '0.1.0' },
  deterministic: true,
  versions: { engine: '1.2.0', table: { id: 'o200k_base', digest: 'sha256:00' } },
  inputHash,
  dataHash,
  now: new Date('2026-11-30T20:00:00.500Z'),
  newId: () => `00000000-0000-4000-8000-${String(ids++).padStart(12, '0')}`,
  credentialId: 'urn:uuid:6f0b8a0e-3a44-4a27-9d3f-0b1d6d3f5a11',
};
const expected: ManifestExpectation = facts;
const manifest = await buildManifest(facts);

const ajv = new Ajv2020({ strict: false });
ajv.addFormat('date-time', (text) => parseDateTimeStamp(text) !== undefined);
ajv.addFormat('uri', (text) => URL.canParse(text));
ajv.addSchema(schema, 'crjson');
function errors(definition: string, value: unknown): unknown {
  const validate = ajv.getSchema(`crjson#/definitions/${definition}`);
  if (!validate) throw new Error(`the schema has no ${definition}`);
  return validate(value) === true ? [] : validate.errors;
}

describe('crJSON schema', () => {
  it('takes the pieces of the manifest', () => {
    expect(errors('claim', manifest['claim.v2'])).toEqual([]);
    expect(errors('assertions', manifest.assertions)).toEqual([]);
    expect(errors('hashDataAssertion', manifest.assertions['c2pa.hash.data'])).toEqual([]);
    expect(errors('actionsAssertionV2', manifest.assertions['c2pa.actions.v2'])).toEqual([]);
    expect(errors('ingredientAssertionV3', manifest.assertions['c2pa.ingredient.v3'])).toEqual([]);
  });

  it('would notice', () => {
    expect(errors('claim', { ...manifest['claim.v2'], claim_generator: 'x' })).not.toEqual([]);
    expect(errors('hashDataAssertion', { alg: 'sha256' })).not.toEqual([]);
    const { url: _, ...dataWithoutUrl } = manifest.assertions['c2pa.ingredient.v3'].data;
    expect(errors('ingredientAssertionV3', { relationship: 'inputTo', data: dataWithoutUrl })).not.toEqual([]);
  });
});

describe('buildManifest', () => {
  it('says what was made, from what, and how', () => {
    expect(manifest.label).toMatch(/^urn:c2pa:[0-9a-f-]{36}$/);
    expect(manifest['claim.v2']).toMatchObject({
      claim_generator_info: { name: 'context-evidence-kit', version: '0.1.0' },
      signature: facts.credentialId,
      'dc:title': 'Token count',
      alg: 'sha256',
    });
    expect(manifest.assertions['com.writerslogic.execution']).toEqual({
      operation: 'count',
      operationVersion: '1.2.0',
      deterministic: true,
      versions: facts.versions,
    });
    expect(manifest.assertions['c2pa.actions.v2']).toMatchObject({
      actions: [
        {
          action: 'c2pa.created',
          when: '2026-11-30T20:00:00Z',
          digitalSourceType: 'http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia',
          parameters: { ingredients: [{ url: 'self#jumbf=c2pa.assertions/c2pa.ingredient.v3' }] },
        },
      ],
      allActionsIncluded: true,
    });
  });

  it('hashes data as the published example does', () => {
    const [published] = example.document.manifests;
    expect(canonicalJson(example.result)).toBe(canonicalJson(data));
    expect(manifest.assertions['c2pa.hash.data'].hash).toBe(published?.assertions['c2pa.hash.data'].hash);
    expect(manifest.assertions['c2pa.hash.data'].pad).toBe("b64''");
    const { data: input, relationship } = manifest.assertions['c2pa.ingredient.v3'];
    expect(relationship).toBe('inputTo');
    expect(input.hash).toBe(`b64'${toBase64(inputHash)}'`);
  });

  it('lists the hash of each assertion in the claim', async () => {
    const hashes = await Promise.all(
      Object.entries(manifest.assertions).map(async ([label, assertion]) => ({
        url: `self#jumbf=c2pa.assertions/${label}`,
        hash: `b64'${toBase64(await sha256(canonicalJson(assertion)))}'`,
      })),
    );
    expect(manifest['claim.v2'].created_assertions).toEqual(hashes);
    expect(hashes).toHaveLength(4);
  });
});

describe('findManifestFault', async () => {
  const { assertions, 'claim.v2': claim } = manifest;
  const withClaim = (change: object) => ({ ...manifest, 'claim.v2': { ...claim, ...change } });
  const [first, ...others] = claim.created_assertions;

  /** A manifest whose assertions were changed and whose claim was made to match again. */
  async function rehashed(change: Record<string, unknown>): Promise<unknown> {
    const changed = Object.entries({ ...assertions, ...change }).filter(([, assertion]) => assertion !== undefined);
    const created = changed.map(async ([label, assertion]) => ({
      url: `self#jumbf=c2pa.assertions/${label}`,
      hash: `b64'${toBase64(await sha256(canonicalJson(assertion)))}'`,
    }));
    const created_assertions = await Promise.all(created);
    return { ...manifest, assertions: Object.fromEntries(changed), 'claim.v2': { ...claim, created_assertions } };
  }

  it('finds none in what was built, also once it has been sent', async () => {
    expect(await findManifestFault(manifest, expected)).toBeUndefined();
    expect(await findManifestFault(JSON.parse(JSON.stringify(manifest)), expected)).toBeUndefined();
    expect(await findManifestFault(withClaim({ created_assertions: [...others, first] }), expected)).toBeUndefined();
    expect(await findManifestFault(await rehashed({ 'com.example.more': [1] }), expected)).toBeUndefined();
  });

  const hashData = assertions['c2pa.hash.data'];
  const ingredient = assertions['c2pa.ingredient.v3'];
  const execution = assertions['com.writerslogic.execution'];
  test.each<[string, unknown, string]>([
    ['no object', null, 'form'],
    ['no claim', { assertions }, 'form'],
    ['no assertions', { 'claim.v2': claim }, 'form'],
    ['another algorithm', withClaim({ alg: 'md5' }), 'form'],
    ['half a surrogate pair', { ...manifest, label: '\ud800' }, 'form'],
    ['an assertion changed', { ...manifest, assertions: { ...assertions, [`c2pa.hash.data`]: {} } }, 'assertion_hash'],
    ['an assertion added', { ...manifest, assertions: { ...assertions, extra: {} } }, 'assertion_hash'],
    ['an assertion unlisted', withClaim({ created_assertions: others }), 'assertion_hash'],
    ['one listed twice', withClaim({ created_assertions: [first, first, ...others.slice(1)] }), 'assertion_hash'],
    ['one listed in vain', withClaim({ created_assertions: [...claim.created_assertions, first] }), 'assertion_hash'],
    ['a list that is none', withClaim({ created_assertions: {} }), 'assertion_hash'],
    [
      'endless assertions',
      await rehashed(Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x${n}`, n]))),
      'form',
    ],
    ['no binding', await rehashed({ 'c2pa.hash.data': undefined }), 'data_binding'],
    ['exclusions', await rehashed({ 'c2pa.hash.data': { ...hashData, exclusions: [] } }), 'data_binding'],
    ['a binding by md5', await rehashed({ 'c2pa.hash.data': { ...hashData, alg: 'md5' } }), 'data_binding'],
    ['no ingredient', await rehashed({ 'c2pa.ingredient.v3': undefined }), 'ingredient'],
    ['a parent', await rehashed({ 'c2pa.ingredient.v3': { ...ingredient, relationship: 'parentOf' } }), 'ingredient'],
    ['no input hash', await rehashed({ 'c2pa.ingredient.v3': { ...ingredient, data: null } }), 'ingredient'],
    ['no execution', await rehashed({ 'com.writerslogic.execution': undefined }), 'execution'],
    [
      'another operation',
      await rehashed({ 'com.writerslogic.execution': { ...execution, operation: 'prune' } }),
      'execution',
    ],
    [
      'another version',
      await rehashed({ 'com.writerslogic.execution': { ...execution, operationVersion: '2.0.0' } }),
      'execution',
    ],
    ['another credential', withClaim({ signature: 'urn:uuid:x' }), 'signature_reference'],
  ])('finds %s', async (_, changed, fault) => {
    expect(await findManifestFault(changed, expected)).toBe(fault);
  });

  test.each<[string, Partial<ManifestExpectation>, string]>([
    ['other data', { dataHash: inputHash }, 'data_binding'],
    ['data without canonical form', { dataHash: undefined }, 'data_binding'],
    ['another input', { inputHash: dataHash }, 'ingredient'],
    ['another operation', { operation: 'prune' }, 'execution'],
    ['another credential', { credentialId: 'urn:uuid:x' }, 'signature_reference'],
  ])('finds that it is about %s', async (_, change, fault) => {
    expect(await findManifestFault(manifest, { ...expected, ...change })).toBe(fault);
  });
});
