import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { START_S, executionId, finished, started, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench, meaning } from '../fixtures/ledger/workbench.js';
import { RunningReceiver } from '../fixtures/receiver/receiver.js';

async function receiver(t: ExecutionContext, options: Parameters<typeof RunningReceiver.start>[1] = {}): Promise<RunningReceiver> {
  const bench = new Workbench();
  const running = await RunningReceiver.start(bench, options);
  t.teardown(async () => {
    await running.end('SIGKILL');
    bench.remove();
  });
  return running;
}

test('an envelope: its outcome, and the Run is there when the answer is (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  const answer = await r.post(started(1));
  t.is(answer.status, 200);
  t.deepEqual(answer.json, { outcomes: [{ outcome: 'started' }] });
  t.like(r.bench.runs()[0], { execution_id: executionId(1), status: 'running' });
  t.deepEqual((await r.post(started(1))).json, { outcomes: [{ outcome: 'replayed' }] });
  t.deepEqual((await r.post(finished(1))).json, { outcomes: [{ outcome: 'finished' }] });
});

test('a list: one outcome each, in order, whatever they are (DESIGN 11)', async (t) => {
  const r = await receiver(t, { environment: { QL3_SHADOW_ORIGINS: 'scheduled_system' } });
  const answer = await r.post([
    started(1),
    started(1),
    finished(1),
    finished(1, { exit_code: 3 }),
    started(1, { cron_id: 9 }),
    started(2, { origin: 'manual', execution_id: executionId(2, 'manual') }),
  ]);
  t.deepEqual(answer.json, {
    outcomes: [
      { outcome: 'started' },
      { outcome: 'replayed' },
      { outcome: 'finished' },
      { outcome: 'late' },
      { outcome: 'refused', error_class: 'task_drift' },
      { outcome: 'off' },
    ],
  });
});

test('64 envelopes are taken, 65 and none are refused (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  // Short ones: 64 have to fit into a body of 16 KiB.
  const short = (number: number): Fields => ({ v: 1, execution_id: executionId(number), seq: 1, event: 'started', origin: 'scheduled_system', cron_id: 5, occurred_at_ms: START_S * 1000 });
  const many = Array.from({ length: 65 }, (_, at) => short(at));
  const refused = await r.post(many);
  t.is(refused.status, 400);
  t.deepEqual(refused.json, { error: 'must hold 1 to 64 envelopes', field: 'body' });
  t.is((await r.post([])).status, 400);
  t.deepEqual(r.bench.runs(), []);
  t.is((await r.post(many.slice(1))).status, 200);
  t.is(r.bench.runs().length, 64);
});

for (const [title, wrong, field] of [
  ['an unknown field', started(2, { command: 'rm -rf /' }), 'command'],
  ['no ID', started(2, { execution_id: undefined }), 'execution_id'],
  ['a wrong time', started(2, { occurred_at_ms: 5 }), 'occurred_at_ms'],
  ['a number', 5, 'envelope'],
  ['a list in the list', [started(2)], 'envelope'],
] as const) {
  test(`one wrong envelope in a list: its index and field are named, nothing of the list is applied: ${title} (DESIGN 11)`, async (t) => {
    const r = await receiver(t);
    const answer = await r.post([started(1), wrong, started(3)]);
    t.is(answer.status, 400);
    t.like(answer.json, { index: 1, field });
    t.deepEqual(r.bench.runs(), []);
  });
}

test('an envelope that the spool would refuse for its length is refused here, too (DESIGN 4.4)', async (t) => {
  const r = await receiver(t);
  const long = started(1, { log_path: '備'.repeat(1024), host: '份'.repeat(253), name: '名'.repeat(128) });
  t.true(Buffer.byteLength(JSON.stringify(long)) >= 4096);
  const answer = await r.post(long);
  t.is(answer.status, 400);
  t.deepEqual(answer.json, { error: 'must be at most 4096 bytes in one line', field: 'envelope' });
  t.is((await r.post([started(2), long])).status, 400);
  t.is((await r.request('/v1/callbacks', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(started(3), null, 400) })).status, 200);
  t.is(r.bench.runs().length, 1);
});

const KINDS = ['start', 'finish', 'other', 'stopped', 'foreign'] as const;

function envelopeOf(execution: number, kind: (typeof KINDS)[number]): Fields {
  switch (kind) {
    case 'start':
      return started(execution);
    case 'finish':
      return finished(execution, { log_path: undefined });
    case 'other':
      return finished(execution, { exit_code: 3, occurred_at_ms: START_S * 1000 + 20_000 });
    case 'stopped':
      return finished(execution, { stopped: true, exit_code: 143, signal: 'TERM', occurred_at_ms: START_S * 1000 + 30_000 });
    case 'foreign':
      return finished(execution, { cron_id: 99 });
  }
}

test('any sequence by HTTP ends in the rows that the spool ends in, however it is cut into lists (0446 Response-loss)', async (t) => {
  const r = await receiver(t);
  let offset = 0;
  const arrival = fc.record({ execution: fc.nat({ max: 2 }), kind: fc.constantFrom(...KINDS) });
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 12 }), async (arrivals, size) => {
      offset += 10;
      const envelopes = arrivals.map(({ execution, kind }) => envelopeOf(offset + execution, kind));
      const bySpool = new Workbench();
      try {
        for (const envelope of envelopes) {
          bySpool.put(`${JSON.stringify(envelope)}\n`);
          bySpool.ingest();
        }
        for (let at = 0; at < envelopes.length; at += size) t.is((await r.post(envelopes.slice(at, at + size))).status, 200);
        // And all of it again, the other way round: nothing is left to change.
        const rows = ofExecutions(r.bench, offset);
        await r.post([...envelopes].reverse());
        t.deepEqual(ofExecutions(r.bench, offset), rows);
        t.deepEqual(rows, ofExecutions(bySpool, offset));
      } finally {
        bySpool.remove();
      }
    }),
    { seed: 11, numRuns: 60 },
  );
});

/** What a ledger says of the executions from `offset` on. */
function ofExecutions(bench: Workbench, offset: number): unknown {
  const ids = [0, 1, 2].map((number) => executionId(offset + number));
  const { run_attempts: attempts, run_events: events, runs } = meaning(bench.connection);
  const keys = bench.runs().filter(({ execution_id }) => ids.includes(execution_id ?? '')).map(({ run_id }) => run_id.replaceAll('-', ''));
  return [runs, attempts, events].map((rows) => (rows ?? []).filter((row) => keys.some((key) => row.startsWith(`["${key}"`))));
}

test('half by the spool and half by HTTP, and each repeated by the other way: the same rows (0446 Response-loss)', async (t) => {
  const r = await receiver(t);
  const expected = new Workbench();
  t.teardown(() => expected.remove());
  expected.feed(started(1), finished(1), started(2), finished(2, { exit_code: 9 }));
  r.bench.feed(started(1));
  await r.post(finished(1));
  r.bench.feed(finished(1), started(1));
  await r.post([finished(2, { exit_code: 9 })]);
  r.bench.feed(started(2));
  await r.post([started(1), finished(1), started(2), finished(2, { exit_code: 9 })]);
  const [runs, wanted] = [r.bench.runs(), expected.runs()];
  t.deepEqual(runs.map((run) => ({ ...run, events: r.bench.events(run).map(({ type }) => type) })), wanted.map((run) => ({ ...run, events: expected.events(run).map(({ type }) => type) })));
});

test('a 2.x body with an execution ID, its repeat an hour later, and the envelope that says the same: one set of rows (0446 decision 3)', async (t) => {
  const r = await receiver(t);
  const body = { ids: ['5'], pid: '4242', log_path: 'x_5/1.log', last_execution_time: START_S, execution_id: executionId(1) };
  const envelope = { boot_id: undefined, host: undefined, init_start_ticks: undefined, pid_start_ticks: undefined };
  const end = { ...body, status: '1', last_running_time: 4, exit_code: 3 };
  t.deepEqual((await r.put({ ...body, status: '0', last_running_time: 0 })).json, { code: 200 });
  t.deepEqual((await r.put(end)).json, { code: 200 });
  const rows = meaning(r.bench.connection);
  await r.put(end);
  await r.put({ ...body, status: '0', last_running_time: 0 });
  t.deepEqual(meaning(r.bench.connection), rows);
  const bySpool = new Workbench();
  t.teardown(() => bySpool.remove());
  bySpool.feed(started(1, { ...envelope, occurred_at_ms: START_S * 1000 }), finished(1, { ...envelope, exit_code: 3, occurred_at_ms: (START_S + 4) * 1000 }));
  t.deepEqual(meaning(bySpool.connection), rows);
});

test('a row that breaks a rule of the schema: that one is refused, and none that shares its commit is kept out', async (t) => {
  const r = await receiver(t);
  r.bench.connection.exec("CREATE TRIGGER no_cron_13 BEFORE INSERT ON runs WHEN NEW.cron_id = 13 BEGIN SELECT RAISE(ABORT, 'rule'); END");
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => r.post(started(at, { cron_id: at % 10 === 3 ? 13 : 5 }))),
  );
  answers.forEach(({ status, json }, at) => {
    t.is(status, at % 10 === 3 ? 400 : 200);
    if (at % 10 === 3) t.deepEqual(json, { error: 'breaks a rule of the ledger', field: 'envelope' });
  });
  t.is(r.bench.runs().length, 36);
  const list = await r.post([started(100), started(101, { cron_id: 13 }), started(102)]);
  t.is(list.status, 400);
  t.deepEqual(list.json, { error: 'breaks a rule of the ledger', field: 'envelope', index: 1 });
  t.is(r.bench.runs().length, 36);
  t.is(r.stderr, '');
});
