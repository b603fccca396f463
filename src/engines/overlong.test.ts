import { describe, expect, it } from 'vitest';
import type { AgentMessage } from '../transcript/message.ts';
import { findOverlongText, MAX_ENCODED_TEXT_BYTES, type TextsToCount } from './overlong.ts';

const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });
const model = { id: 'gpt-5' };

describe('findOverlongText', () => {
  const long = 'a'.repeat(MAX_ENCODED_TEXT_BYTES);
  const request = (more: Partial<TextsToCount>): TextsToCount => ({ messages: [user('hi')], model, ...more });

  it.each<[string, Partial<TextsToCount>, unknown]>([
    ['a text just as long', { messages: [user(long)] }, undefined],
    ['one byte more', { messages: [user('hi'), user(`${long}a`)] }, ['messages', 1]],
    ['bytes, not characters', { messages: [user('é'.repeat(MAX_ENCODED_TEXT_BYTES / 2 + 1))] }, ['messages', 0]],
    ['as many two-byte characters', { messages: [user('é'.repeat(MAX_ENCODED_TEXT_BYTES / 2))] }, undefined],
    [
      'blocks of one message together',
      { messages: [{ role: 'user', timestamp: 1, content: [...user(long).content, { type: 'text', text: '' }] }] },
      ['messages', 0],
    ],
    ['a long prompt', { system_prompt: `${long}a` }, ['system_prompt']],
    [
      'a long tool',
      {
        tools: [
          { name: 'a', description: '' },
          { name: 'b', description: long },
        ],
      },
      ['tools', 1],
    ],
    ['many messages', { messages: Array.from({ length: 8 }, () => user(long)) }, undefined],
    [
      'an image',
      { messages: [{ role: 'user', timestamp: 1, content: [{ type: 'image', data: `${long}a`, mime: 'image/png' }] }] },
      undefined,
    ],
    ['a model without an encoding', { messages: [user(`${long}a`)], model: { id: 'claude-sonnet-4' } }, undefined],
    ['the heuristic', { messages: [user(`${long}a`)], options: { estimator: 'heuristic' } }, undefined],
    [
      'an encoding asked for',
      { messages: [user(`${long}a`)], model: { id: 'claude-sonnet-4' }, options: { estimator: 'cl100k_base' } },
      ['messages', 0],
    ],
    ['a long summary', { options: { previous_summary: `${long}a` } }, ['options', 'previous_summary']],
    ['no model', { model: null, messages: [user(`${long}a`)] }, undefined],
    ['nulls', { system_prompt: null, tools: null, options: null }, undefined],
  ])('%s', (_, more, path) => {
    expect(findOverlongText(request(more))).toEqual(path);
  });
});
