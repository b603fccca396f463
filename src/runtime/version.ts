/** Name and version of this build, read from package.json, so that they are written once. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';

const require = createRequire(import.meta.url);

/** The nearest package.json above this file: the sources and the build stand at different depths. */
function manifestPath(folder: string): string {
  const path = join(folder, 'package.json');
  return existsSync(path) ? path : manifestPath(dirname(folder));
}

const manifest = require(manifestPath(dirname(fileURLToPath(import.meta.url)))) as { name: string; version: string };

export const GENERATOR = { name: manifest.name, version: manifest.version } as const;
