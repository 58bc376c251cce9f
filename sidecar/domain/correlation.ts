import { digest128 } from './derived-id.js';

/** As many active Runs of one cron as a callback is compared with (ADR-0002 §9.4 rule 2). */
export const CANDIDATES_MAX = 64;

/** An active Run that a callback without an execution ID may belong to. */
export interface Candidate {
  /** What `logArtifact` makes of its log path; null: none is recorded. */
  readonly logArtifact: string | null;
  readonly pid: number | null;
}

/** What such a callback says of its execution. */
export type Claim = Candidate;

/** Why no Run was found; also the bounded class under which it is counted. */
export type UnmatchedClass = 'none' | 'several' | 'conflict';

export type Correlation<Run extends Candidate> =
  | { readonly kind: 'matched'; readonly run: Run; readonly by: Evidence }
  | { readonly kind: 'unmatched'; readonly errorClass: UnmatchedClass };

export type Evidence = 'log' | 'pid' | 'only';

/** The strong fields in the order in which they decide (ADR-0002 §9.4 rule 3): each points to the Runs that carry the same. */
const STRONG = [
  { by: 'log', field: 'logArtifact' },
  { by: 'pid', field: 'pid' },
] as const satisfies readonly { by: Evidence; field: keyof Candidate }[];

/**
 * Finds the one Run that a callback belongs to, or says why there is none (ADR-0002 §9.4 rule 3, §11.2): by log artifact,
 * then by pid, then the only candidate. Nothing is guessed: two strong fields that each point to another Run are a conflict,
 * and the only candidate is taken only where nothing that it recorded differs from the claim. `isTruncated`: there are more
 * candidates than these, so that "none" is not known.
 */
export function correlate<Run extends Candidate>(
  candidates: readonly Run[],
  claim: Claim,
  isTruncated: boolean,
): Correlation<Run> {
  const [byLog, byPid] = STRONG.map(({ field }) =>
    claim[field] === null ? [] : candidates.filter((run) => run[field] === claim[field]),
  ) as [Run[], Run[]];
  if (byLog.length === 1 && byPid.length === 1 && byLog[0] !== byPid[0]) return unmatched('conflict');
  if (byLog.length === 1) return { kind: 'matched', run: byLog[0] as Run, by: 'log' };
  if (byLog.length > 1) {
    const both = byPid.filter((run) => byLog.includes(run));
    if (both.length === 1) return { kind: 'matched', run: both[0] as Run, by: 'pid' };
    return unmatched(byPid.length === 1 ? 'conflict' : 'several');
  }
  if (byPid.length === 1) return { kind: 'matched', run: byPid[0] as Run, by: 'pid' };
  if (candidates.length > 1 || isTruncated) return unmatched('several');
  const [only] = candidates;
  if (only === undefined || contradicts(only, claim)) return unmatched('none');
  return { kind: 'matched', run: only, by: 'only' };
}

/**
 * What stands for a log path in a comparison: at most 36 characters that do not give the path away (ADR-0002 §9.4 rule 4).
 * Null for none, and for `/dev/null`, which every task without a log shares.
 */
export function logArtifact(path: string | null): string | null {
  if (path === null || path === '/dev/null') return null;
  return `log:${digest128(Buffer.from(path)).toString('hex')}`;
}

function contradicts(run: Candidate, claim: Claim): boolean {
  return STRONG.some(({ field }) => run[field] !== null && claim[field] !== null && run[field] !== claim[field]);
}

function unmatched(errorClass: UnmatchedClass): { readonly kind: 'unmatched'; readonly errorClass: UnmatchedClass } {
  return { kind: 'unmatched', errorClass };
}
