/** The limits of models, as tables with the day that each was made, and how a request's model is found in them. Pure; it fetches nothing. */

/** Tokens everywhere. */
export interface ModelEntry {
  readonly id: string;
  readonly provider?: string;
  readonly context_window: number;
  readonly max_output_tokens: number;
  /** Where the provider bounds the input apart from the window. */
  readonly input_limit?: number;
  /** What a reasoning level may spend on thinking. */
  readonly thinking_budgets?: Readonly<Partial<Record<ThinkingLevel, number>>>;
  readonly supports_vision?: boolean;
  /** ISO 8601 date, where it is another one than the table's. */
  readonly as_of?: string;
}

export const THINKING_LEVELS = ['minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

export interface ModelTable {
  /** ISO 8601 date. */
  readonly as_of: string;
  /** Where it was taken from. */
  readonly source?: string;
  readonly models: readonly ModelEntry[];
}

/** An entry knows its day, whichever table it came from. */
export type CatalogEntry = ModelEntry & { readonly as_of: string };

export interface ModelCatalog extends ModelTable {
  /** Sorted by id, then by provider. */
  readonly models: readonly CatalogEntry[];
  /** Limits for a model as a request names it, or undefined where no table has it. */
  find(id: string, provider?: string | null): CatalogEntry | undefined;
}

/**
 * A catalogue of `table`, with `overrides` on top. `as_of` and `source` are the first table's; every entry carries its own
 * day. An override replaces the entry of the same id and provider; without a provider it replaces the id whoever sells it.
 *
 * `find` takes no account of case and looks for the id as it is, then for what follows its last `/`, then for the BASE of a
 * fine-tune `ft:BASE:...`, then for the same model without a date (`-20250514`, `@20250514`, `-2025-04-14`, `-latest`) or
 * with its newest one. A provider that `table` has models of must be the entry's. Any other resells them, and says nothing
 * about the model unless an override is its own.
 */
export function createCatalog(table: ModelTable, overrides?: ModelTable): ModelCatalog {
  const byId = new Map<string, readonly CatalogEntry[]>();
  for (const { models, as_of } of overrides ? [table, overrides] : [table]) {
    // What speaks for every seller goes first, so that it does not undo what its own table says of one.
    for (const model of models.toSorted(
      (a, b) => Number(a.provider !== undefined) - Number(b.provider !== undefined),
    )) {
      const id = model.id.toLowerCase();
      byId.set(id, withEntry(byId.get(id) ?? [], { ...model, as_of: model.as_of ?? as_of }));
    }
  }
  const byStem = new Map<string, string>();
  for (const id of byId.keys()) {
    const stem = stemOf(id);
    const newest = byStem.get(stem);
    if (newest === undefined || newest < id) byStem.set(stem, id);
  }
  const makers = new Set(table.models.map(sellerOf));

  return {
    ...table,
    models: [...byId.values()].flat().toSorted(byName),
    find(id, provider) {
      const seller = provider?.toLowerCase();
      const anyones = seller === undefined || !makers.has(seller);
      for (const key of readings(id.toLowerCase(), byStem)) {
        const entries = byId.get(key) ?? [];
        const entry =
          entries.find((each) => sellerOf(each) === seller) ??
          entries.find((each) => each.provider === undefined) ??
          (anyones ? entries[0] : undefined);
        if (entry) return entry;
      }
      return undefined;
    },
  };
}

/** Each way to read an id, the most literal first. */
function readings(id: string, byStem: ReadonlyMap<string, string>): readonly string[] {
  const name = id.slice(id.lastIndexOf('/') + 1);
  const base = name.startsWith('ft:') ? (name.split(':', 2)[1] ?? '') : name;
  const stem = stemOf(base);
  return [id, name, base, stem, byStem.get(stem) ?? stem];
}

const DATE_SUFFIX = /(?:[-@]20[0-9]{6}|-20[0-9]{2}-[0-9]{2}-[0-9]{2}|-latest)$/;
const stemOf = (id: string): string => id.replace(DATE_SUFFIX, '');

const sellerOf = ({ provider }: ModelEntry): string | undefined => provider?.toLowerCase();

function withEntry(entries: readonly CatalogEntry[], entry: CatalogEntry): readonly CatalogEntry[] {
  const seller = sellerOf(entry);
  if (seller === undefined) return [entry];
  const same = entries.findIndex((each) => sellerOf(each) === seller);
  return same < 0 ? [...entries, entry] : entries.with(same, entry);
}

/** By code units, so that it is the same everywhere. */
function byName(a: ModelEntry, b: ModelEntry): number {
  const [left, right] = [nameOf(a), nameOf(b)];
  return left < right ? -1 : Number(left > right);
}

const nameOf = (entry: ModelEntry): string => `${entry.id.toLowerCase()} ${sellerOf(entry) ?? ''}`;
