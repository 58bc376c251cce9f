import type { Envelope } from '../domain/envelope.js';
import { ACTORS, EVENT_TYPES, type Actor } from '../domain/event-type.js';
import { originCode, type ShadowOrigin } from '../domain/origin.js';
import type { NewEvent, RunFill } from '../domain/run.js';
import { attemptStatusCode, attemptStatusFor, runStatusCode } from '../domain/status.js';
import type { Connection, Statement } from './database.js';
import { Identities } from './identities.js';
import { lazily } from './lazily.js';
import { NOTHING_KNOWN, SELECT_SHADOW_RUN, shadowRun, type ShadowRun, type ShadowRunRow } from './shadow-run.js';

/** A Run that this transaction has created and not yet written. */
interface NewRun {
  readonly ids: { readonly runId: Buffer; readonly attemptId: Buffer; readonly packed: Buffer };
  readonly origin: ShadowOrigin;
  run: ShadowRun;
  readonly events: (NewEvent & { readonly actor: Actor })[];
}

/**
 * Statements about legacy-owned Runs. Every call belongs inside the caller's transaction. A new Run is held back until the
 * next one is touched, so that a start and a finish that come together are written once: call `flush` before the commit,
 * and `forget` after a rollback.
 */
export class ShadowRuns {
  readonly identities: Identities;
  #new: NewRun | null = null;
  readonly #find: () => Statement;
  readonly #insertRun: () => Statement;
  readonly #insertAttempt: () => Statement;
  readonly #updateRun: () => Statement;
  readonly #updateAttempt: () => Statement;
  readonly #appendEvent: () => Statement;

  constructor(connection: Connection) {
    this.identities = new Identities(connection);
    this.#find = lazily(
      connection,
      SELECT_SHADOW_RUN,
    );
    this.#insertRun = lazily(
      connection,
      `INSERT INTO runs (run_id, project_key, idempotency_key, task_key, cron_id, revision_key, origin, owner, status,
                         version, created_at_ms, started_at_ms, finished_at_ms, exit_code, reason, log_path)
       VALUES (?, 1, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertAttempt = lazily(
      connection,
      `INSERT INTO run_attempts (run_id, number, attempt_id, executor, status, pid, pid_start_ticks, host_key,
                                 started_at_ms, finished_at_ms, exit_code)
       VALUES (?, 1, ?, 0, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#updateRun = lazily(
      connection,
      `UPDATE runs SET revision_key = ?, status = ?, version = version + 1, started_at_ms = ?, finished_at_ms = ?,
                       exit_code = ?, reason = ?, log_path = ?
        WHERE run_id = ? AND version = ?`,
    );
    this.#updateAttempt = lazily(
      connection,
      `UPDATE run_attempts SET status = ?, pid = ?, pid_start_ticks = ?, host_key = ?, started_at_ms = ?,
                               finished_at_ms = ?, exit_code = ?
        WHERE run_id = ? AND number = 1`,
    );
    this.#appendEvent = lazily(
      connection,
      `INSERT INTO run_events (run_id, sequence, type, actor, attempt, occurred_at_ms, dedupe_key, payload)
       VALUES (?, ?, ?, ?, 1, ?, ?, ?)
       ON CONFLICT (run_id, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING`,
    );
  }

  find(runId: Buffer): ShadowRun | undefined {
    if (this.#new !== null) {
      if (this.#new.ids.runId.equals(runId)) return this.#new.run;
      this.flush();
    }
    const row = this.#find().get(runId) as ShadowRunRow | undefined;
    return row === undefined ? undefined : shadowRun(row);
  }

  /** Creates Run and Attempt as `fill` says; the Events are appended by `append`. */
  create(ids: NewRun['ids'], envelope: Envelope, fill: RunFill, createdAtMs: number): void {
    this.flush();
    const taskKey = this.identities.task(envelope.cronId, envelope.name);
    const { cronId, name } = envelope;
    const run: ShadowRun = {
      runId: ids.runId,
      taskKey,
      version: 0,
      lastSequence: 0,
      revisionKey: null,
      hostKey: null,
      facts: NOTHING_KNOWN,
      identity: { cronId, name, taskRevision: null, idempotencyKey: ids.packed, createdAtMs },
    };
    this.#new = { ids, origin: envelope.executionId.origin, run: this.#filled(run, fill, envelope), events: [] };
  }

  /** Writes what `fill` changes. Answers false, writing nothing, when the Run has moved on since it was read. */
  update(run: ShadowRun, fill: RunFill, envelope: Envelope | null): boolean {
    const next = this.#filled(run, fill, envelope);
    if (this.#new?.ids.runId.equals(run.runId) === true) {
      this.#new.run = { ...next, lastSequence: this.#new.run.lastSequence };
      return true;
    }
    const { facts } = next;
    const updated = this.#updateRun().run(
      next.revisionKey,
      runStatusCode(facts.status),
      facts.startedAtMs,
      facts.finishedAtMs,
      facts.exitCode,
      facts.reason,
      facts.logPath,
      run.runId,
      run.version,
    );
    if (updated.changes !== 1) return false;
    this.#updateAttempt().run(
      attemptStatusCode(attemptStatusFor(facts.status)),
      facts.pid,
      facts.pidStartTicks,
      next.hostKey,
      facts.startedAtMs,
      facts.finishedAtMs,
      facts.exitCode,
      run.runId,
    );
    return true;
  }

  /** Appends Events after `lastSequence`; one whose dedupe key is already there is left out. Answers how many were new. */
  append(runId: Buffer, lastSequence: number, events: readonly NewEvent[], actor: Actor): number {
    if (this.#new?.ids.runId.equals(runId) === true) return appendTo(this.#new, events, actor);
    let sequence = lastSequence;
    for (const event of events) sequence += this.#write(runId, sequence + 1, event, actor);
    return sequence - lastSequence;
  }

  /** Writes the Run that is held back, if there is one. */
  flush(): void {
    if (this.#new === null) return;
    const { ids, origin, run, events } = this.#new;
    this.#new = null;
    const { facts } = run;
    this.#insertRun().run(
      ids.runId,
      ids.packed,
      run.taskKey,
      run.identity.cronId,
      run.revisionKey,
      originCode(origin),
      runStatusCode(facts.status),
      run.version,
      run.identity.createdAtMs,
      facts.startedAtMs,
      facts.finishedAtMs,
      facts.exitCode,
      facts.reason,
      facts.logPath,
    );
    this.#insertAttempt().run(
      ids.runId,
      ids.attemptId,
      attemptStatusCode(attemptStatusFor(facts.status)),
      facts.pid,
      facts.pidStartTicks,
      run.hostKey,
      facts.startedAtMs,
      facts.finishedAtMs,
      facts.exitCode,
    );
    events.forEach((event, at) => this.#write(ids.runId, at + 1, event, event.actor));
  }

  /** Drops what is held in memory: the transaction that it belonged to is undone. */
  forget(): void {
    this.#new = null;
    this.identities.forget();
  }

  #write(runId: Buffer, sequence: number, event: NewEvent, actor: Actor): number {
    return this.#appendEvent().run(
      runId,
      sequence,
      EVENT_TYPES[event.type],
      ACTORS.indexOf(actor),
      event.occurredAtMs,
      event.dedupeKey,
      event.payload === null ? null : JSON.stringify(event.payload),
    ).changes;
  }

  /** The Run as it is after `fill`. */
  #filled(run: ShadowRun, fill: RunFill, envelope: Envelope | null): ShadowRun {
    const { identity, revisionKey, hostKey } = run;
    const claimed = fill.taskRevision ?? null;
    return {
      ...run,
      version: run.version + 1,
      facts: { ...run.facts, ...fill },
      revisionKey: claimed === null ? revisionKey : this.identities.revision(run.taskKey, claimed, identity.createdAtMs),
      hostKey: fill.hostKnown === true && envelope !== null ? this.#hostKey(envelope) : hostKey,
      identity: claimed === null ? identity : { ...identity, taskRevision: claimed },
    };
  }

  #hostKey(envelope: Envelope): number | null {
    const claim = envelope.process;
    if (claim === null || claim.host === null || claim.bootId === null) return null;
    return this.identities.host(claim.host, claim.bootId, claim.initStartTicks ?? 0);
  }
}

/** The same rule as the unique index: a dedupe key once a Run. */
function appendTo(target: NewRun, events: readonly NewEvent[], actor: Actor): number {
  const before = target.events.length;
  for (const event of events) {
    const known = event.dedupeKey !== null && target.events.some(({ dedupeKey }) => dedupeKey === event.dedupeKey);
    if (!known) target.events.push({ ...event, actor });
  }
  target.run = { ...target.run, lastSequence: target.events.length };
  return target.events.length - before;
}
