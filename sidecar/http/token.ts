import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { EXIT, OperatorError } from '../domain/operator-error.js';

/** What a token may be made of: what one word of a header can hold. 43 characters of base64 carry 256 bits. */
const FORM = /^[A-Za-z0-9._~+/=-]{43,512}$/;

/**
 * The token of the TCP listener; made (256 random bits, 0600) where there is none. Throws `OperatorError` for a file that
 * others can read or that holds no token.
 */
export function readToken(file: string): string {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found === undefined) {
    make(file);
    return readToken(file);
  }
  if (!found.isFile()) throw wrong('token is not a file', file, 'move it away; a new one is made at the next start');
  if ((found.mode & 0o077) !== 0) throw wrong('token can be read by others', file, 'remove it; a new one is made at the next start');
  const token = readFileSync(file, 'latin1').trim();
  if (!FORM.test(token)) {
    throw wrong('not a token of at least 43 plain characters', file, 'remove it; a new one is made at the next start');
  }
  return token;
}

/** Tells whether an Authorization header carries the token, in a time that does not depend on how much of it is right. */
export function bearerCheck(token: string): (header: string | undefined) => boolean {
  const right = digest(token);
  return (header) => {
    const given = /^bearer +([^ ]+) *$/i.exec(header ?? '')?.[1];
    return given !== undefined && timingSafeEqual(digest(given), right);
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Whole or not at all. Only the one process that holds the lock of this directory comes here. */
function make(file: string): void {
  const unfinished = `${file}.new`;
  rmSync(unfinished, { force: true });
  writeFileSync(unfinished, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(unfinished, file);
}

function wrong(what: string, file: string, remedy: string): OperatorError {
  return new OperatorError(what, file, remedy, EXIT.configuration);
}
