/** The formats that are spoken here; the one place that names them all. */
import { aiSdk } from './ai-sdk.ts';
import { anthropicMessages } from './anthropic-messages.ts';
import type { MessageFormat } from './format.ts';
import { openaiChat } from './openai-chat.ts';
import { openaiResponses } from './openai-responses.ts';

export const FORMATS: readonly MessageFormat[] = [openaiChat, openaiResponses, anthropicMessages, aiSdk];
