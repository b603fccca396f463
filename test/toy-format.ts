/** A format of nobody's, in any of the ways in which formats place results: what is written once for all formats is tested with it. */
import * as fc from 'fast-check';
import { isJsonObject } from '../src/json.ts';
import { type FormatRules, type MessageFormat, type Part, unmapped } from '../src/transcript/formats/format.ts';

/** `{ by: 'user' | 'bot' | 'tool' | 'rule', say: [...] }`, where a bot's call is `{ call, do }` and a result `{ for, gave }`. */
export type ToyMessage = { readonly by: string; readonly say: readonly ToyPart[] };
export type ToyPart =
  | string
  | { readonly call: string; readonly do: string }
  | { readonly for: string; readonly gave: string; readonly error?: boolean };

const ROLES = { user: 'user', bot: 'assistant', tool: 'results', rule: 'system' } as const;

export function toyFormat(rules: FormatRules): MessageFormat {
  const toPart = (native: unknown, path: string): Part | undefined => {
    if (typeof native === 'string') return { block: { type: 'text', text: native }, native, path };
    if (!isJsonObject(native)) return undefined;
    const { call, do: does, for: id, gave, error } = native;
    if (typeof call === 'string' && typeof does === 'string') {
      return { block: { type: 'function_call', id: call, function_id: does }, native, path };
    }
    if (typeof id !== 'string' || typeof gave !== 'string') return undefined;
    const content = [{ type: 'text', text: gave }] as const;
    const is_error = error === true;
    return { block: { type: 'function_result', function_call_id: id, content, is_error }, native, path };
  };
  const toNative = ({ block, native, edited }: Part): unknown => {
    if (native !== undefined && !edited) return native;
    const rest = isJsonObject(native) ? native : {};
    if (block.type === 'function_call') return { do: block.function_id, ...rest, call: block.id };
    if (block.type !== 'function_result') return native;
    const gave = block.content.map((each) => (each.type === 'text' ? each.text : '')).join('');
    return { ...rest, for: block.function_call_id, gave, ...(block.is_error && { error: true }) };
  };
  const holder = rules.results === 'head-of-next-user' ? 'user' : 'tool';
  return {
    id: 'toy',
    title: 'a toy',
    rules,
    read(native, path) {
      const { by, say } = native;
      const role = typeof by === 'string' && by in ROLES ? ROLES[by as keyof typeof ROLES] : undefined;
      if (!role) return unmapped(`${path}/by`, 'expected user, bot, tool or rule');
      if (!Array.isArray(say)) return unmapped(`${path}/say`, 'expected a list');
      const parts: Part[] = [];
      for (const [index, each] of say.entries()) {
        const part = toPart(each, `${path}/say/${index}`);
        if (!part) return unmapped(`${path}/say/${index}`, 'expected text, a call or a result');
        parts.push(part);
      }
      return { ok: true, value: { role, parts, path, native } };
    },
    write: ({ native }, parts) => ({ ...native, say: parts.map(toNative) }),
    holdResults: (parts) => ({ by: holder, say: parts.map(toNative) }),
    readSystem: (system, path) =>
      system === undefined || typeof system === 'string'
        ? { ok: true, value: system === undefined ? [] : [system] }
        : unmapped(path, 'expected text'),
    readTools: () => ({ ok: true, value: [] }),
    addInstruction: ({ messages, system }, text) => ({
      messages,
      system: [system, text].filter((each) => typeof each === 'string').join('\n\n'),
    }),
    faults: ({ parts, path, role }) => [
      ...(parts.length === 0 && role !== 'system' ? [{ path, rule: 'empty-message', detail: 'nothing is said' }] : []),
      ...parts.flatMap(({ block, path: at }) => {
        if (block.type === 'text' && block.text === '') return [{ path: at, rule: 'empty-block', detail: 'no text' }];
        const nameless = block.type === 'function_call' && block.id === '';
        return nameless ? [{ path: at, rule: 'missing-id', detail: 'no id' }] : [];
      }),
    ],
  };
}

export const TOY_RULES: readonly FormatRules[] = [
  { results: 'next-messages', userFirst: false, joinsAssistant: false },
  { results: 'head-of-next-user', userFirst: false, joinsAssistant: false },
  { results: 'before-next-user', userFirst: false, joinsAssistant: false },
  { results: 'anywhere-after', userFirst: false, joinsAssistant: false },
  { results: 'anywhere-after', userFirst: false, joinsAssistant: true },
];

const id = fc.constantFrom('', 'a', 'b', 'c');
const word = fc.constantFrom('', 'go', 'well then', 'done');
const call = fc.record({ call: id, do: fc.constant('f') });
const result = fc.record({ for: id, gave: word }, { requiredKeys: ['for', 'gave'] });
const failed = result.map((each) => ({ ...each, error: true }));
const parts = (...of: fc.Arbitrary<ToyPart>[]): fc.Arbitrary<ToyPart[]> => fc.array(fc.oneof(...of), { maxLength: 4 });

/** Any conversation that can be written down, in the way in which this placement writes results. */
export function toyConversation({ results }: FormatRules): fc.Arbitrary<ToyMessage[]> {
  const user = results === 'head-of-next-user' ? parts(word, result, failed) : parts(word);
  const tool = fc.record({ by: fc.constant('tool'), say: parts(result, failed) });
  return fc.array(
    fc.oneof(
      fc.record({ by: fc.constant('user'), say: user }),
      fc.record({ by: fc.constant('bot'), say: parts(word, call) }),
      fc.record({ by: fc.constant('rule'), say: parts(word) }),
      ...(results === 'head-of-next-user' ? [] : [tool]),
    ),
    { maxLength: 12 },
  );
}
