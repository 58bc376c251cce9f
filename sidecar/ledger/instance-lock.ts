import { codeOf } from '../domain/error-code.js';
import { openConnection, waitAtMost } from './database.js';

/**
 * Takes the lock of the one process that may serve, or answers undefined when another one holds it. It is a lock of the
 * kernel on an empty SQLite file: it dies with its process however that ends, and containers that share the directory see
 * it as well. The answer releases it. Throws `OperatorError` when the file cannot be used.
 */
export function holdInstanceLock(file: string, nativeModule: string | null): (() => void) | undefined {
  const connection = openConnection({ file, nativeModule, create: true, readOnly: false });
  try {
    waitAtMost(connection, 0);
    // Nothing is ever written: a journal on the disk would only be left behind by a kill.
    connection.pragma('journal_mode = MEMORY');
    connection.exec('BEGIN EXCLUSIVE');
    return () => connection.close();
  } catch (error) {
    connection.close();
    if (codeOf(error).startsWith('SQLITE_BUSY')) return undefined;
    throw error;
  }
}
