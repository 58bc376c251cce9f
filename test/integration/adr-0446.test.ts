import test, { type ExecutionContext } from 'ava';
import { readSettings } from '../../sidecar/domain/settings.js';
import { emptyReport } from '../../sidecar/operations/ingest.js';
import { START_S, executionId, finished, line, started, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench, dump, meaning } from '../fixtures/ledger/workbench.js';

const A = `sha256:${'a'.repeat(64)}`;
const B = `sha256:${'b'.repeat(64)}`;

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

/** The rows after these envelopes, in a ledger of their own. */
function rowsAfter(t: ExecutionContext, ...envelopes: readonly Fields[]): ReturnType<typeof meaning> {
  const b = bench(t);
  b.feed(...envelopes);
  return meaning(b.connection);
}

// Decision 5: the shape of a shadow Run.

test('0446 decision 5: owner legacy, origin and task of the envelope, accepted instant of the execution ID', (t) => {
  const b = bench(t);
  b.feed(started(1, { task_revision: A }));
  const [run] = b.runs();
  t.like(run, {
    owner: 'legacy',
    origin: 'scheduled_system',
    task_id: 'legacy-cron:5',
    cron_id: 5,
    execution_id: executionId(1),
    accepted_at_ms: START_S * 1000,
    started_at_ms: START_S * 1000 + 123,
    status: 'running',
    task_revision: A,
    scheduled_for_ms: null,
  });
  t.is(b.connection.prepare('SELECT project_id FROM projects JOIN runs USING (project_key)').pluck().get(), 'default');
  t.is(b.connection.prepare('SELECT count(*) FROM run_attempts WHERE number = 1').pluck().get(), 1);
});

test('0446 decision 6: two ledgers give one execution the same Run and Attempt IDs', (t) => {
  const [one, other] = [bench(t), bench(t)];
  one.feed(started(1));
  other.feed(started(2), finished(1));
  const ids = 'SELECT hex(run_id), hex(attempt_id) FROM run_attempts WHERE run_id IN (SELECT run_id FROM runs WHERE idempotency_key = ?)';
  const key = one.connection.prepare('SELECT idempotency_key FROM runs').pluck().get();
  t.deepEqual(one.connection.prepare(ids).raw().get(key), other.connection.prepare(ids).raw().get(key));
  t.not(one.connection.prepare(ids).raw().get(key), undefined);
});

// Verification: SQLite integration.

test('0446 verification: running -> finish is one Run, one Attempt, five Events', (t) => {
  const b = bench(t);
  t.deepEqual(b.feed(started(1), finished(1)), [{ ...emptyReport(), started: 1 }, { ...emptyReport(), finished: 1 }]);
  const [run] = b.runs();
  t.like(run, { status: 'succeeded', exit_code: 0, duration_ms: 12_222, pid: 4242, host: 'panel', log_path: 'x_5/1.log' });
  t.deepEqual(
    b.events(run as never).map(({ type, actor, attempt }) => [type, actor, attempt]),
    ['run.created', 'run.queued', 'run.dispatching', 'run.running', 'run.succeeded'].map((type) => [type, 'bridge', 1]),
  );
  const attempt = b.connection.prepare('SELECT status, pid, pid_start_ticks, started_at_ms, finished_at_ms, exit_code FROM run_attempts').get();
  t.deepEqual(attempt, { status: 3, pid: 4242, pid_start_ticks: 8_123_456, started_at_ms: START_S * 1000 + 123, finished_at_ms: START_S * 1000 + 12_345, exit_code: 0 });
});

// The six response-loss rules, in the order of the ADR.

test('0446 Response-loss 1: the start was kept and its answer lost: the finish uses the same Run', (t) => {
  const b = bench(t);
  b.feed(started(1));
  const [before] = b.runs();
  b.feed(started(1), finished(1, { exit_code: 3 }));
  const runs = b.runs();
  t.is(runs.length, 1);
  t.is(runs[0]?.run_id, before?.run_id);
  t.like(runs[0], { status: 'failed', exit_code: 3 });
});

test('0446 Response-loss 2: the start never came: the finish makes the same Run and ends it at once', (t) => {
  const b = bench(t);
  b.feed(finished(1));
  const [run] = b.runs();
  t.like(run, { status: 'succeeded', exit_code: 0, started_at_ms: null, accepted_at_ms: START_S * 1000, duration_ms: 12_345 });
  const other = bench(t);
  other.feed(started(1));
  t.is(other.runs()[0]?.run_id, run?.run_id);
  t.deepEqual(
    b.events(run as never).map(({ type }) => type),
    ['run.created', 'run.queued', 'run.dispatching', 'run.running', 'run.succeeded'],
  );
});

test('0446 Response-loss 3: a finish again, with the start again, adds no row, no Event and no count', (t) => {
  const b = bench(t);
  b.feed(started(1), finished(1));
  const before = dump(b.paths.ledger);
  t.deepEqual(b.feed(finished(1), started(1), finished(1)), Array(3).fill({ ...emptyReport(), replayed: 1 }));
  t.deepEqual(dump(b.paths.ledger), before);
});

test('0446 Response-loss 4: a start after its finish leaves the end as it is, and the rows of the right order', (t) => {
  t.deepEqual(rowsAfter(t, finished(1, { exit_code: 3 }), started(1)), rowsAfter(t, started(1), finished(1, { exit_code: 3 })));
});

for (const [title, first, second, drift] of [
  ['another cron at the finish', started(1), finished(1, { cron_id: 6 }), 'task_drift'],
  ['another revision at the finish', started(1, { task_revision: A }), finished(1, { task_revision: B }), 'revision_drift'],
  ['another cron at a second start', started(1), started(1, { cron_id: 6 }), 'task_drift'],
  ['another revision after the end', finished(1, { task_revision: A }), started(1, { task_revision: B }), 'revision_drift'],
] as const) {
  test(`0446 Response-loss 5: ${title} is refused whole and counted as ${drift}`, (t) => {
    const b = bench(t);
    b.feed(first);
    const before = { ...dump(b.paths.ledger), counters: [] };
    t.deepEqual(b.feed(second), [{ ...emptyReport(), refused: 1 }]);
    t.deepEqual({ ...dump(b.paths.ledger), counters: [] }, before);
    const labels = `error_class="${drift}",origin="scheduled_system",profile="standalone"`;
    t.is(b.counter('shadow_run_create_failed_total', labels), 1);
    t.deepEqual(b.spooled(), []);
  });
}

test('0446 decision 6: a finish that claims no revision is no drift, one that is the first to claim it fills it in', (t) => {
  const b = bench(t);
  b.feed(started(1, { task_revision: A }), finished(1), started(2), finished(2, { task_revision: A }));
  t.deepEqual(b.runs().map(({ status, task_revision }) => [status, task_revision]), [['succeeded', A], ['succeeded', A]]);
});

for (const [title, change] of [
  ['no ID', { execution_id: undefined }],
  ['an ID in capitals', { execution_id: executionId(1).toUpperCase() }],
  ['an ID that is no UUIDv4', { execution_id: `legacy-system:${START_S}:00000000-0000-1000-8000-000000000000` }],
  ['no origin', { origin: undefined }],
  ['an origin that its ID does not carry', { origin: 'manual' }],
] as const) {
  test(`0446 Response-loss 6: ${title}: no scheduled_system Run, nothing but a file put aside`, (t) => {
    const b = bench(t);
    const before = { ...dump(b.paths.ledger), counters: [] };
    b.put(line(started(1, change)));
    t.deepEqual(b.ingest(), { ...emptyReport(), quarantined: 1 });
    t.deepEqual({ ...dump(b.paths.ledger), counters: [] }, before);
  });
}

// Decision 7.

test('0446 decision 7: off by default, and nothing but the word itself switches it on', (t) => {
  t.is(readSettings(null, {}).shadowOrigins.size, 0);
  t.true(readSettings(null, { QL3_SHADOW_ORIGINS: 'scheduled_system' }).shadowOrigins.has('scheduled_system'));
  for (const value of ['1', 'on', 'true', 'all', 'system', 'SCHEDULED_SYSTEM']) {
    t.is([...readSettings(null, { QL3_SHADOW_ORIGINS: value }).shadowOrigins].includes('scheduled_system'), false, value);
  }
});

test('0446 decision 7: switched off, new executions leave no trace; what was accepted still ends', (t) => {
  const b = bench(t);
  b.feed(started(1));
  b.put(finished(1));
  b.put(started(2));
  t.deepEqual(b.ingest({ shadowOrigins: new Set() }), { ...emptyReport(), finished: 1, off: 1 });
  t.deepEqual(b.runs().map(({ status }) => status), ['succeeded']);
});

test('0446 decision 1: the same second and cron under two origins are two Runs', (t) => {
  const b = bench(t);
  b.feed(started(1), started(1, { execution_id: executionId(1, 'manual'), origin: 'manual' }));
  t.deepEqual(b.runs().map(({ origin }) => origin).sort(), ['manual', 'scheduled_system']);
});
