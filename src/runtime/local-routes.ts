/** Routes of local mode only: practice money, and where the practice chain is. They answer loopback callers only. */
import type { Hono } from 'hono';
import { isAddress } from 'viem';
import { z } from 'zod';
import { route } from '../app.ts';
import { validate } from '../operations/validate.ts';
import { problemResponse } from '../problem.ts';
import { readJsonBody } from '../surfaces/json-body.ts';
import { isLoopbackHost } from './env.ts';
import type { LocalChain } from './local-chain.ts';

/** 10 USDC in atomic units: 2,000 calls of the dearest price that there was at first. */
export const FAUCET_AMOUNT = 10_000_000n;

const faucetInput = z.strictObject({
  address: z.string().refine((text) => isAddress(text, { strict: false }), 'must be an EVM address'),
});

export function mountLocalRoutes(app: Hono, chain: LocalChain): void {
  app.use('/local/*', async (c, next) => {
    if (isLocalCaller(c.req.raw.headers)) return next();
    return problemResponse({ code: 'forbidden_origin' });
  });
  route(app, 'GET', '/local/info', (c) => {
    const { rpcUrl, chainId, usdc, payTo } = chain;
    return c.json({ rpcUrl, chainId, usdc, payTo });
  });
  route(app, 'POST', '/local/faucet', async (c) => {
    const body = await readJsonBody(c.req.raw);
    const input = body?.ok === false ? body : validate({ input: faucetInput }, body?.value);
    if (!input.ok) return problemResponse(input.problem);
    const address = input.value.address;
    const transaction = await chain.mint(address, FAUCET_AMOUNT);
    return c.json({ address, amount: String(FAUCET_AMOUNT), currency: 'practice USDC, atomic units', transaction });
  });
}

/** A web page on the internet can send requests to loopback; its Origin, or a rebound name in Host, gives it away. */
function isLocalCaller(headers: Headers): boolean {
  const names = [`http://${headers.get('Host') ?? ''}`, headers.get('Origin')];
  return names.every((url) => url === null || (URL.canParse(url) && isLoopbackHost(hostnameOf(url))));
}

const hostnameOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
