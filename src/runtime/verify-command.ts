/**
 * The command `verify`: checks a saved answer without network, and with its request computes it again. What it believes is what it was
 * given: an issuer named on the command line.
 */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { verifyAnswer } from '../client/verify-answer.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { toWire } from '../problem.ts';
import { parseStrictJson } from '../provenance/strict-json.ts';
import {
  CHECK_NAMES,
  conclude,
  type Check,
  type Checks,
  type UncheckedEnvelope,
  type Verification,
} from '../provenance/verify.ts';

export const VERIFY_USAGE = `verify ANSWER.json [--issuer DID | --did DID.json] [--input REQUEST.json] [--json]

ANSWER.json is {data, _provenance} as it came; - is standard input. --issuer takes a did:key; of a did:web give its document, kept from
/.well-known/did.json, by --did. With --input the answer is computed again. Nothing is fetched.
Ends with 0: verified, 1: contradicted, 2: unverifiable, 64: it could not be tried.
`;

/** As sysexits.h has it for words on a command line. */
const USAGE_EXIT = 64;
const EXITS: { readonly [O in Verification['outcome']]: number } = { verified: 0, contradicted: 1, unverifiable: 2 };

export interface Verdict {
  readonly output: string;
  readonly exitCode: number;
}

/** Never rejects: what keeps it from being tried is said, with exit code 64. */
export async function verifyCommand(args: readonly string[]): Promise<Verdict> {
  try {
    return await run(args);
  } catch (error) {
    return {
      output: `${error instanceof Error ? error.message : String(error)}\n\n${VERIFY_USAGE}`,
      exitCode: USAGE_EXIT,
    };
  }
}

async function run(args: readonly string[]): Promise<Verdict> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      issuer: { type: 'string' },
      did: { type: 'string' },
      input: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const [path, ...others] = positionals;
  if (path === undefined || others.length > 0) throw new Error('Name one answer.');
  const issuer = await issuerOf(values);
  const [answer, input] = [await read(path), values.input === undefined ? undefined : await read(values.input)];
  const checked = await verifyAnswer({
    answer,
    ...(input !== undefined && { input }),
    ...(issuer !== undefined && { issuer }),
  });
  if (!checked.ok) {
    const { error } = toWire(checked.problem).body;
    const said = { outcome: 'contradicted', [checked.of]: checked.problem };
    const output = values.json
      ? json(said)
      : `${CROSS} the ${checked.of} cannot be read: ${error.replace(FREE, '')}\ncontradicted\n`;
    return { output, exitCode: EXITS.contradicted };
  }
  const { envelope, verification, input: asked } = checked;
  // The engines are loaded for those alone who have the request.
  const verdict = asked === undefined ? verification : conclude(await withRerun(verification.checks, envelope, asked));
  const { credential } = envelope._provenance;
  const exitCode = EXITS[verdict.outcome];
  const about = credential['credentialSubject'];
  if (values.json) return { output: json({ ...verdict, issuer: credential['issuer'], about }), exitCode };
  return { output: describe(verdict, credential), exitCode };
}

/** What problems of the service end with; here nobody asked for money. */
const FREE = / Nothing was charged\.$/;

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

async function issuerOf({ issuer, did }: { issuer?: string; did?: string }): Promise<string | JsonObject | undefined> {
  if (did === undefined) return issuer;
  const parsed = parseStrictJson(await read(did));
  if (!parsed.ok || !isJsonObject(parsed.value)) throw new Error(`${did} is no DID document.`);
  if (issuer !== undefined && parsed.value['id'] !== issuer)
    throw new Error(`${did} is not the document of ${issuer}.`);
  return parsed.value;
}

async function read(path: string): Promise<Uint8Array> {
  if (path === '-') return new TextEncoder().encode(await text(process.stdin));
  try {
    return new Uint8Array(await readFile(path));
  } catch {
    throw new Error(`${path} cannot be read.`);
  }
}

async function withRerun(checks: Checks, envelope: UncheckedEnvelope, input: unknown): Promise<Checks> {
  const [{ rerun }, { operations }, { DEFAULT_CONTEXT }] = await Promise.all([
    import('../operations/rerun.ts'),
    import('../operations/list.ts'),
    import('../operations/run-context.ts'),
  ]);
  return {
    ...checks,
    rerun: await rerun({ checks, envelope, input, operations, contextFor: () => DEFAULT_CONTEXT }),
  };
}

const CROSS = '✗';
const MARKS: { readonly [R in Check['result']]: string } = { pass: '✓', fail: CROSS, not_checked: '·' };
const NAME_COLUMNS = Math.max(...CHECK_NAMES.map((name) => name.length));

function describe({ checks, outcome }: Verification, credential: JsonObject): string {
  const lines = CHECK_NAMES.map((name) => {
    const { result, reason } = checks[name];
    return `${MARKS[result]} ${name.padEnd(NAME_COLUMNS)}  ${reason}`;
  });
  return `${lines.join('\n')}\n\n${outcome}${outcome === 'verified' ? `: ${aboutOf(credential)}` : ''}\n`;
}

/** Of a credential that was verified. */
function aboutOf({ issuer, validFrom, credentialSubject: subject }: JsonObject): string {
  const { operation, operationVersion, charged, sample, environment } = isJsonObject(subject) ? subject : {};
  const notes = [sample === true && 'a sample', environment === 'local' && 'practice money'].filter(Boolean);
  return [
    `${String(operation)} ${String(operationVersion)} by ${String(issuer)} at ${String(validFrom)}`,
    `${String(charged)} atomic units of USDC charged`,
    ...notes,
  ].join(', ');
}
