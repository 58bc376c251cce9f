import test, { type ExecutionContext } from 'ava';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { emptyReport } from '../../sidecar/operations/ingest.js';
import { PROFILES } from '../../sidecar/domain/profile.js';
import type { RunView } from '../../sidecar/ledger/run-views.js';
import { MARKED, Panel } from '../fixtures/panel/panel.js';
import { runOn } from '../fixtures/ledger/command.js';
import { executionId, finished, started, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench, dump } from '../fixtures/ledger/workbench.js';

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

const manual = (number: number, changes: Fields = {}): Fields => ({ execution_id: executionId(number, 'manual'), origin: 'manual', ...changes });

test('ADR-0002 §23.2: the shadow cannot write: the task runs once, with its own output, code and panel calls', async (t) => {
  const run = async (spoil: boolean): Promise<{ outcome: unknown; calls: unknown; envelopes: number }> => {
    const panel = await Panel.start();
    t.teardown(() => panel.stop());
    if (spoil) await panel.run(`rm -rf "${panel.spool}" && echo not-a-directory >"${panel.spool}"`, {});
    const outcome = await panel.run('task exit3.sh', MARKED);
    const calls = panel.requests().map(({ path: where, body }) => [where, body.status, body.exit_code]);
    const envelopes = existsSync(panel.spool) && !spoil ? readdirSync(panel.spool).length : 0;
    return { outcome: [outcome.code, outcome.stdout, panel.log()], calls, envelopes };
  };
  const [whole, spoilt] = [await run(false), await run(true)];
  t.true(whole.envelopes > 0);
  t.deepEqual(spoilt.outcome, whole.outcome);
  t.deepEqual(spoilt.calls, whole.calls);
});

test('ADR-0002 §23.2: a ledger that refuses to be written leaves the envelopes for later, and they make one Run', (t) => {
  const b = bench(t);
  b.put(started(1));
  b.put(finished(1));
  b.connection.pragma('query_only = ON');
  t.throws(() => b.ingest(), { any: true });
  t.is(b.spooled().length, 2);
  b.connection.pragma('query_only = OFF');
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 1, finished: 1 });
  t.is(b.runs().length, 1);
});

test('ADR-0002 §23.3: a batch of manual executions is one Run for each cron, each with its own life', (t) => {
  const b = bench(t);
  for (const cron of [1, 2, 3]) b.put(started(cron, manual(cron, { cron_id: cron })));
  b.ingest();
  b.feed(finished(2, manual(2, { cron_id: 2, exit_code: 9 })));
  const runs = b.runs().sort((one, other) => (one.cron_id ?? 0) - (other.cron_id ?? 0));
  t.deepEqual(
    runs.map(({ cron_id, status, origin, task_id }) => [cron_id, status, origin, task_id]),
    [
      [1, 'running', 'manual', 'legacy-cron:1'],
      [2, 'failed', 'manual', 'legacy-cron:2'],
      [3, 'running', 'manual', 'legacy-cron:3'],
    ],
  );
  t.is(new Set(runs.map(({ run_id }) => run_id)).size, 3);
});

test('ADR-0002 §23.4: two overlapping runs of one cron keep pid, log, exit code and events apart', (t) => {
  const own = (number: number): Fields => ({ pid: 1000 + number, pid_start_ticks: 10 * number, log_path: `x_5/${number}.log` });
  const b = bench(t);
  b.feed(started(1, own(1)), started(2, own(2)), finished(1, { ...own(1), exit_code: 1 }), finished(2, own(2)));
  const byPid = new Map(b.runs().map((run) => [run.pid, run]));
  t.like(byPid.get(1001), { status: 'failed', exit_code: 1, log_path: 'x_5/1.log', pid_start_ticks: 10 });
  t.like(byPid.get(1002), { status: 'succeeded', exit_code: 0, log_path: 'x_5/2.log', pid_start_ticks: 20 });
  for (const run of byPid.values()) t.is(b.events(run).length, 5);
  t.is(b.connection.prepare('SELECT count(*) FROM run_attempts').pluck().get(), 2);
});

test('ADR-0002 §23.4: even with the same pid, log and second they are two Runs', (t) => {
  const b = bench(t);
  const same = { log_path: '/dev/null' };
  b.feed(started(1, same), started(2, same), finished(2, { ...same, exit_code: 4 }));
  t.deepEqual(b.runs().map(({ status }) => status).sort(), ['failed', 'running']);
});

test('ADR-0002 §23.5: running and finished again make no second Attempt and no second Event', (t) => {
  const b = bench(t);
  b.feed(started(1));
  b.feed(started(1), started(1));
  const running = dump(b.paths.ledger);
  t.is(running.run_events?.length, 4);
  b.feed(finished(1));
  const settled = dump(b.paths.ledger);
  b.feed(finished(1), started(1), finished(1));
  t.deepEqual(dump(b.paths.ledger), settled);
  t.is(settled.run_attempts?.length, 1);
  t.is(settled.run_events?.length, 5);
});

test('ADR-0002 §23.6: finished before running: the end stands, the late start only tells when it began', (t) => {
  const b = bench(t);
  b.feed(finished(1, { exit_code: 3 }));
  const [early] = b.runs() as [RunView];
  b.feed(started(1));
  const [late] = b.runs() as [RunView];
  t.deepEqual({ ...late, started_at_ms: null, duration_ms: null }, { ...early, duration_ms: null });
  t.like(late, { status: 'failed', exit_code: 3, started_at_ms: early.accepted_at_ms + 123, duration_ms: 12_222 });
  t.deepEqual(b.events(late).map(({ type }) => type), ['run.created', 'run.queued', 'run.dispatching', 'run.running', 'run.failed']);
});

for (const first of ['stopped', 'succeeded'] as const) {
  test(`ADR-0002 §23.6 and DESIGN 5.1: ${first} first stands, the contradiction is one late event`, (t) => {
    const b = bench(t);
    const stop = finished(1, { exit_code: 143, stopped: true, signal: 'TERM' });
    const success = finished(1);
    b.feed(started(1), ...(first === 'stopped' ? [stop, success, success] : [success, stop, stop]));
    const [run] = b.runs() as [RunView];
    t.is(run.status, first === 'stopped' ? 'cancelled' : 'succeeded');
    t.deepEqual(b.events(run).slice(4).map(({ type }) => type), [`run.${run.status}`, 'compat.late_callback']);
    t.is(b.counter('shadow_terminal_mismatch_total'), 1);
  });
}

test('ADR-0002 §23.10: the cron is changed in mid-run and later: the recorded revision stays', (t) => {
  const [old, next] = [`sha256:${'a'.repeat(64)}`, `sha256:${'b'.repeat(64)}`];
  const b = bench(t);
  b.feed(started(1, { task_revision: old }), started(2, { task_revision: next }), finished(1));
  const of = (number: number): RunView | undefined => b.runs().find(({ execution_id }) => execution_id === executionId(number));
  t.like(of(1), { status: 'succeeded', task_revision: old });
  t.like(of(2), { status: 'running', task_revision: next });
  const before = of(1);
  b.feed(finished(2, { task_revision: next }));
  t.deepEqual(of(1), before);
});

test('ADR-0002 §23.10: the cron is deleted: its Runs stay and can be read', (t) => {
  const b = bench(t);
  b.feed(started(1), finished(1));
  // Nothing of the panel stands behind a row: there is no foreign key that could take history away.
  const cascades = b.connection.prepare("SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%CASCADE%'").pluck().get();
  t.is(cascades, 0);
  t.throws(() => b.connection.exec('DELETE FROM tasks'), { any: true });
  const shown = runOn(b, ['show', executionId(1), '--json']);
  t.is(shown.code, 0);
  t.like(JSON.parse(shown.stdout), { task_id: 'legacy-cron:5', status: 'succeeded' });
});

test('ADR-0002 §23.12: on edge one tick takes 256 envelopes and looks at 64 processes, whatever waits', (t) => {
  const b = bench(t);
  for (let number = 0; number < 600; number += 1) b.put(started(number, { pid: 4_194_304, host: 'elsewhere' }));
  const tick = (): Record<string, number> => JSON.parse(runOn(b, ['tick', '--json'], { environment: { QL3_PROFILE: 'edge' } }).stdout) as Record<string, number>;
  t.like(tick(), { started: PROFILES.edge.ingestEnvelopes, remaining: 344, checked: PROFILES.edge.livenessChecks });
  t.like(tick(), { started: 256, remaining: 88, checked: 64 });
  t.like(tick(), { started: 88, remaining: 0, checked: 64 });
  t.is(b.spooled().length, 0);
});

test('ADR-0002 §23.13: the panel gets the same calls, byte for byte but for times, pids and log names, with and without the bridge', async (t) => {
  const calls = async (bridge: 'hook' | 'none'): Promise<unknown[]> => {
    const panel = await Panel.start({ bridge });
    t.teardown(() => panel.stop());
    for (const task of ['ok.js', 'exit3.sh', 'fail.js']) await panel.run(`task ${task}`, MARKED);
    if (bridge === 'hook') {
      t.true(panel.envelopes().length > 0);
      const ledger = runOn(panel, ['migrate']);
      t.is(ledger.code, 0);
      const taken = runOn(panel, ['ingest']);
      t.regex(taken.stdout, /^ingest: 3 started, 3 finished\n$/);
    }
    return panel.requests().map(({ path: where, body }) => [
      where,
      Object.fromEntries(Object.entries(body).map(([key, value]) => [key, /time|pid|log_path|duration/.test(key) ? typeof value : value])),
    ]);
  };
  t.deepEqual(await calls('hook'), await calls('none'));
});

test('ADR-0002 §23.13: the ledger and its commands never open the panel database', (t) => {
  const artifact = path.join(process.cwd(), 'dist/ql-sidecar/lib');
  for (const name of ['ql-sidecar.cjs', 'commands.cjs']) {
    t.false(readFileSync(path.join(artifact, name), 'utf8').includes('database.sqlite'), name);
  }
});
