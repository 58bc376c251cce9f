import { correlate, logArtifact, type UnmatchedClass } from '../domain/correlation.js';
import { envelopeFor, type LegacyCallback } from '../domain/legacy-callback.js';
import { candidateRuns } from '../ledger/correlation.js';
import type { Connection } from '../ledger/database.js';
import { applyEnvelope, type AppliedEnvelope, type ApplyContext } from './apply-envelope.js';

/** What became of a callback for one of its crons. `unmatched`: `compat.unmatched_callback`, nothing was changed. */
export type CorrelatedCallback =
  | AppliedEnvelope
  | { readonly kind: 'unmatched'; readonly errorClass: UnmatchedClass };

/**
 * Brings a callback without an execution ID into the ledger, inside the caller's transaction: the one Run that it belongs
 * to moves on; none, several or a conflict changes nothing and is counted (ADR-0002 §9.4, §11.2, DESIGN 8). It never makes
 * a Run: an end without a start proves no identity (ADR-0446). One answer per cron.
 */
export function correlateCallback(
  context: ApplyContext & { readonly connection: Connection },
  callback: LegacyCallback,
): readonly CorrelatedCallback[] {
  return callback.cronIds.map((cronId) => correlateCron(context, callback, cronId));
}

function correlateCron(
  context: ApplyContext & { readonly connection: Connection },
  callback: LegacyCallback,
  cronId: number,
): CorrelatedCallback {
  const { connection, counters, shadowOrigins, clock } = context;
  // Where nothing is observed, nothing can be missing.
  if (shadowOrigins.size === 0) return { kind: 'off' };
  const { candidates, isTruncated } = candidateRuns(connection, cronId, shadowOrigins);
  if (isTruncated) counters.add('ql_sidecar_correlation_truncated_total');
  const runs = candidates.map((run) => ({ ...run, logArtifact: logArtifact(run.logPath) }));
  const claim = { logArtifact: logArtifact(callback.logPath), pid: callback.pid };
  const found = correlate(runs, claim, isTruncated);
  if (found.kind === 'unmatched') {
    counters.add('shadow_callback_unmatched_total', `error_class="${found.errorClass}"`);
    return found;
  }
  // Who says so now is this receiver, by its own conclusion: the Event names it.
  return applyEnvelope({ ...context, actor: 'receiver' }, envelopeFor(callback, cronId, found.run.executionId, clock()));
}
