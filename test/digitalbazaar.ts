/** @digitalbazaar/vc with its eddsa-jcs-2022, and nothing but the issuer's document for it to load. */
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import * as Ed25519Multikey from '@digitalbazaar/ed25519-multikey';
import { createSignCryptosuite, createVerifyCryptosuite } from '@digitalbazaar/eddsa-jcs-2022-cryptosuite';
import * as vc from '@digitalbazaar/vc';
import { isJsonObject, type JsonObject } from '../src/json.ts';
import { encodeSecretKey } from '../src/provenance/multikey.ts';

/** A loader that knows this DID document and its Multikeys, and refuses whatever else is asked of it. */
export function loaderOf(document: JsonObject): vc.DocumentLoader {
  const { id, verificationMethod } = document;
  const methods = (Array.isArray(verificationMethod) ? verificationMethod : []).filter(isJsonObject);
  return async (documentUrl) => {
    const method = methods.find((each) => each['id'] === documentUrl);
    const found = method
      ? { '@context': 'https://w3id.org/security/multikey/v1', ...method }
      : documentUrl === id
        ? document
        : undefined;
    if (!found) throw new Error(`asked for ${documentUrl}`);
    return { contextUrl: null, documentUrl, document: found };
  };
}

export const verifyByThem = async (credential: object, document: JsonObject): Promise<boolean> => {
  const suite = new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() });
  return (await vc.verifyCredential({ credential, suite, documentLoader: loaderOf(document) })).verified;
};

/** Signs a credential without proof, in the name of the first Multikey of the document. */
export async function signerOfTheirs(
  seed: Uint8Array,
  document: JsonObject,
): Promise<(credential: object) => Promise<JsonObject>> {
  const methods = document['verificationMethod'];
  const [method] = (Array.isArray(methods) ? methods : []).filter(isJsonObject);
  const key = await Ed25519Multikey.from({
    '@context': 'https://w3id.org/security/multikey/v1',
    ...method,
    secretKeyMultibase: encodeSecretKey(seed),
  });
  return (credential) =>
    vc.issue({
      credential,
      suite: new DataIntegrityProof({ signer: key.signer(), cryptosuite: createSignCryptosuite() }),
      documentLoader: loaderOf(document),
    });
}
