import { statSync, type Stats } from 'node:fs';
import type { Invocation } from '../cli/invocation.js';
import { openLedger } from '../cli/open-ledger.js';
import { ingestContext } from '../cli/tick.js';
import { cacheAtMost, waitAtMost } from '../ledger/database.js';
import type { IngestContext } from '../operations/ingest.js';

/** How long a statement waits for another process (ms). The whole receiver waits with it, and a task's post is given a second. */
const WAIT_MS = 400;

/** Enough for what 64 callbacks touch: a transaction that outgrows its cache is written twice. Taken only when it is used. */
const CACHE_KIB = 2_048;

/**
 * The ledger as a process that stays uses it: one connection, opened again when the file under its name is another one. An
 * operator who moves a ledger away and makes a new one must not have callbacks written to the file that is gone.
 */
export class ServedLedger {
  #open: { readonly context: IngestContext; readonly file: Stats } | undefined;

  constructor(readonly invocation: Invocation) {}

  /** The adapters of every operation. Throws `OperatorError` when the ledger cannot be opened or is not ready. */
  context(): IngestContext {
    const { ledger } = this.invocation.paths;
    const file = statSync(ledger, { throwIfNoEntry: false });
    const open = this.#open;
    if (open !== undefined && file?.ino === open.file.ino && file.dev === open.file.dev) return open.context;
    this.close();
    const connection = openLedger(ledger, 'write');
    waitAtMost(connection, WAIT_MS);
    cacheAtMost(connection, CACHE_KIB);
    const context = ingestContext(this.invocation, connection);
    this.#open = { context, file: statSync(ledger) };
    return context;
  }

  close(): void {
    this.#open?.context.connection.close();
    this.#open = undefined;
  }
}
