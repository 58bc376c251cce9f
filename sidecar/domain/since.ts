import { accepted, refused, type Result } from './result.js';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Reads "since when": `90s 30m 2h 7d 2w` before now, milliseconds since 1970, or a date with or without a time. In ms. */
export function parseSince(text: string, nowMs: number): Result<number> {
  const span = /^(\d{1,6})([smhdw])$/.exec(text);
  if (span !== null) return accepted(nowMs - Number(span[1]) * (UNIT_MS[span[2] as string] as number));
  if (/^\d{12,14}$/.test(text)) return accepted(Number(text));
  if (!isDayOfMonth(text)) return refused('since', 'names a day that its month does not have');
  // Without a zone a date means local midnight to the person who types it; Date reads a bare date as UTC.
  const instant = /^\d{4}-\d\d-\d\d$/.test(text)
    ? new Date(`${text}T00:00`).getTime()
    : /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:?\d\d)?$/.test(text)
      ? new Date(text.replace(' ', 'T')).getTime()
      : NaN;
  return Number.isNaN(instant)
    ? refused('since', 'must be a span such as 2h or 7d, a date such as 2026-12-01, or milliseconds')
    : accepted(instant);
}

/** Date takes 2026-02-30 for 2 March; a person who types it has made a mistake. */
function isDayOfMonth(text: string): boolean {
  const day = /^(\d{4})-(\d\d)-(\d\d)/.exec(text);
  return day === null || Number(day[3]) <= new Date(Date.UTC(Number(day[1]), Number(day[2]), 0)).getUTCDate();
}
