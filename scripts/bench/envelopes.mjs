// Envelopes as the bridge writes them, for benchmarks.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';

const BOOT_ID = randomUUID();

/** The two lines of one finished execution: start and finish. `second` is its start in s since 1970. */
export function execution(second, cronId = 1 + (second % 50)) {
  const uuid = randomUUID();
  const common = {
    v: 1,
    execution_id: `legacy-system:${second}:${uuid}`,
    origin: 'scheduled_system',
    cron_id: cronId,
    task_revision: `sha256:${String(cronId).padStart(64, '0')}`,
    pid: 2 + (second % 4_000_000),
    pid_start_ticks: second,
    boot_id: BOOT_ID,
    host: 'router',
    init_start_ticks: 12,
    log_path: `job_${cronId}/2026-12-01-03-00-00-000.log`,
    started_at: second,
  };
  return [
    { uuid, second, seq: 1, body: { ...common, seq: 1, event: 'started', occurred_at_ms: second * 1000 + 80 } },
    {
      uuid,
      second,
      seq: 2,
      body: { ...common, seq: 2, event: 'finished', exit_code: 0, duration_s: 3, stopped: false, occurred_at_ms: second * 1000 + 3080 },
    },
  ];
}

/** Writes one envelope into a spool under the name that the bridge gives it. */
export function spool(directory, { uuid, second, seq, body }) {
  writeFileSync(`${directory}/${second}-${uuid}-${seq}.json`, `${JSON.stringify(body)}\n`, { mode: 0o600 });
}
