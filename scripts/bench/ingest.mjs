// From the spool to the ledger through the whole path: how many envelopes a second, and bytes of ledger a Run.
import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundle, dataDirectory } from './data-directory.mjs';
import { execution, spool } from './envelopes.mjs';
import { cleanEnvironment, figure, median, scratchDirectory } from './measure.mjs';

/** Loaded before the command: tells its seconds from the first line to the exit. */
function probeFile(scratch) {
  const file = path.join(scratch, 'probe.cjs');
  writeFileSync(
    file,
    `const fs = require('fs');
    const started = performance.now();
    process.on('exit', () => fs.writeSync(1, JSON.stringify({ s: (performance.now() - started) / 1000 })));`,
  );
  return file;
}

export function* run() {
  const scratch = scratchDirectory();
  const probe = probeFile(scratch);
  const ingest = (data) =>
    JSON.parse(
      execFileSync(process.execPath, ['--require', probe, bundle, 'ingest', '--data-dir', data], { env: cleanEnvironment })
        .toString()
        .replace(/^ingest:.*\n/, ''),
    );
  let second = 1_764_572_400;
  const fill = (data, executions) => {
    for (let at = 0; at < executions; at += 1) {
      second += 7;
      for (const envelope of execution(second)) spool(`${data}/ql-sidecar/spool`, envelope);
    }
  };

  const data = dataDirectory('standalone', scratch);
  const rates = [];
  for (let pass = 0; pass < 9; pass += 1) {
    fill(data, 2048);
    rates.push(4096 / ingest(data).s);
  }
  yield figure('spool ingest, 4,096 envelopes a pass, whole command', median(rates), 'envelopes/s', { atLeast: 20_000 });

  const ledger = path.join(data, 'ql-sidecar/ledger.sqlite');
  const before = statSync(ledger).size;
  for (let pass = 0; pass < 4; pass += 1) {
    fill(data, 2048);
    ingest(data);
  }
  const perRun = (statSync(ledger).size - before) / 8192;
  yield figure('ledger, each finished Run with its Attempt and Events', perRun, 'B', { atMost: 600 });
}
