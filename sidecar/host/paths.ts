import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { makeQuarantine } from './quarantine.js';

/** Where everything lies, as absolute paths (DESIGN 13, docs/PROTOCOL.md). */
export interface Paths {
  readonly data: string;
  readonly sidecar: string;
  readonly ledger: string;
  readonly spool: string;
  readonly quarantine: string;
  readonly spoolFull: string;
  readonly notices: string;
  readonly receiver: string;
  readonly socket: string;
  readonly token: string;
  readonly lock: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The data directory of the panel: the flag, `QL_DATA_DIR`, `$QL_DIR/data`, `/ql/data`, in this order. */
export function dataDirectory(flag: string | null, environment: Environment, cwd: string): string {
  const { QL_DATA_DIR: data, QL_DIR: panel } = environment;
  const chosen = flag ?? (data || (panel ? `${panel}/data` : '/ql/data'));
  if (chosen === '') throw new OperatorError('empty path', '--data-dir', 'name the data directory of the panel', EXIT.usage);
  const absolute = withoutTrailingSlash(chosen.startsWith('/') ? chosen : `${cwd}/${chosen}`);
  if (!isDirectory(absolute)) {
    throw new OperatorError(
      'data directory does not exist',
      absolute,
      'pass --data-dir, or set QL_DATA_DIR',
      EXIT.configuration,
    );
  }
  return absolute;
}

/** The paths below a data directory; `sidecarDir` is the setting `QL_SIDECAR_DIR`, or null for its default. */
export function pathsBelow(data: string, sidecarDir: string | null): Paths {
  if (sidecarDir !== null && !sidecarDir.startsWith('/')) {
    throw new OperatorError('not an absolute path', 'QL_SIDECAR_DIR', 'write it from / on', EXIT.configuration);
  }
  const sidecar = sidecarDir === null ? `${data}/ql-sidecar` : withoutTrailingSlash(sidecarDir);
  return {
    data,
    sidecar,
    ledger: `${sidecar}/ledger.sqlite`,
    spool: `${sidecar}/spool`,
    quarantine: `${sidecar}/quarantine`,
    spoolFull: `${sidecar}/spool.full`,
    notices: `${sidecar}/notices`,
    receiver: `${sidecar}/receiver`,
    socket: `${sidecar}/serve.sock`,
    token: `${sidecar}/serve.token`,
    lock: `${sidecar}/serve.lock`,
  };
}

/** Makes the directories of ours: the bridge has builtins only and cannot make one, and each tick may be another user's. */
export function makeDirectories(paths: Paths): void {
  for (const directory of [paths.sidecar, paths.spool, paths.notices]) {
    make(directory, () => void mkdirSync(directory, { recursive: true, mode: 0o700 }));
  }
  make(paths.quarantine, () => makeQuarantine(paths.quarantine, statSync(paths.spool)));
}

function make(directory: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `cannot make a directory (${codeOf(error)})`,
      directory,
      'check the rights of the directory above it',
      EXIT.ledger,
    );
  }
}

/** Above this a configuration file is a mistake (bytes). */
const CONFIGURATION_BYTES_MAX = 64 * 1024;

/** The text of `config/ql-sidecar.env`; null when there is none, a warning when it cannot be read: then all is off. */
export function configurationText(data: string): { readonly text: string | null; readonly warning: string | null } {
  const file = `${data}/config/ql-sidecar.env`;
  try {
    const stat = statSync(file);
    // Reading a fifo would wait for somebody who writes.
    if (!stat.isFile() && !stat.isDirectory()) return { text: null, warning: `${file}: is no regular file, ignored` };
    if (stat.size > CONFIGURATION_BYTES_MAX) {
      return { text: null, warning: `${file}: larger than 64 KiB, ignored` };
    }
    return { text: readFileSync(file, 'utf8'), warning: null };
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' ? { text: null, warning: null } : { text: null, warning: `${file}: cannot be read (${code}), ignored` };
  }
}

function isDirectory(directory: string): boolean {
  try {
    return statSync(directory).isDirectory();
  } catch {
    return false;
  }
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, '') || '/' : path;
}
