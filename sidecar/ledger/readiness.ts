import { codeOf } from '../domain/error-code.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { explained, type Connection } from './database.js';
import {
  CONTRACT_VERSION,
  MIGRATIONS,
  REQUIRED_CAPABILITIES,
  REQUIRED_INDEXES,
  REQUIRED_TABLES,
  type MigrationName,
} from './migrations.js';

/** What stands between a ledger file and this version, one line each; empty when it is ready (DESIGN 5). */
export function readinessProblems(connection: Connection): readonly string[] {
  const present = new Set(
    connection.prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'index')").pluck().all() as string[],
  );
  if (!present.has('schema_migrations')) return ['has no schema: no migration has been applied'];
  const applied = connection
    .prepare('SELECT name, sha256 FROM schema_migrations ORDER BY name')
    .all() as MigrationName[];
  return [
    ...migrationProblems(applied),
    ...REQUIRED_TABLES.filter((name) => !present.has(name)).map((name) => `table ${name} is missing`),
    ...REQUIRED_INDEXES.filter((name) => !present.has(name)).map((name) => `index ${name} is missing`),
    ...(present.has('capabilities') ? capabilityProblems(connection) : []),
  ];
}

function migrationProblems(applied: readonly MigrationName[]): string[] {
  const byName = new Map(applied.map((migration) => [migration.name, migration.sha256]));
  const problems: string[] = [];
  for (const { name, sha256 } of MIGRATIONS) {
    const recorded = byName.get(name);
    if (recorded === undefined) problems.push(`migration ${name} is not applied`);
    else if (recorded !== sha256) problems.push(`migration ${name} was edited after it was applied`);
  }
  const known = new Set(MIGRATIONS.map((migration) => migration.name));
  for (const { name } of applied) {
    if (!known.has(name)) problems.push(`migration ${name.slice(0, 60)} is of a newer version`);
  }
  return problems;
}

function capabilityProblems(connection: Connection): string[] {
  const rows = connection.prepare('SELECT name, contract_version FROM capabilities').all() as {
    name: string;
    contract_version: number;
  }[];
  const versions = new Map(rows.map((row) => [row.name, row.contract_version]));
  return REQUIRED_CAPABILITIES.filter((name) => versions.get(name) !== CONTRACT_VERSION).map(
    (name) => `capability ${name} is ${versions.get(name) ?? 'missing'}, must be ${CONTRACT_VERSION}`,
  );
}

/** Throws one line when the ledger is not ready; never repairs anything in passing. */
export function requireReady(connection: Connection, file: string): void {
  let problems: readonly string[];
  try {
    problems = readinessProblems(connection);
  } catch (error) {
    throw explained(error, file);
  }
  if (problems.length === 0) return;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  throw new OperatorError(
    `ledger is not ready: ${problems[0] as string}${more}`,
    file,
    'see "ql-sidecar migrate --check", then run "ql-sidecar migrate" or restore a copy',
    EXIT.ledger,
  );
}

/** Whether an error came from the row itself (a rule of the schema), and not from the disk or another writer. */
export function isRowError(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code.startsWith('SQLITE_CONSTRAINT') ||
    code === 'SQLITE_MISMATCH' ||
    code === 'SQLITE_RANGE' ||
    code === 'SQLITE_TOOBIG' ||
    error instanceof TypeError ||
    error instanceof RangeError
  );
}
