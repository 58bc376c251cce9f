import { statSync } from 'node:fs';
import { Spool } from '../host/spool.js';
import { metrics } from '../operations/metrics.js';
import { readCounters } from '../ledger/counters.js';
import type { Invocation } from './invocation.js';
import { withLedger } from './open-ledger.js';
import { write } from './screen.js';

/** `ql-sidecar metrics`: the Prometheus text format; with `--json` the stored counters, one object per line. */
export async function metricsCommand(invocation: Invocation): Promise<void> {
  const { paths, settings, profileName } = invocation;
  await withLedger(paths.ledger, async (connection) => {
    if (invocation.json) {
      for (const counter of readCounters(connection)) await write(JSON.stringify(counter));
      return;
    }
    const text = metrics({
      connection,
      shadowOrigins: settings.shadowOrigins,
      profile: profileName,
      waiting: new Spool(paths.spool, paths.quarantine, paths.spoolFull).names().length,
      ledgerBytes: statSync(paths.ledger).size,
    });
    await write(text.trimEnd());
  });
}
