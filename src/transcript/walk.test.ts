import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AgentMessage, ContentBlock, FunctionResultBlock } from './message.ts';
import { deniedDetails, resultText, walk } from './walk.ts';

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const image: ContentBlock = { type: 'image', data: 'AAAA', mime: 'image/png' };
const call = (id: string): ContentBlock => ({ type: 'function_call', id, function_id: 'f' });
const result = (id: string, ...content: ContentBlock[]): FunctionResultBlock => ({
  type: 'function_result',
  function_call_id: id,
  content,
});

describe('walk', () => {
  it('goes through blocks in reading order, a result before what stands in it', () => {
    const inner = result('b', text('deep'), image);
    const outer = result('a', text('one'), inner, text('two'));
    const content = [text('before'), outer, call('c')];
    const visits = Array.from(walk(content), ({ block, result: inside }) => [block, inside]);
    expect(visits).toEqual([
      [text('before'), undefined],
      [outer, undefined],
      [text('one'), outer],
      [inner, outer],
      [text('deep'), inner],
      [image, inner],
      [text('two'), outer],
      [call('c'), undefined],
    ]);
  });

  it('hands over the very blocks, each once, whatever is nested in what', () => {
    const { block } = fc.letrec<{ block: ContentBlock }>((tie) => ({
      block: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constant(image),
        fc.string().map(text),
        fc.array(tie('block'), { maxLength: 4 }).map((content) => result('r', ...content)),
      ),
    }));
    const everyBlock = (content: readonly ContentBlock[]): ContentBlock[] =>
      content.flatMap((each) => [each, ...('content' in each ? everyBlock(each.content) : [])]);
    fc.assert(
      fc.property(fc.array(block), (content) => {
        const visited = Array.from(walk(content), (visit) => visit.block);
        const expected = everyBlock(content);
        expect(visited.length).toBe(expected.length);
        for (const [index, each] of expected.entries()) expect(visited[index]).toBe(each);
      }),
    );
  });

  it('takes as many levels as the JSON of a request may have', () => {
    let content: ContentBlock[] = [text('bottom')];
    for (let level = 0; level < 64; level += 1) content = [result('r', ...content)];
    expect(Array.from(walk(content)).length).toBe(65);
  });
});

describe('resultText', () => {
  it('is the text blocks with nothing between them', () => {
    expect(resultText([text('a'), image, text(''), call('c'), text('b\n'), result('r', text('no'))])).toBe('ab\n');
    expect(resultText([])).toBe('');
  });
});

describe('deniedDetails', () => {
  const answer = (details: unknown): AgentMessage => ({
    role: 'function_result',
    content: [],
    timestamp: 1,
    function_call_id: 'c',
    function_id: 'f',
    details,
  });

  it('are the details of a call that was denied', () => {
    const details = { status: 'denied', reason: 'policy' };
    expect(deniedDetails(answer(details))).toBe(details);
  });

  it.each([
    [undefined],
    [null],
    ['denied'],
    [true],
    [['denied']],
    [{}],
    [{ status: 'ok' }],
    [{ status: 'Denied' }],
    [{ status: ['denied'] }],
    [{ state: { status: 'denied' } }],
  ])('are not %j', (details) => {
    expect(deniedDetails(answer(details))).toBeUndefined();
  });

  it('are a result’s only', () => {
    const details = { status: 'denied' };
    expect(deniedDetails({ role: 'custom', custom_type: 't', content: [], timestamp: 1, details })).toBeUndefined();
    expect(deniedDetails({ role: 'user', content: [], timestamp: 1 })).toBeUndefined();
  });
});
