/** xsd:dateTimeStamp, a time with its zone: the only form of time in VCDM 2.0 and Data Integrity. No clock. */

const DATE_TIME_STAMP = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/;

/** Milliseconds since 1970, or undefined where the value is no dateTimeStamp. */
export function parseDateTimeStamp(value: unknown): number | undefined {
  const match = typeof value === 'string' ? DATE_TIME_STAMP.exec(value) : null;
  if (!match) return undefined;
  const [text, year, month, day] = match;
  const time = Date.parse(text);
  // Date.parse takes 30 February for 1 or 2 March.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number.isNaN(time) || Number(day) > daysInMonth ? undefined : time;
}

/** Whole seconds, with Z. */
export function toDateTimeStamp(time: Date): string {
  return `${time.toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length)}Z`;
}
