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

/**
 * Everything that readiness looks at, in one statement: each start of a tick pays for it. A `kind` for each row: `object`
 * for tables and indexes, `migration` and `capability` with what is recorded of them.
 */
const RECORDED = `
  SELECT 'object' AS kind, name, NULL AS value FROM sqlite_schema WHERE type IN ('table', 'index')
  UNION ALL SELECT 'migration', name, sha256 FROM schema_migrations
  UNION ALL SELECT 'capability', name, contract_version FROM capabilities`;

/** What SQLite says when one of the tables that RECORDED reads is not there. */
const MISSING_TABLE = /^no such table: (?:main\.)?(\w+)$/;

interface Recorded {
  readonly kind: 'object' | 'migration' | 'capability';
  readonly name: string;
  readonly value: string | number | null;
}

/** What stands between a ledger file and this version, one line each; empty when it is ready (DESIGN 5). */
export function readinessProblems(connection: Connection): readonly string[] {
  let rows: Recorded[];
  try {
    rows = connection.prepare(RECORDED).all() as Recorded[];
  } catch (error) {
    const missing = MISSING_TABLE.exec(error instanceof Error ? error.message : '')?.[1];
    if (missing === undefined) throw error;
    const isEmpty = connection.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
    return isEmpty || missing === 'schema_migrations' ? ['has no schema: no migration has been applied'] : [`table ${missing} is missing`];
  }
  const present = new Set(rows.filter(({ kind }) => kind === 'object').map(({ name }) => name));
  const applied = rows
    .filter(({ kind }) => kind === 'migration')
    .map(({ name, value }): MigrationName => ({ name, sha256: String(value) }));
  return [
    ...migrationProblems(applied),
    ...REQUIRED_TABLES.filter((name) => !present.has(name)).map((name) => `table ${name} is missing`),
    ...REQUIRED_INDEXES.filter((name) => !present.has(name)).map((name) => `index ${name} is missing`),
    ...capabilityProblems(rows),
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

function capabilityProblems(rows: readonly Recorded[]): string[] {
  const versions = new Map(rows.filter(({ kind }) => kind === 'capability').map(({ name, value }) => [name, value]));
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
