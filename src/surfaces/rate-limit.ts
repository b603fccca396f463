/** Keeps what is free from being used as a service: so many calls a minute for everyone together, and long ones count for several. */

/** A longer input counts as several; the longest of all takes the minute for itself. */
const CHARS_PER_CALL = 65_536;

/** A token bucket: a full minute's worth at once, then refilled steadily. What it gives says whether there is room for an input. */
export function createRateLimit(perMinute: number, now: () => Date): (input: unknown) => boolean {
  let tokens = perMinute;
  let filledAt = now().getTime();
  return (input) => {
    const time = now().getTime();
    tokens = Math.min(perMinute, tokens + ((time - filledAt) / 60_000) * perMinute);
    filledAt = time;
    const cost = Math.min(perMinute, Math.ceil(JSON.stringify(input).length / CHARS_PER_CALL));
    if (tokens < cost) return false;
    tokens -= cost;
    return true;
  };
}
