import type { Connection } from './database.js';
import { listRuns, type RunFilter, type RunView } from './run-views.js';
import { parseUuid } from '../domain/execution-id.js';

/** One page of a list, and where the next one begins; null: this was the last. */
export interface RunPage {
  readonly runs: readonly RunView[];
  readonly next: Buffer | null;
}

/** As many rows as one page looks at: a filter that few Runs pass must not hold up a receiver. */
const ROWS_PER_PAGE = 5_000;

/**
 * The next Runs that pass the filter, newest first, at most `filter.limit`. A page may hold fewer although more follow:
 * `next` alone tells the end.
 */
export function pageOfRuns(connection: Connection, filter: RunFilter): RunPage {
  // The list of one cron has an index of its own; every other filter is tried row by row.
  const floor = filter.cronId === undefined ? windowFloor(connection, filter.before) : undefined;
  const runs = [...listRuns(connection, { ...filter, ...(floor === undefined ? {} : { notBefore: floor }) })];
  const last = runs.at(-1);
  if (last !== undefined && runs.length === filter.limit) return { runs, next: parseUuid(last.run_id) as Buffer };
  const isPastSince = floor !== undefined && filter.sinceMs !== undefined && floor.readUIntBE(0, 6) < filter.sinceMs;
  return { runs, next: floor === undefined || isPastSince ? null : floor };
}

/** The oldest row of the window that begins before `before`; undefined when the window reaches the end. */
function windowFloor(connection: Connection, before: Buffer | undefined): Buffer | undefined {
  const where = before === undefined ? '' : 'WHERE run_id < ?';
  return connection
    .prepare(`SELECT run_id FROM runs ${where} ORDER BY run_id DESC LIMIT 1 OFFSET ${ROWS_PER_PAGE - 1}`)
    .pluck()
    .get(...(before === undefined ? [] : [before])) as Buffer | undefined;
}
