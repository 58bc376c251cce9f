import type { RunIdentity } from '../domain/drift.js';
import type { RunFacts } from '../domain/run.js';
import { RUN_STATUSES } from '../domain/status.js';

/** A recorded legacy-owned Run, with what the decision about the next envelope needs. */
export interface ShadowRun {
  readonly runId: Buffer;
  readonly facts: RunFacts;
  readonly identity: RunIdentity;
  readonly taskKey: number;
  readonly version: number;
  readonly lastSequence: number;
  readonly revisionKey: number | null;
  readonly hostKey: number | null;
}

/** One Run by its ID, as `ShadowRunRow`. */
export const SELECT_SHADOW_RUN = `
  SELECT r.run_id, r.idempotency_key, r.task_key, r.cron_id, t.name, r.revision_key, v.digest, r.status, r.version,
         r.created_at_ms, r.started_at_ms, r.finished_at_ms, r.exit_code, r.reason, r.log_path,
         a.pid, a.pid_start_ticks, a.host_key,
         (SELECT max(sequence) FROM run_events e WHERE e.run_id = r.run_id) AS last_sequence
    FROM runs r
    JOIN tasks t ON t.task_key = r.task_key
    JOIN run_attempts a ON a.run_id = r.run_id AND a.number = 1
    LEFT JOIN task_revisions v ON v.revision_key = r.revision_key
   WHERE r.run_id = ?`;

export interface ShadowRunRow {
  run_id: Buffer;
  idempotency_key: Buffer;
  task_key: number;
  cron_id: number | null;
  name: string | null;
  revision_key: number | null;
  digest: Buffer | null;
  status: number;
  version: number;
  created_at_ms: number;
  started_at_ms: number | null;
  finished_at_ms: number | null;
  exit_code: number | null;
  reason: string | null;
  log_path: string | null;
  pid: number | null;
  pid_start_ticks: number | null;
  host_key: number | null;
  last_sequence: number;
}

/** What is known of a Run before its first envelope. */
export const NOTHING_KNOWN: RunFacts = {
  status: 'created',
  startedAtMs: null,
  finishedAtMs: null,
  exitCode: null,
  reason: null,
  logPath: null,
  taskRevision: null,
  pid: null,
  pidStartTicks: null,
  hostKnown: false,
};

/** A row as the decisions want it. */
export function shadowRun(row: ShadowRunRow): ShadowRun {
  const taskRevision = row.digest === null ? null : row.digest.toString('hex');
  return {
    runId: row.run_id,
    taskKey: row.task_key,
    version: row.version,
    lastSequence: row.last_sequence,
    revisionKey: row.revision_key,
    hostKey: row.host_key,
    facts: {
      status: RUN_STATUSES[row.status] ?? 'created',
      startedAtMs: row.started_at_ms,
      finishedAtMs: row.finished_at_ms,
      exitCode: row.exit_code,
      reason: row.reason,
      logPath: row.log_path,
      taskRevision,
      pid: row.pid,
      pidStartTicks: row.pid_start_ticks,
      hostKnown: row.host_key !== null,
    },
    identity: {
      cronId: row.cron_id,
      name: row.name,
      taskRevision,
      idempotencyKey: row.idempotency_key,
      createdAtMs: row.created_at_ms,
    },
  };
}
