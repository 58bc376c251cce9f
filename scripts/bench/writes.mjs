// What an accepted execution writes to the flash: bytes handed to the disk and syncs, counted by strace over forty passes.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { bundle, dataDirectory } from './data-directory.mjs';
import { execution, spool } from './envelopes.mjs';
import { cleanEnvironment, figure, scratchDirectory } from './measure.mjs';

const PASSES = 40;

/** Bytes and syncs of one ingest. */
function traced(data, trace) {
  const calls = 'trace=pwrite64,fsync,fdatasync';
  const command = [process.execPath, bundle, 'ingest', '--data-dir', data];
  execFileSync('strace', ['-f', '-o', trace, '-e', calls, ...command], { env: cleanEnvironment, stdio: 'ignore' });
  const text = readFileSync(trace, 'latin1');
  let bytes = 0;
  for (const [, written] of text.matchAll(/pwrite64\(.* = (\d+)$/gm)) bytes += Number(written);
  return { bytes, syncs: (text.match(/ f(?:data)?sync\(/g) ?? []).length };
}

export function* run() {
  if (spawnSync('strace', ['-V']).error !== undefined) {
    console.log('writes: not measured, strace is not installed');
    return;
  }
  const scratch = scratchDirectory();
  const data = dataDirectory('standalone', scratch);
  const directory = `${data}/ql-sidecar/spool`;
  let second = 1_764_572_400;
  for (let filled = 0; filled < 8192; filled += 2048) {
    for (let at = 0; at < 2048; at += 1) for (const envelope of execution((second += 7))) spool(directory, envelope);
    while (readdirSync(directory).length > 0) {
      execFileSync(process.execPath, [bundle, 'ingest', '--data-dir', data], { env: cleanEnvironment });
    }
  }
  const sums = { started: { bytes: 0, syncs: 0 }, finished: { bytes: 0, syncs: 0 }, both: { bytes: 0, syncs: 0 }, sixteen: { bytes: 0, syncs: 0 } };
  const pass = (sum) => {
    const { bytes, syncs } = traced(data, path.join(scratch, 'trace'));
    sum.bytes += bytes;
    sum.syncs += syncs;
  };
  for (let at = 0; at < PASSES; at += 1) {
    const [start, finish] = execution((second += 60));
    spool(directory, start);
    pass(sums.started);
    spool(directory, finish);
    pass(sums.finished);
  }
  for (let at = 0; at < PASSES; at += 1) {
    for (const envelope of execution((second += 60))) spool(directory, envelope);
    pass(sums.both);
  }
  for (let at = 0; at < PASSES; at += 1) {
    for (let many = 0; many < 16; many += 1) for (const envelope of execution((second += 1))) spool(directory, envelope);
    pass(sums.sixteen);
  }
  const kilobytes = ({ bytes }) => bytes / PASSES / 1000;
  yield figure('written by a pass that accepts one execution', kilobytes(sums.started), 'KB', { atMost: 15 });
  yield figure('written by a pass that sees it finish', kilobytes(sums.finished), 'KB', { atMost: 15 });
  yield figure('written by a pass that sees start and finish together', kilobytes(sums.both), 'KB', { atMost: 15 });
  yield figure('written for each of sixteen executions in one pass', kilobytes(sums.sixteen) / 16, 'KB', { atMost: 15 });
  yield figure('syncs of a pass that accepts one execution', sums.started.syncs / PASSES, 'syncs');
}
