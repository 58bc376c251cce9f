import { createHash } from 'node:crypto';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { applyMigration, appliedMigrations, isForeign, prepareFile, type JournalMode, type Migration } from '../ledger/apply-migrations.js';
import { explained, type Connection } from '../ledger/database.js';
import { readinessProblems } from '../ledger/readiness.js';

export interface MigrateReport {
  /** Names of the migrations that this call applied, in order. */
  readonly applied: readonly string[];
  readonly journalMode: JournalMode;
}

/**
 * Brings a ledger file to this version: forward only, each migration in one transaction (DESIGN 5). An edited or unknown
 * newer migration is an error and nothing is written.
 */
export function migrate(
  connection: Connection,
  file: string,
  migrations: readonly Migration[],
  nowMs: number,
): MigrateReport {
  for (const { name, sha256, sql } of migrations) {
    if (createHash('sha256').update(sql).digest('hex') !== sha256) {
      throw new OperatorError('migration file was edited', name, 'install ql-sidecar again', EXIT.ledger);
    }
  }
  try {
    refuseForeignHistory(connection, file, migrations);
    const mode = prepareFile(connection);
    const applied = migrations
      .filter((migration) => applyMigration(connection, migration, nowMs, file))
      .map(({ name }) => name);
    const problem = readinessProblems(connection)[0];
    if (problem !== undefined) {
      throw new OperatorError(`ledger is not ready: ${problem}`, file, 'restore a copy, or move the file away', EXIT.ledger);
    }
    return { applied, journalMode: mode };
  } catch (error) {
    throw explained(error, file);
  }
}

function refuseForeignHistory(connection: Connection, file: string, migrations: readonly Migration[]): void {
  if (isForeign(connection)) {
    throw new OperatorError('not a ledger, but a database of something else', file, 'move the file away', EXIT.ledger);
  }
  const known = new Map(migrations.map(({ name, sha256 }) => [name, sha256]));
  for (const { name, sha256 } of appliedMigrations(connection)) {
    if (known.get(name) === sha256) continue;
    throw new OperatorError(
      known.has(name) ? `migration ${name} was edited after it was applied` : `migration ${name.slice(0, 60)} is of a newer version`,
      file,
      known.has(name) ? 'restore a copy of the ledger' : 'install the newer ql-sidecar again',
      EXIT.ledger,
    );
  }
}
