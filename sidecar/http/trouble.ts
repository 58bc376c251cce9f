import { reportFailure } from '../cli/failure.js';
import type { Clock } from '../host/clock.js';

/** As often as one subject is spoken of (ms): a fault that lasts or flaps must not fill a log. */
const QUIET_MS = 60_000;

/** What goes wrong while serving, told on stderr in one line each, at most one a minute per subject. */
export class Trouble {
  readonly #lastSaidMs = new Map<string, number>();

  /** `subjects` are words of this program, so the map stays small. */
  constructor(readonly clock: Clock) {}

  /** `where` is the path or address that the line names when the error itself does not. */
  say(subject: 'ledger' | 'spool' | 'bell' | 'request', error: unknown, where: string): void {
    const now = this.clock();
    const last = this.#lastSaidMs.get(subject);
    if (last !== undefined && Math.abs(now - last) < QUIET_MS) return;
    this.#lastSaidMs.set(subject, now);
    // Whoever read this may have gone: that ends no service.
    if (process.stderr.listenerCount('error') === 0) process.stderr.on('error', () => undefined);
    reportFailure(error, where);
  }
}
