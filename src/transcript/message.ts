/**
 * The conversation as every context operation takes it: messages of four roles, each with a list of content blocks. Types
 * only; what is on the wire may carry more fields than these, and they stay where they are.
 */

export type AgentMessage = UserMessage | AssistantMessage | FunctionResultMessage | CustomMessage;
export type Role = AgentMessage['role'];

interface Message {
  readonly content: readonly ContentBlock[];
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
}

export interface UserMessage extends Message {
  readonly role: 'user';
}

export interface AssistantMessage extends Message {
  readonly role: 'assistant';
  readonly model: string;
  readonly provider: string;
  readonly stop_reason: 'end' | 'length' | 'function_call' | 'aborted' | 'error';
  readonly native_stop_reason?: string | null;
  readonly error_kind?: 'auth_expired' | 'rate_limited' | 'context_overflow' | 'transient' | 'permanent' | null;
  readonly error_message?: string | null;
  readonly usage?: Usage | null;
  readonly warnings?: readonly string[] | null;
}

/** The answer to one function call, as a message of its own. */
export interface FunctionResultMessage extends Message {
  readonly role: 'function_result';
  /** The `id` of the call that it answers. */
  readonly function_call_id: string;
  readonly function_id: string;
  /** For the application; a model sees it only where the call was denied (see `deniedDetails`). */
  readonly details?: unknown;
  readonly is_error?: boolean | null;
}

/** A note of the application's, which no model sees. */
export interface CustomMessage extends Message {
  readonly role: 'custom';
  readonly custom_type: string;
  readonly display?: string | null;
  readonly details?: unknown;
}

/** In tokens and US dollars, as a provider reported it. */
export interface Usage {
  readonly input?: number | null;
  readonly output?: number | null;
  readonly cache_read?: number | null;
  readonly cache_write?: number | null;
  readonly reasoning?: number | null;
  readonly cost_usd?: number | null;
}

export type ContentBlock =
  | TextBlock
  | ImageBlock
  | FileBlock
  | ThinkingBlock
  | RedactedThinkingBlock
  | FunctionCallBlock
  | FunctionResultBlock;

export interface TextBlock {
  readonly type: 'text';
  readonly text: string;
}

export interface ImageBlock {
  readonly type: 'image';
  /** Base64. */
  readonly data: string;
  readonly mime: string;
}

/** A reference to an upload that is kept elsewhere. */
export interface FileBlock {
  readonly type: 'file';
  readonly attachment_id: string;
  readonly mime: string;
  readonly name: string;
  /** In bytes. */
  readonly size: number;
}

export interface ThinkingBlock {
  readonly type: 'thinking';
  readonly text: string;
  readonly signature?: string | null;
}

export interface RedactedThinkingBlock {
  readonly type: 'redacted_thinking';
  readonly data: string;
}

export interface FunctionCallBlock {
  readonly type: 'function_call';
  readonly id: string;
  readonly function_id: string;
  /** Any JSON; absent means null. */
  readonly arguments?: unknown;
}

/** The answer to a call inside a user message. */
export interface FunctionResultBlock {
  readonly type: 'function_result';
  readonly function_call_id: string;
  readonly content: readonly ContentBlock[];
  readonly is_error?: boolean | null;
}

/** A function that the model may call. */
export interface AgentFunction {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema; absent means null. */
  readonly parameters?: unknown;
  readonly label?: string | null;
  readonly execution_mode?: 'parallel' | 'sequential' | null;
}
