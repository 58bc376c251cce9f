import { codeOf } from '../domain/error-code.js';
import { nativeModule } from '../host/artifact.js';
import { explained, openConnection, type Connection } from '../ledger/database.js';
import { requireReady } from '../ledger/readiness.js';

/** Opens a ledger that must be ready; never creates or repairs one (DESIGN 5). */
export function openLedger(file: string, access: 'read' | 'write'): Connection {
  const connection = openConnection({ file, nativeModule, create: false, readOnly: access === 'read' });
  try {
    requireReady(connection, file);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Gives `work` a ledger that is ready, and closes it. What SQLite throws meanwhile is told with the file that it is about. */
export async function withLedger(
  file: string,
  access: 'read' | 'write',
  work: (connection: Connection) => void | Promise<void>,
): Promise<void> {
  const connection = openLedger(file, access);
  try {
    await work(connection);
  } catch (error) {
    throw codeOf(error).startsWith('SQLITE') ? explained(error, file) : error;
  } finally {
    connection.close();
  }
}
