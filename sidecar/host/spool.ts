import { closeSync, constants, fstatSync, openSync, readSync, rmSync, unlinkSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { ENVELOPE_BYTES_MAX } from '../domain/envelope.js';
import { lookAt, namesIn, pathOf } from './directory.js';
import { makeQuarantine, putAside, type Owner, type QuarantineReason } from './quarantine.js';

export type SpoolEntry =
  | { readonly kind: 'complete'; readonly line: string }
  | { readonly kind: 'rejected'; readonly reason: QuarantineReason }
  /** Perhaps still being written. */
  | { readonly kind: 'incomplete_yet' }
  /** Another process has taken it. */
  | { readonly kind: 'taken' };

/** A file that has no final newline after this long was left by a writer that died (ms). */
const INCOMPLETE_AFTER_MS = 10 * 60 * 1000;

/**
 * The directory that the bridge writes to and an ingest drains (DESIGN 4.4). Reads by descriptor, never follows a link, and
 * trusts only files of the directory's owner, of this process, or of root. Names are those of `namesIn`.
 */
export class Spool {
  readonly #buffer = Buffer.allocUnsafe(ENVELOPE_BYTES_MAX + 1);
  readonly #trusted = new Set<number>([0]);
  #owner: Owner | undefined;

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
      const stat = lookAt(this.directory, 'spool');
      if (stat === undefined) return [];
      this.#trusted.add(stat.uid);
      this.#owner = stat;
      return namesIn(this.directory).filter((name) => !name.startsWith('.'));
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

  /** Moves a file of `names` into the quarantine; false when this one cannot be moved: it stays, and stops nothing else. */
  reject(name: string, reason: QuarantineReason, nowMs: number): boolean {
    makeQuarantine(this.quarantine, this.#owner);
    return putAside(this.directory, name, this.quarantine, reason, nowMs);
  }

  /** Lets the bridge write again after a flood. */
  clearFullFlag(): void {
    rmSync(this.fullFlag, { force: true });
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
