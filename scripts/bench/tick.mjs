// A tick with something to ingest against `node -e 0`: wall time as a ratio, peak memory as a difference.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execution, spool } from './envelopes.mjs';
import { cleanEnvironment, interleaved, peakMiB, report } from './measure.mjs';

const bundle = path.resolve('dist/ql-sidecar/lib/ql-sidecar.cjs');

export function dataDirectory(profile) {
  const data = mkdtempSync(path.join(tmpdir(), 'ql-bench-'));
  mkdirSync(path.join(data, 'config'));
  writeFileSync(path.join(data, 'config/ql-sidecar.env'), `QL3_SHADOW_ORIGINS=scheduled_system\nQL3_PROFILE=${profile}\n`);
  execFileSync(process.execPath, [bundle, 'migrate', '--data-dir', data], { env: cleanEnvironment });
  return data;
}

export function run() {
  for (const profile of ['edge', 'standalone']) {
    const data = dataDirectory(profile);
    let second = 1_764_572_400;
    const before = () => {
      for (const envelope of execution((second += 60))) spool(`${data}/ql-sidecar/spool`, envelope);
    };
    const tick = [process.execPath, bundle, 'tick', '--data-dir', data];
    const bare = [process.execPath, '-e', '0'];
    const time = interleaved({ subject: tick, base: bare, pairs: 25, before });
    report(`tick (${profile}) x node -e 0`, time.ratio.toFixed(2), 'at most 1.25', time.ratio <= 1.25);
    const more = peakMiB(tick, 9, before) - peakMiB(bare, 9);
    report(`tick (${profile}) peak memory above node -e 0`, `${more.toFixed(1)} MiB`, 'at most 4 MiB', more <= 4);
    rmSync(data, { recursive: true });
  }
}
