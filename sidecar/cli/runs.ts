import type { Origin } from '../domain/origin.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { parseSince } from '../domain/since.js';
import type { RunStatus } from '../domain/status.js';
import { systemClock } from '../host/clock.js';
import { listRuns, type RunFilter } from '../ledger/run-views.js';
import type { Invocation } from './invocation.js';
import { withLedger } from './open-ledger.js';
import { RUNS_HEAD, renderRow } from './render-runs.js';
import { screenStyle, write } from './screen.js';

export interface RunsOptions {
  readonly cron?: string | undefined;
  readonly origin?: Origin | undefined;
  readonly status?: RunStatus | 'active' | undefined;
  readonly since?: string | undefined;
  readonly limit: string;
  readonly utc: boolean;
}

/** `ql-sidecar runs`: newest first; a table, or one JSON object per line. */
export async function runsCommand(invocation: Invocation, options: RunsOptions): Promise<void> {
  const filter = filterFrom(options);
  await withLedger(invocation.paths.ledger, async (connection) => {
    const style = screenStyle(options.utc);
    let count = 0;
    for (const run of listRuns(connection, filter)) {
      if (count === 0 && !invocation.json) await write(RUNS_HEAD);
      await write(invocation.json ? JSON.stringify(run) : renderRow(run, style));
      count += 1;
    }
    if (count === 0 && !invocation.json) await write('no Runs');
  });
}

const LIMIT_MAX = 1_000_000;

/** Checks the options; throws a usage error that names the option. */
export function filterFrom(options: RunsOptions): RunFilter {
  const since = options.since === undefined ? undefined : parseSince(options.since, systemClock());
  if (since?.ok === false) throw usage(`--since ${since.rule}`);
  return {
    limit: wholeNumber('--limit', options.limit, LIMIT_MAX),
    ...(options.cron === undefined ? {} : { cronId: wholeNumber('--cron', options.cron, Number.MAX_SAFE_INTEGER) }),
    ...(options.origin === undefined ? {} : { origin: options.origin }),
    ...(options.status === undefined ? {} : { status: options.status }),
    ...(since === undefined ? {} : { sinceMs: since.value }),
  };
}

function wholeNumber(name: string, text: string, most: number): number {
  const value = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value) || value > most) throw usage(`${name} must be a whole number from 1 to ${most}`);
  return value;
}

function usage(what: string): OperatorError {
  return new OperatorError(what, 'runs', 'see "ql-sidecar runs --help"', EXIT.usage);
}
