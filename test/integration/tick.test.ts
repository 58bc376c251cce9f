import test, { type ExecutionContext } from 'ava';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { linuxProcesses, type ProcessTable } from '../../sidecar/host/proc.js';
import { emptyReport } from '../../sidecar/operations/ingest.js';
import { tick, type TickContext, type TickReport } from '../../sidecar/operations/tick.js';
import { runOn, type Outcome } from '../fixtures/ledger/command.js';
import { finished, fileName, line, started, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench, dump } from '../fixtures/ledger/workbench.js';

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

const firstLine = (file: string): string => readFileSync(file, 'utf8').split('\n', 1)[0] ?? '';

/** Field 22 of /proc/<pid>/stat. */
function startTicks(pid: number | string): number {
  const stat = firstLine(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
}

/** The claims of a process on this machine, as the bridge makes them. */
function claims(pid: number): Fields {
  return {
    pid,
    pid_start_ticks: startTicks(pid),
    boot_id: firstLine('/proc/sys/kernel/random/boot_id'),
    host: firstLine('/proc/sys/kernel/hostname'),
    init_start_ticks: startTicks(1),
  };
}

/** A real process that waits; it is ended with the test. */
function sleeper(t: ExecutionContext): ChildProcess & { readonly pid: number } {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  return child as ChildProcess & { readonly pid: number };
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const tickOn = (b: Workbench, environment: Readonly<Record<string, string>> = {}): Outcome => runOn(b, ['tick'], { environment });
const line1 = (stdout: string): Outcome => ({ code: 0, signal: null, stdout, stderr: '' });

test('nothing to do: not a word, not a row, exit 0 (issue: silent when nothing happened)', (t) => {
  const b = bench(t);
  const before = readFileSync(b.paths.ledger);
  t.deepEqual(tickOn(b), line1(''));
  t.true(before.equals(readFileSync(b.paths.ledger)));
  t.deepEqual(JSON.parse(runOn(b, ['tick', '--json']).stdout), { ...emptyReport(), checked: 0, lost: 0 });
});

test('everything that happened is one line (issue: one summary line)', async (t) => {
  const b = bench(t);
  const child = sleeper(t);
  b.feed(started(1, claims(child.pid)), finished(6));
  await kill(child);
  b.put(started(2));
  b.put(finished(3));
  b.put(finished(6, { exit_code: 9 }));
  b.put(finished(6), 'again.json');
  b.put(started(6, { cron_id: 77 }), 'other.json');
  b.put('x\n');
  t.deepEqual(tickOn(b), line1('tick: 1 started, 1 finished, 1 lost, 1 late, 1 refused, 1 quarantined, 1 repeated\n'));
  t.deepEqual(tickOn(b), line1(''));
});

test('a process that was really killed: lost, with its evidence; when it ended is not made up (DESIGN 5.1)', async (t) => {
  const b = bench(t);
  const child = sleeper(t);
  const claim = claims(child.pid);
  b.put(started(1, claim));
  t.deepEqual(tickOn(b), line1('tick: 1 started\n'));
  t.deepEqual(tickOn(b), line1(''), 'an alive process stays');
  t.is(b.runs()[0]?.status, 'running');
  b.close();
  await kill(child);
  t.deepEqual(tickOn(b), line1('tick: 1 lost\n'));
  const [run] = b.runs();
  if (run === undefined) return t.fail();
  t.like(run, { status: 'lost', reason: 'pid_absent', exit_code: null, finished_at_ms: null, duration_ms: null });
  const event = b.events(run).at(-1);
  t.like(event, { type: 'run.lost', actor: 'liveness' });
  t.deepEqual(event?.payload, { evidence: 'pid_absent', pid: claim.pid, pid_start_ticks: claim.pid_start_ticks, boot_id: claim.boot_id, host: claim.host });
  t.is(b.counter('ql_sidecar_runs_lost_total', 'error_class="pid_absent"'), 1);
  t.is(b.connection.prepare('SELECT status FROM run_attempts').pluck().get(), 6);
  t.deepEqual(tickOn(b), line1(''));
});

test('start and death between two ticks: one tick takes the start in and settles it (DESIGN 5.1)', async (t) => {
  const b = bench(t);
  const child = sleeper(t);
  b.put(started(1, claims(child.pid)));
  await kill(child);
  t.deepEqual(tickOn(b), line1('tick: 1 started, 1 lost\n'));
});

test('a process that is gone and has left its finish: finished, never lost (DESIGN 5.1)', async (t) => {
  const b = bench(t);
  const child = sleeper(t);
  b.feed(started(1, claims(child.pid)));
  await kill(child);
  b.put(finished(1, { exit_code: 137 }));
  t.deepEqual(tickOn(b), line1('tick: 1 finished\n'));
  t.like(b.runs()[0], { status: 'failed', exit_code: 137 });
});

test('a zombie still is its process: not lost before it is reaped (DESIGN 5.1)', async (t) => {
  const b = bench(t);
  // The parent never waits for its child.
  const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => parent.kill('SIGKILL'));
  const [text] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(text.toString());
  b.put(started(1, claims(pid)));
  tickOn(b);
  process.kill(pid, 'SIGKILL');
  await until(() => /^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
  t.deepEqual(tickOn(b), line1(''));
});

for (const [title, changes, status, reason] of [
  ['another host', { host: 'elsewhere' }, 'running', null],
  ['another host that is on another boot', { host: 'elsewhere', boot_id: '99999999-2222-4333-8444-555555555555' }, 'running', null],
  ['start ticks that are not known', { pid_start_ticks: undefined }, 'running', null],
  ['a host that is not known', { host: undefined }, 'running', null],
  ['a boot that is not known', { boot_id: undefined }, 'running', null],
  ['another life of the container, from outside', { init_start_ticks: 4_000_000_000 }, 'running', null],
  ['an earlier boot of this host', { boot_id: '99999999-2222-4333-8444-555555555555' }, 'lost', 'host_rebooted'],
  ['a pid that is in use by another process', { pid: process.pid }, 'lost', 'pid_reused'],
] as const) {
  test(`a killed process with ${title}: ${status}${reason === null ? ', nothing is proven' : `, ${reason}`} (DESIGN 5.1)`, async (t) => {
    const b = bench(t);
    const child = sleeper(t);
    // The pid of the test is in use; it started at another tick than the one that is claimed.
    const ticks = 'pid' in changes ? { pid_start_ticks: startTicks(process.pid) + 1 } : {};
    b.feed(started(1, { ...claims(child.pid), ...changes, ...ticks }));
    await kill(child);
    t.deepEqual(tickOn(b), line1(status === 'lost' ? 'tick: 1 lost\n' : ''));
    t.like(b.runs()[0], { status, reason });
  });
}

test('a Run without any process is never looked at, however old (DESIGN 5.1)', (t) => {
  const b = bench(t);
  b.feed(started(1, { pid: undefined, pid_start_ticks: undefined }));
  t.like(JSON.parse(runOn(b, ['tick', '--json']).stdout), { checked: 0, lost: 0 });
});

test('a spool that is not drained: nothing is lost yet; the finish that waited at its end wins (DESIGN 5.1)', async (t) => {
  const b = bench(t);
  const [one, other] = [sleeper(t), sleeper(t)];
  b.feed(started(1, claims(one.pid)), started(2, claims(other.pid)));
  await Promise.all([kill(one), kill(other)]);
  for (let number = 100; number < 500; number += 1) b.put(started(number, { host: 'elsewhere' }), `${number}.json`);
  b.put(finished(1, { exit_code: 5 }), 'zzz.json');
  t.deepEqual(tickOn(b, { QL3_PROFILE: 'edge' }), line1('tick: 256 started, 145 waiting for the next pass\n'));
  t.is(b.runs().filter(({ status }) => status === 'lost').length, 0);
  t.regex(tickOn(b, { QL3_PROFILE: 'edge' }).stdout, /^tick: 144 started, 1 finished(, 1 lost)?\n$/);
  // 402 active Runs are seven pages of 64: by then the other one was looked at.
  for (let page = 0; page < 7; page += 1) tickOn(b, { QL3_PROFILE: 'edge' });
  const of = (pid: number): string | undefined => b.runs().find((run) => run.pid === pid)?.status;
  t.deepEqual([of(one.pid), of(other.pid)], ['failed', 'lost']);
});

test('a finish that is not complete yet is no drained spool: not lost until it is completed or given up (DESIGN 5.1)', async (t) => {
  const b = bench(t);
  const [one, other] = [sleeper(t), sleeper(t)];
  b.feed(started(1, claims(one.pid)), started(2, claims(other.pid)));
  await Promise.all([kill(one), kill(other)]);
  const text = line(finished(1));
  const file = path.join(b.paths.spool, b.put(text.slice(0, 60), fileName(finished(1))));
  t.deepEqual(tickOn(b), line1(''));
  t.deepEqual(b.runs().map(({ status }) => status), ['running', 'running']);
  writeFileSync(file, text);
  t.deepEqual(tickOn(b), line1('tick: 1 finished, 1 lost\n'));
});

test('an incomplete finish of more than ten minutes is put aside, and its Run is lost (DESIGN 4.4)', async (t) => {
  const b = bench(t);
  const child = sleeper(t);
  b.feed(started(1, claims(child.pid)));
  await kill(child);
  const file = path.join(b.paths.spool, b.put(line(finished(1)).slice(0, 60), fileName(finished(1))));
  const old = new Date(Date.now() - 11 * 60_000);
  utimesSync(file, old, old);
  t.deepEqual(tickOn(b), line1('tick: 1 lost, 1 quarantined\n'));
});

/** A tick in this process, with a stand-in for /proc. */
function tickWith(b: Workbench, processes: ProcessTable, changes: Partial<TickContext> = {}): TickReport {
  return tick({ ...b.context(), processes, livenessLimit: 64, ...changes });
}

const HERE = { host: 'panel', bootId: String(started(1).boot_id), initStartTicks: 100 };

test('a finish that is written between the look and the settling wins (DESIGN 5.1)', (t) => {
  const b = bench(t);
  b.feed(started(1));
  const report = tickWith(b, {
    host: () => HERE,
    sight: () => {
      b.put(finished(1, { exit_code: 2 }));
      return { kind: 'absent' };
    },
  });
  t.like(report, { finished: 1, lost: 0, checked: 1 });
  t.like(b.runs()[0], { status: 'failed', exit_code: 2 });
});

test('a /proc that does not tell its host proves nothing (DESIGN 5.1)', (t) => {
  const b = bench(t);
  b.feed(started(1));
  t.like(tickWith(b, { host: () => null, sight: () => ({ kind: 'absent' }) }), { lost: 0, checked: 0 });
});

test('one row that cannot be settled stops no other (DESIGN 6)', (t) => {
  const b = bench(t);
  b.feed(started(1), started(2, { cron_id: 666 }), started(3));
  b.connection.exec("CREATE TRIGGER bad BEFORE UPDATE ON runs WHEN new.cron_id = 666 BEGIN SELECT RAISE(ABORT, 'no'); END");
  const report = tickWith(b, { host: () => HERE, sight: () => ({ kind: 'absent' }) });
  t.like(report, { checked: 3, lost: 2 });
  t.deepEqual(b.runs().map(({ cron_id, status }) => [cron_id, status]).sort(), [[5, 'lost'], [5, 'lost'], [666, 'running']]);
  t.is(b.counter('ql_sidecar_runs_lost_total'), 2);
});

test('a tick looks at a bounded page; the next goes on where it stopped, and then from the start (DESIGN 12)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 10; number += 1) b.put(started(number, { pid: 1000 + number }));
  b.ingest();
  const seen: number[] = [];
  const processes: ProcessTable = {
    host: () => HERE,
    sight: (pid) => {
      seen.push(pid);
      return { kind: 'present', startTicks: 8_123_456 };
    },
  };
  const looked = Array.from({ length: 4 }, () => {
    seen.length = 0;
    tickWith(b, processes, { livenessLimit: 4 });
    return new Set(seen);
  });
  t.deepEqual(looked.map(({ size }) => size), [4, 4, 2, 4]);
  t.is(new Set([...(looked[0] ?? []), ...(looked[1] ?? []), ...(looked[2] ?? [])]).size, 10);
  t.deepEqual(looked[3], looked[0]);
});

test('a late finish after lost is one event, and lost stands (DESIGN 5.1)', (t) => {
  const b = bench(t);
  b.feed(started(1));
  tickWith(b, { host: () => HERE, sight: () => ({ kind: 'absent' }) });
  b.feed(finished(1), finished(1));
  const [run] = b.runs();
  if (run === undefined) return t.fail();
  t.like(run, { status: 'lost', exit_code: null });
  t.is(b.events(run).filter(({ type }) => type === 'compat.late_callback').length, 1);
});

test('the real process table: this process, one that never was, and the machine (DESIGN 5.1)', (t) => {
  t.deepEqual(linuxProcesses.sight(process.pid), { kind: 'present', startTicks: startTicks(process.pid) });
  t.deepEqual(linuxProcesses.sight(4_194_304), { kind: 'absent' });
  t.deepEqual(linuxProcesses.host(), {
    host: firstLine('/proc/sys/kernel/hostname'),
    bootId: firstLine('/proc/sys/kernel/random/boot_id'),
    initStartTicks: startTicks(1),
  });
});

test('a process with brackets and spaces in its name is read right (DESIGN 5.1)', async (t) => {
  const child = spawn(process.execPath, ['-e', "process.title = 'a) (b ) 1 2'; console.log(1); setTimeout(() => {}, 600000)"], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  t.deepEqual(linuxProcesses.sight(child.pid as number), { kind: 'present', startTicks: startTicks(child.pid as number) });
});

test('ingest alone never settles anything (DESIGN 10)', async (t) => {
  const b = bench(t);
  const child = sleeper(t);
  b.feed(started(1, claims(child.pid)));
  await kill(child);
  const before = dump(b.paths.ledger);
  t.deepEqual(runOn(b, ['ingest']), line1(''));
  t.deepEqual(dump(b.paths.ledger), before);
});

async function until(look: () => boolean): Promise<void> {
  for (const end = Date.now() + 15_000; !look(); ) {
    if (Date.now() > end) throw new Error('Expected it to happen within 15 s');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
