/**
 * The one credential that this service issues, a W3C VC 2.0 about one answer: its shape, and the form rules by which a
 * reader tells it from anything else before a single signature is checked. It holds digests, never content.
 */
import { isJsonObject, parseDigest, sameJson, type JsonObject } from './canonical.ts';
import { parseDateTimeStamp } from './date-time.ts';
import { DID } from './did.ts';
import { CRYPTOSUITE, decodeProofValue, PROOF_TYPE } from './eddsa-jcs-2022.ts';

/** VCDM 2.0 section 4.3 wants the second, as the last, wherever the first does not define every term. */
export const CONTEXTS = [
  'https://www.w3.org/ns/credentials/v2',
  'https://www.w3.org/ns/credentials/undefined-terms/v2',
] as const;
export const CREDENTIAL_TYPES = ['VerifiableCredential', 'ApiResultProvenanceCredential'] as const;
export const PROOF_PURPOSE = 'assertionMethod';

export type CredentialSubject = {
  /** `urn:uuid:` of the answer. */
  readonly id: string;
  readonly operation: string;
  readonly operationVersion: string;
  /** Digest of `{operation, input}`, see `requestDigest`. */
  readonly inputDigest: string;
  readonly dataDigest: string;
  readonly manifestDigest: string;
  /** Atomic units of the currency; `'0'` for what was not charged. */
  readonly charged: string;
  readonly payment?: Payment;
  /** The payment was practice money on a private chain. */
  readonly environment?: 'local';
  /** The answer to the published example, not to a call. */
  readonly sample?: true;
};

/** Where the payment can be found: CAIP-2 network, the payer's address, the authorization's nonce. */
export type Payment = { readonly network: string; readonly payer: string; readonly nonce: string };

export type Proof = {
  readonly type: typeof PROOF_TYPE;
  readonly cryptosuite: typeof CRYPTOSUITE;
  readonly created: string;
  readonly verificationMethod: string;
  readonly proofPurpose: typeof PROOF_PURPOSE;
  readonly id?: string;
  readonly expires?: string;
  readonly '@context'?: unknown;
  readonly proofValue: string;
};

export type UnsignedCredential = {
  readonly '@context': typeof CONTEXTS;
  readonly id: string;
  readonly type: typeof CREDENTIAL_TYPES;
  /** A DID. */
  readonly issuer: string;
  readonly validFrom: string;
  /** Never issued: that something was answered does not cease to be true. Honoured where it stands. */
  readonly validUntil?: string;
  readonly credentialSubject: CredentialSubject;
};

export type Credential = UnsignedCredential & { readonly proof: Proof };

const MEMBERS = new Set(['@context', 'id', 'type', 'issuer', 'validFrom', 'validUntil', 'credentialSubject', 'proof']);
/** `domain`, `challenge`, `nonce` and `previousProof` promise checks that nobody makes here. */
const PROOF_MEMBERS = new Set([
  'id',
  'type',
  'cryptosuite',
  'created',
  'expires',
  'verificationMethod',
  'proofPurpose',
  '@context',
  'proofValue',
]);

const URN_UUID = /^urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const AMOUNT = /^(?:0|[1-9]\d{0,17})$/;
const FRAGMENT = /^[\w.~-]+$/;
/** Ample for did:web, whose host alone has at most 253. */
const MAX_DID_CHARS = 512;

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTime = (value: unknown) => parseDateTimeStamp(value) !== undefined;
const isMatch = (value: unknown, pattern: RegExp) => typeof value === 'string' && pattern.test(value);
const isDid = (value: unknown) => isText(value) && value.length <= MAX_DID_CHARS && DID.test(value);
const onlyHas = (object: JsonObject, members: ReadonlySet<string>) =>
  Object.keys(object).every((member) => members.has(member));

function isDidUrl(value: unknown): boolean {
  const [did, fragment, ...rest] = typeof value === 'string' ? value.split('#', 3) : [];
  return isDid(did) && isMatch(fragment, FRAGMENT) && rest.length === 0;
}

function isPayment(value: unknown): boolean {
  return isJsonObject(value) && isText(value['network']) && isText(value['payer']) && isText(value['nonce']);
}

type Rule = readonly [rule: string, holds: (part: JsonObject) => boolean];

const CREDENTIAL_RULES: readonly Rule[] = [
  ['it has a member that such a credential does not have', (vc) => onlyHas(vc, MEMBERS)],
  ['@context must be exactly the two of this profile', (vc) => sameJson(vc['@context'], CONTEXTS)],
  ['type must be exactly the two of this profile', (vc) => sameJson(vc['type'], CREDENTIAL_TYPES)],
  ['id must be a urn:uuid', (vc) => isMatch(vc['id'], URN_UUID)],
  ['issuer must be a DID', (vc) => isDid(vc['issuer'])],
  ['validFrom must be a time with its zone', (vc) => isTime(vc['validFrom'])],
  ['validUntil must be a time not before validFrom', hasOrderedValidity],
];

function hasOrderedValidity({ validFrom, validUntil }: JsonObject): boolean {
  if (validUntil === undefined) return true;
  return (parseDateTimeStamp(validUntil) ?? -Infinity) >= (parseDateTimeStamp(validFrom) ?? Infinity);
}

const SUBJECT_RULES: readonly Rule[] = [
  ['credentialSubject.id must be a urn:uuid', (subject) => isMatch(subject['id'], URN_UUID)],
  ['credentialSubject.operation must be a name', (subject) => isText(subject['operation'])],
  ['credentialSubject.operationVersion must be a version', (subject) => isText(subject['operationVersion'])],
  ...['inputDigest', 'dataDigest', 'manifestDigest'].map((member): Rule => [
    `credentialSubject.${member} must be a sha256 digest`,
    (subject) => parseDigest(subject[member]) !== undefined,
  ]),
  ['credentialSubject.charged must be a number of atomic units', (subject) => isMatch(subject['charged'], AMOUNT)],
  [
    'credentialSubject.payment must name network, payer and nonce',
    (subject) => !('payment' in subject) || isPayment(subject['payment']),
  ],
  [
    'credentialSubject.environment can only be local',
    (subject) => !('environment' in subject) || subject['environment'] === 'local',
  ],
  ['credentialSubject.sample can only be true', (subject) => !('sample' in subject) || subject['sample'] === true],
];

const PROOF_RULES: readonly Rule[] = [
  ['the proof has a member that such a proof does not have', (proof) => onlyHas(proof, PROOF_MEMBERS)],
  [
    `the proof must be a ${PROOF_TYPE} of ${CRYPTOSUITE}`,
    (proof) => proof['type'] === PROOF_TYPE && proof['cryptosuite'] === CRYPTOSUITE,
  ],
  [`the purpose of the proof must be ${PROOF_PURPOSE}`, (proof) => proof['proofPurpose'] === PROOF_PURPOSE],
  ['the @context of the proof must equal that of the credential', (proof) => sameJson(proof['@context'], CONTEXTS)],
  ['the proof must name a key under a DID', (proof) => isDidUrl(proof['verificationMethod'])],
  ['created must be a time with its zone', (proof) => isTime(proof['created'])],
  ['expires must be a time with its zone', (proof) => !('expires' in proof) || isTime(proof['expires'])],
  ['the id of the proof must be a urn:uuid', (proof) => !('id' in proof) || isMatch(proof['id'], URN_UUID)],
  [
    'proofValue must be z and the base58btc of 64 bytes',
    (proof) => decodeProofValue(proof['proofValue']) !== undefined,
  ],
];

export type CredentialForm =
  | { readonly ok: true; readonly credential: Credential }
  /** `broken` is a rule of this file, in words. */
  | { readonly ok: false; readonly broken: string };

/** Whether any JSON is, by its form, a credential of this kind. It says nothing about who signed it, or whether. */
export function readCredential(value: unknown): CredentialForm {
  const broken = findBrokenRule(value);
  if (broken !== undefined) return { ok: false, broken };
  // The rules are the type guard.
  return { ok: true, credential: value as Credential };
}

function findBrokenRule(value: unknown): string | undefined {
  if (!isJsonObject(value)) return 'the credential must be an object';
  const { credentialSubject, proof } = value;
  if (!isJsonObject(credentialSubject)) return 'credentialSubject must be an object';
  if (!isJsonObject(proof)) return 'proof must be one object';
  return (
    firstBroken(CREDENTIAL_RULES, value) ??
    firstBroken(SUBJECT_RULES, credentialSubject) ??
    firstBroken(PROOF_RULES, proof)
  );
}

function firstBroken(rules: readonly Rule[], part: JsonObject): string | undefined {
  return rules.find(([, holds]) => !holds(part))?.[0];
}
