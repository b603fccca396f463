/**
 * How many tokens a text, a message and a tool are: exactly, by the encoding of the model, or by the rule of four bytes
 * per token where the encoding is not known. Pure, and total for whatever is JSON. It judges no limit.
 *
 * JSON here is what `JSON.stringify` gives for the parsed request: absent stays absent, null stays null, and keys stay in the
 * order supplied, except that keys that are array indices ("0", "17") come first, ascending. Numbers and escapes take
 * their shortest form.
 */
import { type Encoding, ENCODING_NAMES, type EncodingName } from '../tokenizer/encoding.ts';
import type { AgentFunction, AgentMessage, FunctionResultMessage, ImageBlock } from '../transcript/message.ts';
import { deniedDetails, resultText, walk } from '../transcript/walk.ts';

/** One estimator decides everything in one call. All counts are in tokens. */
export interface Estimator {
  readonly name: 'tokenizer' | 'heuristic';
  /** What the frame of the model's reply costs, once per request that has anything in it. */
  readonly replyPrimingTokens: number;
  /** What a count depends on besides the text. */
  readonly versions: TokenizerVersions;
  text(text: string): number;
  message(message: AgentMessage): number;
  tool(tool: AgentFunction): number;
  /** The tokens of the text of a result of so many tokens in all, where they follow from these without counting again. */
  textOf(result: FunctionResultMessage, messageTokens: number): number | undefined;
}

export type TokenizerVersions =
  | { readonly tokenizer: 'none' }
  | { readonly tokenizer: EncodingName; readonly tokenizerTableDigest: string };

/** How an answer's `versions` name what it was counted with; undefined where no encoding was used. */
export function tokenizerVersions(used: Encoding | undefined): TokenizerVersions {
  return used ? { tokenizer: used.name, tokenizerTableDigest: used.tableDigest } : { tokenizer: 'none' };
}

// Selection

export const ESTIMATOR_CHOICES = ['auto', 'heuristic', ...ENCODING_NAMES] as const;
export type EstimatorChoice = (typeof ESTIMATOR_CHOICES)[number];

/** `gpt-35` is what Azure calls gpt-3.5. */
const CL100K_MODEL = /^(?:gpt-3\.5|gpt-35|gpt-4$|gpt-4-)/;
/** From gpt-5 on every gpt-N, also those to come. */
const O200K_MODEL = /^(?:gpt-4o|gpt-4\.1|gpt-4\.5|gpt-[5-9]|gpt-[1-9][0-9]|gpt-oss|chatgpt-|o1|o3|o4)/;

/**
 * The encoding that a model counts with, or `heuristic` where that is not published. Case does not matter. Of `a/b/c` the
 * last part decides, of a fine-tune `ft:BASE:...` the BASE; what stands under `codex/` is a model of OpenAI's in any case.
 */
export function selectEstimator(modelId: string, choice?: EstimatorChoice | null): 'heuristic' | EncodingName {
  if (choice && choice !== 'auto') return choice;
  const id = modelId.toLowerCase();
  const name = id.slice(id.lastIndexOf('/') + 1);
  const model = name.startsWith('ft:') ? (name.split(':')[1] ?? '') : name;
  if (CL100K_MODEL.test(model)) return 'cl100k_base';
  if (O200K_MODEL.test(model) || id.startsWith('codex/')) return 'o200k_base';
  return 'heuristic';
}

// The two estimators

/** One flat price for every image, whatever its size. */
const IMAGE_TOKENS = 4_096;

const BYTES_PER_TOKEN = 4;

/** A quarter of the UTF-8 bytes of a text, or of the JSON of a message or a tool. */
export const heuristic: Estimator = {
  name: 'heuristic',
  replyPrimingTokens: 0,
  versions: tokenizerVersions(undefined),
  text: quarter,
  message: (message) => {
    const images = imagesOf(message);
    // What would be left of each `data` are its quotes.
    const imageBytes = images.reduce((total, { data }) => total + utf8Bytes(compactJson(data)) - 2, 0);
    const bytes = utf8Bytes(compactJson(withoutUnseenDetails(message))) - imageBytes;
    return Math.floor(bytes / BYTES_PER_TOKEN) + images.length * IMAGE_TOKENS;
  },
  tool: (tool) => quarter(compactJson(tool)),
  textOf: () => undefined,
};

/** What role and separators of a message come to. */
const MESSAGE_FRAME_TOKENS = 4;
const REPLY_PRIMING_TOKENS = 2;

/** Counts what a model reads, by `encoding`. */
export function tokenizer(encoding: Encoding): Estimator {
  return {
    name: 'tokenizer',
    replyPrimingTokens: REPLY_PRIMING_TOKENS,
    versions: tokenizerVersions(encoding),
    text: (text) => encoding.count(text),
    message: (message) =>
      MESSAGE_FRAME_TOKENS + encoding.count(messageText(message)) + imagesOf(message).length * IMAGE_TOKENS,
    tool: (tool) => encoding.count(toolText(tool)),
    textOf: (result, messageTokens) =>
      messageParts(result).length === 1 && result.content.some(({ type }) => type === 'text')
        ? messageTokens - MESSAGE_FRAME_TOKENS - imagesOf(result).length * IMAGE_TOKENS
        : undefined,
  };
}

/** What a model reads of a message, line by line. Thinking and files count nothing; images count apart. */
export function messageText(message: AgentMessage): string {
  return messageParts(message).join('\n');
}

function messageParts(message: AgentMessage): string[] {
  const parts: string[] = [];
  for (const { block, result } of walk(message.content)) {
    if (block.type === 'function_result') parts.push(resultText(block.content));
    else if (result) continue;
    else if (block.type === 'text') parts.push(block.text);
    else if (block.type === 'function_call') parts.push(block.function_id, compactJson(block.arguments));
  }
  const details = deniedDetails(message);
  if (details !== undefined) parts.push(compactJson(details));
  return parts;
}

/** What a model reads of a tool. */
export function toolText({ name, description, parameters }: AgentFunction): string {
  return compactJson({ name, description, parameters: parameters ?? null });
}

function imagesOf({ content }: AgentMessage): ImageBlock[] {
  return Array.from(walk(content), ({ block }) => block).filter((block) => block.type === 'image');
}

function withoutUnseenDetails(message: AgentMessage): AgentMessage {
  if (message.role !== 'function_result' || message.details === undefined) return message;
  return deniedDetails(message) === undefined ? { ...message, details: null } : message;
}

function quarter(text: string): number {
  return Math.floor(utf8Bytes(text) / BYTES_PER_TOKEN);
}

/** What is absent is null. */
function compactJson(value: unknown): string {
  return JSON.stringify(value ?? null);
}

const utf8 = new TextEncoder();

/** A lone surrogate is U+FFFD, three bytes. */
export function utf8Bytes(text: string): number {
  return utf8.encode(text).length;
}
