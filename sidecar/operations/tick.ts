import type { ProcessTable } from '../host/proc.js';
import { emptyReport, ingest, type IngestContext, type IngestReport } from './ingest.js';
import { findGone, settleLost } from './liveness.js';

/** What one tick did; counts. */
export interface TickReport extends IngestReport {
  /** Active Runs whose process was looked at. */
  checked: number;
  lost: number;
}

export interface TickContext extends IngestContext {
  readonly processes: ProcessTable;
  readonly livenessLimit: number;
}

/**
 * One pass: ingest, then liveness (DESIGN 2). A Run is lost only when its process was seen gone and an ingest after that
 * left nothing in the spool: a process that has written its finish has written it before it was gone. Throws what the
 * ledger throws; admission may rely on both steps having ended without an error (DESIGN 6).
 */
export function tick(context: TickContext): TickReport {
  const report: TickReport = { ...emptyReport(), checked: 0, lost: 0 };
  addIngest(report, ingest(context));
  const pass = findGone(context.connection, context.processes, context.livenessLimit);
  report.checked = pass.checked;
  if (pass.gone.length === 0) return report;
  addIngest(report, ingest({ ...context, limit: context.limit - taken(report) }));
  if (report.remaining > 0 || report.incomplete > 0) return report;
  const { lost } = settleLost(context.connection, context.runs, context.counters, pass.gone, context.clock());
  report.lost = lost;
  return report;
}

/** How much of the bound a tick has used: both of its ingests share it. */
function taken(report: IngestReport): number {
  const { started, finished, replayed, late, refused, off, quarantined } = report;
  return started + finished + replayed + late + refused + off + quarantined;
}

function addIngest(report: TickReport, next: IngestReport): void {
  report.started += next.started;
  report.finished += next.finished;
  report.replayed += next.replayed;
  report.late += next.late;
  report.refused += next.refused;
  report.off += next.off;
  report.quarantined += next.quarantined;
  report.remaining = next.remaining;
  report.incomplete = next.incomplete;
}
