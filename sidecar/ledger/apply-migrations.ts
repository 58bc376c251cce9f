import { explained, type Connection } from './database.js';
import type { MigrationName } from './migrations.js';

/** One migration ready to run: its name, the SHA-256 of its bytes, and its SQL. */
export interface Migration extends MigrationName {
  readonly sql: string;
}

export type JournalMode = 'wal' | 'delete';

/**
 * Sets the page size of a new file, which cannot be changed cheaply later, and the WAL, which writes least: a short-lived
 * process leaves it behind (`leave`). Answers the mode that the file system really carries: WAL needs shared memory, which
 * network shares refuse (DESIGN 5).
 */
export function prepareFile(connection: Connection): JournalMode {
  const isNew = connection.pragma('page_count', { simple: true }) === 0;
  if (isNew) {
    connection.pragma('page_size = 1024');
    connection.pragma('auto_vacuum = INCREMENTAL');
  }
  try {
    return connection.pragma('journal_mode = wal', { simple: true }) === 'wal' ? 'wal' : 'delete';
  } catch {
    return 'delete';
  }
}

/** The names of the migrations that a file has seen, in order; empty for a new file. */
export function appliedMigrations(connection: Connection): readonly MigrationName[] {
  const exists = connection
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'")
    .get();
  if (exists === undefined) return [];
  return connection.prepare('SELECT name, sha256 FROM schema_migrations ORDER BY name').all() as MigrationName[];
}

/** Whether the file is a database of something else: it has tables, and none that a ledger begins with. */
export function isForeign(connection: Connection): boolean {
  const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  return tables.length > 0 && !tables.includes('schema_migrations');
}

/**
 * Runs one migration in one transaction, together with the row that records it: another process that migrates at the
 * same time waits, then finds the row. Answers false when it was already there.
 */
export function applyMigration(
  connection: Connection,
  migration: Migration,
  nowMs: number,
  file: string,
): boolean {
  const run = connection.transaction((): boolean => {
    if (appliedMigrations(connection).some(({ name }) => name === migration.name)) return false;
    connection.exec(migration.sql);
    connection
      .prepare('INSERT INTO schema_migrations (name, sha256, applied_at_ms) VALUES (?, ?, ?)')
      .run(migration.name, migration.sha256, nowMs);
    return true;
  });
  try {
    return run.immediate();
  } catch (error) {
    throw explained(error, file);
  }
}
