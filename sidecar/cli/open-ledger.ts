import { nativeModule } from '../host/artifact.js';
import { openConnection, type Connection } from '../ledger/database.js';
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
