/**
 * What the operator's two files say, taken at the start and again whenever they change. A file that is no good is refused
 * whole, with a line in the log, and what held before goes on holding.
 */
import {
  catalogWith,
  CONTEXT_DEFAULTS,
  parseContextConfig,
  parseModelTable,
  type ContextInForce,
  type Parsed,
} from '../operations/context-config.ts';
import { SettingsError, type Settings } from './env.ts';
import { errorFields, type Log } from './log.ts';
import { readContent, watchFile, type FileContent, type WatchedFile } from './watched-file.ts';

export interface ContextSettings {
  /** The snapshot in force. One call takes it once, so that a change in between does not divide it. */
  current(): ContextInForce;
  /** The document's handlers: each takes what was last accepted and drops what was derived before. The events are advisory. */
  onConfigChange(event: { readonly id?: string | null }): { ok: true };
  onModelsChanged(event: { readonly provider?: string | null }): { ok: true };
  close(): void;
}

/**
 * Reads both files and watches them from then on.
 *
 * @throws SettingsError with all that is wrong with both.
 */
export async function openContextSettings(
  settings: Pick<Settings, 'CONTEXT_CONFIG' | 'MODEL_CATALOG'>,
  log: Log,
): Promise<ContextSettings> {
  const config = await open('CONTEXT_CONFIG', settings.CONTEXT_CONFIG, parseContextConfig, () => onConfigChange({}));
  const models = await open('MODEL_CATALOG', settings.MODEL_CATALOG, parseModelTable, () => onModelsChanged({}));
  let snapshot = CONTEXT_DEFAULTS;
  const onConfigChange: ContextSettings['onConfigChange'] = () => {
    snapshot = { ...snapshot, config: config.accepted() ?? CONTEXT_DEFAULTS.config };
    return { ok: true };
  };
  const onModelsChanged: ContextSettings['onModelsChanged'] = () => {
    snapshot = { ...snapshot, catalog: catalogWith(models.accepted()) };
    return { ok: true };
  };
  const faults = [...config.faults, ...models.faults];
  if (faults.length > 0) throw new SettingsError(faults);
  onConfigChange({});
  onModelsChanged({});
  const watched = [config.watch(log), models.watch(log)];
  return {
    current: () => snapshot,
    onConfigChange,
    onModelsChanged,
    close: () => {
      for (const file of watched) file.close();
    },
  };
}

interface Source<T> {
  /** What is wrong with the first content. */
  readonly faults: readonly string[];
  /** The last good content; undefined where the setting is not given. */
  accepted(): T | undefined;
  watch(log: Log): WatchedFile;
}

async function open<T>(
  name: 'CONTEXT_CONFIG' | 'MODEL_CATALOG',
  path: string | undefined,
  parse: (bytes: Uint8Array) => Parsed<T>,
  onAccepted: () => void,
): Promise<Source<T>> {
  if (path === undefined) return { faults: [], accepted: () => undefined, watch: () => ({ close: () => {} }) };
  const first = await readContent(path);
  const read = readAs(first, parse);
  let accepted = read.ok ? read.value : undefined;
  return {
    faults: read.ok ? [] : read.faults.map((fault) => `${name}: ${fault}`),
    accepted: () => accepted,
    watch: (log) =>
      watchFile(
        path,
        first,
        (content) => {
          const changed = readAs(content, parse);
          if (!changed.ok) {
            log('error', 'setting_refused', { setting: name, faults: changed.faults.join('; ') });
            return;
          }
          accepted = changed.value;
          onAccepted();
          log('info', 'setting_reloaded', { setting: name });
        },
        (error) => log('error', 'setting_failed', { setting: name, ...errorFields(error) }),
      ),
  };
}

type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: readonly string[] };

function readAs<T>(content: FileContent, parse: (bytes: Uint8Array) => Parsed<T>): Read<T> {
  if (!content.ok) return { ok: false, faults: [`the file cannot be read (${content.reason})`] };
  const parsed = parse(content.bytes);
  if (parsed.ok) return parsed;
  return { ok: false, faults: parsed.faults.map(({ path, detail }) => (path === '' ? detail : `${path}: ${detail}`)) };
}
