import test, { type ExecutionContext } from 'ava';
import { START_S, executionId, finished, started, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench } from '../fixtures/ledger/workbench.js';
import { RunningReceiver } from '../fixtures/receiver/receiver.js';

const CODE_200 = { code: 200 };

/** What a 2.x shell puts at the end of execution `number` of cron 5, which knows no execution ID. */
function end(number: number, changes: Fields = {}): Fields {
  return { ids: ['5'], status: '1', pid: String(1000 + number), log_path: `x_5/${number}.log`, last_execution_time: START_S, last_running_time: 7, exit_code: 0, ...changes };
}

function begin(number: number, changes: Fields = {}): Fields {
  return { ...end(number), status: '0', last_running_time: 0, exit_code: undefined, ...changes };
}

/** A start of execution `number` as the bridge reports it, with a process and a log of its own. */
function start(number: number, changes: Fields = {}): Fields {
  return started(number, { pid: 1000 + number, ...changes });
}

async function receiver(t: ExecutionContext, environment: Readonly<Record<string, string>> = {}): Promise<RunningReceiver> {
  const bench = new Workbench();
  const running = await RunningReceiver.start(bench, { environment });
  t.teardown(async () => {
    await running.end('SIGKILL');
    bench.remove();
  });
  return running;
}

/** The statuses of the Runs by the number of their execution. */
function statuses(r: RunningReceiver, count: number): unknown[] {
  const runs = r.bench.runs();
  return Array.from({ length: count }, (_, at) => runs.find(({ execution_id }) => execution_id === executionId(at + 1))?.status);
}

function unmatched(r: RunningReceiver, errorClass: string): number {
  return r.bench.counter('shadow_callback_unmatched_total', `error_class="${errorClass}"`);
}

test('ADR-0002 §9.4 rule 1: what one receiver takes in stays in order, and a Run that has ended is no candidate from then on', async (t) => {
  const r = await receiver(t);
  await r.post([start(1), start(2)]);
  const answers = await Promise.all([r.put(end(1)), r.put(end(1)), r.put(end(2))]);
  for (const { json } of answers) t.deepEqual(json, CODE_200);
  t.deepEqual(statuses(r, 2), ['succeeded', 'succeeded']);
  t.is(unmatched(r, 'none'), 1);
});

test('ADR-0002 §9.4 rule 2: candidates are active legacy Runs of that cron in enabled origins', async (t) => {
  const r = await receiver(t, { QL3_SHADOW_ORIGINS: 'scheduled_system' });
  r.bench.feed(started(1, { cron_id: 6, pid: 1001 }), started(2, { origin: 'manual', execution_id: executionId(2, 'manual'), pid: 1001, log_path: 'x_5/1.log' }), start(3), finished(3, { pid: 1003 }));
  t.deepEqual((await r.put(end(1))).json, CODE_200);
  t.deepEqual((await r.put(end(3))).json, CODE_200);
  t.is(unmatched(r, 'none'), 2);
  t.deepEqual(r.bench.runs().map(({ status }) => status).sort(), ['running', 'running', 'succeeded']);
});

test('ADR-0002 §9.4 rule 2: of 70 candidates the newest 64 are compared, and that is counted', async (t) => {
  const r = await receiver(t);
  const at = (number: number): Fields => ({ execution_id: executionId(number, 'scheduled_system', START_S + number), started_at: START_S + number });
  for (let from = 1; from <= 70; from += 35) {
    await r.post(Array.from({ length: 35 }, (_, index) => start(from + index, at(from + index))));
  }
  const status = (number: number): unknown => r.bench.runs().find(({ log_path }) => log_path === `x_5/${number}.log`)?.status;
  await r.put(end(7));
  t.is(status(7), 'succeeded');
  t.is(r.bench.counter('ql_sidecar_correlation_truncated_total'), 1);
  await r.put(end(1));
  t.is(status(1), 'running');
  t.is(unmatched(r, 'several'), 1);
  t.is(r.bench.counter('ql_sidecar_correlation_truncated_total'), 2);
});

for (const [title, callback, expected, errorClass] of [
  ['by log', { log_path: 'x_5/2.log', pid: undefined }, ['running', 'succeeded'], null],
  ['by pid', { log_path: '/dev/null', pid: '1002' }, ['running', 'succeeded'], null],
  ['none of several', { log_path: 'x_5/9.log', pid: '9999' }, ['running', 'running'], 'several'],
  ['nothing given', { log_path: undefined, pid: undefined }, ['running', 'running'], 'several'],
  ['another cron', { ids: ['77'] }, ['running', 'running'], 'none'],
  ['log and pid of different Runs', { log_path: 'x_5/1.log', pid: '1002' }, ['running', 'running'], 'conflict'],
] as const) {
  test(`ADR-0002 §9.4 rule 3: ${title}; the answer is the panel's either way (§11.2)`, async (t) => {
    const r = await receiver(t);
    await r.post([start(1), start(2)]);
    const before = r.bench.runs();
    const answer = await r.put(end(0, callback));
    t.is(answer.status, 200);
    t.deepEqual(answer.json, CODE_200);
    t.deepEqual(statuses(r, 2), [...expected]);
    if (errorClass === null) return;
    t.deepEqual(r.bench.runs(), before);
    t.is(unmatched(r, errorClass), 1);
    t.is(r.bench.counter('shadow_callback_unmatched_total'), 1);
    t.true((await r.request('/metrics')).text.includes(`shadow_callback_unmatched_total{error_class="${errorClass}"} 1\n`));
  });
}

test('ADR-0002 §9.4 rule 3: the only candidate, which knows neither log nor pid, is taken, and learns both', async (t) => {
  const r = await receiver(t);
  await r.post(started(1, { pid: undefined, pid_start_ticks: undefined, log_path: undefined }));
  await r.put(begin(1));
  t.like(r.bench.runs()[0], { status: 'running', pid: 1001, log_path: 'x_5/1.log' });
  await r.put(end(1, { exit_code: 4 }));
  t.like(r.bench.runs()[0], { status: 'failed', exit_code: 4, finished_at_ms: (START_S + 7) * 1000 });
  const [run] = r.bench.runs();
  t.is(run === undefined ? undefined : r.bench.events(run).at(-1)?.actor, 'receiver');
});

test('ADR-0002 §9.4 rule 4: no log path of a callback reaches a log, a metric or an event', async (t) => {
  const r = await receiver(t);
  await r.post([start(1), start(2)]);
  await r.put(end(9, { log_path: 'SECRET/path.log', pid: '9' }));
  await r.put(end(1, { log_path: 'x_5/1.log', pid: '1002' }));
  t.false((await r.request('/metrics')).text.includes('.log'));
  t.is(r.stderr, '');
  t.is(r.stdout.split('\n').length, 2);
  for (const run of r.bench.runs()) t.false(JSON.stringify(r.bench.events(run)).includes('SECRET'));
});

test('ADR-0002 §9.4 rule 5: the end of one stopped instance ends that one alone, by its strong fields', async (t) => {
  const r = await receiver(t);
  await r.post([start(1), start(2), start(3)]);
  await r.put(end(2, { exit_code: 143 }));
  t.deepEqual(statuses(r, 3), ['running', 'failed', 'running']);
  t.is(r.bench.runs().find(({ status }) => status === 'failed')?.exit_code, 143);
});

test('ADR-0002 §9.4 rule 6: an end behind a cancellation is no candidate; by ID it is kept as one late event (§13.1)', async (t) => {
  const r = await receiver(t);
  await r.post([start(1), finished(1, { pid: 1001, stopped: true, exit_code: 143, signal: 'TERM' })]);
  await r.put(end(1));
  t.is(unmatched(r, 'none'), 1);
  for (let at = 0; at < 2; at += 1) t.deepEqual((await r.put(end(1, { execution_id: executionId(1) }))).json, CODE_200);
  const [run] = r.bench.runs();
  t.is(run?.status, 'cancelled');
  t.deepEqual(run === undefined ? [] : r.bench.events(run).slice(-2).map(({ type }) => type), ['run.cancelled', 'compat.late_callback']);
});

test('ADR-0002 §9.4 rule 7: an end before its start fills the way; repeats and a late success add no second end', async (t) => {
  const r = await receiver(t);
  const id = { execution_id: executionId(1) };
  await r.put(end(1, { ...id, exit_code: 2 }));
  await r.put(begin(1, id));
  await r.put(end(1, { ...id, exit_code: 2 }));
  const [run, ...others] = r.bench.runs();
  t.is(others.length, 0);
  t.like(run, { status: 'failed', exit_code: 2 });
  const types = run === undefined ? [] : r.bench.events(run).map(({ type }) => type);
  t.deepEqual(types, ['run.created', 'run.queued', 'run.dispatching', 'run.running', 'run.failed']);
  await r.put(end(1, { ...id, exit_code: 0 }));
  t.is(r.bench.runs()[0]?.status, 'failed');
});

test('a callback without an ID never makes a Run, neither a start nor an end (ADR-0446)', async (t) => {
  const r = await receiver(t);
  await r.put(begin(1));
  await r.put(end(1));
  t.deepEqual(r.bench.runs(), []);
  t.is(unmatched(r, 'none'), 2);
});

test('where every origin is off nothing is compared and nothing counted (ADR-0002 §7.1)', async (t) => {
  const r = await receiver(t, { QL3_SHADOW_ORIGINS: '' });
  r.bench.feed(start(1));
  t.deepEqual((await r.put(end(1))).json, CODE_200);
  t.deepEqual(statuses(r, 1), ['running']);
  t.is(r.bench.counter('shadow_callback_unmatched_total'), 0);
});

test('a body with several crons: each is correlated for itself (QINGLONG-2X)', async (t) => {
  const r = await receiver(t);
  await r.post([start(1), start(2, { cron_id: 6 }), start(3, { cron_id: 7 })]);
  t.deepEqual((await r.put(end(1, { ids: ['5', '6', '99'], log_path: undefined, pid: undefined }))).json, CODE_200);
  t.deepEqual(statuses(r, 3), ['succeeded', 'succeeded', 'running']);
  t.is(unmatched(r, 'none'), 1);
});

for (const [title, body, field] of [
  ['no status', { ...end(1), status: undefined }, 'status'],
  ['a numeric pid', { ...end(1), pid: 1001 }, 'pid'],
  ['an empty pid', { ...end(1), pid: '' }, 'pid'],
  ['an empty log path', { ...end(1), log_path: '' }, 'log_path'],
  ['no ids', { ...end(1), ids: undefined }, 'ids'],
  ['an unknown key', { ...end(1), foo: 1 }, 'foo'],
  ['an execution ID that is not strict', { ...end(1), execution_id: 'legacy-system:0:x' }, 'execution_id'],
] as const) {
  test(`a wrong body is told in the panel's words, too: ${title}`, async (t) => {
    const r = await receiver(t);
    await r.post(start(1));
    const answer = await r.put(body);
    t.is(answer.status, 400);
    t.like(answer.json, { code: 400, field });
    t.true((answer.json as { message: string }).message.startsWith(`${field} `));
    t.deepEqual(statuses(r, 1), ['running']);
  });
}
