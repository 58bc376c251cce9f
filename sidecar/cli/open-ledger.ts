import { existsSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { OperatorError } from '../domain/operator-error.js';
import { nativeModule } from '../host/artifact.js';
import { explained, leave, openConnection, type Connection } from '../ledger/database.js';
import { requireReady } from '../ledger/readiness.js';

type Access = 'read' | 'write' | 'alone';

/** Opens a ledger that must be ready; never creates or repairs one (DESIGN 5). Throws `OperatorError`. */
export function openLedger(file: string, access: Access): Connection {
  const connection = openConnection({
    file,
    nativeModule,
    create: false,
    readOnly: access === 'read',
    alone: access === 'alone',
  });
  try {
    requireReady(connection, file);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Gives `work` a ledger to read, and closes it. What SQLite throws meanwhile is told with the file that it is about. */
export async function withLedger(file: string, work: (connection: Connection) => void | Promise<void>): Promise<void> {
  const connection = openLedger(file, 'read');
  try {
    await work(connection);
  } catch (error) {
    throw told(error, file);
  } finally {
    connection.close();
  }
}

/**
 * Gives `work` a ledger to write, in a process that ends with it: alone where nobody else uses the ledger, and then its WAL is
 * left to the next process.
 */
export function withLedgerAlone(file: string, work: (connection: Connection) => void): void {
  const alone = openAlone(file);
  const connection = alone ?? openLedger(file, 'write');
  try {
    work(connection);
  } catch (error) {
    connection.close();
    throw told(error, file);
  }
  if (alone === undefined) connection.close();
  else leave(connection, file);
}

/** Undefined when the ledger has to be shared, or when something is in the way, which the next attempt will tell of. */
function openAlone(file: string): Connection | undefined {
  // Alone, SQLite keeps the journal that it has played back, and every reader would stumble over it.
  if (existsSync(`${file}-journal`)) return undefined;
  try {
    return openLedger(file, 'alone');
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}

function told(error: unknown, file: string): unknown {
  return codeOf(error).startsWith('SQLITE') ? explained(error, file) : error;
}
