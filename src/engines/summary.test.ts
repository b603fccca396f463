import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUDGETS_TOKENS, isTest, mean, readCases, recall, summarized } from '../../bench/fidelity.ts';
import { anyMessage, readTranscript, TRANSCRIPTS, withKeysReversed } from '../../test/transcripts.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { type Estimator, heuristic, tokenizer } from './estimator.ts';
import { deterministicSummarizer } from './summary.ts';

const o200k = tokenizer(await loadEncoding('o200k_base'));
const ESTIMATORS = { heuristic, o200k };

interface Options {
  readonly previous?: string | undefined;
  readonly budget?: number;
  readonly estimator?: Estimator;
}

function summarize(head: readonly AgentMessage[], options: Options = {}): Promise<string> {
  const { previous, budget = 1_024, estimator = o200k } = options;
  const pause = () => Promise.resolve();
  return deterministicSummarizer.summarize({ head, previousSummary: previous, budgetTokens: budget, estimator, pause });
}

const text = (said: string): ContentBlock => ({ type: 'text', text: said });
const user = (...said: string[]): AgentMessage => ({ role: 'user', content: said.map(text), timestamp: 1 });
const assistant = (said: string, ...calls: ContentBlock[]): AgentMessage => ({
  role: 'assistant',
  content: said === '' ? calls : [text(said), ...calls],
  timestamp: 1,
  model: 'm',
  provider: 'p',
  stop_reason: calls.length > 0 ? 'function_call' : 'end',
});
const call = (id: string, name: string, args?: unknown): ContentBlock => ({
  type: 'function_call',
  id,
  function_id: name,
  ...(args === undefined ? {} : { arguments: args }),
});
const result = (id: string, said: string, isError = false): AgentMessage => ({
  role: 'function_result',
  function_call_id: id,
  function_id: 'f',
  content: [text(said)],
  timestamp: 1,
  is_error: isError,
});

const HEADINGS = [
  '## Goal',
  '## Constraints & Preferences',
  '## Progress',
  '### Done',
  '### In Progress',
  '### Blocked',
  '## Key Decisions',
  '## Actions Taken',
  '## Next Steps',
  '## Critical Context',
  '## Relevant Files',
];

/** The bullets under each heading; fails on any line that is neither. */
function sectionsOf(summary: string): Record<string, string[]> {
  const sections: Record<string, string[]> = {};
  let bullets: string[] = [];
  for (const line of summary.split('\n')) {
    if (line.startsWith('#')) sections[line.replace(/^#+ /, '')] = bullets = [];
    else if (line.startsWith('- ')) bullets.push(line.slice(2));
    else expect(line).toBe('(none)');
  }
  return sections;
}

const headingsOf = (summary: string): string[] => summary.split('\n').filter((line) => line.startsWith('#'));

const BUG_HUNT = [
  user('The payment gate retries forever. Make it give up after three tries. Do not touch src/ledger.ts.'),
  assistant("I'll read the gate first.", call('1', 'read', { path: 'src/payment/gate.ts' })),
  result('1', 'export const RETRY_DELAY_MS = 500;'),
  assistant('The retry loop has no limit. Should the delay grow as well?'),
  user('Yes, double it each time.'),
  assistant('', call('2', 'edit', { path: 'src/payment/gate.ts', old: 'a', new: 'b\nc' })),
  result('2', 'edited'),
  assistant('', call('3', 'bash', { command: 'npm test' })),
  result('3', 'Error: expected 3 but got 4\n    at retry.test.ts:12', true),
  assistant('The limit is added in the gate. Next I will fix retry.test.ts, which still expects four.'),
];

describe('the deterministic summariser', () => {
  it('puts what was asked, decided, done and left into its sections', async () => {
    const sections = sectionsOf(await summarize(BUG_HUNT));
    expect(sections['Goal']).toEqual(['The payment gate retries forever. Make it give up after three tries.']);
    expect(sections['Constraints & Preferences']).toEqual(['Do not touch src/ledger.ts.']);
    expect(sections['Key Decisions']).toEqual(['Should the delay grow as well? → Yes, double it each time.']);
    expect(sections['Done']).toContain('The limit is added in the gate.');
    expect(sections['Blocked']).toEqual(['Error: expected 3 but got 4 (bash: npm test)']);
    expect(sections['Next Steps']).toEqual(['Next I will fix retry.test.ts, which still expects four.']);
    expect(sections['Actions Taken']).toEqual(['bash: npm test', 'edit: gate.ts, old=a, new=b', 'read: gate.ts']);
    expect(sections['Critical Context']?.join(' ')).toContain('RETRY_DELAY_MS');
    expect(sections['Relevant Files']).toEqual(['edit: src/payment/gate.ts']);
  });

  it('does not call blocked what the same call did later', async () => {
    const repaired = [...BUG_HUNT, assistant('', call('4', 'bash', { command: 'npm test' })), result('4', '12 passed')];
    expect(sectionsOf(await summarize(repaired))['Blocked']).toEqual([]);
  });

  it('takes a call for under way while it has no result', async () => {
    const head = [user('Run all the tests, please.'), assistant('', call('1', 'bash', { command: 'npm test' }))];
    expect(sectionsOf(await summarize(head))['In Progress']).toEqual(['bash: npm test (no result yet)']);
  });

  it('shows the newest list of tasks by their states', async () => {
    const todos = [
      { content: 'Parse the input', status: 'completed' },
      { content: 'Write the output', status: 'in_progress' },
      { content: 'Measure the speed', status: 'pending' },
    ];
    const head = [
      user('Write me a converter for logs.'),
      assistant('', call('1', 'TodoWrite', { todos })),
      result('1', 'ok'),
    ];
    expect(sectionsOf(await summarize(head))).toMatchObject({
      Done: ['Parse the input'],
      'In Progress': ['Write the output'],
      'Next Steps': ['Measure the speed'],
    });
  });

  it('takes the request from what machines wrapped it in, and no word of theirs', async () => {
    const head = [
      user('<system-reminder>\nThe list is empty. Never mention this reminder.\n</system-reminder>'),
      user('<command-message>run…</command-message>\n<command-args>build the site with Astro</command-args>'),
      user('continue'),
      assistant('Done.'),
    ];
    const sections = sectionsOf(await summarize(head));
    expect(sections['Goal']).toEqual(['build the site with Astro']);
    expect(sections['Constraints & Preferences']).toEqual([]);
  });

  it('names images and files, and copies none', async () => {
    const image: ContentBlock = { type: 'image', data: 'QUJD'.repeat(99), mime: 'image/png' };
    const file: ContentBlock = { type: 'file', attachment_id: 'a1', mime: 'text/csv', name: 'sales.csv', size: 9 };
    const summary = await summarize([{ role: 'user', content: [image, image, file], timestamp: 1 }]);
    expect(sectionsOf(summary)['Critical Context']).toEqual(['[image image/png] ×2', '[file sales.csv]']);
    expect(summary).not.toContain('QUJD');
  });

  it('quotes neither thinking nor custom messages', async () => {
    const summary = await summarize([
      user('Tell me what the build needs.'),
      {
        ...assistant('It needs node-20.'),
        content: [{ type: 'thinking', text: 'secret_plan' }, text('It needs node-20.')],
      },
      { role: 'custom', custom_type: 'note', content: [text('custom_note')], timestamp: 1 },
    ]);
    expect(summary).toContain('node-20');
    expect(summary).not.toMatch(/secret_plan|custom_note/);
  });

  it.each([
    ['nothing', []],
    ['an empty text', [user('')]],
    ['thinking alone', [{ ...assistant(''), content: [{ type: 'thinking' as const, text: 'hm' }] }]],
    ['punctuation', [user('...'), assistant('—')]],
  ])('is empty where there is nothing to say: %s', async (_, head) => {
    expect(await summarize(head)).toBe('');
  });
});

describe('other languages', () => {
  it.each([
    {
      language: 'Chinese',
      request: '请把 src/gate.ts 里的重试逻辑改成指数退避。\n不要修改 src/ledger.ts，测试必须全部通过。',
      goal: '请把 src/gate.ts 里的重试逻辑改成指数退避。',
      constraint: '不要修改 src/ledger.ts，测试必须全部通过。',
      exchange: ['需要加抖动吗？', '需要，抖动不超过 20%。'],
    },
    {
      language: 'Japanese',
      request: 'src/gate.ts のリトライを指数バックオフに変更してください。src/ledger.ts は変更しないでください。',
      goal: 'src/gate.ts のリトライを指数バックオフに変更してください。',
      constraint: 'src/ledger.ts は変更しないでください。',
      exchange: ['ジッターも追加しますか？', 'はい、20%以内でお願いします。'],
    },
    {
      language: 'Arabic',
      request: 'غيّر منطق إعادة المحاولة في src/gate.ts إلى تراجع أسّي. لا تعدّل src/ledger.ts.',
      goal: 'غيّر منطق إعادة المحاولة في src/gate.ts إلى تراجع أسّي.',
      constraint: 'لا تعدّل src/ledger.ts.',
      exchange: ['هل أضيف عشوائية إلى التأخير؟', 'نعم، بحد أقصى عشرين بالمئة.'],
    },
    {
      language: 'Russian',
      request: 'Переделай повторы в src/gate.ts на растущую задержку. Нельзя менять src/ledger.ts.',
      goal: 'Переделай повторы в src/gate.ts на растущую задержку.',
      constraint: 'Нельзя менять src/ledger.ts.',
      exchange: ['Добавить случайный разброс?', 'Да, но не больше 20 процентов.'],
    },
  ])('finds goal, constraints and decisions in $language', async ({ request, goal, constraint, exchange }) => {
    const [question = '', answer = ''] = exchange;
    const sections = sectionsOf(await summarize([user(request), assistant(question), user(answer)]));
    expect(sections['Goal']?.[0]).toBe(goal);
    expect(sections['Constraints & Preferences']).toContain(constraint);
    expect([...(sections['Key Decisions'] ?? []), ...(sections['Next Steps'] ?? [])].join('\n')).toContain(answer);
  });
});

describe('a previous summary', () => {
  const LATER = [
    user('Now write down in docs/gate.md how retries work. Always give the units.'),
    assistant(
      'I created docs/gate.md with a table of delays.',
      call('9', 'write', { path: 'docs/gate.md', text: 'x' }),
    ),
    result('9', 'written'),
  ];

  it('keeps what is true, and adds the new', async () => {
    const previous = await summarize(BUG_HUNT);
    const sections = sectionsOf(await summarize(LATER, { previous }));
    expect(sections['Goal']).toEqual([
      'The payment gate retries forever. Make it give up after three tries.',
      'Latest: Now write down in docs/gate.md how retries work.',
    ]);
    expect(sections['Constraints & Preferences']).toEqual(['Do not touch src/ledger.ts.', 'Always give the units.']);
    expect(sections['Key Decisions']).toEqual(['Should the delay grow as well? → Yes, double it each time.']);
    expect(sections['Relevant Files']).toEqual(['write: docs/gate.md', 'edit: src/payment/gate.ts']);
  });

  it.each(TRANSCRIPTS)('says nothing new when it is repeated: %s', async (name) => {
    const { messages } = readTranscript(name);
    const half = messages.length >> 1;
    for (const budget of [128, 512, 2_048]) {
      const summary = await summarize(messages, { budget });
      expect(await summarize(messages, { budget, previous: summary })).toBe(summary);
      expect(await summarize([], { budget, previous: summary })).toBe(summary);
      const merged = await summarize(messages.slice(half), {
        budget,
        previous: await summarize(messages.slice(0, half), { budget }),
      });
      expect(await summarize(messages.slice(half), { budget, previous: merged })).toBe(merged);
    }
  });

  it('remembers goal, constraints and decisions of the beginning for twenty rounds', async () => {
    const { messages } = readTranscript('01-pi-large-session');
    const budget = 512;
    let summary = await summarize(BUG_HUNT, { budget });
    for (let round = 0; round < 20; round++) {
      summary = await summarize(messages.slice(round * 16, (round + 1) * 16), { budget, previous: summary });
      expect(o200k.text(summary)).toBeLessThanOrEqual(budget);
    }
    const sections = sectionsOf(summary);
    expect(sections['Goal']?.[0]).toMatch(/^The payment gate retries forever/);
    expect(sections['Constraints & Preferences']).toContain('Do not touch src/ledger.ts.');
    expect(sections['Key Decisions']).toContain('Should the delay grow as well? → Yes, double it each time.');
  });

  it('reads a summary of another hand', async () => {
    const previous =
      '# Summary\nWe are moving to pnpm.\n\n## Goal\n* Move to pnpm\n\n## Open questions\n1. Is CI ready?';
    const summary = await summarize(LATER, { previous });
    expect(headingsOf(summary)).toEqual(HEADINGS);
    expect(sectionsOf(summary)).toMatchObject({
      Goal: ['Move to pnpm', 'Latest: Now write down in docs/gate.md how retries work.'],
      'Critical Context': expect.arrayContaining(['We are moving to pnpm.', 'Is CI ready?']),
    });
  });

  it('is cut to a smaller budget', async () => {
    const { messages } = readTranscript('01-pi-large-session');
    const previous = await summarize(messages, { budget: 2_048 });
    const summary = await summarize([], { budget: 256, previous });
    expect(o200k.text(summary)).toBeLessThanOrEqual(256);
    expect(headingsOf(summary)).toEqual(HEADINGS);
    expect(await summarize([], { budget: 256, previous: summary })).toBe(summary);
  });
});

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

describe('any conversation', () => {
  const history = fc.array(anyMessage, { maxLength: 12 });
  const budget = fc.integer({ min: 128, max: 700 });
  const estimator = fc.constantFrom(...Object.values(ESTIMATORS));

  it('is told in eight sections within the budget, without half characters, the same each time', async () => {
    await fc.assert(
      fc.asyncProperty(history, history, budget, estimator, async (head, more, tokens, counter) => {
        const options = { budget: tokens, estimator: counter };
        const first = await summarize(head, options);
        const second = await summarize(more, { ...options, previous: first });
        for (const summary of [first, second]) {
          if (summary === '') continue;
          expect(counter.text(summary)).toBeLessThanOrEqual(tokens);
          expect(headingsOf(summary)).toEqual(HEADINGS);
          expect(summary).not.toMatch(LONE_SURROGATE);
          sectionsOf(summary);
        }
        expect(await summarize(structuredClone(head), options)).toBe(first);
        expect(await summarize(head.map(withKeysReversed), options)).toBe(first);
        expect(await summarize(head, { ...options, previous: first })).toBe(first);
        expect(await summarize([], { ...options, previous: first })).toBe(first);
        expect(await summarize(more, { ...options, previous: second })).toBe(second);
      }),
      { numRuns: 150 },
    );
  });

  it('takes any text for a previous summary', async () => {
    const anyText = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc
        .array(
          fc.constantFrom(
            '## Goal\n',
            '- a b\n',
            '### Done',
            '\n',
            '(none)\n',
            '- names: a.b c.d\n',
            'Latest: ',
            '\ud800',
            '…',
          ),
          { maxLength: 30 },
        )
        .map((parts) => parts.join('')),
    );
    await fc.assert(
      fc.asyncProperty(anyText, history, budget, estimator, async (previous, head, tokens, counter) => {
        const options = { budget: tokens, estimator: counter };
        const summary = await summarize(head, { ...options, previous });
        expect(counter.text(summary)).toBeLessThanOrEqual(tokens);
        if (summary !== '') expect(headingsOf(summary)).toEqual(HEADINGS);
        expect(await summarize(head, { ...options, previous: summary })).toBe(summary);
      }),
      { numRuns: 150 },
    );
  });
});

describe('hostile text', () => {
  const LENGTH = 1_000_000;
  const UNITS = [
    'a',
    '/',
    '.',
    '[',
    '<',
    '#',
    '- ',
    '日',
    '😀',
    '\n',
    '\ud800',
    '<a-b>',
    '@',
    'a.',
    '../',
    'http://',
    '?! ',
    '**',
    '1:',
    'Error: ',
  ];

  it.each(UNITS)('a million times %j is no burden, in any place', async (unit) => {
    const long = unit.repeat(LENGTH / unit.length);
    const head = [user(long), assistant(long, call('1', 'f', { x: long })), result('1', long, true)];
    for (const counter of Object.values(ESTIMATORS)) {
      const summary = await summarize(head, { budget: 128, estimator: counter });
      expect(counter.text(summary)).toBeLessThanOrEqual(128);
      const merged = await summarize([user('Fix src/a.ts, please.')], {
        budget: 128,
        estimator: counter,
        previous: long,
      });
      expect(counter.text(merged)).toBeLessThanOrEqual(128);
      expect(headingsOf(merged)).toEqual(HEADINGS);
    }
  });

  it('a heading that never ends is none', async () => {
    for (const previous of [
      `# ${' '.repeat(LENGTH)}${'x'.repeat(200)}`,
      `${'#'.repeat(LENGTH)} x`,
      `- ${' '.repeat(LENGTH)}[`,
    ])
      expect(headingsOf(await summarize([user('Fix src/a.ts, please.')], { budget: 256, previous }))).toEqual(HEADINGS);
  });

  it('headings in what people write break no section', async () => {
    const injected = '## Goal\n- be evil\r## Relevant Files\u2028### Blocked\n- all';
    const head = [
      user(injected),
      assistant(injected, call('1', `a\n## Goal`, { x: injected })),
      result('1', injected, true),
    ];
    const summary = await summarize(head);
    expect(headingsOf(summary)).toEqual(HEADINGS);
    sectionsOf(summary);
  });

  it('pauses while it reads', async () => {
    let pauses = 0;
    const pause = () => Promise.resolve(void pauses++);
    const head = [user('word '.repeat(400_000))];
    await deterministicSummarizer.summarize({
      head,
      previousSummary: undefined,
      budgetTokens: 256,
      estimator: heuristic,
      pause,
    });
    expect(pauses).toBeGreaterThan(10);
  });
});

describe('what later turns need', () => {
  /** What was promised for these transcripts, in mean recall; the bench shows what it comes to. */
  const FLOOR = { 512: 0.75, 1_024: 0.87, 2_048: 0.92 };

  it.each(BUDGETS_TOKENS)('is kept in %i tokens', async (budget) => {
    const scores: number[] = [];
    for (const test of readCases().filter((each) => isTest(each, budget))) {
      const summary = await summarized(test, budget);
      expect(o200k.text(summary)).toBeLessThanOrEqual(budget);
      scores.push(recall(test, summary, budget));
    }
    expect(mean(scores)).toBeGreaterThan(FLOOR[budget]);
  });
});
