import { writeSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import { systemClock } from '../host/clock.js';
import { linuxProcesses } from '../host/proc.js';
import { Spool } from '../host/spool.js';
import { CounterBatch } from '../ledger/counters.js';
import { ShadowRuns } from '../ledger/shadow-runs.js';
import { ingest, type IngestContext, type IngestReport } from '../operations/ingest.js';
import { tick, type TickReport } from '../operations/tick.js';
import type { Connection } from '../ledger/database.js';
import type { Invocation } from './invocation.js';
import { withLedgerAlone } from './open-ledger.js';

/** `ql-sidecar tick`: one line when something happened, silent otherwise; `--json` always prints its document. */
export function tickCommand(invocation: Invocation): void {
  withLedgerAlone(invocation.paths.ledger, (connection) => {
    const report = tick({
      ...ingestContext(invocation, connection),
      processes: linuxProcesses,
      livenessLimit: invocation.profile.livenessChecks,
    });
    say(invocation, 'tick', report);
  });
}

/** `ql-sidecar ingest`: drains the spool alone. */
export function ingestCommand(invocation: Invocation): void {
  withLedgerAlone(invocation.paths.ledger, (connection) => {
    say(invocation, 'ingest', ingest(ingestContext(invocation, connection)));
  });
}

/** The adapters of an ingest over a real spool. */
export function ingestContext(invocation: Invocation, connection: Connection): IngestContext {
  const { paths, profile, profileName, settings } = invocation;
  return {
    connection,
    runs: new ShadowRuns(connection),
    counters: new CounterBatch(),
    spool: new Spool(paths.spool, paths.quarantine, paths.spoolFull),
    clock: systemClock,
    limit: profile.ingestEnvelopes,
    shadowOrigins: settings.shadowOrigins,
    actor: 'bridge',
    profile: profileName,
  };
}

const WORDS: readonly (readonly [keyof TickReport, string])[] = [
  ['started', 'started'],
  ['finished', 'finished'],
  ['lost', 'lost'],
  ['late', 'late'],
  ['refused', 'refused'],
  ['quarantined', 'quarantined'],
  ['replayed', 'repeated'],
  ['off', 'of origins that are off'],
  ['remaining', 'waiting for the next pass'],
];

function say(invocation: Invocation, command: string, report: IngestReport & Partial<TickReport>): void {
  if (invocation.json) {
    tell(JSON.stringify(report));
    return;
  }
  const said = WORDS.filter(([key]) => (report[key] ?? 0) > 0).map(([key, word]) => `${report[key]} ${word}`);
  if (said.length > 0) tell(`${command}: ${said.join(', ')}`);
}

/** The work is committed: a reader that has gone is no failure of it. */
function tell(line: string): void {
  try {
    writeSync(1, `${line}\n`);
  } catch (error) {
    if (codeOf(error) !== 'EPIPE') throw error;
  }
}
