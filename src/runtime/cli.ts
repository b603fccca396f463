#!/usr/bin/env node
/** `context-evidence-kit`: start the service, make a signing key, keep API keys, or verify a saved answer. */
import { didKey } from '../provenance/did.ts';
import { createSigner } from '../provenance/ed25519.ts';
import { newSeed, spellings } from './signing-key.ts';
import { GENERATOR } from './version.ts';

const USAGE = `${GENERATOR.name} ${GENERATOR.version}

  ${GENERATOR.name} start     run the service; without settings in local mode, with practice money
  ${GENERATOR.name} facilitator   settle payments for other sellers of yours, over the standard routes of x402
  ${GENERATOR.name} keygen    print a new SIGNING_KEY in both spellings
  ${GENERATOR.name} verify ANSWER.json --issuer DID    check a saved answer offline
  ${GENERATOR.name} keys ...     create, list, top up and revoke API keys with prepaid credits
  ${GENERATOR.name} --version
`;

const commands: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  // Loaded only then: the other commands need none of it.
  start: async () => (await import('./start.ts')).start(),
  facilitator: async () => (await import('./start-facilitator.ts')).facilitate(),
  keygen: async () => {
    const seed = newSeed();
    const { hex, secretKeyMultibase } = spellings(seed);
    print(`SIGNING_KEY=${hex}\nor SIGNING_KEY=${secretKeyMultibase}\n`);
    print(`Its DID in local mode: ${didKey((await createSigner(seed)).publicKey)}\n`);
  },
  verify: async (args) => {
    const { output, exitCode } = await (await import('./verify-command.ts')).verifyCommand(args);
    print(output);
    process.exitCode = exitCode;
  },
  keys: async (args) => print(await (await import('./keys-command.ts')).keysCommand(args, process.env, new Date())),
  '--version': async () => print(`${GENERATOR.version}\n`),
  '--help': async () => print(USAGE),
};

function print(text: string): void {
  process.stdout.write(text);
}

const [name = '--help', ...args] = process.argv.slice(2);
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
try {
  if (!command) throw new Error(`There is no command of that name.\n\n${USAGE}`);
  await command(args);
} catch (error) {
  // What a user can do something about is said in the message; a stack would only hide it.
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
