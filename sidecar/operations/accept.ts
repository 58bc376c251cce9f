import type { Envelope } from '../domain/envelope.js';
import type { LegacyCallback } from '../domain/legacy-callback.js';
import type { Connection } from '../ledger/database.js';
import { isRowError } from '../ledger/readiness.js';
import { applyEnvelope, type ApplyContext } from './apply-envelope.js';
import { commit } from './commit.js';
import { correlateCallback, type CorrelatedCallback } from './correlate.js';

/** What one request asks to be made durable: all of it or nothing. */
export type Submission =
  | { readonly kind: 'envelopes'; readonly envelopes: readonly Envelope[] }
  | { readonly kind: 'legacy'; readonly callback: LegacyCallback };

/** What became of a submission: an outcome per envelope or cron, or the index of the one that a rule of the schema forbids. */
export type Acceptance =
  | { readonly kind: 'accepted'; readonly outcomes: readonly CorrelatedCallback[] }
  | { readonly kind: 'refused_by_ledger'; readonly index: number };

export interface AcceptContext extends ApplyContext {
  readonly connection: Connection;
}

/**
 * Makes submissions durable in one transaction (`synchronous=FULL`), in their order: when this returns, they are on the
 * disk. One that breaks a rule of the schema is answered so and keeps none of the others out. Throws what the ledger or the
 * disk throws; nothing of any of them is written then.
 */
export function accept(context: AcceptContext, submissions: readonly Submission[]): readonly Acceptance[] {
  try {
    return commit(context, () => submissions.map((submission) => apply(context, submission, { index: 0, isExact: false })));
  } catch (error) {
    if (!isRowError(error)) throw error;
    // Rare enough to pay for: each gets a commit of its own, so that only the one that is wrong is refused. Also when there
    // is only one: what was remembered of tasks and revisions may have been pruned by another process, and is forgotten now.
    return submissions.map((submission) => acceptAlone(context, submission));
  }
}

function acceptAlone(context: AcceptContext, submission: Submission): Acceptance {
  const progress = { index: 0, isExact: true };
  try {
    return commit(context, () => apply(context, submission, progress));
  } catch (error) {
    if (!isRowError(error)) throw error;
    return { kind: 'refused_by_ledger', index: progress.index };
  }
}

/** Which envelope of a submission is at work. `isExact`: each is written before the next, so that an error names the right one. */
interface Progress {
  index: number;
  readonly isExact: boolean;
}

function apply(context: AcceptContext, submission: Submission, progress: Progress): Acceptance {
  progress.index = 0;
  const outcomes =
    submission.kind === 'legacy'
      ? correlateCallback(context, submission.callback)
      : submission.envelopes.map((envelope, index) => {
          progress.index = index;
          const outcome = applyEnvelope(context, envelope);
          if (progress.isExact) context.runs.flush();
          return outcome;
        });
  // Whatever comes next may look for this Run in the ledger.
  context.runs.flush();
  return { kind: 'accepted', outcomes };
}
