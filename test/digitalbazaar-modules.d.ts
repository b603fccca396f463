/** Of these packages, which have no types: what is used here. */
declare module '@digitalbazaar/vc' {
  type DocumentLoader = (url: string) => Promise<{ contextUrl: null; documentUrl: string; document: object }>;
  interface Work {
    readonly credential: object;
    readonly suite: object;
    readonly documentLoader: DocumentLoader;
  }
  export function issue(work: Work): Promise<Record<string, unknown>>;
  export function verifyCredential(work: Work): Promise<{ readonly verified: boolean; readonly error?: unknown }>;
}
declare module '@digitalbazaar/data-integrity' {
  export const DataIntegrityProof: new (options: { readonly signer?: object; readonly cryptosuite: object }) => object;
}
declare module '@digitalbazaar/eddsa-jcs-2022-cryptosuite' {
  export function createSignCryptosuite(): object;
  export function createVerifyCryptosuite(): object;
}
declare module '@digitalbazaar/ed25519-multikey' {
  export function from(key: object): Promise<{ signer(): object }>;
}
