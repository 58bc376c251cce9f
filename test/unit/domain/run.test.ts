import test from 'ava';
import { decideEnvelope, outcomeOf, type RunFacts } from '../../../sidecar/domain/run.js';
import { RUN_STATUSES, isTerminal, type RunStatus } from '../../../sidecar/domain/status.js';
import { START_S, checked, finished, started, type Fields } from '../../fixtures/ledger/envelope.js';

const ACCEPTED_MS = START_S * 1000;
const START_MS = ACCEPTED_MS + 123;
const FINISH_MS = ACCEPTED_MS + 12_345;

/** Everything known of a Run in this state. */
function facts(status: RunStatus, changes: Partial<RunFacts> = {}): RunFacts {
  return {
    status,
    startedAtMs: START_MS,
    finishedAtMs: isTerminal(status) ? FINISH_MS : null,
    exitCode: status === 'succeeded' ? 0 : status === 'failed' ? 3 : null,
    reason: status === 'cancelled' ? 'stopped' : status === 'lost' ? 'pid_absent' : null,
    logPath: 'x_5/1.log',
    taskRevision: null,
    pid: 4242,
    pidStartTicks: 8_123_456,
    hostKnown: true,
    ...changes,
  };
}

const OUTCOMES: readonly (readonly [string, Fields, ReturnType<typeof outcomeOf>])[] = [
  ['exit 0: succeeded', { exit_code: 0 }, { status: 'succeeded', exitCode: 0, reason: null }],
  ['exit 1: failed, code kept', { exit_code: 1 }, { status: 'failed', exitCode: 1, reason: null }],
  ['exit 255: failed, code kept', { exit_code: 255 }, { status: 'failed', exitCode: 255, reason: null }],
  ['exit code null: succeeded, code not known', { exit_code: null }, { status: 'succeeded', exitCode: null, reason: null }],
  ['no exit code: succeeded, code not known', { exit_code: undefined }, { status: 'succeeded', exitCode: null, reason: null }],
  ['stopped: cancelled', { exit_code: 143, stopped: true }, { status: 'cancelled', exitCode: 143, reason: 'stopped' }],
  ['stopped with exit 0: cancelled all the same', { exit_code: 0, stopped: true }, { status: 'cancelled', exitCode: 0, reason: 'stopped' }],
  ['stopped by a signal: cancelled, signal kept', { exit_code: 143, stopped: true, signal: 'TERM' }, { status: 'cancelled', exitCode: 143, reason: 'signal TERM' }],
  ['a signal without stopped: by its exit code', { exit_code: 139, signal: 'SEGV' }, { status: 'failed', exitCode: 139, reason: null }],
];

for (const [title, change, outcome] of OUTCOMES) {
  test(`a finish with ${title} (DESIGN 5.1)`, (t) => {
    const envelope = checked(finished(1, change));
    t.deepEqual(outcomeOf(envelope), outcome);
    const decision = decideEnvelope(facts('running'), envelope, ACCEPTED_MS);
    t.is(decision.kind, 'apply');
    if (decision.kind !== 'apply') return;
    t.is(decision.fill.status, outcome.status);
    t.is(decision.fill.finishedAtMs, FINISH_MS);
    t.is(decision.fill.exitCode ?? null, outcome.exitCode);
    t.is(decision.fill.reason ?? null, outcome.reason);
    t.deepEqual(decision.events.map(({ type, occurredAtMs }) => [type, occurredAtMs]), [[`run.${outcome.status}`, FINISH_MS]]);
    const expected = outcome.reason === null ? { exit_code: outcome.exitCode } : { exit_code: outcome.exitCode, reason: outcome.reason };
    const isPlain = outcome.status === 'succeeded' && outcome.exitCode === 0;
    t.deepEqual(decision.events[0]?.payload, isPlain ? null : expected);
  });
}

test('a start makes the Run accepted, spawned, running, with its process (DESIGN 5.1)', (t) => {
  const decision = decideEnvelope(undefined, checked(started(1)), ACCEPTED_MS);
  t.deepEqual(decision, {
    kind: 'apply',
    fill: { startedAtMs: START_MS, logPath: 'x_5/1.log', pid: 4242, pidStartTicks: 8_123_456, hostKnown: true, status: 'running' },
    events: (['created', 'queued', 'dispatching', 'running'] as const).map((status) => ({
      type: `run.${status}` as const,
      occurredAtMs: ACCEPTED_MS,
      dedupeKey: null,
      payload: null,
    })),
  });
});

test('a finish alone makes the whole Run, in order; when it started is not made up (0446 decision 4)', (t) => {
  const decision = decideEnvelope(undefined, checked(finished(1)), ACCEPTED_MS);
  t.is(decision.kind, 'apply');
  if (decision.kind !== 'apply') return;
  t.deepEqual(
    decision.events.map(({ type, occurredAtMs }) => [type, occurredAtMs]),
    [
      ['run.created', ACCEPTED_MS],
      ['run.queued', ACCEPTED_MS],
      ['run.dispatching', ACCEPTED_MS],
      ['run.running', ACCEPTED_MS],
      ['run.succeeded', FINISH_MS],
    ],
  );
  t.is(decision.fill.startedAtMs, undefined);
});

for (const status of RUN_STATUSES) {
  test(`the same start again in ${status}: ${status === 'running' || isTerminal(status) ? 'nothing' : 'on to running'} (DESIGN 5.1)`, (t) => {
    const decision = decideEnvelope(facts(status), checked(started(1)), ACCEPTED_MS);
    if (status === 'running' || isTerminal(status)) t.deepEqual(decision, { kind: 'replayed' });
    else t.like(decision, { kind: 'apply', fill: { status: 'running' } });
  });

  test(`a finish in ${status} (DESIGN 5.1)`, (t) => {
    const decision = decideEnvelope(facts(status), checked(finished(1)), ACCEPTED_MS);
    if (status === 'succeeded') t.deepEqual(decision, { kind: 'replayed' });
    else if (isTerminal(status)) t.like(decision, { kind: 'late', fill: {}, event: { type: 'compat.late_callback' } });
    else t.like(decision, { kind: 'apply', fill: { status: 'succeeded', exitCode: 0 } });
  });
}

test('a start after the finish fills what was unknown, and nothing else (0446 Response-loss 4)', (t) => {
  const settled = facts('failed', { startedAtMs: null, logPath: null, pid: null, pidStartTicks: null, hostKnown: false });
  t.deepEqual(decideEnvelope(settled, checked(started(1)), ACCEPTED_MS), {
    kind: 'apply',
    fill: { startedAtMs: START_MS, logPath: 'x_5/1.log', pid: 4242, pidStartTicks: 8_123_456, hostKnown: true },
    events: [],
  });
});

for (const [field, known, envelope] of [
  ['startedAtMs', { startedAtMs: 7 }, started(1)],
  ['logPath', { logPath: 'other.log' }, started(1)],
  ['taskRevision', { taskRevision: 'b'.repeat(64) }, started(1, { task_revision: `sha256:${'a'.repeat(64)}` })],
  ['pidStartTicks', { pidStartTicks: 7 }, started(1)],
  ['pid', { pid: 7, pidStartTicks: null, hostKnown: false }, started(1)],
] as const) {
  test(`a known ${field} is never written over (DESIGN 5.1)`, (t) => {
    t.deepEqual(decideEnvelope(facts('running', known), checked(envelope), ACCEPTED_MS), { kind: 'replayed' });
  });
}

test('of another process nothing is mixed in: its ticks and host would make a false identity (DESIGN 5.1)', (t) => {
  const current = facts('running', { pid: 7, pidStartTicks: null, hostKnown: false });
  t.deepEqual(decideEnvelope(current, checked(finished(1)), ACCEPTED_MS), {
    kind: 'apply',
    fill: { status: 'succeeded', finishedAtMs: FINISH_MS, exitCode: 0 },
    events: [{ type: 'run.succeeded', occurredAtMs: FINISH_MS, dedupeKey: null, payload: null }],
  });
});

test('a contradicting finish is one late event that says what it claimed; the outcome stands (DESIGN 5.1)', (t) => {
  const decision = decideEnvelope(facts('succeeded'), checked(finished(1, { exit_code: 9 })), ACCEPTED_MS);
  t.deepEqual(decision, {
    kind: 'late',
    fill: {},
    event: {
      type: 'compat.late_callback',
      occurredAtMs: FINISH_MS,
      dedupeKey: 'late:failed:9:',
      payload: { claimed: 'failed', exit_code: 9 },
    },
  });
});

for (const [title, current, change] of [
  ['another exit code', facts('failed'), { exit_code: 4 }],
  ['an exit code that was not known', facts('succeeded', { exitCode: null }), { exit_code: 0 }],
  ['success after a stop', facts('cancelled'), { exit_code: 0 }],
  ['success after lost', facts('lost'), { exit_code: 0 }],
  ['a stop after success', facts('succeeded'), { exit_code: 0, stopped: true }],
] as const) {
  test(`late: ${title}; two different claims are two events, the same one is one (DESIGN 5.1)`, (t) => {
    const once = decideEnvelope(current, checked(finished(1, change)), ACCEPTED_MS);
    const again = decideEnvelope(current, checked(finished(1, { ...change, occurred_at_ms: FINISH_MS + 9 })), ACCEPTED_MS);
    const other = decideEnvelope(current, checked(finished(1, { exit_code: 77 })), ACCEPTED_MS);
    t.deepEqual([once.kind, again.kind, other.kind], ['late', 'late', 'late']);
    if (once.kind !== 'late' || again.kind !== 'late' || other.kind !== 'late') return;
    t.is(once.event.dedupeKey, again.event.dedupeKey);
    t.not(once.event.dedupeKey, other.event.dedupeKey);
    t.is(once.fill.status, undefined);
  });
}
