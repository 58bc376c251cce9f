import { ORIGINS, OWNERS, type Origin, type Owner } from '../domain/origin.js';
import { RUN_STATUSES, runStatusCode, type RunStatus } from '../domain/status.js';
import { ACTORS, eventTypeName } from '../domain/event-type.js';
import { formatExecutionId, formatUuid, packExecutionId, unpackExecutionId, type ExecutionId } from '../domain/execution-id.js';
import type { Connection } from './database.js';

/** A Run as people and programs read it. Times in ms since 1970; null: not known. Names are those of `--json`. */
export interface RunView {
  readonly run_id: string;
  readonly task_id: string;
  readonly cron_id: number | null;
  readonly origin: Origin;
  readonly owner: Owner;
  readonly status: RunStatus;
  readonly exit_code: number | null;
  readonly reason: string | null;
  readonly execution_id: string | null;
  readonly task_revision: string | null;
  readonly accepted_at_ms: number;
  readonly started_at_ms: number | null;
  readonly finished_at_ms: number | null;
  readonly duration_ms: number | null;
  readonly pid: number | null;
  readonly pid_start_ticks: number | null;
  readonly host: string | null;
  readonly boot_id: string | null;
  readonly log_path: string | null;
  readonly scheduled_for_ms: number | null;
}

export interface EventView {
  readonly sequence: number;
  readonly type: string;
  readonly actor: string;
  readonly attempt: number | null;
  readonly occurred_at_ms: number;
  readonly payload: Readonly<Record<string, unknown>> | null;
}

export interface RunFilter {
  readonly cronId?: number;
  readonly origin?: Origin;
  readonly status?: RunStatus | 'active';
  /** Runs accepted at or after this instant (ms). */
  readonly sinceMs?: number;
  /** Only Runs older than this one, and not older than that one: a page of a long list. */
  readonly before?: Buffer;
  readonly notBefore?: Buffer;
  readonly limit: number;
}

interface Row {
  run_id: Buffer;
  idempotency_key: Buffer | string;
  task_id: string;
  cron_id: number | null;
  origin: number;
  owner: number;
  status: number;
  exit_code: number | null;
  reason: string | null;
  digest: Buffer | null;
  created_at_ms: number;
  started_at_ms: number | null;
  finished_at_ms: number | null;
  log_path: string | null;
  scheduled_for_ms: number | null;
  pid: number | null;
  pid_start_ticks: number | null;
  host: string | null;
  boot_id: Buffer | null;
}

const SELECT = `
  SELECT r.run_id, r.idempotency_key, t.task_id, r.cron_id, r.origin, r.owner, r.status, r.exit_code, r.reason, v.digest,
         r.created_at_ms, r.started_at_ms, r.finished_at_ms, r.log_path, r.scheduled_for_ms,
         a.pid, a.pid_start_ticks, h.host, h.boot_id
    FROM runs r
    JOIN tasks t ON t.task_key = r.task_key
    LEFT JOIN run_attempts a ON a.run_id = r.run_id
         AND a.number = (SELECT max(number) FROM run_attempts l WHERE l.run_id = r.run_id)
    LEFT JOIN process_hosts h ON h.host_key = a.host_key
    LEFT JOIN task_revisions v ON v.revision_key = r.revision_key`;

/** The newest Runs that pass the filter, newest first; a row is read only when it is asked for, so a long list costs no memory. */
export function* listRuns(connection: Connection, filter: RunFilter): Generator<RunView> {
  const conditions: string[] = [];
  const values: unknown[] = [];
  if (filter.cronId !== undefined) add('r.cron_id = ?', filter.cronId);
  if (filter.origin !== undefined) add('r.origin = ?', ORIGINS.indexOf(filter.origin));
  if (filter.status === 'active') conditions.push('r.status < 4');
  else if (filter.status !== undefined) add('r.status = ?', runStatusCode(filter.status));
  // A Run ID begins with its accepted instant: the primary key answers "since" and "newest first".
  if (filter.sinceMs !== undefined) add('r.run_id >= ?', firstIdAt(filter.sinceMs));
  if (filter.before !== undefined) add('r.run_id < ?', filter.before);
  if (filter.notBefore !== undefined) add('r.run_id >= ?', filter.notBefore);
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
  const rows = connection.prepare(`${SELECT}${where} ORDER BY r.run_id DESC LIMIT ?`).iterate(...values, filter.limit);
  for (const row of rows) yield runView(row as Row);

  function add(condition: string, value: unknown): void {
    conditions.push(condition);
    values.push(value);
  }
}

/** The Run with this ID, or undefined. */
export function readRun(connection: Connection, runId: Buffer): RunView | undefined {
  const row = connection.prepare(`${SELECT} WHERE r.run_id = ?`).get(runId) as Row | undefined;
  return row === undefined ? undefined : runView(row);
}

/** The ID of the Run that an execution ID names, or undefined. */
export function runIdOfExecution(connection: Connection, id: ExecutionId): Buffer | undefined {
  return connection
    .prepare('SELECT run_id FROM runs WHERE project_key = 1 AND idempotency_key = ?')
    .pluck()
    .get(packExecutionId(id)) as Buffer | undefined;
}

/** At most `limit` Run IDs that begin with these hex digits. */
export function runIdsByPrefix(connection: Connection, hex: string, limit: number): readonly Buffer[] {
  const low = Buffer.from(hex.padEnd(32, '0'), 'hex');
  const high = Buffer.from(hex.padEnd(32, 'f'), 'hex');
  return connection
    .prepare('SELECT run_id FROM runs WHERE run_id BETWEEN ? AND ? ORDER BY run_id LIMIT ?')
    .pluck()
    .all(low, high, limit) as Buffer[];
}

/** The Events of a Run in order. */
export function readEvents(connection: Connection, runId: Buffer): readonly EventView[] {
  const rows = connection
    .prepare(
      `SELECT sequence, type, actor, attempt, occurred_at_ms, payload FROM run_events WHERE run_id = ? ORDER BY sequence`,
    )
    .all(runId) as {
    sequence: number;
    type: number;
    actor: number;
    attempt: number | null;
    occurred_at_ms: number;
    payload: string | null;
  }[];
  return rows.map((row) => ({
    ...row,
    type: eventTypeName(row.type),
    actor: ACTORS[row.actor] ?? `unknown.${row.actor}`,
    payload: row.payload === null ? null : (JSON.parse(row.payload) as Record<string, unknown>),
  }));
}

/** How many Runs are active, by origin. */
export function countActive(connection: Connection): ReadonlyMap<Origin, number> {
  const rows = connection
    .prepare('SELECT origin, count(*) AS active FROM runs WHERE status < 4 GROUP BY origin')
    .all() as { origin: number; active: number }[];
  return new Map(rows.map((row) => [ORIGINS[row.origin] ?? 'system', row.active]));
}

function firstIdAt(ms: number): Buffer {
  const id = Buffer.alloc(16);
  id.writeUIntBE(Math.min(Math.max(ms, 0), 0xffff_ffff_ffff), 0, 6);
  return id;
}

function runView(row: Row): RunView {
  const execution = typeof row.idempotency_key === 'string' ? undefined : unpackExecutionId(row.idempotency_key);
  const { started_at_ms: started, finished_at_ms: finished } = row;
  return {
    run_id: formatUuid(row.run_id),
    task_id: row.task_id,
    cron_id: row.cron_id,
    origin: ORIGINS[row.origin] ?? 'system',
    owner: OWNERS[row.owner] ?? 'legacy',
    status: RUN_STATUSES[row.status] ?? 'created',
    exit_code: row.exit_code,
    reason: row.reason,
    execution_id: execution === undefined ? null : formatExecutionId(execution),
    task_revision: row.digest === null ? null : `sha256:${row.digest.toString('hex')}`,
    accepted_at_ms: row.created_at_ms,
    started_at_ms: started,
    finished_at_ms: finished,
    // A clock that was set back between start and finish makes no negative time.
    duration_ms: finished === null ? null : Math.max(0, finished - (started ?? row.created_at_ms)),
    pid: row.pid,
    pid_start_ticks: row.pid_start_ticks,
    host: row.host,
    boot_id: row.boot_id === null ? null : formatUuid(row.boot_id),
    log_path: row.log_path,
    scheduled_for_ms: row.scheduled_for_ms,
  };
}
