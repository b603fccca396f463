/** The operations that this service sells, in the order in which every surface shows them. */
import type { Operation } from '../operation.ts';
import { conversationPrune } from './conversation-prune.ts';
import { count } from './count.ts';

export const operations: readonly [Operation, ...Operation[]] = [conversationPrune, count];
