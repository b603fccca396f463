/**
 * The manifest of an answer: C2PA's vocabulary in C2PA's JSON spelling (crJSON: `claim.v2`, `c2pa.*` assertions), about a
 * JSON result. It is aligned with C2PA, not C2PA: that would be JUMBF and COSE under an X.509 certificate. Where C2PA hashes
 * the bytes of a box, this hashes the canonical JSON. The signature over it is the credential, which holds its digest.
 */
import { canonicalJson, canonicalJsonIfAny, isJsonObject, sha256, toBase64, toBase64Url } from './canonical.ts';
import type { JsonObject } from './canonical.ts';
import { toDateTimeStamp } from './date-time.ts';

const HASH_DATA = 'c2pa.hash.data';
const ACTIONS = 'c2pa.actions.v2';
const INGREDIENT = 'c2pa.ingredient.v3';
const EXECUTION = 'com.writerslogic.execution';

/** Made by an algorithm that was not trained on data (IPTC digital source types). */
const ALGORITHMIC_MEDIA = 'http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia';

export type SoftwareAgent = { readonly name: string; readonly version: string };

/** C2PA's hashed URI: `url` is `self#jumbf=c2pa.assertions/<label>`, `hash` is `b64'...'`, the SHA-256 of the canonical JSON. */
export type HashedUri = { readonly url: string; readonly hash: string };

export type Manifest = {
  readonly label: string;
  readonly assertions: {
    readonly [HASH_DATA]: {
      readonly alg: 'sha256';
      readonly name: string;
      readonly hash: string;
      readonly pad: string;
    };
    readonly [ACTIONS]: { readonly actions: readonly object[]; readonly allActionsIncluded: true };
    readonly [INGREDIENT]: {
      readonly relationship: 'inputTo';
      readonly 'dc:title': string;
      readonly 'dc:format': string;
      readonly instanceID: string;
      readonly data: {
        readonly url: string;
        readonly alg: 'sha256';
        readonly hash: string;
        readonly 'dc:format': string;
      };
    };
    readonly [EXECUTION]: Execution;
  };
  readonly 'claim.v2': {
    readonly instanceID: string;
    readonly claim_generator_info: SoftwareAgent;
    /** The id of the credential: the JSON stand-in for C2PA's link to the signature box. */
    readonly signature: string;
    readonly created_assertions: readonly HashedUri[];
    readonly 'dc:title': string;
    readonly alg: 'sha256';
  };
};

/** What has to be known to run the operation again. */
export type Execution = {
  readonly operation: string;
  readonly operationVersion: string;
  /** Whether the same input and versions always give the same result. */
  readonly deterministic: boolean;
  /** Everything that the answer depends on besides the input: versions, table digests, configuration. JSON. */
  readonly versions: { readonly [name: string]: unknown };
};

export interface ManifestFacts extends Execution {
  /** What the result is, for a person. */
  readonly title: string;
  readonly generator: SoftwareAgent;
  /** SHA-256 of the canonical JSON of `{operation, input}`, 32 bytes. */
  readonly inputHash: Uint8Array;
  /** SHA-256 of the canonical JSON of the result, 32 bytes. */
  readonly dataHash: Uint8Array;
  readonly now: Date;
  /** A fresh UUID at each call. */
  readonly newId: () => string;
  /** `urn:uuid:...` */
  readonly credentialId: string;
}

export async function buildManifest(facts: ManifestFacts): Promise<Manifest> {
  const { operation, operationVersion, deterministic, versions, generator, newId } = facts;
  const ingredient = {
    relationship: 'inputTo',
    'dc:title': 'Request',
    'dc:format': 'application/json',
    instanceID: `urn:uuid:${newId()}`,
    data: {
      // RFC 6920: nobody keeps the input, so its name is its hash.
      url: `ni:///sha-256;${toBase64Url(facts.inputHash)}`,
      alg: 'sha256',
      hash: hashText(facts.inputHash),
      'dc:format': 'application/json',
    },
  } as const;
  const created = {
    action: 'c2pa.created',
    when: toDateTimeStamp(facts.now),
    softwareAgent: generator,
    digitalSourceType: ALGORITHMIC_MEDIA,
    parameters: { ingredients: [await hashedUri(INGREDIENT, ingredient)] },
  };
  const assertions: Manifest['assertions'] = {
    [HASH_DATA]: {
      alg: 'sha256',
      name: 'RFC 8785 canonical JSON of data, as UTF-8',
      hash: hashText(facts.dataHash),
      pad: hashText(new Uint8Array()),
    },
    [ACTIONS]: { actions: [created], allActionsIncluded: true },
    [INGREDIENT]: ingredient,
    [EXECUTION]: { operation, operationVersion, deterministic, versions },
  };
  return {
    label: `urn:c2pa:${newId()}`,
    assertions,
    'claim.v2': {
      instanceID: `xmp:iid:${newId()}`,
      claim_generator_info: generator,
      signature: facts.credentialId,
      created_assertions: await Promise.all(Object.entries(assertions).map((entry) => hashedUri(...entry))),
      'dc:title': facts.title,
      alg: 'sha256',
    },
  };
}

async function hashedUri(label: string, assertion: unknown): Promise<HashedUri> {
  return { url: `self#jumbf=c2pa.assertions/${label}`, hash: hashText(await sha256(canonicalJson(assertion))) };
}

/** Bytes as crJSON spells them, after CBOR's diagnostic notation. */
const hashText = (bytes: Uint8Array) => `b64'${toBase64(bytes)}'`;

/** What a manifest without fault says was executed, and with what. */
export function executionOf(manifest: unknown): JsonObject | undefined {
  const assertions = isJsonObject(manifest) ? manifest['assertions'] : undefined;
  const execution = isJsonObject(assertions) ? assertions[EXECUTION] : undefined;
  return isJsonObject(execution) ? execution : undefined;
}

/** What a credential says of the manifest's content. A hash is undefined where the data has no canonical form. */
export type ManifestExpectation = Pick<ManifestFacts, 'operation' | 'operationVersion' | 'credentialId'> & {
  readonly inputHash: Uint8Array | undefined;
  readonly dataHash: Uint8Array | undefined;
};

export type ManifestFault =
  | 'form'
  | 'assertion_hash'
  | 'data_binding'
  | 'ingredient'
  | 'execution'
  | 'signature_reference';

/** Each costs a hash, and a stranger may have written the manifest; a real one has four. */
const MAX_ASSERTIONS = 32;

/**
 * The first thing in which a manifest contradicts itself or the credential, if any: its claim must list each assertion
 * once with its hash, and bind this data, this input, this operation and this credential. Any JSON may come in.
 */
export async function findManifestFault(
  manifest: unknown,
  expected: ManifestExpectation,
): Promise<ManifestFault | undefined> {
  if (!isJsonObject(manifest) || canonicalJsonIfAny(manifest) === undefined) return 'form';
  const { assertions, 'claim.v2': claim } = manifest;
  if (!isJsonObject(assertions) || !isJsonObject(claim) || claim['alg'] !== 'sha256') return 'form';
  if (Object.keys(assertions).length > MAX_ASSERTIONS) return 'form';

  const listed = claim['created_assertions'];
  const actual = await Promise.all(Object.entries(assertions).map((entry) => hashedUri(...entry)));
  if (!isSameSet(listed, actual)) return 'assertion_hash';

  const { [HASH_DATA]: hashData, [INGREDIENT]: ingredient, [EXECUTION]: execution } = assertions;
  if (!isJsonObject(hashData) || 'exclusions' in hashData || !holdsHash(hashData, expected.dataHash)) {
    return 'data_binding';
  }
  if (!isJsonObject(ingredient) || ingredient['relationship'] !== 'inputTo') return 'ingredient';
  if (!isJsonObject(ingredient['data']) || !holdsHash(ingredient['data'], expected.inputHash)) return 'ingredient';
  if (!isJsonObject(execution) || execution['operation'] !== expected.operation) return 'execution';
  if (execution['operationVersion'] !== expected.operationVersion) return 'execution';
  return claim['signature'] === expected.credentialId ? undefined : 'signature_reference';
}

function holdsHash(assertion: JsonObject, hash: Uint8Array | undefined): boolean {
  return assertion['alg'] === 'sha256' && hash !== undefined && assertion['hash'] === hashText(hash);
}

function isSameSet(listed: unknown, actual: readonly HashedUri[]): boolean {
  if (!Array.isArray(listed) || listed.length !== actual.length) return false;
  const texts = new Set(listed.map((uri) => canonicalJson(uri)));
  return actual.every((uri) => texts.has(canonicalJson(uri)));
}
