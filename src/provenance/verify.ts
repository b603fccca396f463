/**
 * Verifies a saved answer against an issuer named beforehand, one check after the other, each with a reason for a person.
 * No network, no clock, no exception on any JSON; nothing of what was sent is repeated but a DID.
 */
import type { Problem } from '../problem.ts';
import { canonicalJsonIfAny, formatDigest, isJsonObject, parseDigest, requestDigest, sha256 } from './canonical.ts';
import type { JsonObject } from './canonical.ts';
import { readCredential, type Credential } from './credential.ts';
import { parseDateTimeStamp } from './date-time.ts';
import { didKeyPublicKey, verificationMethodOf, type MethodLookup } from './did.ts';
import { verifyProof } from './eddsa-jcs-2022.ts';
import { findManifestFault, type ManifestFault } from './manifest.ts';

/** In the order in which a person reads them. */
export const CHECK_NAMES = [
  /** The credential has the form that this service issues. */
  'profile',
  /** Some key signed the credential as it stands. */
  'signature',
  /** That key belongs to the issuer who was named beforehand. */
  'issuer',
  'time',
  /** The data is what was signed. */
  'data_digest',
  'manifest_digest',
  /** The manifest agrees with itself, with the data and with the credential. */
  'manifest',
  /** The given input is what was asked. */
  'input_digest',
  /** The operation was run again; never done here, see `conclude`. */
  'rerun',
] as const;

export type CheckName = (typeof CHECK_NAMES)[number];
export type Check = { readonly result: 'pass' | 'fail' | 'not_checked'; readonly reason: string };
export type Checks = Readonly<Record<CheckName, Check>>;

export interface Verification {
  readonly verified: boolean;
  /** `contradicted`: something does not hold. `unverifiable`: nothing speaks against it, but who signed is not known. */
  readonly outcome: 'verified' | 'contradicted' | 'unverifiable';
  readonly checks: Checks;
}

export interface VerificationRequest {
  /** Exactly `{ data, _provenance: { manifest, credential } }`, parsed by `parseStrictJson`. */
  readonly envelope: unknown;
  /** The input of the call, where the holder has it. */
  readonly input?: unknown;
  /** The DID document of the issuer whom the caller named beforehand. */
  readonly trusted: JsonObject;
  readonly now: Date;
}

/** Checks an answer; see `CHECK_NAMES`. */
export async function verifyEnvelope({ envelope, input, trusted, now }: VerificationRequest): Promise<Verification> {
  const read = readEnvelope(envelope);
  if (!read.ok) return conclude(malformed('a part of the answer or of its evidence is missing'));
  const { _provenance } = read.envelope;
  if (hasOthersThan(envelope, ['data', '_provenance']) || hasOthersThan(_provenance, ['manifest', 'credential'])) {
    return conclude(malformed('there is something beside data, manifest and credential, and nothing vouches for it'));
  }
  const form = readCredential(_provenance.credential);
  if (!form.ok) return conclude(malformed(form.broken));

  const { credential } = form;
  const key = findKey(credential, trusted, now);
  const signature = await checkSignature(credential, key);
  return conclude({
    profile: pass('The credential has the form in which this service issues them.'),
    signature,
    issuer: checkIssuer(credential, key, signature),
    time: checkTime(credential, now),
    // Hashing is the costly part, and a credential that was changed vouches for nothing.
    ...(signature.result === 'fail' ? notVouchedFor() : await checkContents(read.envelope, credential, input)),
    rerun: notChecked('The operation was not run again.'),
  });
}

type ContentChecks = Pick<Checks, 'data_digest' | 'manifest_digest' | 'manifest' | 'input_digest'>;

async function checkContents(
  { data, _provenance: { manifest } }: UncheckedEnvelope,
  credential: Credential,
  input: unknown,
): Promise<ContentChecks> {
  const { credentialSubject: subject, id: credentialId } = credential;
  const { operation, operationVersion, inputDigest, dataDigest, manifestDigest } = subject;
  const dataHash = await hashIfAny(data);
  const manifest_digest = checkHash('manifest', await hashIfAny(manifest), manifestDigest);
  const inputHash = parseDigest(inputDigest);
  return {
    data_digest: checkHash('data', dataHash, dataDigest),
    manifest_digest,
    manifest:
      manifest_digest.result === 'pass'
        ? describeManifest(
            await findManifestFault(manifest, { dataHash, inputHash, operation, operationVersion, credentialId }),
          )
        : notChecked('The manifest is not the one that was signed, so it was not read.'),
    input_digest: await checkInput(operation, input, inputDigest),
  };
}

function notVouchedFor(): ContentChecks {
  const check = notChecked('The signature does not hold, so what it was to vouch for was not looked at.');
  return { data_digest: check, manifest_digest: check, manifest: check, input_digest: check };
}

function describeManifest(fault: keyof typeof MANIFEST_FAULTS | undefined): Check {
  return fault
    ? fail(MANIFEST_FAULTS[fault])
    : pass(
        'The manifest matches its own hashes, the data, and the operation and input digest that the credential names.',
      );
}

const OPTIONAL_CHECKS: readonly CheckName[] = ['input_digest', 'rerun'];

/** What checks come to. A surface that has run the operation again calls it with its own `rerun`. */
export function conclude(checks: Checks): Verification {
  const results = CHECK_NAMES.map((name) => ({ name, ...checks[name] }));
  const outcome = results.some(({ result }) => result === 'fail')
    ? 'contradicted'
    : results.every(({ name, result }) => result === 'pass' || OPTIONAL_CHECKS.includes(name))
      ? 'verified'
      : 'unverifiable';
  return { verified: outcome === 'verified', outcome, checks };
}

export interface UncheckedEnvelope {
  readonly data: unknown;
  readonly _provenance: { readonly manifest: JsonObject; readonly credential: JsonObject };
}

export type EnvelopeReading =
  | { readonly ok: true; readonly envelope: UncheckedEnvelope }
  | { readonly ok: false; readonly problem: Problem & { readonly code: 'invalid_request' } };

function missing(path: string, detail = 'it must be an object'): EnvelopeReading {
  return { ok: false, problem: { code: 'invalid_request', path, detail } };
}

/** Whether all the parts of an envelope are there, so that there is anything to verify. Their content is not looked at. */
export function readEnvelope(value: unknown): EnvelopeReading {
  if (!isJsonObject(value)) return missing('');
  if (!Object.hasOwn(value, 'data')) return missing('/data', 'it must be there');
  const { data, _provenance } = value;
  if (!isJsonObject(_provenance)) return missing('/_provenance');
  const { manifest, credential } = _provenance;
  if (!isJsonObject(manifest)) return missing('/_provenance/manifest');
  if (!isJsonObject(credential)) return missing('/_provenance/credential');
  if (!isJsonObject(credential['proof'])) return missing('/_provenance/credential/proof', 'it must be one object');
  return { ok: true, envelope: { data, _provenance: { ..._provenance, manifest, credential } } };
}

function hasOthersThan(value: unknown, members: readonly string[]): boolean {
  return isJsonObject(value) && Object.keys(value).some((member) => !members.includes(member));
}

const pass = (reason: string): Check => ({ result: 'pass', reason });
const fail = (reason: string): Check => ({ result: 'fail', reason });
const notChecked = (reason: string): Check => ({ result: 'not_checked', reason });

function malformed(broken: string): Checks {
  const skipped = notChecked('Not looked at, since the form is wrong.');
  return {
    profile: fail(`This is not evidence as this service issues it: ${broken}.`),
    signature: skipped,
    issuer: skipped,
    time: skipped,
    data_digest: skipped,
    manifest_digest: skipped,
    manifest: skipped,
    input_digest: skipped,
    rerun: skipped,
  };
}

/** The key that the proof names, and on whose word it is known. */
type KeySource =
  | { readonly from: 'trusted document'; readonly lookup: MethodLookup }
  /** A did:key, which anyone can make; undefined if it holds no usable key. */
  | { readonly from: 'itself'; readonly publicKey: Uint8Array | undefined }
  | { readonly from: 'elsewhere' };

function findKey({ proof }: Credential, trusted: JsonObject, now: Date): KeySource {
  const { verificationMethod } = proof;
  const did = didOf(verificationMethod);
  if (did === trusted['id']) {
    return { from: 'trusted document', lookup: verificationMethodOf(trusted, verificationMethod, now) };
  }
  return did.startsWith('did:key:')
    ? { from: 'itself', publicKey: didKeyPublicKey(verificationMethod) }
    : { from: 'elsewhere' };
}

const didOf = (verificationMethod: string) => verificationMethod.slice(0, verificationMethod.indexOf('#'));

async function checkSignature(credential: Credential, key: KeySource): Promise<Check> {
  if (key.from === 'elsewhere') {
    return notChecked(
      `The key of ${shown(didOf(credential.proof.verificationMethod))} is not at hand, and none is fetched.`,
    );
  }
  const publicKey =
    key.from === 'itself' ? key.publicKey : 'publicKey' in key.lookup ? key.lookup.publicKey : undefined;
  if (!publicKey) {
    return key.from === 'itself'
      ? fail('The key in the proof is not an Ed25519 key that can be relied on.')
      : notChecked('The document of the issuer has no key to check it with.');
  }
  const { verified } = await verifyProof(credential, publicKey);
  return verified
    ? pass('The credential is unchanged since it was signed with the key that it names.')
    : fail('The key that the credential names did not sign it as it stands.');
}

const KEY_FAULTS: Readonly<Record<(MethodLookup & { ok: false })['reason'], string>> = {
  id_mismatch: 'The key is not named under the DID of the issuer.',
  not_listed: 'The document of the issuer does not list the key.',
  wrong_type: 'The document of the issuer lists the key as another type than Multikey.',
  wrong_controller: 'The document of the issuer gives the key another controller.',
  not_assertion_method: 'The issuer does not use the key to sign credentials.',
  bad_key: 'The document of the issuer has no Ed25519 key under that name that can be relied on.',
  revoked: 'The issuer has revoked the key, so nothing that it signed can be relied on.',
  expired: 'The issuer let the key expire.',
};

function checkIssuer({ issuer, proof }: Credential, key: KeySource, signature: Check): Check {
  if (didOf(proof.verificationMethod) !== issuer) {
    return fail('The key belongs to someone else than the issuer whom the credential names.');
  }
  if (key.from === 'trusted document') {
    return key.lookup.ok ? pass(`The key belongs to ${shown(issuer)}.`) : fail(KEY_FAULTS[key.lookup.reason]);
  }
  const how = signature.result === 'pass' ? 'Signed by' : 'Issued in the name of';
  return notChecked(`${how} ${shown(issuer)}; who ${shown(issuer)} is was not checked.`);
}

/** Clocks differ; the tolerance that @digitalbazaar/vc also has. */
const MAX_CLOCK_SKEW_SECONDS = 300;

function checkTime({ validFrom, validUntil, proof }: Credential, now: Date): Check {
  const time = now.getTime();
  const latest = time + MAX_CLOCK_SKEW_SECONDS * 1000;
  if (instant(proof.created) > latest) return fail('The proof claims to be from the future.');
  if (instant(validFrom) > latest) return fail('The credential is not valid yet.');
  if (instant(proof.expires) <= time) return fail('The proof has expired.');
  if (instant(validUntil) < time) return fail('The credential is no longer valid.');
  return pass('The credential was issued in the past and has not expired.');
}

/** Milliseconds since 1970; what has no time never comes. */
function instant(stamp: string | undefined): number {
  return parseDateTimeStamp(stamp) ?? Infinity;
}

async function hashIfAny(value: unknown): Promise<Uint8Array | undefined> {
  const text = canonicalJsonIfAny(value);
  return text === undefined ? undefined : sha256(text);
}

function checkHash(what: 'data' | 'manifest', hash: Uint8Array | undefined, signed: string): Check {
  if (!hash) return fail(`The ${what} has no canonical form, so it cannot be what was signed.`);
  return formatDigest(hash) === signed
    ? pass(`The ${what} is what the credential was issued for.`)
    : fail(`The ${what} is not what the credential was issued for.`);
}

const MANIFEST_FAULTS: Readonly<Record<ManifestFault, string>> = {
  form: 'The manifest does not have the parts of a manifest.',
  assertion_hash: 'The claim of the manifest does not match its assertions.',
  data_binding: 'The manifest was made for other data.',
  ingredient: 'The manifest was made for another input.',
  execution: 'The manifest names another operation or version than the credential.',
  signature_reference: 'The manifest refers to another credential.',
};

async function checkInput(operation: string, input: unknown, signed: string): Promise<Check> {
  if (input === undefined) return notChecked('No input was given.');
  if (canonicalJsonIfAny(input) === undefined)
    return fail('The input has no canonical form, so it cannot be what was asked.');
  return (await requestDigest(operation, input)) === signed
    ? pass('The input is the one that was answered.')
    : fail('The input is not the one that was answered.');
}

const MAX_SHOWN_DID_CHARS = 100;

/** A DID for a person; the form rules have left nothing in it but letters, digits and `.:%-_`. */
function shown(did: string): string {
  return did.length > MAX_SHOWN_DID_CHARS ? `${did.slice(0, MAX_SHOWN_DID_CHARS)}…` : did;
}
