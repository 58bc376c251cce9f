import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { ENVELOPE_BYTES_MAX } from '../domain/envelope.js';
import { codeOf } from '../domain/error-code.js';
import { lookAt, namesIn, pathOf } from './directory.js';

/** Why a file was taken out of the spool; also the bounded class under which it is counted. */
export type QuarantineReason =
  | 'malformed'
  | 'oversize'
  | 'not_a_file'
  | 'foreign_owner'
  | 'incomplete'
  | 'refused_by_ledger';

/** Whose a directory is. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The quarantine keeps the newest up to this number. */
const FILES_MAX = 256;

/** The longest file that it takes in: one byte more than an envelope, so that a file cut to this is still too long for one. */
const FILE_BYTES_MAX = ENVELOPE_BYTES_MAX + 1;

/** The longest part of a file's own name that its name in the quarantine repeats (bytes): 255 less what stands before it. */
const KEPT_NAME_BYTES_MAX = 200;

/** What a rename says of the one file, not of the disk: gone already, not ours, or something of that name is there. */
const IMMOVABLE = new Set(['ENOENT', 'EACCES', 'EPERM', 'EXDEV', 'EISDIR', 'ENOTDIR', 'ENOTEMPTY']);

/**
 * Makes the quarantine where it is missing. It is for `owner` (of the spool) alone, also when root makes it: that user's own
 * tick could put nothing aside otherwise. Throws what the disk throws, `OperatorError` when a link is in its place.
 */
export function makeQuarantine(directory: string, owner: Owner | undefined): void {
  let found = lookAt(directory, 'quarantine');
  if (found?.isDirectory() !== true) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    found = lookAt(directory, 'quarantine');
  }
  if (process.getuid?.() === 0 && owner !== undefined && found?.uid !== owner.uid) giveTo(owner, directory);
}

/**
 * Moves the file `name` of `spool` into the quarantine, with instant and reason in its name, and keeps the quarantine bounded:
 * files are cut before they are moved, and one that cannot be cut is removed; a directory is moved whole. Answers false when
 * this one file cannot be moved: it stays, and stops nothing else.
 */
export function putAside(spool: string, name: string, quarantine: string, reason: QuarantineReason, nowMs: number): boolean {
  const kept = `${quarantine}/${nowMs}-${reason}-${keptName(name)}`;
  const file = pathOf(spool, name);
  try {
    // Before it is moved: whoever is killed in between leaves a file that is met again, and goes the same way.
    if (cut(file)) renameSync(file, kept);
    else unlinkSync(file);
  } catch (error) {
    if (IMMOVABLE.has(codeOf(error))) return false;
    throw error;
  }
  const files = namesIn(quarantine);
  for (const old of files.slice(0, Math.max(0, files.length - FILES_MAX))) {
    rmSync(pathOf(quarantine, old), { recursive: true, force: true });
  }
  return true;
}

/** By descriptor, never through a link: root gives away this directory and nothing else. */
function giveTo({ uid, gid }: Owner, directory: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    fchownSync(descriptor, uid, gid);
  } catch {
    // A mount or a container on which root gives nothing away: root's tick works all the same.
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** What the quarantine keeps of a file's name. Bytes that are not UTF-8 become letters (two bytes each), so that a person can type it. */
function keptName(name: string): string {
  const bytes = Buffer.from(name, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8', 0, KEPT_NAME_BYTES_MAX) : name.slice(0, KEPT_NAME_BYTES_MAX / 2);
}

/** Cuts a file that is too long. Answers false when it is not ours to cut: of another user, or with a second name elsewhere. */
function cut(file: string | Buffer): boolean {
  const found = lstatSync(file);
  if (!found.isFile() || found.size <= FILE_BYTES_MAX) return true;
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  try {
    if (fstatSync(descriptor).nlink > 1) return false;
    ftruncateSync(descriptor, FILE_BYTES_MAX);
    return true;
  } finally {
    closeSync(descriptor);
  }
}
