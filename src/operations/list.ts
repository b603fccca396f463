/** The operations that this service sells, in the order in which every surface shows them. */
import type { Operation } from '../operation.ts';
import { assemble } from './assemble.ts';
import { compact } from './compact.ts';
import { conversationPrune } from './conversation-prune.ts';
import { count } from './count.ts';
import { prune } from './prune.ts';

export const operations: readonly [Operation, ...Operation[]] = [conversationPrune, count, prune, compact, assemble];
