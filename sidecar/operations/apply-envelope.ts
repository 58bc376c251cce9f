import { deriveId } from '../domain/derived-id.js';
import { driftOf, type DriftClass } from '../domain/drift.js';
import type { Envelope } from '../domain/envelope.js';
import type { Actor } from '../domain/event-type.js';
import { packExecutionId } from '../domain/execution-id.js';
import type { ShadowOrigin } from '../domain/origin.js';
import { LAG_COUNT, LAG_SUM_MS } from '../domain/metric.js';
import { decideEnvelope } from '../domain/run.js';
import type { Clock } from '../host/clock.js';
import type { CounterBatch } from '../ledger/counters.js';
import type { ShadowRuns } from '../ledger/shadow-runs.js';

/** What became of one envelope. `off`: its origin is not shadowed and no Run of it was accepted before. */
export type AppliedEnvelope =
  | { readonly kind: 'started' | 'finished' | 'replayed' | 'late' | 'off' }
  | { readonly kind: 'refused'; readonly drift: DriftClass };

export interface ApplyContext {
  readonly runs: ShadowRuns;
  readonly counters: CounterBatch;
  readonly shadowOrigins: ReadonlySet<ShadowOrigin>;
  readonly actor: Actor;
  readonly profile: string;
  readonly clock: Clock;
}

/**
 * Brings one envelope into the ledger, inside the caller's transaction (ADR-0446 decisions 4 to 6). Any replay, loss,
 * reordering or repeat ends in the same rows; a contradiction changes nothing and is counted under a bounded class.
 */
export function applyEnvelope(context: ApplyContext, envelope: Envelope): AppliedEnvelope {
  const { runs, counters } = context;
  const { origin, startSeconds } = envelope.executionId;
  const packed = packExecutionId(envelope.executionId);
  const acceptedAtMs = startSeconds * 1000;
  const runId = deriveId(packed, acceptedAtMs, 'run');
  const run = runs.find(runId);
  const labels = `origin="${origin}",profile="${context.profile}"`;

  if (run === undefined) {
    // Turning an origin off stops new Runs at once; accepted ones still finish.
    if (!context.shadowOrigins.has(origin)) return { kind: 'off' };
    const decision = decideEnvelope(undefined, envelope, acceptedAtMs);
    if (decision.kind !== 'apply') return { kind: 'replayed' };
    const attemptId = deriveId(packed, acceptedAtMs, 'attempt');
    runs.create({ runId, attemptId, packed }, envelope, decision.fill, acceptedAtMs);
    runs.append(runId, 0, decision.events, context.actor);
    counters.add('shadow_run_create_total', labels);
    countTransition(context, labels, envelope, decision.fill.status);
    return { kind: envelope.event };
  }

  const drift = driftOf(run.identity, envelope, packed, acceptedAtMs);
  if (drift !== undefined) {
    counters.add('shadow_run_create_failed_total', `error_class="${drift}",${labels}`);
    return { kind: 'refused', drift };
  }
  const decision = decideEnvelope(run.facts, envelope, acceptedAtMs);
  switch (decision.kind) {
    case 'replayed':
      return { kind: 'replayed' };
    case 'late': {
      const added = runs.append(runId, run.lastSequence, [decision.event], context.actor);
      if (Object.keys(decision.fill).length > 0) runs.update(run, decision.fill, envelope);
      if (added === 0) return { kind: 'replayed' };
      counters.add('shadow_terminal_mismatch_total', labels);
      return { kind: 'late' };
    }
    case 'apply':
      runs.update(run, decision.fill, envelope);
      runs.append(runId, run.lastSequence, decision.events, context.actor);
      if (decision.fill.status === undefined) return { kind: 'replayed' };
      countTransition(context, labels, envelope, decision.fill.status);
      return { kind: envelope.event };
  }
}

function countTransition(context: ApplyContext, labels: string, envelope: Envelope, status: string | undefined): void {
  const { counters, clock } = context;
  if (envelope.event === 'finished') counters.add(`ql_sidecar_runs_${status ?? 'succeeded'}_total`, labels);
  counters.add(LAG_SUM_MS, labels, Math.max(0, clock() - envelope.occurredAtMs));
  counters.add(LAG_COUNT, labels);
}
