/** What runs in the browser: the paying fetch and the stock client, as a page would use them. The test calls it by `paying`. */
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { createPaidFetch, PaidFetchError } from '../../src/client/paid-fetch.ts';

declare const localStorage: {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
};

export interface Call {
  readonly url: string;
  readonly body: string;
  readonly key: `0x${string}`;
  readonly retries: number;
}

export interface Outcome {
  readonly status?: number;
  readonly body?: unknown;
  /** What the page can see of the answer's headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: string;
  readonly signatures: number;
}

const store = {
  get: (key: string): string | undefined => localStorage.getItem(key) ?? undefined,
  set: (key: string, value: string): void => localStorage.setItem(key, value),
  delete: (key: string): void => localStorage.removeItem(key),
};

const post = (body: string): RequestInit => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body });

async function outcomeOf(call: Promise<Response>, signatures: () => number): Promise<Outcome> {
  try {
    const response = await call;
    const { status, headers } = response;
    const body: unknown = await response.json();
    return { status, headers: Object.fromEntries(headers), body, signatures: signatures() };
  } catch (error) {
    return { error: error instanceof PaidFetchError ? error.code : String(error), signatures: signatures() };
  }
}

const paying = {
  unpaid: ({ url, body }: Call): Promise<Outcome> => outcomeOf(fetch(url, post(body)), () => 0),

  paid: ({ url, body, key, retries }: Call): Promise<Outcome> => {
    const account = privateKeyToAccount(key);
    let signed = 0;
    const wallet = {
      address: account.address,
      signTypedData: (message: Parameters<typeof account.signTypedData>[0]) => {
        signed += 1;
        return account.signTypedData(message);
      },
    };
    const pay = createPaidFetch(wallet, { maxTotal: '0.1', retries, store });
    return outcomeOf(pay(url, post(body)), () => signed);
  },

  stock: ({ url, body, key }: Call): Promise<Outcome> => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)));
    return outcomeOf(wrapFetchWithPayment(fetch, client)(url, post(body)), () => 1);
  },
};

export type Paying = typeof paying;
(globalThis as { paying?: Paying }).paying = paying;
