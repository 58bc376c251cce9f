import { CANDIDATES_MAX } from '../domain/correlation.js';
import { unpackExecutionId, type ExecutionId } from '../domain/execution-id.js';
import { originCode, type ShadowOrigin } from '../domain/origin.js';
import type { Connection } from './database.js';

/** An active legacy-owned Run as a callback without an ID is compared with it. */
export interface CandidateRun {
  readonly executionId: ExecutionId;
  readonly logPath: string | null;
  readonly pid: number | null;
}

/**
 * The newest active legacy-owned Runs of a cron in `origins` (ADR-0002 §9.4 rule 2), at most 64; `isTruncated` when there
 * are more. Walks the index of active Runs: a cron's whole history would take longer each month.
 */
export function candidateRuns(
  connection: Connection,
  cronId: number,
  origins: ReadonlySet<ShadowOrigin>,
): { readonly candidates: readonly CandidateRun[]; readonly isTruncated: boolean } {
  let mask = 0;
  for (const origin of origins) mask |= 1 << originCode(origin);
  const rows = connection
    .prepare(
      `SELECT r.idempotency_key, r.log_path, a.pid
         FROM runs r INDEXED BY runs_active
         JOIN run_attempts a ON a.run_id = r.run_id AND a.number = 1
        WHERE r.status < 4 AND r.cron_id = ? AND r.owner = 0 AND (1 << r.origin) & ? != 0
        ORDER BY r.created_at_ms DESC, r.run_id DESC
        LIMIT ?`,
    )
    .all(cronId, mask, CANDIDATES_MAX + 1) as { idempotency_key: Buffer; log_path: string | null; pid: number | null }[];
  const candidates = rows.slice(0, CANDIDATES_MAX).flatMap((row): CandidateRun[] => {
    const executionId = unpackExecutionId(row.idempotency_key);
    return executionId === undefined ? [] : [{ executionId, logPath: row.log_path, pid: row.pid }];
  });
  return { candidates, isTruncated: rows.length > CANDIDATES_MAX };
}
