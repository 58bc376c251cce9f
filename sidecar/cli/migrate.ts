import { existsSync } from 'node:fs';
import { EXIT } from '../domain/operator-error.js';
import { nativeModule, readMigrations } from '../host/artifact.js';
import { systemClock } from '../host/clock.js';
import { makeDirectories } from '../host/paths.js';
import { explained, openConnection } from '../ledger/database.js';
import { readinessProblems } from '../ledger/readiness.js';
import { migrate } from '../operations/migrate.js';
import type { Invocation } from './invocation.js';

/** `ql-sidecar migrate [--check]`: exit 1 when `--check` finds that the ledger is not ready. */
export function migrateCommand(invocation: Invocation, options: { readonly check: boolean }): number {
  return options.check ? check(invocation) : apply(invocation);
}

function apply({ paths, json }: Invocation): number {
  makeDirectories(paths);
  const connection = openConnection({ file: paths.ledger, nativeModule, create: true, readOnly: false });
  try {
    const report = migrate(connection, paths.ledger, readMigrations(), systemClock());
    if (json) {
      console.log(JSON.stringify({ ledger: paths.ledger, applied: report.applied, journal_mode: report.journalMode }));
    } else if (report.applied.length === 0) console.log(`ledger is up to date: ${paths.ledger}`);
    else console.log(`ledger is ready: ${paths.ledger} (applied ${report.applied.join(', ')})`);
    return EXIT.done;
  } finally {
    connection.close();
  }
}

function check({ paths, json }: Invocation): number {
  const problems = existsSync(paths.ledger) ? problemsOf(paths.ledger) : ['there is no ledger yet: run "ql-sidecar migrate"'];
  if (json) console.log(JSON.stringify({ ledger: paths.ledger, ready: problems.length === 0, problems }));
  else if (problems.length === 0) console.log(`ledger is ready: ${paths.ledger}`);
  else for (const problem of problems) console.log(`${paths.ledger}: ${problem}`);
  return problems.length === 0 ? EXIT.done : EXIT.found;
}

function problemsOf(file: string): readonly string[] {
  const connection = openConnection({ file, nativeModule, create: false, readOnly: true });
  try {
    return readinessProblems(connection);
  } catch (error) {
    throw explained(error, file);
  } finally {
    connection.close();
  }
}
