import Database from 'better-sqlite3';
import { statSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';

export type Connection = Database.Database;
export type Statement = Database.Statement;

export interface OpenOptions {
  /** Absolute path of the ledger file. */
  readonly file: string;
  /** Absolute path of the native module in an artifact; null in a checkout, where the package finds its own. */
  readonly nativeModule: string | null;
  /** Whether the file may be created (`migrate` alone). */
  readonly create: boolean;
  readonly readOnly: boolean;
}

/** How long a statement waits for another writer before the command asks to be tried again, in ms. */
const BUSY_TIMEOUT_MS = 5_000;

/** Opens a ledger file with the pragmas of DESIGN 5. Throws `OperatorError` in one line for whatever is in the way. */
export function openConnection(options: OpenOptions): Connection {
  for (const end of ['', '-wal', '-shm', '-journal']) refuseOtherThanFile(`${options.file}${end}`);
  let connection: Connection;
  try {
    connection = new Database(options.file, {
      fileMustExist: !options.create,
      readonly: options.readOnly,
      timeout: BUSY_TIMEOUT_MS,
      ...(options.nativeModule === null ? {} : { nativeBinding: options.nativeModule }),
    });
  } catch (error) {
    throw explained(error, options.file);
  }
  try {
    // A pass touches few pages; SQLite's default cache of 2 MiB is only ever memory here.
    connection.exec('PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA cache_size = -512');
  } catch (error) {
    connection.close();
    throw explained(error, options.file);
  }
  return connection;
}

/** Bounds how long a statement of this connection waits for another process, in ms: 0 answers at once. */
export function waitAtMost(connection: Connection, ms: number): void {
  connection.pragma(`busy_timeout = ${ms}`);
}

/** SQLite would wait for ever on a fifo, and tells little of a directory. What cannot be looked at is left to it. */
function refuseOtherThanFile(name: string): void {
  let isFile: boolean | undefined;
  try {
    isFile = statSync(name, { throwIfNoEntry: false })?.isFile();
  } catch {
    return;
  }
  if (isFile !== false) return;
  throw new OperatorError('ledger cannot be opened', name, 'this is no regular file: move it away', EXIT.ledger);
}

/** Bounds the pages that this connection keeps in memory, in KiB: a process that stays reads the same ones again. */
export function cacheAtMost(connection: Connection, kib: number): void {
  connection.pragma(`cache_size = -${kib}`);
}

/** Turns what SQLite and the file system throw into one line with a remedy and the exit code of its kind. */
export function explained(error: unknown, file: string): OperatorError {
  if (error instanceof OperatorError) return error;
  // better-sqlite3 checks the directory itself, and throws without a code.
  const code = messageOf(error).startsWith('Cannot open database') ? 'SQLITE_CANTOPEN' : codeOf(error);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    return new OperatorError('ledger is locked', file, 'another process is writing; try again', EXIT.tryAgain);
  }
  // A journal that was left by a killed process: only who may write can take it back.
  if (code === 'SQLITE_READONLY_ROLLBACK') {
    return new OperatorError('a write was cut off', file, 'run "ql-sidecar tick", which takes it back', EXIT.tryAgain);
  }
  const [what, remedy] = CAUSES[code] ?? CAUSES[code.replace(/^(SQLITE_[A-Z]+).*$/, '$1')] ?? [
    `ledger error ${code === '' ? messageOf(error) : code}`,
    'run "ql-sidecar migrate --check"',
  ];
  return new OperatorError(what, file, remedy, EXIT.ledger);
}

const CAUSES: Readonly<Record<string, readonly [string, string]>> = {
  SQLITE_CANTOPEN: ['ledger cannot be opened', 'run "ql-sidecar migrate", or check rights and mount of the directory'],
  // Its -wal goes with it: SQLite would play that into whatever file is put in this place.
  SQLITE_NOTADB: ['not a ledger, or damaged', 'move the file and its -wal away and run "ql-sidecar migrate"'],
  SQLITE_CORRUPT: ['ledger is damaged', 'move the file and its -wal away, then restore a copy or run "ql-sidecar migrate"'],
  SQLITE_FULL: ['disk is full', 'free some space; nothing is lost, envelopes wait in the spool'],
  // The index of the WAL could not grow.
  SQLITE_IOERR_SHMSIZE: ['disk is full', 'free some space; nothing is lost, envelopes wait in the spool'],
  SQLITE_READONLY: ['ledger is read-only', 'check the rights of the file and of its directory'],
  SQLITE_IOERR: ['disk error under the ledger', 'check the disk and the mount'],
  SQLITE_PERM: ['no right to use the ledger', 'check the rights of the file'],
  ERR_DLOPEN_FAILED: [
    'the native SQLite module does not load on this machine',
    'install the package that was built for this platform and Node version',
  ],
};

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // eslint-disable-next-line no-control-regex -- one line, whatever the message holds
  return text.slice(0, 120).replace(/[\u0000-\u001f]+/g, ' ');
}
