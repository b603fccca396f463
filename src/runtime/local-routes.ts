/** Routes of local mode only: practice money, API keys, and where the practice chain is. They answer loopback callers only. */
import type { Env, Hono } from 'hono';
import { isAddress, zeroAddress } from 'viem';
import { z } from 'zod';
import { validate } from '../operations/validate.ts';
import { CREDITS_EXPECTED, issueKey, parseCredits, type ApiKeys } from '../payment/api-keys.ts';
import { BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { problemResponse } from '../problem.ts';
import { requireJsonBody } from '../surfaces/json-body.ts';
import { route } from '../surfaces/route.ts';
import { isLoopbackHost } from './env.ts';
import type { LocalChain } from './local-chain.ts';

export const LOCAL_PATHS = { info: '/local/info', faucet: '/local/faucet', keys: '/local/keys' } as const;

/** An address, or little more. */
const BODY_LIMITS = { bytes: 1_024 };

/** 10 USDC in atomic units. */
const FAUCET_AMOUNT = 10_000_000n;

const faucetInput = z.strictObject({
  address: z.string().refine((text) => isAddress(text, { strict: false }), 'must be an EVM address'),
});

const keysInput = z.strictObject({
  credits: z.string().refine((text) => parseCredits(text) !== undefined, CREDITS_EXPECTED),
});

/** The contract mints to neither: it has blacklisted itself. */
const REFUSED: readonly string[] = [zeroAddress, BASE_SEPOLIA_USDC.address.toLowerCase()];

export function mountLocalRoutes<E extends Env>(app: Hono<E>, chain: LocalChain, keys: ApiKeys): void {
  app.use('/local/*', async (c, next) => {
    if (isLocalCaller(c.req.raw.headers)) return next();
    return problemResponse({ code: 'forbidden_origin' });
  });
  route(app, 'GET', LOCAL_PATHS.info, (c) => {
    const { rpcUrl, chainId, usdc, payTo } = chain;
    return c.json({ rpcUrl, chainId, usdc, payTo });
  });
  route(app, 'POST', LOCAL_PATHS.faucet, async (c) => {
    const body = await requireJsonBody(c.req.raw, BODY_LIMITS);
    const input = body.ok ? validate({ input: faucetInput }, body.value) : body;
    if (!input.ok) return problemResponse(input.problem);
    const address = input.value.address;
    if (REFUSED.includes(address.toLowerCase())) {
      return problemResponse({ code: 'invalid_request', path: '/address', detail: 'USDC cannot be held there' });
    }
    const transaction = await chain.mint(address, FAUCET_AMOUNT);
    return c.json({ address, amount: String(FAUCET_AMOUNT), currency: 'practice USDC, atomic units', transaction });
  });
  route(app, 'POST', LOCAL_PATHS.keys, async (c) => {
    const body = await requireJsonBody(c.req.raw, BODY_LIMITS);
    const input = body.ok ? validate({ input: keysInput }, body.value) : body;
    if (!input.ok) return problemResponse(input.problem);
    const credits = parseCredits(input.value.credits) ?? 0n;
    const issued = await issueKey(keys, { credits, now: new Date() });
    return c.json({ ...issued, credits: String(credits) });
  });
}

/** A web page on the internet can send requests to loopback; its Origin, or a rebound name in Host, gives it away. */
function isLocalCaller(headers: Headers): boolean {
  const names = [`http://${headers.get('Host') ?? ''}`, headers.get('Origin')];
  return names.every((url) => url === null || (URL.canParse(url) && isLoopbackHost(hostnameOf(url))));
}

const hostnameOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
