import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { EXIT, OperatorError } from '../domain/operator-error.js';

/**
 * What a directory of ours is; undefined when it is missing. Throws `OperatorError` for a link, which could lead to anybody's
 * files: those would then be put aside or removed. `what` is how a person calls it.
 */
export function lookAt(directory: string, what: string): Stats | undefined {
  const stat = lstatSync(directory, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink() !== true) return stat;
  throw new OperatorError(`${what} is a link`, directory, 'put a directory there, or set QL_SIDECAR_DIR', EXIT.ledger);
}

/**
 * The names in a directory in the order of their bytes, each as one character per byte (latin1): a system takes any bytes for
 * a name, and one that is not UTF-8 must be met like every other.
 */
export function namesIn(directory: string): string[] {
  return readdirSync(directory, 'latin1').sort();
}

/** The path of a name from `namesIn`. Of plain letters it is a string, which costs less than bytes do. */
export function pathOf(directory: string, name: string): string | Buffer {
  return /[\u0080-\u00ff]/.test(name)
    ? Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name, 'latin1')])
    : `${directory}/${name}`;
}
