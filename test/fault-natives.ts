/** The small conversations of fault-inputs.json, which are in a form of nobody's, as each provider would be sent them, faults and all. */
import { readFileSync } from 'node:fs';

/** From the root, where tests and builds are run from. It has half a surrogate pair in it, which not every reader takes. */
const faults = JSON.parse(readFileSync('test/vectors/fault-inputs.json', 'utf8')) as {
  inputs: Record<string, unknown>;
};

interface Piece {
  readonly kind?: string;
  readonly toolCallId?: string;
  readonly content?: string | readonly Piece[];
  readonly data?: string;
  readonly mime?: string;
}

interface Spoken extends Piece {
  readonly role: string;
}

export interface FaultCase {
  readonly name: string;
  readonly messages: readonly Spoken[];
}

/** `<400000 x A>` is so many A; `<80000 chars>` is text of that length. */
const spelledOut = (text: string): string =>
  text
    .replaceAll(/<(\d+) x (.)>/g, (_, count: string, char: string) => char.repeat(Number(count)))
    .replaceAll(/<(\d+) chars>/g, (_, count: string) =>
      'line of output\n'.repeat(Number(count)).slice(0, Number(count)),
    );

export const FAULT_CASES: readonly FaultCase[] = Object.entries(faults.inputs).map(([name, input]) => ({
  name,
  messages: (Array.isArray(input) ? input : (input as FaultCase).messages) as readonly Spoken[],
}));

const piecesOf = (spoken: Spoken): readonly Piece[] =>
  typeof spoken.content === 'string' || !spoken.content ? [spoken] : spoken.content;
const wordsOf = ({ content }: Piece): string => spelledOut(typeof content === 'string' ? content : 'ok');

type Native = Record<string, unknown>;

const CHAT = {
  call: ({ toolCallId = '' }: Piece): Native => ({
    id: toolCallId,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
  }),
  image: ({ mime, data = '' }: Piece): Native => ({
    type: 'image_url',
    image_url: { url: `data:${mime};base64,${spelledOut(data)}` },
  }),
};

function toChat(messages: readonly Spoken[]): Native[] {
  return messages.flatMap((spoken): Native[] => {
    const pieces = piecesOf(spoken);
    const calls = pieces.filter(({ kind }) => kind === 'tool_call');
    if (calls.length > 0) {
      const [said] = pieces.filter(({ kind }) => kind === 'text');
      return [{ role: 'assistant', content: said ? wordsOf(said) : null, tool_calls: calls.map(CHAT.call) }];
    }
    return pieces.map((piece) => {
      if (piece.kind === 'tool_result') {
        const { toolCallId = '' } = piece;
        return { role: 'tool', tool_call_id: toolCallId, content: wordsOf(piece) };
      }
      return { role: spoken.role, content: piece.kind === 'image' ? [CHAT.image(piece)] : wordsOf(piece) };
    });
  });
}

function toResponses(messages: readonly Spoken[]): Native[] {
  return messages.flatMap((spoken) =>
    piecesOf(spoken).map((piece): Native => {
      const { kind, toolCallId: call_id = '', mime, data = '' } = piece;
      if (kind === 'tool_call') return { type: 'function_call', call_id, name: 'f', arguments: '{}' };
      if (kind === 'tool_result') return { type: 'function_call_output', call_id, output: wordsOf(piece) };
      if (kind !== 'image') return { role: spoken.role, content: wordsOf(piece) };
      const image_url = `data:${mime};base64,${spelledOut(data)}`;
      return { role: spoken.role, content: [{ type: 'input_image', image_url, detail: 'auto' }] };
    }),
  );
}

function toAnthropic(messages: readonly Spoken[]): Native[] {
  return messages
    .filter(({ role }) => role !== 'system')
    .map((spoken) => ({
      role: spoken.role === 'assistant' ? 'assistant' : 'user',
      content: piecesOf(spoken).map((piece): Native => {
        const { kind, toolCallId = '', mime, data = '' } = piece;
        if (kind === 'tool_call') return { type: 'tool_use', id: toolCallId, name: 'f', input: {} };
        if (kind === 'tool_result') return { type: 'tool_result', tool_use_id: toolCallId, content: wordsOf(piece) };
        if (kind !== 'image') return { type: 'text', text: wordsOf(piece) };
        return { type: 'image', source: { type: 'base64', media_type: mime, data: spelledOut(data) } };
      }),
    }));
}

function toAiSdk(messages: readonly Spoken[]): Native[] {
  return messages.flatMap((spoken): Native[] => {
    const parts = piecesOf(spoken).map((piece): Native => {
      const { kind, toolCallId = '', mime, data = '' } = piece;
      if (kind === 'tool_call') return { type: 'tool-call', toolCallId, toolName: 'f', input: {} };
      if (kind === 'tool_result') {
        return { type: 'tool-result', toolCallId, toolName: 'f', output: { type: 'text', value: wordsOf(piece) } };
      }
      return kind === 'image'
        ? { type: 'image', image: spelledOut(data), mediaType: mime }
        : { type: 'text', text: wordsOf(piece) };
    });
    const isResult = ({ type }: Native): boolean => type === 'tool-result';
    if (spoken.role === 'system') return [{ role: 'system', content: wordsOf(spoken) }];
    if (spoken.role === 'assistant') return [{ role: 'assistant', content: parts }];
    // Results are messages of their own here, wherever they stood.
    return parts.map((part) => ({ role: isResult(part) ? 'tool' : 'user', content: [part] }));
  });
}

const WRITERS: Readonly<Record<string, (messages: readonly Spoken[]) => Native[]>> = {
  'openai-chat': toChat,
  'openai-responses': toResponses,
  'anthropic-messages': toAnthropic,
  'ai-sdk': toAiSdk,
};

export function faultNative(format: string, { messages }: FaultCase): Record<string, unknown>[] {
  const writer = WRITERS[format];
  if (!writer) throw new RangeError(format);
  return writer(messages);
}
