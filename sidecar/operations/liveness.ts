import { decideLost } from '../domain/lost.js';
import { judgeProcess, type GoneEvidence } from '../domain/process-identity.js';
import type { ProcessTable } from '../host/proc.js';
import { activeRuns, readCursor, writeCursor, type ActiveRun } from '../ledger/active-runs.js';
import type { Connection } from '../ledger/database.js';
import type { CounterBatch } from '../ledger/counters.js';
import { isRowError } from '../ledger/readiness.js';
import type { ShadowRuns } from '../ledger/shadow-runs.js';

/** A Run whose process is proven gone; whether it is lost depends on the spool. */
export interface GoneRun {
  readonly run: ActiveRun;
  readonly evidence: GoneEvidence;
}

export interface LivenessPass {
  readonly gone: readonly GoneRun[];
  readonly checked: number;
}

const CURSOR = 'liveness';

/**
 * Looks at the processes of one page of active Runs (DESIGN 5.1). Reads only, unless there are more than `limit`: then
 * where it stopped is kept, and the next pass goes on there.
 */
export function findGone(connection: Connection, processes: ProcessTable, limit: number): LivenessPass {
  const after = readCursor(connection, CURSOR);
  const page = activeRuns(connection, after, limit);
  if (page.length === limit || after !== null) {
    writeCursor(connection, CURSOR, page.length === limit ? (page.at(-1) as ActiveRun) : null);
  }
  const observer = page.length === 0 ? null : processes.host();
  if (observer === null) return { gone: [], checked: 0 };
  const gone: GoneRun[] = [];
  for (const run of page) {
    const verdict = judgeProcess(run.process, observer, processes.sight(run.process.pid));
    if (verdict.kind === 'gone') gone.push({ run, evidence: verdict.evidence });
  }
  return { gone, checked: page.length };
}

/**
 * Settles Runs as lost, each in one transaction that reads it again: a finish that came meanwhile wins. Call it only when
 * the spool was drained after `findGone` looked. Answers how many it settled; one bad row never stops the rest.
 */
export function settleLost(
  connection: Connection,
  runs: ShadowRuns,
  counters: CounterBatch,
  gone: readonly GoneRun[],
  nowMs: number,
): { readonly lost: number; readonly failed: number } {
  let lost = 0;
  let failed = 0;
  const settle = connection.transaction(({ run, evidence }: GoneRun): boolean => {
    const current = runs.find(run.runId);
    if (current === undefined) return false;
    const decision = decideLost(current.facts, run.process, evidence, nowMs);
    if (decision === undefined || !runs.update(current, decision.fill, null)) return false;
    runs.append(run.runId, current.lastSequence, decision.events, 'liveness');
    counters.add('ql_sidecar_runs_lost_total', `error_class="${evidence}"`);
    counters.write(connection);
    return true;
  });
  for (const one of gone) {
    try {
      if (settle.immediate(one)) lost += 1;
    } catch (error) {
      if (!isRowError(error)) throw error;
      failed += 1;
    } finally {
      counters.clear();
    }
  }
  return { lost, failed };
}
