import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { MIGRATIONS } from '../ledger/migrations.js';
import type { Migration } from '../ledger/apply-migrations.js';

declare const QL_SIDECAR_VERSION: string;

export const VERSION: string = QL_SIDECAR_VERSION;

/** The bundle is CommonJS and knows its directory; the one-to-one build of a checkout does not, and needs no native path. */
const bundleDirectory = typeof __dirname === 'string' ? __dirname : null;

/** The native SQLite module that lies beside the bundle; null in a checkout. */
export const nativeModule: string | null =
  bundleDirectory === null ? null : `${bundleDirectory}/better_sqlite3.node`;

/** The root of the artifact, or of the checkout. */
export function artifactRoot(): string {
  return bundleDirectory === null
    ? fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
    : bundleDirectory.replace(/\/[^/]*$/, '');
}

/** The SQL of every migration of this version, in order. */
export function readMigrations(): readonly Migration[] {
  return MIGRATIONS.map(({ name, sha256 }) => {
    const file = `${artifactRoot()}/migrations/${name}`;
    try {
      return { name, sha256, sql: readFileSync(file, 'utf8') };
    } catch {
      throw new OperatorError('migration file is missing', file, 'install ql-sidecar again', EXIT.ledger);
    }
  });
}
