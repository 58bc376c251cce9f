// Spool to ledger through the whole path, and what a Run costs in bytes.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { execution, spool } from './envelopes.mjs';
import { cleanEnvironment, median, report } from './measure.mjs';
import { dataDirectory } from './tick.mjs';

const bundle = path.resolve('dist/ql-sidecar/lib/ql-sidecar.cjs');
const PER_PASS = 4096;

/** One ingest process; answers the seconds that it ran and the bytes that it wrote. */
function ingest(data) {
  const probe = `
    const fs = require('fs');
    process.argv = [process.argv[0], ${JSON.stringify(bundle)}, 'ingest', '--data-dir', ${JSON.stringify(data)}];
    const written = () => Number(/^write_bytes: (\\d+)/m.exec(fs.readFileSync('/proc/self/io', 'utf8'))[1]);
    const before = written();
    const started = process.hrtime.bigint();
    process.on('exit', () => fs.writeSync(3, JSON.stringify({ s: Number(process.hrtime.bigint() - started) / 1e9, bytes: written() - before })));
    require(${JSON.stringify(bundle)});`;
  const out = execFileSync(process.execPath, ['-e', probe], { env: cleanEnvironment, stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
  return out;
}
export { ingest, PER_PASS, median, report, readFileSync, rmSync, statSync, execution, spool, dataDirectory };
