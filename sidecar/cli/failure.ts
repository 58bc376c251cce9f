import { codeOf } from '../domain/error-code.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { explained } from '../ledger/database.js';

/** Writes one line about what went wrong to stderr and answers the exit code; never a stack trace (DESIGN 10). */
export function reportFailure(error: unknown, where: string): number {
  const failure = asOperatorError(error, where);
  process.stderr.write(`ql-sidecar: ${oneLine(failure.message)}\n`);
  return failure.exitCode;
}

function asOperatorError(error: unknown, where: string): OperatorError {
  if (error instanceof OperatorError) return error;
  const code = codeOf(error);
  if (code.startsWith('SQLITE') || code === 'ERR_DLOPEN_FAILED') return explained(error, where);
  const path = error instanceof Error && 'path' in error && typeof error.path === 'string' ? error.path : where;
  const [what, remedy] = SYSTEM[code] ?? [
    `internal error: ${error instanceof Error ? error.message : String(error)}`,
    'please report this line',
  ];
  return new OperatorError(what, path, remedy, EXIT.ledger);
}

const SYSTEM: Readonly<Record<string, readonly [string, string]>> = {
  EACCES: ['no right to use', 'check the owner and the rights'],
  EPERM: ['not permitted', 'check the owner and the rights'],
  ENOSPC: ['disk is full', 'free some space; envelopes wait in the spool'],
  EROFS: ['file system is read-only', 'check the mount'],
  EIO: ['disk error', 'check the disk and the mount'],
  ENOENT: ['does not exist', 'run "ql-sidecar migrate"'],
  ENOTDIR: ['not a directory', 'move the file away and run "ql-sidecar migrate"'],
  EEXIST: ['something of that name is in the way', 'move it away'],
  ERR_FS_EISDIR: ['a directory is in the way', 'move it away'],
  EADDRINUSE: ['address is in use', 'another process serves there; choose another QL_SIDECAR_LISTEN'],
  EMFILE: ['too many open files', 'raise the limit of open files'],
};

function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex -- one line, whatever a path or message holds
  return text.slice(0, 500).replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}
