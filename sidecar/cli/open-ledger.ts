import { existsSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { OperatorError } from '../domain/operator-error.js';
import { nativeModule } from '../host/artifact.js';
import { explained, leave, openConnection, type Connection } from '../ledger/database.js';
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

/** The same for a command that writes and whose process ends with it: it has the ledger alone where nobody else uses it. */
export function withLedgerAlone(file: string, work: (connection: Connection) => void): void {
  const alone = openAlone(file);
  const connection = alone ?? openLedger(file, 'write');
  try {
    if (alone !== undefined) requireReady(connection, file);
    work(connection);
  } catch (error) {
    connection.close();
    throw codeOf(error).startsWith('SQLITE') ? explained(error, file) : error;
  }
  if (alone === undefined) connection.close();
  else leave(connection, file);
}

/** Undefined when the ledger has to be shared, or when something is in the way, which the next attempt will tell of. */
function openAlone(file: string): Connection | undefined {
  // Alone, SQLite keeps the journal that it has played back, and every reader would stumble over it.
  if (existsSync(`${file}-journal`)) return undefined;
  try {
    return openConnection({ file, nativeModule, create: false, readOnly: false, alone: true });
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}
