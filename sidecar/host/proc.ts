import { readFileSync } from 'node:fs';
import { codeOf } from '../domain/error-code.js';
import type { ObservingHost, ProcessSight } from '../domain/process-identity.js';

/** Looks at processes. Passed in, so that a test can stand in for a machine. */
export interface ProcessTable {
  /** This machine, or null where /proc does not tell (then nothing can be proven here). */
  host(): ObservingHost | null;
  sight(pid: number): ProcessSight;
}

/** The process table of Linux: /proc, read once per question, nothing kept. */
export const linuxProcesses: ProcessTable = { host: observingHost, sight };

function observingHost(): ObservingHost | null {
  const host = firstLine('/proc/sys/kernel/hostname');
  if (host === null || host === '') return null;
  const init = readStat(1);
  return {
    host,
    bootId: firstLine('/proc/sys/kernel/random/boot_id'),
    initStartTicks: typeof init === 'number' ? init : null,
  };
}

function sight(pid: number): ProcessSight {
  const ticks = readStat(pid);
  if (typeof ticks === 'number') return { kind: 'present', startTicks: ticks };
  // A /proc mounted with hidepid shows no foreign process: only the kernel's own "no such process" is proof.
  return ticks === 'absent' && isUnknownToKernel(pid) ? { kind: 'absent' } : { kind: 'unreadable' };
}

function isUnknownToKernel(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

/** Field 22 of /proc/<pid>/stat: the start of a process in clock ticks since boot. */
function readStat(pid: number): number | 'absent' | 'unreadable' {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' || code === 'ESRCH' ? 'absent' : 'unreadable';
  }
  // The name in field 2 may hold spaces and brackets: the fields are counted from behind its last bracket.
  const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
  return Number.isSafeInteger(ticks) ? ticks : 'unreadable';
}

function firstLine(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').split('\n', 1)[0] ?? null;
  } catch {
    return null;
  }
}
