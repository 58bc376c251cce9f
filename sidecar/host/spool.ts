import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { ENVELOPE_BYTES_MAX } from '../domain/envelope.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';

/** Why a file was taken out of the spool; also the bounded class under which it is counted. */
export type QuarantineReason =
  | 'malformed'
  | 'oversize'
  | 'not_a_file'
  | 'foreign_owner'
  | 'incomplete'
  | 'refused_by_ledger';

export type SpoolEntry =
  | { readonly kind: 'complete'; readonly line: string }
  | { readonly kind: 'rejected'; readonly reason: QuarantineReason }
  /** Perhaps still being written. */
  | { readonly kind: 'incomplete_yet' }
  /** Another process has taken it. */
  | { readonly kind: 'taken' };

/** A file that has no final newline after this long was left by a writer that died (ms). */
const INCOMPLETE_AFTER_MS = 10 * 60 * 1000;

/** The quarantine keeps the newest files up to this number; each is cut to one envelope's length. */
const QUARANTINE_FILES_MAX = 256;

/** What a rename says of the one file, not of the disk: gone already, not ours, or something of that name is there. */
const IMMOVABLE = new Set(['ENOENT', 'EACCES', 'EPERM', 'EXDEV', 'EISDIR', 'ENOTDIR', 'ENOTEMPTY']);

/** The longest part of a file's own name that its name in the quarantine repeats (bytes): 255 less what stands before it. */
const KEPT_NAME_BYTES_MAX = 200;

/**
 * The directory that the bridge writes to and an ingest drains (DESIGN 4.4). Reads by descriptor, never follows a link, and
 * trusts only files of the directory's owner, of this process, or of root. A name is one character per byte (latin1): a
 * system takes any bytes for a name, and one that is not UTF-8 must be met like every other.
 */
export class Spool {
  readonly #buffer = Buffer.allocUnsafe(ENVELOPE_BYTES_MAX + 1);
  readonly #trusted = new Set<number>([0]);

  /** `directory` and `quarantine` are absolute paths; `fullFlag` is the file by which the bridge holds back. */
  constructor(
    readonly directory: string,
    readonly quarantine: string,
    readonly fullFlag: string,
  ) {
    if (process.getuid !== undefined) this.#trusted.add(process.getuid());
  }

  /** The names of what may be envelopes, oldest first by name; empty when there is no spool. */
  names(): string[] {
    try {
      const stat = lstatSync(this.directory);
      // A link could lead to anybody's files, which would then be put aside.
      if (stat.isSymbolicLink()) {
        throw new OperatorError('spool is a link', this.directory, 'put a directory there, or set QL_SIDECAR_DIR', EXIT.ledger);
      }
      this.#trusted.add(stat.uid);
      return readdirSync(this.directory, 'latin1')
        .filter((name) => !name.startsWith('.'))
        .sort();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** Reads one file. Never throws for what a file is; only for a disk that does not answer. */
  read(name: string, nowMs: number): SpoolEntry {
    let descriptor: number;
    try {
      descriptor = openSync(
        pathOf(this.directory, name),
        constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      );
    } catch (error) {
      return unopened(codeOf(error), error);
    }
    try {
      const stat = fstatSync(descriptor);
      if (!stat.isFile()) return { kind: 'rejected', reason: 'not_a_file' };
      if (!this.#trusted.has(stat.uid)) return { kind: 'rejected', reason: 'foreign_owner' };
      if (stat.size > ENVELOPE_BYTES_MAX) return { kind: 'rejected', reason: 'oversize' };
      const length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, 0);
      if (length > ENVELOPE_BYTES_MAX) return { kind: 'rejected', reason: 'oversize' };
      if (length === 0 || this.#buffer[length - 1] !== 0x0a) {
        // A clock that was set back makes a file look young, and it waits longer: that loses nothing.
        return nowMs - stat.mtimeMs > INCOMPLETE_AFTER_MS
          ? { kind: 'rejected', reason: 'incomplete' }
          : { kind: 'incomplete_yet' };
      }
      return { kind: 'complete', line: this.#buffer.toString('utf8', 0, length - 1) };
    } finally {
      closeSync(descriptor);
    }
  }

  /** Removes an envelope that is safe in the ledger. */
  remove(name: string): void {
    try {
      unlinkSync(pathOf(this.directory, name));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }

  /**
   * Moves a file out of the way, with the reason in its name, and keeps the quarantine bounded. Answers false when this one
   * file cannot be moved: it stays, and stops nothing else.
   */
  reject(name: string, reason: QuarantineReason, nowMs: number): boolean {
    mkdirSync(this.quarantine, { recursive: true, mode: 0o700 });
    const kept = `${this.quarantine}/${nowMs}-${reason}-${keptName(name)}`;
    try {
      renameSync(pathOf(this.directory, name), kept);
      if (reason === 'oversize') cut(kept);
    } catch (error) {
      if (IMMOVABLE.has(codeOf(error))) return false;
      throw error;
    }
    const files = readdirSync(this.quarantine, 'latin1').sort();
    for (const old of files.slice(0, Math.max(0, files.length - QUARANTINE_FILES_MAX))) {
      rmSync(pathOf(this.quarantine, old), { recursive: true, force: true });
    }
    return true;
  }

  /** Lets the bridge write again after a flood. */
  clearFullFlag(): void {
    rmSync(this.fullFlag, { force: true });
  }
}

/** The path of a name from `readdir`. Of plain letters it is a string, which costs less than bytes do. */
function pathOf(directory: string, name: string): string | Buffer {
  return /[\u0080-\u00ff]/.test(name)
    ? Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name, 'latin1')])
    : `${directory}/${name}`;
}

/** What the quarantine keeps of a file's name. Bytes that are not UTF-8 become letters (two bytes each), so that a person can type it. */
function keptName(name: string): string {
  const bytes = Buffer.from(name, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8', 0, KEPT_NAME_BYTES_MAX) : name.slice(0, KEPT_NAME_BYTES_MAX / 2);
}

/** Cuts a file to the length of one envelope: never what a link leads to, should one have been put in its place. */
function cut(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    // Of another user, or a file no more: it is out of the way, and that is what counts.
    return;
  }
  try {
    ftruncateSync(descriptor, ENVELOPE_BYTES_MAX);
  } finally {
    closeSync(descriptor);
  }
}

function unopened(code: string, error: unknown): SpoolEntry {
  switch (code) {
    case 'ENOENT':
      return { kind: 'taken' };
    case 'ELOOP':
    case 'ENXIO':
    case 'ENODEV':
    case 'EISDIR':
      return { kind: 'rejected', reason: 'not_a_file' };
    case 'EACCES':
    case 'EPERM':
      return { kind: 'rejected', reason: 'foreign_owner' };
    default:
      throw error;
  }
}
