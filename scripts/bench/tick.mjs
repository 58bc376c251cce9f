// A tick with something to ingest against `node -e 0`: wall time as a ratio, peak memory as a difference.
import { bundle, dataDirectory } from './data-directory.mjs';
import { execution, spool } from './envelopes.mjs';
import { figure, interleaved, peakMiB } from './measure.mjs';

export function* run() {
  for (const profile of ['edge', 'standalone']) {
    const data = dataDirectory(profile);
    let second = 1_764_572_400;
    const before = () => {
      for (const envelope of execution((second += 60))) spool(`${data}/ql-sidecar/spool`, envelope);
    };
    const tick = [process.execPath, bundle, 'tick', '--data-dir', data];
    const bare = [process.execPath, '-e', '0'];
    const time = interleaved({ subject: tick, base: bare, pairs: 41, before });
    yield figure(`tick that ingests one execution, ${profile}, wall`, time.ratio, 'x node -e 0', { atMost: 1.25 });
    const more = peakMiB(tick, 15, before) - peakMiB(bare, 15);
    yield figure(`tick that ingests one execution, ${profile}, peak memory above node -e 0`, more, 'MiB', { atMost: 4 });
  }
}
