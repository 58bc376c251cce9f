import type { RecordedProcess } from '../domain/process-identity.js';
import { formatUuid } from '../domain/execution-id.js';
import type { Connection } from './database.js';

/** A Run that has not ended, and the process that carries it. */
export interface ActiveRun {
  readonly runId: Buffer;
  readonly createdAtMs: number;
  readonly process: RecordedProcess;
}

export interface RunPosition {
  readonly createdAtMs: number;
  readonly runId: Buffer;
}

interface Row {
  run_id: Buffer;
  created_at_ms: number;
  pid: number | null;
  pid_start_ticks: number | null;
  host: string | null;
  boot_id: Buffer | null;
  init_start_ticks: number | null;
}

/** One page of active Runs with a recorded process, oldest first, after `after`; at most `limit` (keyset, DESIGN 7). */
export function activeRuns(
  connection: Connection,
  after: RunPosition | null,
  limit: number,
): readonly ActiveRun[] {
  const rows = connection
    .prepare(
      `SELECT r.run_id, r.created_at_ms, a.pid, a.pid_start_ticks, h.host, h.boot_id, h.init_start_ticks
         FROM runs r
         JOIN run_attempts a ON a.run_id = r.run_id AND a.number = 1
         LEFT JOIN process_hosts h ON h.host_key = a.host_key
        WHERE r.status < 4 AND a.pid IS NOT NULL AND (r.created_at_ms, r.run_id) > (?, ?)
        ORDER BY r.created_at_ms, r.run_id
        LIMIT ?`,
    )
    .all(after?.createdAtMs ?? 0, after?.runId ?? Buffer.alloc(0), limit) as Row[];
  return rows.map((row) => ({
    runId: row.run_id,
    createdAtMs: row.created_at_ms,
    process: {
      pid: row.pid as number,
      startTicks: row.pid_start_ticks,
      host: row.host,
      bootId: row.boot_id === null ? null : formatUuid(row.boot_id),
      // 0 stands for "not known": no process of a container starts before its first tick.
      initStartTicks: row.init_start_ticks === 0 ? null : row.init_start_ticks,
    },
  }));
}

/** Where the scan called `name` goes on, or null: from the beginning. */
export function readCursor(connection: Connection, name: string): RunPosition | null {
  const row = connection.prepare('SELECT created_at_ms, run_id FROM cursors WHERE name = ?').get(name) as
    | { created_at_ms: number; run_id: Buffer }
    | undefined;
  return row === undefined ? null : { createdAtMs: row.created_at_ms, runId: row.run_id };
}

/** Keeps where a scan stopped; null forgets it. */
export function writeCursor(connection: Connection, name: string, at: RunPosition | null): void {
  if (at === null) connection.prepare('DELETE FROM cursors WHERE name = ?').run(name);
  else {
    connection
      .prepare(
        `INSERT INTO cursors (name, created_at_ms, run_id) VALUES (?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET created_at_ms = excluded.created_at_ms, run_id = excluded.run_id`,
      )
      .run(name, at.createdAtMs, at.runId);
  }
}
