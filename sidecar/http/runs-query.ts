import { parseUuid } from '../domain/execution-id.js';
import { ORIGINS, isOrigin } from '../domain/origin.js';
import { accepted, refused, type Result } from '../domain/result.js';
import { parseSince } from '../domain/since.js';
import { RUN_STATUSES, type RunStatus } from '../domain/status.js';
import type { RunFilter } from '../ledger/run-views.js';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 500;

type Filter = { -readonly [Key in keyof RunFilter]: RunFilter[Key] };
type Reader = (text: string, filter: Filter, nowMs: number) => string | undefined;

/** What each parameter means, and the rule that it answers with when it does not. The filters of `ql-sidecar runs`. */
const PARAMETERS: Readonly<Record<string, Reader>> = {
  cron(text, filter) {
    if (!isCount(text, Number.MAX_SAFE_INTEGER)) return 'must be a cron ID';
    filter.cronId = Number(text);
    return undefined;
  },
  origin(text, filter) {
    if (!isOrigin(text)) return `must be one of ${ORIGINS.join(', ')}`;
    filter.origin = text;
    return undefined;
  },
  status(text, filter) {
    if (text !== 'active' && !(RUN_STATUSES as readonly string[]).includes(text)) {
      return `must be one of ${RUN_STATUSES.join(', ')}, active`;
    }
    filter.status = text as RunStatus | 'active';
    return undefined;
  },
  since(text, filter, nowMs) {
    const since = parseSince(text, nowMs);
    if (!since.ok) return since.rule;
    filter.sinceMs = since.value;
    return undefined;
  },
  limit(text, filter) {
    if (!isCount(text, LIMIT_MAX)) return `must be a whole number from 1 to ${LIMIT_MAX}`;
    filter.limit = Number(text);
    return undefined;
  },
  cursor(text, filter) {
    const before = parseUuid(text);
    if (before === undefined) return 'must be the next_cursor of an earlier answer';
    filter.before = before;
    return undefined;
  },
};

/** Reads the query of `/v1/runs`; an unknown or repeated parameter is refused by name. */
export function readRunsQuery(query: string, nowMs: number): Result<RunFilter> {
  const filter: Filter = { limit: LIMIT_DEFAULT };
  const seen = new Set<string>();
  for (const [name, text] of new URLSearchParams(query)) {
    const shown = name.slice(0, 40).replace(/[^\w.-]/g, '?');
    const read = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined;
    if (read === undefined) return refused(shown, `is not a parameter: ${Object.keys(PARAMETERS).join(', ')}`);
    if (seen.has(name)) return refused(shown, 'is given twice');
    seen.add(name);
    const rule = read(text, filter, nowMs);
    if (rule !== undefined) return refused(shown, rule);
  }
  return accepted(filter);
}

function isCount(text: string, most: number): boolean {
  return /^[1-9]\d{0,15}$/.test(text) && Number(text) <= most;
}
