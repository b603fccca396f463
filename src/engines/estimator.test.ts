import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { referenceMessage, referenceText, referenceTool } from '../../test/reference-count.ts';
import { anyMessage, anyTool, readTranscript, TRANSCRIPTS, withKeysReversed } from '../../test/transcripts.ts';
import { loadEncoding } from '../tokenizer/encoding.ts';
import type { AgentMessage, ContentBlock } from '../transcript/message.ts';
import { heuristic, selectEstimator, tokenizer } from './estimator.ts';

const o200k = tokenizer(await loadEncoding('o200k_base'));
const ESTIMATORS = {
  heuristic,
  o200k_base: o200k,
  cl100k_base: tokenizer(await loadEncoding('cl100k_base')),
};
const NAMES = ['heuristic', 'o200k_base', 'cl100k_base'] as const;

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const image = (data: string): ContentBlock => ({ type: 'image', data, mime: 'image/png' });
const call = (args?: unknown): ContentBlock => ({
  type: 'function_call',
  id: 'c1',
  function_id: 'shell::run',
  ...(args !== undefined && { arguments: args }),
});
const inlineResult = (...content: ContentBlock[]): ContentBlock => ({
  type: 'function_result',
  function_call_id: 'c1',
  content,
});
const user = (...content: ContentBlock[]): AgentMessage => ({ role: 'user', content, timestamp: 1 });
const answer = (more: object, ...content: ContentBlock[]): AgentMessage => ({
  role: 'function_result',
  function_call_id: 'c1',
  function_id: 'shell::run',
  content,
  timestamp: 1,
  ...more,
});
/** Of the JSON as it is written here, each character one byte. */
const quarter = (json: string): number => Math.floor(json.length / 4);

describe('the model selects', () => {
  it.each([
    ['gpt-4', 'cl100k_base'],
    ['gpt-4-turbo', 'cl100k_base'],
    ['gpt-4-0613', 'cl100k_base'],
    ['gpt-3.5-turbo', 'cl100k_base'],
    ['gpt-3.5', 'cl100k_base'],
    ['gpt-35-turbo', 'cl100k_base'],
    ['gpt-35', 'cl100k_base'],
    ['GPT-4', 'cl100k_base'],
    ['openai/gpt-4', 'cl100k_base'],
    ['azure/openai/GPT-3.5-Turbo', 'cl100k_base'],
    ['ft:gpt-3.5-turbo-0125:acme::9x', 'cl100k_base'],
    ['ft:gpt-4:acme', 'cl100k_base'],
    ['codex/gpt-4', 'cl100k_base'],
    ['gpt-4o', 'o200k_base'],
    ['gpt-4o-mini-2024-07-18', 'o200k_base'],
    ['gpt-4.1', 'o200k_base'],
    ['gpt-4.1-nano', 'o200k_base'],
    ['gpt-4.5-preview', 'o200k_base'],
    ['gpt-5', 'o200k_base'],
    ['GPT-5', 'o200k_base'],
    ['gpt-5.1-codex', 'o200k_base'],
    ['gpt-6-mini', 'o200k_base'],
    ['gpt-10', 'o200k_base'],
    ['gpt-oss-120b', 'o200k_base'],
    ['chatgpt-4o-latest', 'o200k_base'],
    ['o1', 'o200k_base'],
    ['o1-preview', 'o200k_base'],
    ['o3-mini', 'o200k_base'],
    ['o4-mini', 'o200k_base'],
    ['openai/gpt-5', 'o200k_base'],
    ['openrouter/openai/o3', 'o200k_base'],
    ['ft:gpt-4o-mini-2024-07-18:acme:shop:9x', 'o200k_base'],
    ['FT:GPT-4.1:acme', 'o200k_base'],
    ['openai/ft:o4-mini:acme', 'o200k_base'],
    ['codex/anything', 'o200k_base'],
    ['Codex/Mini', 'o200k_base'],
    ['claude-sonnet-4', 'heuristic'],
    ['gemini-2.5-pro', 'heuristic'],
    ['llama-4', 'heuristic'],
    ['gpt-4turbo', 'heuristic'],
    ['gpt-2', 'heuristic'],
    ['gpt', 'heuristic'],
    ['gpt-', 'heuristic'],
    ['my-gpt-5', 'heuristic'],
    ['o2', 'heuristic'],
    ['gpt-5/claude', 'heuristic'],
    ['gpt-5/', 'heuristic'],
    ['ft:claude-haiku:gpt-5', 'heuristic'],
    ['ft:', 'heuristic'],
    ['codex', 'heuristic'],
    ['not-codex/anything', 'heuristic'],
    [' gpt-5', 'heuristic'],
    ['gpt-4\n', 'heuristic'],
    ['', 'heuristic'],
  ])('%j -> %s', (id, selected) => {
    expect(selectEstimator(id)).toBe(selected);
    expect(selectEstimator(id, 'auto')).toBe(selected);
    expect(selectEstimator(id, null)).toBe(selected);
  });

  it('unless the request chooses', () => {
    for (const choice of NAMES) {
      for (const id of ['gpt-4', 'gpt-5', 'claude-sonnet-4', '']) expect(selectEstimator(id, choice)).toBe(choice);
    }
  });
});

describe('the heuristic', () => {
  it.each([
    ['', 0],
    ['x'.repeat(16), 4],
    ['abc', 0],
    ['éé', 1],
    ['日本語日', 3],
    ['😀', 1],
    ['\ud800\ud800\ud800\ud800', 3],
  ])('of the text %j is %i: a quarter of its bytes', (value, tokens) => {
    expect(heuristic.text(value)).toBe(tokens);
  });

  it('of a message is a quarter of its JSON as supplied: absent stays absent, null stays null, unknown fields count', () => {
    for (const json of [
      '{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":1}',
      '{"role":"user","content":[],"timestamp":1700000000000,"cache_control":{"type":"ephemeral"}}',
      '{"timestamp":1,"role":"custom","custom_type":"note","display":null,"content":[],"details":{"a":[1,null]}}',
      '{"role":"user","content":[{"type":"thinking","text":"hm","signature":null}],"timestamp":1}',
      '{"role":"user","content":[{"type":"redacted_thinking","data":"AAAAAAAA"}],"timestamp":1}',
      '{"role":"user","content":[{"type":"file","attachment_id":"a","mime":"m","name":"n","size":3}],"timestamp":1}',
    ]) {
      expect(heuristic.message(JSON.parse(json) as AgentMessage)).toBe(quarter(json));
    }
  });

  it('empties images and takes 4096 for each, also inside results', () => {
    const json = '{"role":"user","content":[{"type":"image","data":"","mime":"image/png"}],"timestamp":1}';
    for (const data of ['', 'AAAA', 'A'.repeat(400_000), '"\\\n日本']) {
      expect(heuristic.message(user(image(data)))).toBe(quarter(json) + 4096);
    }
    const nested = (data: string): AgentMessage =>
      user(inlineResult(image(data), inlineResult(image(data))), image(data));
    expect(heuristic.message(nested('A'.repeat(999)))).toBe(heuristic.message(nested('')));
    expect(heuristic.message(nested(''))).toBe(quarter(JSON.stringify(nested(''))) + 3 * 4096);
  });

  it('takes what only looks like an image for what it is', () => {
    const like = { type: 'image', data: 'A'.repeat(4_000), mime: 'image/png' };
    for (const message of [user(call(like)), answer({ details: { status: 'denied', like } })]) {
      expect(heuristic.message(message)).toBe(quarter(JSON.stringify(message)));
    }
  });

  it('counts details of a result as null, unless the call was denied', () => {
    const withNull = quarter(JSON.stringify(answer({ details: null })));
    for (const details of [null, {}, 'x'.repeat(400), { status: 'ok', text: 'x'.repeat(400) }, ['denied']]) {
      expect(heuristic.message(answer({ details }))).toBe(withNull);
    }
    const denied = answer({ details: { status: 'denied', reason: 'x'.repeat(400) } });
    expect(heuristic.message(denied)).toBe(quarter(JSON.stringify(denied)));
    expect(heuristic.message(answer({}))).toBe(quarter(JSON.stringify(answer({}))));
    expect(heuristic.message(answer({}))).toBeLessThan(withNull);
  });

  it('of a tool is a quarter of its JSON as supplied', () => {
    const json = '{"description":"Run it.","name":"shell::run","label":null,"strict":true}';
    expect(heuristic.tool(JSON.parse(json) as { name: string; description: string })).toBe(quarter(json));
  });
});

describe('the tokenizer', () => {
  const bpe = (value: string): number => referenceText(value, 'o200k_base');

  it('of a message is 4 and its texts, a line each', () => {
    expect(o200k.message(user())).toBe(4);
    expect(o200k.message(user(text('hello')))).toBe(5);
    expect(o200k.message(user(text('a b'), text(''), text('c')))).toBe(4 + bpe('a b\n\nc'));
  });

  it('counts a call as its function and the JSON of its arguments', () => {
    expect(o200k.message(user(text('I look.'), call({ path: 'a.ts', deep: [1, null] }), text('Then')))).toBe(
      4 + bpe('I look.\nshell::run\n{"path":"a.ts","deep":[1,null]}\nThen'),
    );
    for (const message of [user(call()), user(call(null))])
      expect(o200k.message(message)).toBe(4 + bpe('shell::run\nnull'));
    expect(o200k.message(user(call('text')))).toBe(4 + bpe('shell::run\n"text"'));
  });

  it('counts a result inside a message as one text, and results inside results too', () => {
    const nested = inlineResult(text('on'), inlineResult(text('deep')), call({ a: 1 }), text('e'));
    expect(o200k.message(user(text('see'), nested, text('so')))).toBe(4 + bpe('see\none\ndeep\nso'));
  });

  it('counts 4096 for each image, and nothing for thinking and files', () => {
    expect(o200k.message(user(image('A'.repeat(400_000)), text('what?')))).toBe(4 + 4096 + bpe('what?'));
    expect(o200k.message(user(inlineResult(image('A'), inlineResult(image('B')))))).toBe(4 + bpe('\n') + 2 * 4096);
    expect(
      o200k.message(
        user(
          { type: 'thinking', text: 'a long thought', signature: 'abc' },
          { type: 'redacted_thinking', data: 'AAAA' },
          { type: 'file', attachment_id: 'a', mime: 'text/plain', name: 'notes.txt', size: 9 },
        ),
      ),
    ).toBe(4);
  });

  it('counts details where the call was denied, after the content', () => {
    expect(o200k.message(answer({ details: { text: 'long' } }, text('ok')))).toBe(4 + bpe('ok'));
    expect(o200k.message(answer({ details: { status: 'denied', by: 'policy' } }, text('no')))).toBe(
      4 + bpe('no\n{"status":"denied","by":"policy"}'),
    );
  });

  it('takes the spelling of a special token for text', () => {
    expect(o200k.text('<|endoftext|>')).toBe(7);
    expect(o200k.message(user(text('<|endoftext|>')))).toBe(11);
  });

  it('counts half a surrogate pair as U+FFFD', () => {
    expect(o200k.text('cut \ud83d')).toBe(bpe('cut \ufffd'));
  });

  it('of a tool is name, description and parameters, in that order', () => {
    const tool = { parameters: { type: 'object' }, label: 'Run', description: 'Run it.', name: 'run' };
    expect(o200k.tool(tool)).toBe(bpe('{"name":"run","description":"Run it.","parameters":{"type":"object"}}'));
    const bare = { name: 'run', description: '' };
    expect(o200k.tool(bare)).toBe(bpe('{"name":"run","description":"","parameters":null}'));
    expect(o200k.tool({ ...bare, parameters: null })).toBe(o200k.tool(bare));
  });

  it('takes the arguments’ keys in the order supplied', () => {
    const ordered = o200k.message(user(call({ cmd: 'ls', env: { A: 'b' } })));
    expect(ordered).toBe(4 + bpe('shell::run\n{"cmd":"ls","env":{"A":"b"}}'));
    expect(o200k.message(user(call({ env: { A: 'b' }, cmd: 'ls' })))).not.toBe(ordered);
  });
});

describe.each(NAMES)('%s', (name) => {
  const estimator = ESTIMATORS[name];

  it('is what the contract says, for any message and tool', () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        expect(estimator.message(message)).toBe(referenceMessage(message, name));
      }),
      { numRuns: 1000 },
    );
    fc.assert(
      fc.property(anyTool, (tool) => {
        expect(estimator.tool(tool)).toBe(referenceTool(tool, name));
      }),
    );
  });

  it('does not mind the order of keys in messages and blocks', () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        expect(estimator.message(withKeysReversed(message))).toBe(estimator.message(message));
      }),
    );
  });

  it.each(TRANSCRIPTS)('is what the contract says of each message of %s', (transcript) => {
    const { messages } = readTranscript(transcript);
    const counts = messages.map((message) => estimator.message(message));
    expect(counts).toEqual(messages.map((message) => referenceMessage(message, name)));
  });

  it('leaves what it counts as it was', () => {
    fc.assert(
      fc.property(anyMessage, anyTool, (message, tool) => {
        const before = JSON.stringify([message, tool]);
        estimator.message(message);
        estimator.tool(tool);
        expect(JSON.stringify([message, tool])).toBe(before);
      }),
    );
  });
});
