import Database from 'better-sqlite3';
import { codeOf } from '../domain/error-code.js';
import { explained } from './database.js';

/**
 * Takes the lock of the one process that may serve, or answers undefined when another one holds it. It is a lock of the
 * kernel on an empty SQLite file: it dies with its process however that ends, and containers that share the directory see
 * it as well. The answer releases it. Throws `OperatorError` when the file cannot be used.
 */
export function holdInstanceLock(file: string, nativeModule: string | null): (() => void) | undefined {
  let connection: Database.Database | undefined;
  try {
    connection = new Database(file, { timeout: 0, ...(nativeModule === null ? {} : { nativeBinding: nativeModule }) });
    // Nothing is ever written: a journal on the disk would only be left behind by a kill.
    connection.pragma('journal_mode = MEMORY');
    connection.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    connection?.close();
    if (codeOf(error).startsWith('SQLITE_BUSY')) return undefined;
    throw explained(error, file);
  }
  const held = connection;
  return () => held.close();
}
