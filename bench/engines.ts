/**
 * assemble beside packages that make conversations smaller: whether what comes out is legal, fits, and still has what it must
 * have; how the time grows; and what the engine costs beside reading the request and beside counting.
 */
import { assemble } from '../src/engines/assemble.ts';
import { DEFAULT_CONFIG } from '../src/engines/config.ts';
import { count } from '../src/engines/count.ts';
import { type Estimator, heuristic, tokenizer } from '../src/engines/estimator.ts';
import { deterministicSummarizer } from '../src/engines/summary.ts';
import { loadEncoding } from '../src/tokenizer/encoding.ts';
import type { AgentMessage } from '../src/transcript/message.ts';
import { placeResults } from '../src/transcript/results.ts';
import { resultText } from '../src/transcript/walk.ts';
import { readTranscript, TRANSCRIPTS } from '../test/transcripts.ts';
import { cells, head, median } from './measure.ts';
import { PEERS, type Shrink, type Turn } from './peers.ts';

const SHARES = [0.75, 0.5, 0.25] as const;
const OURS = 'assemble';
/** A peer that has taken so long for one conversation is not asked for a longer one. */
const ENOUGH_MS = 5_000;

const estimator = tokenizer(await loadEncoding('o200k_base'));

export async function benchEngines(): Promise<void> {
  await benchLegality();
  await benchGrowth();
  await benchWithoutCounting();
  await benchWithCounting();
}

// What comes out

interface Verdict {
  readonly legal: boolean;
  readonly fits: boolean;
  readonly lastUser: boolean;
  readonly system: boolean;
  readonly firstChanged: number;
  readonly ms: number;
}

async function benchLegality(): Promise<void> {
  const inputs = TRANSCRIPTS.map((name) => ({ name, turns: turnsOf(name) })).filter(({ turns }) => isLegal(turns));
  const verdicts = new Map<string, Verdict[]>();
  let refused = 0;
  for (const { turns } of inputs) {
    const prompt = total(turns.filter(({ role }) => role === 'system'));
    for (const share of SHARES) {
      // The system prompt has to stay, so the conversation is what has to become smaller.
      const budget = prompt + Math.floor((total(turns) - prompt) * share);
      for (const [name, shrink] of Object.entries<Shrink>({ [OURS]: ours, ...PEERS })) {
        const start = performance.now();
        const out = await shrink(turns, budget, countTurn);
        const ms = performance.now() - start;
        if (name === OURS && out.length === 0) refused += 1;
        else verdicts.set(name, [...(verdicts.get(name) ?? []), judge(turns, out, budget, ms)]);
      }
    }
  }
  process.stdout.write(
    `\n${inputs.length} conversations, each to be brought to ${SHARES.map((share) => `${share * 100} %`).join(', ')} of its tokens\n\n`,
  );
  head(
    '',
    'answers',
    'illegal',
    'over the budget',
    'without the last user message',
    'without the system prompt',
    'first change at',
    'ms, worst',
  );
  for (const [name, list] of verdicts) {
    const failing = (what: 'legal' | 'fits' | 'lastUser' | 'system'): string =>
      String(list.filter((verdict) => !verdict[what]).length);
    const changed = `${Math.round(100 * median(list.map(({ firstChanged }) => firstChanged)))} %`;
    const worst = Math.max(...list.map(({ ms }) => ms)).toFixed(1);
    cells(
      name,
      String(list.length),
      failing('legal'),
      failing('fits'),
      failing('lastUser'),
      failing('system'),
      changed,
      worst,
    );
  }
  process.stdout.write(
    `\n${OURS} refused ${refused} that nothing can make fit. The first change is the median of where it stands in the messages.\n`,
  );
}

/** The neutral form; where the other packages cannot hold results in a user message, these become messages. */
function turnsOf(name: (typeof TRANSCRIPTS)[number]): Turn[] {
  const { messages, system_prompt } = readTranscript(name);
  const places = placeResults(messages);
  const names = new Map(places.map(({ message, block, function_id }) => [`${message}/${block}`, function_id ?? '']));
  const system: Turn[] = system_prompt ? [{ role: 'system', text: system_prompt }] : [];
  return [
    ...system,
    ...messages.flatMap((message, index): Turn[] => {
      const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
      switch (message.role) {
        case 'custom':
          return [];
        case 'function_result':
          return [
            {
              role: 'result',
              id: message.function_call_id,
              name: message.function_id,
              text: resultText(message.content),
            },
          ];
        case 'assistant': {
          const calls = message.content.flatMap((block) =>
            block.type === 'function_call'
              ? [{ id: block.id, name: block.function_id, input: block.arguments ?? {} }]
              : [],
          );
          return text === '' && calls.length === 0 ? [] : [{ role: 'assistant', text, calls }];
        }
        case 'user': {
          const results = message.content.flatMap((block, at): Turn[] => {
            if (block.type !== 'function_result') return [];
            const called = names.get(`${index}/${at}`) ?? '';
            return [{ role: 'result', id: block.function_call_id, name: called, text: resultText(block.content) }];
          });
          return text === '' ? results : [...results, { role: 'user', text }];
        }
      }
    }),
  ];
}

function toMessage(turn: Turn): AgentMessage {
  const text = (said: string) => (said === '' ? [] : [{ type: 'text' as const, text: said }]);
  switch (turn.role) {
    case 'system':
    case 'user':
      return { role: 'user', content: text(turn.text), timestamp: 0 };
    case 'assistant': {
      const calls = turn.calls.map(({ id, name, input }) => ({
        type: 'function_call' as const,
        id,
        function_id: name,
        arguments: input,
      }));
      return {
        role: 'assistant',
        content: [...text(turn.text), ...calls],
        timestamp: 0,
        model: '',
        provider: '',
        stop_reason: 'end',
      };
    }
    case 'result':
      return {
        role: 'function_result',
        function_call_id: turn.id,
        function_id: turn.name,
        content: text(turn.text),
        timestamp: 0,
      };
  }
}

function toTurn(message: AgentMessage): Turn {
  const text = resultText(message.content);
  if (message.role === 'function_result')
    return { role: 'result', id: message.function_call_id, name: message.function_id, text };
  if (message.role !== 'assistant') return { role: 'user', text };
  const calls = message.content.flatMap((block) =>
    block.type === 'function_call' ? [{ id: block.id, name: block.function_id, input: block.arguments }] : [],
  );
  return { role: 'assistant', text, calls };
}

function countTurn(turn: Turn): number {
  return turn.role === 'system' ? estimator.text(turn.text) : estimator.message(toMessage(turn));
}
const total = (turns: readonly Turn[]): number =>
  turns.reduce((sum, turn) => sum + countTurn(turn), 0) + estimator.replyPrimingTokens;

const ours: Shrink = async (turns, budget) => {
  const messages = turns.flatMap((turn) => (turn.role === 'system' ? [] : [toMessage(turn)]));
  const system_prompt = turns.map((turn) => (turn.role === 'system' ? turn.text : '')).join('');
  const assembled = await run(messages, budget, estimator, system_prompt);
  if (assembled.kind !== 'fits') return [];
  const { result } = assembled;
  const prompt: Turn[] = result.system_prompt === '' ? [] : [{ role: 'system', text: result.system_prompt }];
  return [...prompt, ...result.messages.map(toTurn)];
};

const run = (messages: readonly AgentMessage[], budget: number, by: Estimator, system_prompt = '') =>
  assemble(
    { messages, system_prompt, model: { id: '' }, options: { reserved_tokens: 0 } },
    {
      config: DEFAULT_CONFIG,
      model: { resolved: 'inline', limits: { context_window: budget, max_output_tokens: 0 } },
      estimator: by,
      summarizer: deterministicSummarizer,
      withLease: (work) => work(),
      pause: async () => {},
    },
  );

function judge(before: readonly Turn[], after: readonly Turn[], budget: number, ms: number): Verdict {
  const [system] = before;
  const lastUser = before.findLast(({ role }) => role === 'user');
  const spoken = (turns: readonly Turn[]) =>
    turns.filter(({ role }) => role !== 'system').map((turn) => JSON.stringify(turn));
  const [was, is] = [spoken(before), spoken(after)];
  const changed = was.findIndex((turn, index) => turn !== is[index]);
  return {
    legal: isLegal(after),
    fits: total(after) <= budget,
    lastUser: lastUser === undefined || after.some((turn) => turn.role === 'user' && turn.text === lastUser.text),
    system:
      system?.role !== 'system' ||
      after.some((turn) => turn.role === 'system' && turn.text.startsWith(system.text.trimEnd())),
    firstChanged: (changed < 0 ? was.length : changed) / was.length,
    ms,
  };
}

/**
 * What OpenAI's and Anthropic's APIs both take: not empty, no empty message, a user or the assistant first, each result after the
 * assistant message with its call with nothing but results in between, each call answered unless it is in the last message.
 */
function isLegal(turns: readonly Turn[]): boolean {
  const spoken = turns.filter(({ role }) => role !== 'system');
  let open = new Set<string>();
  for (const turn of spoken) {
    if (turn.role === 'result') {
      if (!open.delete(turn.id)) return false;
      continue;
    }
    if (open.size > 0 || (turn.text === '' && !('calls' in turn && turn.calls.length > 0))) return false;
    if (turn.role === 'assistant') open = new Set(turn.calls.map(({ id }) => id));
  }
  return spoken.length > 0 && (open.size === 0 || spoken.at(-1)?.role === 'assistant');
}

// How long it takes

const GROWTH_MESSAGES = [100, 500, 1_000, 2_500, 5_000] as const;
const GROWTH_BUDGET = 20_000;

/** A real session as often as it takes, each time with ids and words of its own. */
function longSession(messages: number, salt = ''): AgentMessage[] {
  const { messages: session } = readTranscript('01-pi-large-session');
  return Array.from({ length: messages }, (_, index) => {
    const round = `${salt}${Math.floor(index / session.length)}`;
    const text = JSON.stringify(session[index % session.length]).replaceAll(
      /"(id|function_call_id)":"/g,
      `$&${round}_`,
    );
    return JSON.parse(salt === '' ? text : text.replaceAll(/(?<=[a-z] )(?=[a-z])/g, `${salt} `)) as AgentMessage;
  });
}

async function medianOf(runs: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < runs && (times.at(-1) ?? 0) < LONG_MS; index += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return median(times);
}

/** What has taken so long once is not run again. */
const LONG_MS = 500;

async function benchGrowth(): Promise<void> {
  process.stdout.write(`\nMilliseconds to bring so many messages to ${GROWTH_BUDGET} tokens, counts known\n\n`);
  head('', ...GROWTH_MESSAGES.map((messages) => messages.toLocaleString('en')), 'growth');
  for (const [name, shrink] of Object.entries<Shrink | undefined>({ [OURS]: undefined, ...PEERS })) {
    const times: number[] = [];
    for (const length of GROWTH_MESSAGES) {
      if ((times.at(-1) ?? 0) > ENOUGH_MS) break;
      const messages = longSession(length);
      const turns = messages.map(toTurn);
      const known = withSizes(messages);
      const sizes = new Map(turns.map((turn) => [JSON.stringify(turn), heuristic.message(toMessage(turn))]));
      const look = (turn: Turn): number => sizes.get(JSON.stringify(turn)) ?? 4;
      times.push(
        await medianOf(5, () => (shrink ? shrink(turns, GROWTH_BUDGET, look) : run(messages, GROWTH_BUDGET, known))),
      );
    }
    const [first = Number.NaN] = times.slice(1);
    const growth =
      Math.log((times.at(-1) ?? Number.NaN) / first) /
      Math.log((GROWTH_MESSAGES[times.length - 1] ?? 1) / GROWTH_MESSAGES[1]);
    const shown = GROWTH_MESSAGES.map((_, index) => times[index]?.toFixed(1) ?? `not tried`);
    cells(name, ...shown, times.length > 2 ? growth.toFixed(2) : 'too slow to say');
  }
}

/** An estimator that knows what each message counts, so that nothing but the engine takes time. */
function withSizes(messages: readonly AgentMessage[]): Estimator {
  const sizes = new Map(messages.map((message) => [message, heuristic.message(message)]));
  return {
    ...heuristic,
    message: (message) => sizes.get(message) ?? heuristic.message(message),
    text: (text) => text.length >> 2,
    textOf: (_, tokens) => tokens,
  };
}

const MESSAGES = 500;
const BODY_CHARS = 400_000;

async function benchWithoutCounting(): Promise<void> {
  const messages = fitted(longSession(MESSAGES));
  const body = JSON.stringify(messages);
  const json = await medianOf(21, async () => JSON.stringify(JSON.parse(body)));
  process.stdout.write(
    `\n${MESSAGES} messages, ${body.length} characters, counts given: how many times JSON.parse and JSON.stringify of the same body (${json.toFixed(1)} ms)\n\n`,
  );
  head('what is done', 'times');
  const known = withSizes(messages);
  const tokens = messages.reduce((sum, message) => sum + known.message(message), 0);
  const without = { allow_compaction: false };
  for (const [what, budget, options] of [
    ['it fits', tokens, {}],
    ['pruned', Math.floor(tokens * 0.9), without],
    ['reduced', Math.floor(tokens * 0.5), without],
    ['pruned and compacted', GROWTH_BUDGET, {}],
  ] as const) {
    const ms = await medianOf(21, () => runWith(messages, budget, known, options));
    cells(what, (ms / json).toFixed(2));
  }
}

const runWith = (messages: readonly AgentMessage[], budget: number, by: Estimator, options: object) =>
  assemble(
    { messages, model: { id: '' }, options: { reserved_tokens: 0, ...options } },
    {
      config: { ...DEFAULT_CONFIG, protect_recent_tokens: 0, min_free_tokens: 1 },
      model: { resolved: 'inline', limits: { context_window: budget, max_output_tokens: 0 } },
      estimator: by,
      summarizer: deterministicSummarizer,
      withLease: (work) => work(),
      pause: async () => {},
    },
  );

/** With results cut so that all of it has about BODY_CHARS characters. */
function fitted(messages: readonly AgentMessage[]): AgentMessage[] {
  const share = BODY_CHARS / JSON.stringify(messages).length;
  return messages.map((message) =>
    message.role !== 'function_result'
      ? message
      : {
          ...message,
          content: message.content.map((block) =>
            block.type === 'text'
              ? { ...block, text: block.text.slice(0, Math.ceil(block.text.length * share)) }
              : block,
          ),
        },
  );
}

/** Every run has words that no run before it had. */
async function benchWithCounting(): Promise<void> {
  process.stdout.write(
    '\nThe same, counted by o200k_base, texts seen for the first time: how many times as long as count\n\n',
  );
  head('what is done', 'times');
  let salt = 0;
  const fresh = (): AgentMessage[] => fitted(longSession(MESSAGES, `w${(salt += 1).toString(36)}q`));
  const timed = async (work: (messages: AgentMessage[]) => Promise<unknown>): Promise<number> => {
    const times: number[] = [];
    for (let index = 0; index < 9; index += 1) {
      const messages = fresh();
      times.push(await medianOf(1, () => work(messages)));
    }
    return median(times);
  };
  const counting = (messages: AgentMessage[]) => count({ messages, model: { id: '' } }, estimator, async () => {});
  await timed(counting);
  const counted = await timed(counting);
  const tokens = (await counting(fresh())).tokens;
  for (const [what, budget, options] of [
    ['it fits', 2 * tokens, {}],
    ['pruned', Math.floor(tokens * 0.95), { allow_compaction: false }],
    ['reduced', Math.floor(tokens * 0.5), { allow_compaction: false }],
    ['pruned and compacted', GROWTH_BUDGET, {}],
  ] as const) {
    const ms = await timed((messages) => runWith(messages, budget, estimator, options));
    cells(what, (ms / counted).toFixed(2));
  }
}
