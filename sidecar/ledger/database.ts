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
  /**
   * Takes the file for this connection alone, or throws that it is locked when somebody else has it open. Alone, the index
   * of the WAL is kept in memory: else 32 KiB of a shared file that each pass would write anew.
   */
  readonly alone?: boolean;
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
      timeout: options.alone === true ? 0 : BUSY_TIMEOUT_MS,
      ...(options.nativeModule === null ? {} : { nativeBinding: options.nativeModule }),
    });
  } catch (error) {
    throw explained(error, options.file);
  }
  try {
    // Before the first read, which takes the lock: set later, it would not be noticed that somebody else is there.
    if (options.alone === true) connection.pragma('locking_mode = EXCLUSIVE');
    // A pass touches few pages; SQLite's default cache of 2 MiB is only ever memory here.
    connection.exec('PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA cache_size = -512');
    // With a rollback journal two that both keep their read locks could never write.
    if (options.alone === true && connection.pragma('journal_mode', { simple: true }) !== 'wal') {
      connection.pragma('locking_mode = NORMAL');
      waitAtMost(connection, BUSY_TIMEOUT_MS);
    }
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

/**
 * What a WAL may grow to before a short-lived process has it copied into the ledger, in bytes. The next one reads it whole,
 * and from 1,000 pages on SQLite would copy it at each commit.
 */
const LONG_WAL_BYTES = 768 * 1024;

/**
 * Ends the use of a ledger in a process that ends with it. Closing would copy the WAL into the ledger and sync four times,
 * each minute anew; left as it is, what it holds is as durable, and every reader finds it.
 */
export function leave(connection: Connection, file: string): void {
  const wal = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (wal === undefined || wal.size > LONG_WAL_BYTES) connection.close();
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
  // The index of the WAL is a file beside the ledger, for readers too.
  SQLITE_CANTOPEN: ['ledger cannot be opened', 'run "ql-sidecar migrate", or check rights and mount: SQLite writes beside the file'],
  // Its -wal goes with it: SQLite would play that into whatever file is put in this place.
  SQLITE_NOTADB: ['not a ledger, or damaged', 'move the file and its -wal away and run "ql-sidecar migrate"'],
  SQLITE_CORRUPT: ['ledger is damaged', 'move the file and its -wal away, then restore a copy or run "ql-sidecar migrate"'],
  SQLITE_FULL: ['disk is full', 'free some space; nothing is lost, envelopes wait in the spool'],
  // The index of the WAL could not grow.
  SQLITE_IOERR_SHMSIZE: ['disk is full', 'free some space; nothing is lost, envelopes wait in the spool'],
  SQLITE_READONLY: ['ledger is read-only', 'check the rights of the file and of its directory: even reading needs to write beside it'],
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
