/** Our transcripts as each provider would have them; what a format cannot hold (notes of the application, unsigned thinking) stays out. */
import type { MessageParam } from '@anthropic-ai/sdk/resources/messages';
import type { AssistantContent, ModelMessage } from 'ai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import type { AgentMessage, ContentBlock, FunctionCallBlock, ImageBlock } from '../src/transcript/message.ts';

export interface NativeConversation {
  readonly format: string;
  readonly messages: readonly object[];
  readonly system?: string;
}

/** Turn by turn: what somebody says, and the results that came before it. */
interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: readonly ContentBlock[];
  readonly results: readonly Result[];
}

interface Result {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly is_error: boolean;
}

function turnsOf(messages: readonly AgentMessage[]): Turn[] {
  const turns: Turn[] = [];
  let results: Result[] = [];
  const names = new Map<string, string>();
  /** Ids that come again in later turns, which one of the providers refuses. */
  const uses = new Map<string, number>();
  const idOf = (id: string): string => word(`${id}${uses.get(id) ? `_${uses.get(id)}` : ''}`);
  const said = (content: readonly ContentBlock[]): string =>
    content.map((block) => (block.type === 'text' ? block.text : '')).join('') || '(nothing)';
  const push = (role: Turn['role'], content: readonly ContentBlock[]): void => {
    turns.push({ role, content, results });
    results = [];
  };
  for (const message of messages) {
    if (message.role === 'custom') continue;
    if (message.role === 'function_result') {
      const { function_call_id: id, function_id, content, is_error } = message;
      results.push({ id: idOf(id), name: word(function_id), text: said(content), is_error: is_error === true });
      continue;
    }
    const content: ContentBlock[] = [];
    for (const block of message.content) {
      if (block.type === 'function_call') {
        uses.set(block.id, (uses.get(block.id) ?? -1) + 1);
        names.set(block.id, block.function_id);
        content.push({ ...block, id: idOf(block.id) });
        continue;
      }
      if (block.type === 'function_result') {
        const { function_call_id: id, content: inside, is_error } = block;
        const name = word(names.get(id) ?? 'tool');
        results.push({ id: idOf(id), name, text: said(inside), is_error: is_error === true });
      } else if (block.type !== 'text' || block.text.trim() !== '') content.push(block);
    }
    if (content.length > 0) push(message.role, content);
  }
  if (results.length > 0) push('user', []);
  return turns;
}

/** As every API takes ids and names. */
const word = (text: string): string => text.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(-40) || 'x';
const textsIn = (content: readonly ContentBlock[]): string[] =>
  content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
const callsIn = (content: readonly ContentBlock[]): FunctionCallBlock[] =>
  content.filter((block) => block.type === 'function_call');
const isSeen = (block: ContentBlock): boolean => block.type === 'text' || block.type === 'image';
const dataUrl = ({ mime, data }: ImageBlock): string => `data:${mime};base64,${data}`;
/** All APIs want an object. */
const argumentsOf = ({ arguments: given }: FunctionCallBlock): object =>
  typeof given === 'object' && given !== null && !Array.isArray(given) ? given : { input: given ?? null };

function toChat(turns: readonly Turn[], system: string | undefined): ChatCompletionMessageParam[] {
  const messages: ChatCompletionMessageParam[] = system ? [{ role: 'system', content: system }] : [];
  for (const { role, content, results } of turns) {
    for (const { id, text } of results) messages.push({ role: 'tool', tool_call_id: id, content: text });
    if (role === 'user') {
      const parts = content
        .filter(isSeen)
        .map((block) =>
          block.type === 'image'
            ? ({ type: 'image_url', image_url: { url: dataUrl(block) } } as const)
            : ({ type: 'text', text: block.type === 'text' ? block.text : '' } as const),
        );
      if (parts.length > 0) messages.push({ role: 'user', content: parts });
      continue;
    }
    const calls = callsIn(content).map((call) => ({
      id: word(call.id),
      type: 'function' as const,
      function: { name: word(call.function_id), arguments: JSON.stringify(argumentsOf(call)) },
    }));
    const said = textsIn(content).join('\n');
    if (said === '' && calls.length === 0) continue;
    messages.push({ role: 'assistant', content: said || null, ...(calls.length > 0 && { tool_calls: calls }) });
  }
  return messages;
}

function toResponses(turns: readonly Turn[]): ResponseInputItem[] {
  const items: ResponseInputItem[] = [];
  for (const [index, { role, content, results }] of turns.entries()) {
    for (const { id, text } of results) items.push({ type: 'function_call_output', call_id: id, output: text });
    if (role === 'user') {
      const parts = content
        .filter(isSeen)
        .map((block) =>
          block.type === 'image'
            ? ({ type: 'input_image', image_url: dataUrl(block), detail: 'auto' } as const)
            : ({ type: 'input_text', text: block.type === 'text' ? block.text : '' } as const),
        );
      if (parts.length > 0) items.push({ type: 'message', role: 'user', content: parts });
      continue;
    }
    const said = textsIn(content).join('\n');
    const calls = callsIn(content);
    if (said === '' && calls.length === 0) continue;
    const thought = content.flatMap((block) => (block.type === 'thinking' ? [block.text] : []));
    const summary = thought.map((text) => ({ type: 'summary_text' as const, text }));
    if (summary.length > 0)
      items.push({ type: 'reasoning', id: `rs_${index}`, summary, encrypted_content: 'c2VjcmV0' });
    if (said !== '') items.push({ role: 'assistant', content: said });
    for (const call of calls) {
      const [call_id, name] = [word(call.id), word(call.function_id)];
      items.push({ type: 'function_call', call_id, name, arguments: JSON.stringify(argumentsOf(call)) });
    }
  }
  return items;
}

function toAnthropic(turns: readonly Turn[]): MessageParam[] {
  const messages: MessageParam[] = [];
  for (const { role, content, results } of turns) {
    const blocks: Exclude<MessageParam['content'], string> = results.map(({ id, text, is_error }) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: text,
      ...(is_error && { is_error }),
    }));
    if (role === 'assistant' && blocks.length > 0) {
      messages.push({ role: 'user', content: [...blocks] });
      blocks.length = 0;
    }
    for (const block of content) {
      if (block.type === 'thinking' && block.signature) {
        blocks.push({ type: 'thinking', thinking: block.text, signature: block.signature });
      } else if (block.type === 'text') blocks.push({ type: 'text', text: block.text.trimEnd() });
      else if (block.type === 'image') {
        const source = { type: 'base64', media_type: 'image/png', data: block.data } as const;
        blocks.push({ type: 'image', source });
      } else if (block.type === 'function_call') {
        blocks.push({ type: 'tool_use', id: word(block.id), name: word(block.function_id), input: argumentsOf(block) });
      }
    }
    if (blocks.some(({ type }) => type !== 'thinking')) messages.push({ role, content: blocks });
  }
  return messages;
}

function toAiSdk(turns: readonly Turn[]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  for (const { role, content, results } of turns) {
    if (results.length > 0) {
      messages.push({
        role: 'tool',
        content: results.map(({ id, name, text, is_error }) => ({
          type: 'tool-result',
          toolCallId: id,
          toolName: name,
          output: { type: is_error ? 'error-text' : 'text', value: text },
        })),
      });
    }
    if (role === 'user') {
      const parts = content
        .filter(isSeen)
        .map((block) =>
          block.type === 'image'
            ? ({ type: 'image', image: block.data, mediaType: block.mime } as const)
            : ({ type: 'text', text: block.type === 'text' ? block.text : '' } as const),
        );
      if (parts.length > 0) messages.push({ role, content: parts });
      continue;
    }
    const parts = content.flatMap((block): Exclude<AssistantContent, string> => {
      if (block.type === 'text') return [{ type: 'text', text: block.text }];
      if (block.type === 'thinking') return [{ type: 'reasoning', text: block.text }];
      if (block.type !== 'function_call') return [];
      const [toolCallId, toolName] = [word(block.id), word(block.function_id)];
      return [{ type: 'tool-call', toolCallId, toolName, input: argumentsOf(block) }];
    });
    if (parts.length > 0) messages.push({ role, content: parts });
  }
  return messages;
}

/** In every format. */
export function nativesOf(messages: readonly AgentMessage[], system?: string): NativeConversation[] {
  const turns = turnsOf(messages);
  const beside = system ? { system } : {};
  return [
    { format: 'openai-chat', messages: toChat(turns, system) },
    { format: 'openai-responses', messages: toResponses(turns), ...beside },
    { format: 'anthropic-messages', messages: toAnthropic(turns), ...beside },
    { format: 'ai-sdk', messages: toAiSdk(turns), ...beside },
  ];
}
