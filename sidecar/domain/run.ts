import type { EventType } from './event-type.js';
import type { Envelope } from './envelope.js';
import { eventFor } from './event-type.js';
import { isTerminal, pathBetween, type RunStatus, type TerminalStatus } from './status.js';

/** What the ledger holds of one Run and its only Attempt, as far as an envelope can change it. Times in ms. */
export interface RunFacts {
  readonly status: RunStatus;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly exitCode: number | null;
  readonly reason: string | null;
  readonly logPath: string | null;
  /** 64 hex digits, or null when no envelope has claimed a revision. */
  readonly taskRevision: string | null;
  readonly pid: number | null;
  readonly pidStartTicks: number | null;
  /** Whether the host and boot of the process are recorded. */
  readonly hostKnown: boolean;
}

/** The columns that an envelope sets; only what was unknown is ever filled, but for the terminal outcome. */
export type RunFill = { -readonly [Key in keyof RunFacts]?: RunFacts[Key] };

/** One Event to append. `dedupeKey` is unique within its Run; null where the state alone prevents a repeat. */
export interface NewEvent {
  readonly type: EventType;
  readonly occurredAtMs: number;
  readonly dedupeKey: string | null;
  readonly payload: Readonly<Record<string, string | number | boolean | null>> | null;
}

export type EnvelopeDecision =
  | { readonly kind: 'apply'; readonly fill: RunFill; readonly events: readonly NewEvent[] }
  | { readonly kind: 'replayed' }
  | { readonly kind: 'late'; readonly fill: RunFill; readonly event: NewEvent };

/** How an execution ended, read from its finish (DESIGN 5.1, table of facts). */
export interface Outcome {
  readonly status: Exclude<TerminalStatus, 'lost'>;
  readonly exitCode: number | null;
  readonly reason: string | null;
}

/** The outcome that a finish tells: stopped wins over the exit code, and an unknown code counts as success. */
export function outcomeOf(finish: Pick<Envelope, 'exitCode' | 'stopped' | 'signal'>): Outcome {
  if (finish.stopped) {
    return {
      status: 'cancelled',
      exitCode: finish.exitCode,
      reason: finish.signal === null ? 'stopped' : `signal ${finish.signal}`,
    };
  }
  const failed = finish.exitCode !== null && finish.exitCode !== 0;
  return { status: failed ? 'failed' : 'succeeded', exitCode: finish.exitCode, reason: null };
}

/**
 * What one envelope changes (ADR-0446 response-loss rules, DESIGN 5.1). `current` is undefined when the Run is to be
 * created. The result depends on the set of envelopes alone: implied Events carry the accepted instant, so that a start
 * that comes before or after its finish leaves the same rows.
 */
export function decideEnvelope(
  current: RunFacts | undefined,
  envelope: Envelope,
  acceptedAtMs: number,
): EnvelopeDecision {
  const fill = unknownFields(current, envelope);
  if (envelope.event === 'started') {
    const path = pathBetween(current?.status, 'running') ?? [];
    if (path.length > 0) fill.status = 'running';
    return applyOrReplay(fill, path.map((status) => entered(status, acceptedAtMs)));
  }
  const outcome = outcomeOf(envelope);
  if (current !== undefined && isTerminal(current.status)) {
    return sameOutcome(current, outcome)
      ? applyOrReplay(fill, [])
      : { kind: 'late', fill, event: lateCallback(envelope, outcome) };
  }
  const path = pathBetween(current?.status, outcome.status) ?? [];
  fill.status = outcome.status;
  fill.finishedAtMs = envelope.occurredAtMs;
  if (outcome.exitCode !== null) fill.exitCode = outcome.exitCode;
  if (outcome.reason !== null) fill.reason = outcome.reason;
  const events = path.map((status) =>
    status === outcome.status ? finished(envelope, outcome) : entered(status, acceptedAtMs),
  );
  return applyOrReplay(fill, events);
}

function unknownFields(current: RunFacts | undefined, envelope: Envelope): RunFill {
  const fill: RunFill = {};
  if (envelope.event === 'started' && (current?.startedAtMs ?? null) === null) {
    fill.startedAtMs = envelope.occurredAtMs;
  }
  if (envelope.logPath !== null && (current?.logPath ?? null) === null) fill.logPath = envelope.logPath;
  if (envelope.taskRevision !== null && (current?.taskRevision ?? null) === null) {
    fill.taskRevision = envelope.taskRevision;
  }
  const claim = envelope.process;
  if (claim === null) return fill;
  const knownPid = current?.pid ?? null;
  if (knownPid === null) fill.pid = claim.pid;
  // A process that differs from the recorded one is not this execution's: nothing of it is mixed in.
  else if (knownPid !== claim.pid) return fill;
  if (claim.startTicks !== null && (current?.pidStartTicks ?? null) === null) {
    fill.pidStartTicks = claim.startTicks;
  }
  if (claim.host !== null && claim.bootId !== null && current?.hostKnown !== true) fill.hostKnown = true;
  return fill;
}

function applyOrReplay(fill: RunFill, events: readonly NewEvent[]): EnvelopeDecision {
  for (const _ in fill) return { kind: 'apply', fill, events };
  return { kind: 'replayed' };
}

function sameOutcome(current: RunFacts, outcome: Outcome): boolean {
  return (
    current.status === outcome.status &&
    current.exitCode === outcome.exitCode &&
    current.reason === outcome.reason
  );
}

function entered(status: RunStatus, occurredAtMs: number): NewEvent {
  return { type: eventFor(status), occurredAtMs, dedupeKey: null, payload: null };
}

function finished(envelope: Envelope, outcome: Outcome): NewEvent {
  return {
    type: eventFor(outcome.status),
    occurredAtMs: envelope.occurredAtMs,
    dedupeKey: null,
    payload: outcomePayload(outcome),
  };
}

/** Success with exit code 0 needs no words; everything else says what was seen. */
function outcomePayload(outcome: Outcome): NewEvent['payload'] {
  if (outcome.status === 'succeeded' && outcome.exitCode === 0) return null;
  return outcome.reason === null
    ? { exit_code: outcome.exitCode }
    : { exit_code: outcome.exitCode, reason: outcome.reason };
}

/** A finish that contradicts the settled outcome: one Event each, however often it comes (DESIGN 5.1). */
function lateCallback(envelope: Envelope, outcome: Outcome): NewEvent {
  return {
    type: 'compat.late_callback',
    occurredAtMs: envelope.occurredAtMs,
    dedupeKey: `late:${outcome.status}:${outcome.exitCode ?? ''}:${outcome.reason ?? ''}`,
    payload: { claimed: outcome.status, exit_code: outcome.exitCode },
  };
}
