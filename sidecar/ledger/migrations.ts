declare const QL_SIDECAR_MIGRATIONS: readonly MigrationName[];

/** One migration as this version knows it: file name and SHA-256 of its bytes in hex. */
export interface MigrationName {
  readonly name: string;
  readonly sha256: string;
}

/** The migrations of this version, in order; put in by the build, so that no start reads or hashes a file. */
export const MIGRATIONS: readonly MigrationName[] = QL_SIDECAR_MIGRATIONS;

/** The contract that this version needs from a ledger (DESIGN 5: part of readiness). */
export const CONTRACT_VERSION = 1;
export const REQUIRED_CAPABILITIES = ['ledger', 'shadow_scheduled_system'] as const;

/** The indexes that carry promises or bounds: a ledger without one of them is not ready. */
export const REQUIRED_INDEXES = ['runs_active', 'runs_cron', 'runs_idempotency', 'run_events_dedupe'] as const;

export const REQUIRED_TABLES = [
  'capabilities',
  'counters',
  'cursors',
  'process_hosts',
  'projects',
  'run_attempts',
  'run_events',
  'runs',
  'schema_migrations',
  'task_revisions',
  'tasks',
] as const;
