import { parseEnvelope, type Envelope } from '../domain/envelope.js';
import type { QuarantineReason } from '../host/quarantine.js';
import type { Spool } from '../host/spool.js';
import type { Connection } from '../ledger/database.js';
import { isRowError } from '../ledger/readiness.js';
import { applyEnvelope, type AppliedEnvelope, type ApplyContext } from './apply-envelope.js';
import { commit } from './commit.js';

/** What one drain of the spool did; counts of envelopes. */
export interface IngestReport {
  started: number;
  finished: number;
  replayed: number;
  late: number;
  refused: number;
  /** Of an origin that is switched off: removed, not recorded. */
  off: number;
  quarantined: number;
  /** Left for the next pass because this one reached its bound. */
  remaining: number;
  /** Left because they do not end in a newline yet: their writers may be at it. */
  incomplete: number;
}

export interface IngestContext extends ApplyContext {
  readonly connection: Connection;
  readonly spool: Spool;
  /** At most this many files in one pass (DESIGN 12). */
  readonly limit: number;
}

/** Files of one transaction: enough to share its commit, few enough to keep other writers waiting only some ms. */
const GROUP = 512;

/** How many envelopes make the bridge hold back (docs/PROTOCOL.md). */
const SPOOL_FULL = { edge: 1024, standalone: 8192 } as const;

/**
 * Drains the spool into the ledger: bounded, in groups of one transaction, each file unlinked only after the commit that
 * holds it (DESIGN 4.4). One bad file never stops the rest. Throws only what the ledger or the disk throws; every file is
 * still there then.
 */
export function ingest(context: IngestContext): IngestReport {
  const report = emptyReport();
  const names = context.spool.names();
  let taken = 0;
  let at = 0;
  while (at < names.length && taken < context.limit) {
    const group: { name: string; envelope: Envelope }[] = [];
    const room = Math.min(GROUP, context.limit - taken);
    while (at < names.length && group.length < room && taken < context.limit) {
      const name = names[at] as string;
      at += 1;
      const entry = readEnvelopeFile(context, name);
      if (entry === 'incomplete_yet') report.incomplete += 1;
      if (entry === 'incomplete_yet' || entry === 'taken') continue;
      taken += 1;
      if (typeof entry === 'string') quarantine(context, report, name, entry);
      else group.push({ name, envelope: entry });
    }
    commitGroup(context, report, group);
  }
  report.remaining = names.length - at;
  flushCounters(context);
  // Also when the spool is empty: whoever drained it may have been killed before this line.
  if (report.remaining < SPOOL_FULL[context.profile === 'edge' ? 'edge' : 'standalone']) context.spool.clearFullFlag();
  return report;
}

export function emptyReport(): IngestReport {
  return { started: 0, finished: 0, replayed: 0, late: 0, refused: 0, off: 0, quarantined: 0, remaining: 0, incomplete: 0 };
}

/** The envelope in a file, the reason to quarantine it, or why it is passed over. */
function readEnvelopeFile(context: IngestContext, name: string): Envelope | QuarantineReason | 'incomplete_yet' | 'taken' {
  const entry = context.spool.read(name, context.clock());
  if (entry.kind === 'incomplete_yet' || entry.kind === 'taken') return entry.kind;
  if (entry.kind === 'rejected') return entry.reason;
  const parsed = parseEnvelope(entry.line);
  return parsed.ok ? parsed.value : 'malformed';
}

function commitGroup(
  context: IngestContext,
  report: IngestReport,
  group: readonly { name: string; envelope: Envelope }[],
): void {
  if (group.length === 0) return;
  const envelopes = group.map(({ envelope }) => envelope);
  let applied: readonly AppliedEnvelope[];
  try {
    applied = commit(context, () => envelopes.map((envelope) => applyEnvelope(context, envelope)));
  } catch (error) {
    if (!isRowError(error)) throw error;
    if (group.length === 1) {
      quarantine(context, report, (group[0] as { name: string }).name, 'refused_by_ledger');
      return;
    }
    // One of them breaks a rule of the schema: each gets a transaction of its own, so that only that one is put aside.
    for (const single of group) commitGroup(context, report, [single]);
    return;
  }
  for (const outcome of applied) report[outcome.kind] += 1;
  for (const { name } of group) context.spool.remove(name);
}

function quarantine(
  context: IngestContext,
  report: IngestReport,
  name: string,
  reason: QuarantineReason,
): void {
  if (!context.spool.reject(name, reason, context.clock())) return;
  context.counters.add('ql_sidecar_quarantined_total', `error_class="${reason}"`);
  report.quarantined += 1;
}

function flushCounters(context: IngestContext): void {
  if (!context.counters.isEmpty) commit(context, () => undefined);
}
