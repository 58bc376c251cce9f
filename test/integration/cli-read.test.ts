import test, { type ExecutionContext } from 'ava';
import { execFileSync } from 'node:child_process';
import { COMMAND, run, runOn, type Outcome } from '../fixtures/ledger/command.js';
import { START_S, executionId, finished, started, type Fields } from '../fixtures/ledger/envelope.js';
import { readExposition } from '../fixtures/ledger/prometheus.js';
import { Workbench } from '../fixtures/ledger/workbench.js';

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

/** An execution that begins `minute` minutes after the first, on its own cron. */
function at(number: number, minute: number, changes: Fields = {}): Fields {
  const startS = START_S + 60 * minute;
  const kind = changes.origin === 'manual' ? 'manual' : changes.origin === 'script' ? 'script' : 'scheduled_system';
  return { execution_id: executionId(number, kind, startS), started_at: startS, occurred_at_ms: startS * 1000 + 500, ...changes };
}

/** Six Runs of three origins and five states, a minute apart. */
function filled(t: ExecutionContext): Workbench {
  const b = bench(t);
  b.feed(
    started(1, at(1, 0)),
    finished(1, at(1, 0, { occurred_at_ms: (START_S + 2) * 1000 })),
    started(2, at(2, 1, { cron_id: 6 })),
    finished(2, at(2, 1, { cron_id: 6, exit_code: 3 })),
    started(3, at(3, 2, { origin: 'manual' })),
    finished(4, at(4, 3, { origin: 'script', cron_id: undefined, name: '备份数据库', exit_code: undefined })),
    finished(5, at(5, 4, { cron_id: 6, stopped: true, signal: 'TERM', exit_code: 143 })),
    started(6, at(6, 5)),
  );
  return b;
}

interface Json {
  readonly [field: string]: unknown;
}

const lines = (outcome: Outcome): Json[] => outcome.stdout.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Json);
const numbers = (outcome: Outcome): number[] => lines(outcome).map(({ accepted_at_ms }) => (Number(accepted_at_ms) / 1000 - START_S) / 60);

for (const [words, expected] of [
  [[], [5, 4, 3, 2, 1, 0]],
  [['--limit', '2'], [5, 4]],
  [['--cron', '6'], [4, 1]],
  [['--cron', '999'], []],
  [['--origin', 'manual'], [2]],
  [['--origin', 'script'], [3]],
  [['--origin', 'grpc'], []],
  [['--status', 'succeeded'], [3, 0]],
  [['--status', 'failed'], [1]],
  [['--status', 'cancelled'], [4]],
  [['--status', 'running'], [5, 2]],
  [['--status', 'active'], [5, 2]],
  [['--status', 'lost'], []],
  [['--since', String(START_S * 1000 + 180_000)], [5, 4, 3]],
  [['--since', String(START_S * 1000 + 180_001)], [5, 4]],
  [['--since', '2026-12-01 03:04'], [5, 4]],
  [['--since', '2026-12-01T11:05+08:00'], [5]],
  [['--cron', '6', '--status', 'failed', '--since', '2026-12-01'], [1]],
  [['--origin', 'scheduled_system', '--status', 'active', '--cron', '5', '--limit', '1'], [5]],
] as const) {
  test(`runs ${words.join(' ')}: newest first (DESIGN 10)`, (t) => {
    const outcome = runOn(filled(t), ['runs', '--json', ...words]);
    t.is(outcome.code, 0);
    t.is(outcome.stderr, '');
    t.deepEqual(numbers(outcome), [...expected]);
  });
}

const PROMISED = ['run_id', 'task_id', 'cron_id', 'origin', 'owner', 'status', 'exit_code', 'reason', 'execution_id', 'accepted_at_ms', 'started_at_ms', 'finished_at_ms', 'duration_ms', 'pid', 'log_path', 'scheduled_for_ms'];

test('runs --json and show --json have every promised field, by its name, in every state (issue: Reading it)', (t) => {
  const b = filled(t);
  const runs = lines(runOn(b, ['runs', '--json']));
  t.is(runs.length, 6);
  for (const one of runs) {
    for (const field of PROMISED) t.true(Object.hasOwn(one, field), `${field} in ${JSON.stringify(one)}`);
    for (const field of Object.keys(one)) t.regex(field, /^[a-z_]+$/);
    const shown = JSON.parse(runOn(b, ['show', String(one.run_id), '--json']).stdout) as Json;
    const { events, ...fields } = shown;
    t.deepEqual(fields, one);
    t.true(Array.isArray(events) && events.length >= 4);
  }
  t.like(runs[4], { cron_id: 6, status: 'failed', exit_code: 3, task_id: 'legacy-cron:6', owner: 'legacy', execution_id: executionId(2, 'scheduled_system', START_S + 60), pid: 4242 });
  t.like(runs[2], { cron_id: null, task_id: 'name:备份数据库', origin: 'script', status: 'succeeded', exit_code: null, started_at_ms: null });
  t.like(runs[1], { status: 'cancelled', exit_code: 143, reason: 'signal TERM' });
  t.like(runs[5], { duration_ms: 1500, started_at_ms: START_S * 1000 + 500, finished_at_ms: START_S * 1000 + 2000 });
});

test('runs: a table of 80 columns, no colours where there is no terminal (issue: Reading it)', (t) => {
  const b = filled(t);
  b.feed(
    finished(20, at(20, 9, { origin: 'script', cron_id: undefined, name: '很长的任务名字很长的任务名字', occurred_at_ms: 253_402_300_799_999 })),
    finished(21, at(21, 10, { cron_id: Number.MAX_SAFE_INTEGER, exit_code: 255 })),
  );
  const outcome = runOn(b, ['runs', '--utc']);
  const rows = outcome.stdout.trimEnd().split('\n');
  t.is(rows.length, 9);
  t.regex(rows[0] as string, /^RUN +TASK +STATUS +EXIT STARTED +TOOK$/);
  for (const row of rows) {
    const columns = Array.from(row).reduce((sum, character) => sum + (/\p{Script=Han}/u.test(character) ? 2 : 1), 0);
    t.true(columns <= 80, `${columns}: ${row}`);
    t.false(row.includes('\u001b'), row);
  }
  t.regex(rows[8] as string, /^[0-9a-f-]{36} 5      succeeded    0 12-01 03:00:00  1\.5s$/);
  t.deepEqual(runOn(b, ['runs', '--utc'], { environment: { TERM: 'xterm-256color', FORCE_COLOR: '1' } }).stdout, outcome.stdout);
});

test('runs in a local zone: the clock of that zone; --utc wins (issue: Reading it)', (t) => {
  const b = filled(t);
  const environment = { TZ: 'Asia/Shanghai' };
  t.true(runOn(b, ['runs', '--status', 'failed'], { environment }).stdout.includes(' 12-01 11:01:00 '));
  t.true(runOn(b, ['runs', '--status', 'failed', '--utc'], { environment }).stdout.includes(' 12-01 03:01:00 '));
  t.true(runOn(b, ['show', executionId(1), '--json'], { environment }).stdout.includes(`"accepted_at_ms":${START_S * 1000}`));
  t.deepEqual(numbers(runOn(b, ['runs', '--json', '--since', '2026-12-01 11:04'], { environment })), [5, 4]);
});

test('no Runs: says so; with --json not a byte (DESIGN 10)', (t) => {
  const b = bench(t);
  t.is(runOn(b, ['runs']).stdout, 'no Runs\n');
  t.is(runOn(b, ['runs', '--json']).stdout, '');
});

test('show: the fields, then the timeline (issue: Reading it)', (t) => {
  const b = filled(t);
  const id = executionId(2, 'scheduled_system', START_S + 60);
  const shown = runOn(b, ['show', id, '--utc']);
  t.is(shown.code, 0);
  const [fields, timeline] = shown.stdout.split('\n\n') as [string, string];
  for (const line of ['Task       legacy-cron:6', 'Origin     scheduled_system, owned by legacy', 'Status     failed', 'Exit code  3', `Execution  ${id}`, 'Accepted   2026-12-01 03:01:00.000Z']) {
    t.true(fields.split('\n').includes(line), `${line} in ${fields}`);
  }
  t.deepEqual(timeline.trimEnd().split('\n').map((line) => line.split(/ +/)[4]), ['run.created', 'run.queued', 'run.dispatching', 'run.running', 'run.failed']);
});

test('show finds a Run by its ID, its beginning, without dashes, in capitals, and by its execution ID (DESIGN 10)', (t) => {
  const b = bench(t);
  b.feed(started(1));
  const runId = b.runs()[0]?.run_id as string;
  for (const name of [runId, runId.slice(0, 8), runId.slice(0, 13), runId.replaceAll('-', ''), runId.toUpperCase(), executionId(1)]) {
    t.like(JSON.parse(runOn(b, ['show', name, '--json']).stdout), { run_id: runId }, name);
  }
});

test('show: a beginning that several Runs have is refused, with two of them named (DESIGN 10)', (t) => {
  const b = bench(t);
  b.feed(started(1), started(2), started(3));
  const ids = b.runs().map(({ run_id }) => run_id).sort();
  const outcome = runOn(b, ['show', (ids[0] as string).slice(0, 8)]);
  t.is(outcome.code, 2);
  t.regex(outcome.stderr, new RegExp(`^ql-sidecar: more than one Run begins so: \\w{8}; give more digits: ${ids[0]} and ${ids[1]}\n$`));
  t.is(runOn(b, ['show', (ids[0] as string).slice(0, 30)]).code, 0);
});

for (const name of ['00000000', '01a22f8b-7b80-7a0a-8dc7-000000000000', executionId(99)]) {
  test(`show ${name}: there is none: exit 1, one line (DESIGN 10)`, (t) => {
    const outcome = runOn(filled(t), ['show', name]);
    t.is(outcome.code, 1);
    t.is(outcome.stdout, '');
    t.regex(outcome.stderr, /^ql-sidecar: no such Run: [^\n]+\n$/);
  });
}

test('a reader that has seen enough: runs | head -1 ends without a word (DESIGN 10)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 3000; number += 1) b.put(started(number));
  b.ingest();
  b.close();
  for (const words of ['runs --limit 3000', 'runs --limit 3000 --json']) {
    const script = `{ "${COMMAND}" ${words} --data-dir "${b.data}"; echo "code $?" >&2; } 2>"${b.data}/stderr" | head -1; cat "${b.data}/stderr"`;
    const stdout = execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { PATH: process.env.PATH } });
    t.regex(stdout, /^[^\n]+\ncode (0|141)\n$/, words);
  }
});

test('a closed stdout: no stack (DESIGN 10)', (t) => {
  const b = filled(t);
  b.put(started(50));
  b.close();
  for (const words of ['runs', 'metrics', `show ${executionId(1)}`, 'tick', 'migrate --check']) {
    const script = `"${COMMAND}" ${words} --data-dir "${b.data}" 2>"${b.data}/stderr" >&-; cat "${b.data}/stderr"`;
    const stderr = execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { PATH: process.env.PATH } });
    t.false(/\n\s+at /.test(stderr), stderr);
    t.true(stderr.split('\n').length <= 2, stderr);
  }
});

test('tick for a reader that is gone: the work is done, exit 0, not a word (DESIGN 10)', (t) => {
  const b = bench(t);
  b.put(started(1));
  const script = `{ "${COMMAND}" tick --data-dir "${b.data}"; echo "code $?" >&2; } 2>"${b.data}/stderr" | :; cat "${b.data}/stderr"`;
  const said = execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { PATH: process.env.PATH, QL3_SHADOW_ORIGINS: 'scheduled_system' } });
  t.is(said, 'code 0\n');
  t.is(b.runs().length, 1);
});

test('metrics: valid text format, counters of processes that are long gone, gauges of now (ADR-0002 §16.1)', (t) => {
  const b = filled(t);
  const drift = started(1, at(1, 0, { cron_id: 77 }));
  b.feed(finished(1, at(1, 0, { exit_code: 9 })), drift);
  for (const content of ['x\n', 'y\n']) b.put(content);
  t.is(runOn(b, ['ingest']).code, 0);
  b.put(started(50));
  const outcome = runOn(b, ['metrics']);
  t.is(outcome.code, 0);
  t.is(outcome.stderr, '');
  const families = readExposition(outcome.stdout);
  const value = (name: string, labels = ''): number | undefined => families.get(name.replace(/_(sum|count)$/, ''))?.samples.get(`${name}{${labels}}`) ?? families.get(name)?.samples.get(`${name}{${labels}}`);
  const system = 'origin="scheduled_system",profile="standalone"';
  t.is(value('shadow_run_create_total', system), 4);
  t.is(value('shadow_run_create_total', 'origin="manual",profile="standalone"'), 1);
  t.is(value('shadow_run_create_failed_total', `error_class="task_drift",${system}`), 1);
  t.is(value('shadow_terminal_mismatch_total', system), 1);
  t.is(value('ql_sidecar_runs_failed_total', system), 1);
  t.is(value('ql_sidecar_runs_cancelled_total', system), 1);
  t.is(value('ql_sidecar_quarantined_total', 'error_class="malformed"'), 2);
  t.is(value('ql_sidecar_active_runs', system), 1);
  t.is(value('ql_sidecar_spool_envelopes'), 1);
  t.is(value('ql_sidecar_build_info', 'profile="standalone"'), 1);
  t.true((value('ql_sidecar_ledger_bytes') ?? 0) > 10_000);
  t.is(value('shadow_transition_lag_seconds_count', system), 6);
});

test('metrics of an empty ledger: valid, and a zero for each origin that is on (ADR-0002 §16.1)', (t) => {
  const families = readExposition(runOn(bench(t), ['metrics'], { environment: { QL3_SHADOW_ORIGINS: 'boot', QL3_PROFILE: 'edge' } }).stdout);
  for (const name of ['shadow_run_create_total', 'ql_sidecar_runs_succeeded_total', 'ql_sidecar_active_runs', 'shadow_terminal_mismatch_total']) {
    t.deepEqual([...(families.get(name)?.samples ?? [])], [[`${name}{origin="boot",profile="edge"}`, 0]], name);
  }
  t.deepEqual([...(families.get('legacy_fallback_total')?.samples ?? [])], [['legacy_fallback_total{}', 0]]);
});

test('metrics --json: the stored counters, one object a line (DESIGN 10)', (t) => {
  const counters = lines(runOn(filled(t), ['metrics', '--json']));
  t.true(counters.length > 0);
  for (const counter of counters) t.deepEqual(Object.keys(counter), ['name', 'labels', 'value']);
});

test('what reads writes nothing: ledger and directory stay byte for byte, but for the index of the WAL (DESIGN 5)', (t) => {
  const b = filled(t);
  b.close();
  const look = (): string => execFileSync('sh', ['-c', `cd "${b.data}" && find . -type f ! -name '*-shm' ! -name '*-wal' -o -name '*-wal' ! -empty | sort | xargs md5sum`], { encoding: 'utf8' });
  const before = look();
  for (const words of [['runs'], ['show', executionId(1)], ['metrics'], ['migrate', '--check'], ['runs', '--json']]) t.is(run([...words, '--data-dir', b.data]).code, 0);
  t.is(look(), before);
});
