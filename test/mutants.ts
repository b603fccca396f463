/** What a forger would try: every single change of every kind, at every place of a value that is JSON. */
import { isJsonObject } from '../src/json.ts';

type Path = readonly (string | number)[];

const isArray = (value: unknown): value is unknown[] => Array.isArray(value);

function paths(value: unknown, path: Path = []): Path[] {
  const inner = isArray(value)
    ? value.flatMap((item, index) => paths(item, [...path, index]))
    : isJsonObject(value)
      ? Object.entries(value).flatMap(([key, member]) => paths(member, [...path, key]))
      : [];
  return [path, ...inner];
}

function partAt(value: unknown, [key, ...rest]: Path): unknown {
  if (key === undefined) return value;
  if (isArray(value)) return partAt(value[Number(key)], rest);
  return isJsonObject(value) ? partAt(value[key], rest) : undefined;
}

function update(value: unknown, [key, ...rest]: Path, change: (part: unknown) => unknown): unknown {
  if (key === undefined) return change(value);
  if (isArray(value)) return value.with(Number(key), update(value[Number(key)], rest, change));
  return isJsonObject(value) ? { ...value, [key]: update(value[key], rest, change) } : value;
}

function without(container: unknown, key: string | number): unknown {
  if (isArray(container)) return container.toSpliced(Number(key), 1);
  return isJsonObject(container) && Object.fromEntries(Object.entries(container).filter(([name]) => name !== key));
}

/** An array with one item twice, an object with one member under a second name. */
function copied(container: unknown, key: string | number): unknown {
  if (isArray(container)) return container.toSpliced(Number(key), 0, container[Number(key)]);
  return isJsonObject(container) && { ...container, [`${key}2`]: container[key] };
}

function replacements(value: unknown): unknown[] {
  const others: unknown[] = [null, true, false, 0, 1, -1, '', 'x', [], {}, [value], { value }, [[value]]];
  if (typeof value === 'number') others.push(String(value), value + 1, -value, value + 1e-9);
  if (typeof value === 'string') {
    const flipped = (index: number) =>
      value.slice(0, index) + String.fromCharCode(value.charCodeAt(index) ^ 1) + value.slice(index + 1);
    others.push(`${value} `, ` ${value}`, `${value}\u0000`, value.slice(1), value.slice(0, -1), value + value);
    others.push(value.toUpperCase(), value.normalize('NFD'), `${value}\u200b`, Array.from(value).toReversed().join(''));
    if (value !== '') others.push(flipped(0), flipped(value.length >> 1), flipped(value.length - 1));
    if (value !== '' && Number.isFinite(Number(value))) others.push(Number(value));
  }
  if (isArray(value)) {
    others.push(
      [...value, null],
      [...value, ...value.slice(-1)],
      [...value, ...value],
      value.toReversed(),
      value.slice(1),
    );
  }
  if (isJsonObject(value)) {
    others.push({ ...value, x: null }, { ...value, '': 1 }, JSON.parse(`{"__proto__":${JSON.stringify(value)}}`));
  }
  return others;
}

/** @param siblings so many values of other places, as deep, are put at each place. */
export function* mutantsOf(whole: unknown, siblings = Infinity): Generator {
  const everywhere = paths(whole).filter((path) => path.length > 0);
  for (const path of everywhere) {
    const [parent, key = ''] = [path.slice(0, -1), path.at(-1)];
    const part = partAt(whole, path);
    const asDeep = everywhere.filter((other) => other.length === path.length);
    const step = Math.max(1, Math.floor(asDeep.length / siblings));
    for (const other of replacements(part)) yield update(whole, path, () => other);
    for (const other of asDeep.filter((_, index) => index % step === 0))
      yield update(whole, path, () => partAt(whole, other));
    yield update(whole, parent, (container) => without(container, key));
    yield update(whole, parent, (container) => copied(container, key));
    yield update(whole, parent, (container) => without(copied(container, key), key));
  }
}

/** The same text in other spellings: numbers, escapes, white space. Each is the same JSON, or none. */
export function* respelled(text: string): Generator<string> {
  for (const { index, 0: number } of text.matchAll(/(?<=[:[,])-?\d+(?=[,\]}])/g)) {
    const put = (spelling: string): string => text.slice(0, index) + spelling + text.slice(index + number.length);
    for (const spelling of [`${number}.0`, `${number}e0`, `${number}E+0`, `0${number}`, `+${number}`, `${number}0`])
      yield put(spelling);
  }
  for (const { index, 0: letter } of text.matchAll(/(?<=")[a-z](?=[a-z]+":)/g)) {
    const code = letter.charCodeAt(0).toString(16).padStart(4, '0');
    yield `${text.slice(0, index)}\\u${code}${text.slice(index + 1)}`;
  }
  for (const space of [' ', '\n', '\t', '\u00a0', '\ufeff']) yield text.replaceAll('":', `":${space}`);
}
