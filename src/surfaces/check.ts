/**
 * `POST /api/v1/check`: what a provider's API would refuse of a conversation, free. It keeps nothing, changes nothing and counts
 * nothing.
 */
import { z } from 'zod';
import { formatOf, nativeFields } from '../operations/native.ts';
import { validate } from '../operations/validate.ts';
import { problemResponse, type Result } from '../problem.ts';
import { checkEntries, openCalls } from '../transcript/formats/check.ts';
import { readConversation } from '../transcript/formats/conversation.ts';
import { createRateLimit } from './rate-limit.ts';

const CHECKS_PER_MINUTE = 120;

const { format, messages, system, tools } = nativeFields;
const input = z.strictObject({ format, messages, system, tools });

/** Answers 200 with the faults in the order of the messages, and the calls that are still to be answered; 400 with a pointer where something cannot be read at all. */
export function createCheckHandler(now: () => Date): (body: Result<unknown>) => Response {
  const take = createRateLimit(CHECKS_PER_MINUTE, now);
  return (body) => {
    const request = body.ok ? validate({ input }, body.value) : body;
    if (!request.ok) return problemResponse(request.problem);
    if (!take(request.value))
      return problemResponse({ code: 'rate_limited', retry_after_seconds: RETRY_AFTER_SECONDS });
    const by = formatOf(request.value.format);
    const read = readConversation(by, request.value);
    if (!read.ok) return problemResponse(read.problem);
    const { entries } = read.value;
    const faults = checkEntries(by, entries);
    const answer = { format: by.id, accepted: faults.length === 0, faults, open_calls: openCalls(by, entries) };
    return Response.json(answer, { headers: { 'Cache-Control': 'no-store' } });
  };
}

/** Half of what a full bucket refills. */
const RETRY_AFTER_SECONDS = 30;
