import { ingest, type IngestReport } from '../operations/ingest.js';
import type { ServedLedger } from './served-ledger.js';
import type { Trouble } from './trouble.js';

/** Envelopes of one pass: between two passes requests are answered. */
const PASS = 256;

/** A pass that could not be done (another writer, a full disk) is tried again so often, then left to the next bell or tick. */
const RETRIES = 10;
const RETRY_MS = 1_000;

/** Drains the spool when the bell rings: bounded passes until it is empty, however many bells rang. */
export class SpoolDrain {
  #isDue = false;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(
    readonly ledger: ServedLedger,
    readonly trouble: Trouble,
  ) {}

  /** Drains soon. Rings that come before it begins are one. */
  ring(): void {
    if (this.#isDue || this.#isStopped) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (this.#isStopped) return;
      if (this.#pass()) this.ring();
    });
  }

  /** Drains now, before start and at the end, until the spool is empty or `isOver` says that there is no more time. */
  drain(isOver: () => boolean): void {
    while (!isOver() && this.#pass());
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#retry);
  }

  /** One pass; whether another one would find something to do. */
  #pass(): boolean {
    try {
      const report = ingest({ ...this.ledger.context(), limit: PASS });
      this.#failures = 0;
      return report.remaining > 0 && tookSomething(report);
    } catch (error) {
      this.trouble.say('spool', error, this.ledger.invocation.paths.ledger);
      this.#retryLater();
      return false;
    }
  }

  #retryLater(): void {
    clearTimeout(this.#retry);
    this.#failures += 1;
    if (this.#failures > RETRIES || this.#isStopped) return;
    this.#retry = setTimeout(() => this.ring(), RETRY_MS);
  }
}

/** Files that can be neither read nor moved stay for ever: a pass that met only those must be the last. */
function tookSomething(report: IngestReport): boolean {
  const { started, finished, replayed, late, refused, off, quarantined } = report;
  return started + finished + replayed + late + refused + off + quarantined > 0;
}
