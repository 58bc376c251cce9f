// What stands in the way of a tick: one clear line and the right exit code, never a stack, never a hang, never an envelope
// lost (DESIGN 10). Whatever the trouble is, once it is gone the envelope is taken in.
import test, { type ExecutionContext } from 'ava';
import Database from 'better-sqlite3';
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { COMMAND, configDirectory, runLater, runOn, type Outcome } from '../fixtures/ledger/command.js';
import { executionId, fileName, finished, line, started } from '../fixtures/ledger/envelope.js';
import { Workbench, dump } from '../fixtures/ledger/workbench.js';

const isRoot = process.getuid?.() === 0;
const canMount = isRoot && spawnSync('unshare', ['-m', 'true']).status === 0;
const asRoot = isRoot ? test : test.skip;
const withMount = canMount ? test : test.skip;

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

/** One line that tells what, where and what to do; the exit code; and nothing taken. */
function refuses(t: ExecutionContext, outcome: Outcome, code: number, pattern: RegExp): void {
  t.is(outcome.code, code, outcome.stderr);
  t.regex(outcome.stderr, /^ql-sidecar: [^\n]+: [^\n]+; [^\n]+\n$/);
  t.regex(outcome.stderr, pattern);
  t.notRegex(outcome.stderr, /internal error|\bat .*:\d+:\d+/);
}

const fifo = (place: string): void => void execFileSync('mkfifo', [place]);
const socket = (place: string): void => void execFileSync(process.execPath, ['-e', 'require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))', place], { stdio: 'ignore' });
const directory = (place: string): void => void mkdirSync(path.join(place, 'x'), { recursive: true });

/** Runs a maker that may end by its own signal. */
function put(maker: (place: string) => void, place: string): void {
  try {
    maker(place);
  } catch {
    // The socket's maker kills itself, so that the socket stays.
  }
  if (!existsSync(place)) throw new Error(`Expected something at ${place}`);
}

for (const [kind, maker] of [['a fifo', fifo], ['a socket', socket], ['a directory', directory]] as const) {
  for (const end of ['', '-wal', '-shm', '-journal']) {
    test(`${kind} in place of ledger.sqlite${end}: no command hangs, each says so, exit 74 (DESIGN 10)`, (t) => {
      const b = bench(t);
      b.put(started(1));
      b.close();
      const place = `${b.paths.ledger}${end}`;
      const kept = `${b.data}/kept`;
      if (end === '') renameSync(place, kept);
      put(maker, place);
      for (const words of [['tick'], ['ingest'], ['runs'], ['metrics'], ['migrate']]) {
        refuses(t, runOn(b, words), 74, /ledger cannot be opened: .*; this is no regular file: move it away/);
      }
      t.is(b.spooled().length, 1);
      rmSync(place, { recursive: true });
      if (end === '') renameSync(kept, place);
      t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started\n' });
    });
  }

  test(`${kind} in place of the configuration: no command hangs, all is off, one warning (DESIGN 13)`, (t) => {
    const b = bench(t);
    put(maker, path.join(configDirectory(b.data), 'ql-sidecar.env'));
    b.put(started(1));
    const outcome = runOn(b, ['tick'], { environment: { QL3_SHADOW_ORIGINS: undefined } });
    t.like(outcome, { code: 0, stdout: 'tick: 1 of origins that are off\n' });
    t.regex(outcome.stderr, /^ql-sidecar: warning: [^\n]*ql-sidecar\.env[^\n]* ignored\n$/);
  });

  if (maker !== directory) {
    test(`${kind} in place of the spool: says so, exit 74 (DESIGN 10)`, (t) => {
      const b = bench(t);
      rmSync(b.paths.spool, { recursive: true });
      put(maker, b.paths.spool);
      refuses(t, runOn(b, ['tick']), 74, /not a directory: .*\/spool; move the file away/);
    });

    test(`${kind} in place of the quarantine: says so, exit 74, no file is lost (DESIGN 10)`, (t) => {
      const b = bench(t);
      put(maker, b.paths.quarantine);
      b.put('no envelope\n');
      b.put(started(1));
      refuses(t, runOn(b, ['tick']), 74, /something of that name is in the way: .*\/quarantine; move it away/);
      t.is(b.spooled().length, 2);
      rmSync(b.paths.quarantine);
      t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started, 1 quarantined\n' });
    });
  }
}

test('a directory in place of spool.full: the envelopes are taken in, and it is named, exit 74 (DESIGN 10)', (t) => {
  const b = bench(t);
  mkdirSync(b.paths.spoolFull);
  b.put(started(1));
  refuses(t, runOn(b, ['tick']), 74, /a directory is in the way: .*\/spool\.full; move it away/);
  t.is(b.runs().length, 1);
});

for (const [title, leads] of [['to a directory', true], ['to nothing', false]] as const) {
  test(`a spool that is a link ${title} is not followed: exit 74, nothing behind it is touched (DESIGN 4.4)`, (t) => {
    const b = bench(t);
    const behind = path.join(b.data, 'behind');
    renameSync(b.paths.spool, behind);
    writeFileSync(path.join(behind, 'passwd'), 'somebody else\'s\n');
    writeFileSync(path.join(behind, fileName(started(1))), line(started(1)));
    symlinkSync(leads ? behind : `${behind}-not`, b.paths.spool);
    refuses(t, runOn(b, ['tick']), 74, /spool is a link: .*\/spool; put a directory there/);
    t.deepEqual(readdirSync(behind).sort(), [fileName(started(1)), 'passwd'].sort());
    rmSync(b.paths.spool);
    renameSync(behind, b.paths.spool);
    t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started, 1 quarantined\n' });
  });
}

test('a quarantine that is a link is not followed: exit 74, nothing behind it is removed (DESIGN 4.4)', (t) => {
  const b = bench(t);
  const behind = path.join(b.data, 'behind');
  mkdirSync(behind);
  for (let index = 0; index < 300; index += 1) writeFileSync(path.join(behind, `${index}`), 'somebody else\'s\n');
  symlinkSync(behind, b.paths.quarantine);
  b.put('no envelope\n');
  for (const words of [['tick'], ['migrate']]) refuses(t, runOn(b, words), 74, /quarantine is a link: .*\/quarantine; put a directory there/);
  t.is(readdirSync(behind).length, 300);
  t.is(b.spooled().length, 1);
  rmSync(b.paths.quarantine);
  t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 quarantined\n' });
});

test('a fifo, a socket and a directory in the spool: put aside at once, nobody waits for a writer (DESIGN 4.4)', (t) => {
  const b = bench(t);
  for (const [name, maker] of [['a.json', fifo], ['b.json', socket], ['c.json', directory]] as const) put(maker, path.join(b.paths.spool, name));
  b.put(started(1));
  t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started, 3 quarantined\n', stderr: '' });
  t.deepEqual(b.spooled(), []);
});

test('the ledger is deleted between two ticks: exit 74 until migrate, and no ledger comes of it by itself (DESIGN 5)', (t) => {
  const b = bench(t);
  b.put(started(1));
  t.is(runOn(b, ['tick']).code, 0);
  for (const name of readdirSync(b.paths.sidecar).filter((entry) => entry.startsWith('ledger.sqlite'))) rmSync(path.join(b.paths.sidecar, name));
  b.put(finished(1));
  refuses(t, runOn(b, ['tick']), 74, /ledger cannot be opened: .*run "ql-sidecar migrate"/);
  t.false(existsSync(b.paths.ledger));
  t.is(b.spooled().length, 1);
  t.is(runOn(b, ['migrate']).code, 0);
  t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 finished\n' });
});

for (const bytes of [0, 1, 16, 100, 512, 1024, 5000, 20_000, 26_000]) {
  test(`a ledger cut to ${bytes} bytes: exit 74, said so, the envelope stays (DESIGN 5)`, (t) => {
    const b = bench(t);
    b.put(started(1));
    b.close();
    truncateSync(b.paths.ledger, bytes);
    const pattern = bytes <= 1 ? /not ready: has no schema/ : bytes === 16 ? /not a ledger, or damaged/ : /ledger is damaged/;
    for (const command of ['tick', 'runs']) refuses(t, runOn(b, [command]), 74, pattern);
    t.is(b.spooled().length, 1);
  });
}

test('an SQLite database of something else: no command takes it, migrate makes no table in it (DESIGN 5)', (t) => {
  const b = bench(t);
  b.put(started(1));
  b.close();
  rmSync(b.paths.ledger);
  const other = new Database(b.paths.ledger);
  other.exec("CREATE TABLE diary (day TEXT); INSERT INTO diary VALUES ('monday')");
  other.close();
  const before = readFileSync(b.paths.ledger);
  refuses(t, runOn(b, ['tick']), 74, /ledger is not ready: table capabilities is missing/);
  refuses(t, runOn(b, ['migrate']), 74, /not a ledger, but a database of something else: .*; move the file away/);
  t.true(before.equals(readFileSync(b.paths.ledger)));
  t.is(b.spooled().length, 1);
});

for (const [title, spoil] of [
  ['random bytes in -wal and -shm', (ledger: string) => {
    writeFileSync(`${ledger}-wal`, Buffer.alloc(5000, 0xa5));
    writeFileSync(`${ledger}-shm`, Buffer.alloc(32_768, 0xa5));
  }],
  ['an empty -wal and -shm', (ledger: string) => {
    writeFileSync(`${ledger}-wal`, '');
    writeFileSync(`${ledger}-shm`, '');
  }],
  ['a -journal of random bytes', (ledger: string) => writeFileSync(`${ledger}-journal`, Buffer.alloc(5000, 0xa5))],
] as const) {
  test(`${title} left beside the ledger change nothing (DESIGN 5)`, (t) => {
    const b = bench(t);
    b.feed(started(1));
    b.connection.pragma('journal_mode = wal');
    b.close();
    const rows = dump(b.paths.ledger).runs;
    spoil(b.paths.ledger);
    b.put(started(2));
    t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started\n', stderr: '' });
    t.true(dump(b.paths.ledger).runs?.includes(rows?.[0] ?? ''));
    t.is(b.runs().length, 2);
  });
}

test('migrate in a place where only the side files of a ledger are left makes a fresh one (DESIGN 5)', (t) => {
  const b = bench(t);
  b.connection.pragma('journal_mode = wal');
  b.feed(started(1));
  for (const end of ['-wal', '-shm']) copyFileSync(`${b.paths.ledger}${end}`, `${b.data}/kept${end}`);
  b.close();
  rmSync(b.paths.ledger);
  for (const end of ['-wal', '-shm']) copyFileSync(`${b.data}/kept${end}`, `${b.paths.ledger}${end}`);
  t.is(runOn(b, ['migrate']).code, 0);
  b.put(started(2));
  t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started\n' });
  t.is(b.runs().length, 1);
});

test('a clock that was set back: envelopes of the future are taken in, and no lag is negative (DESIGN 5.1)', (t) => {
  const b = bench(t);
  for (const second of [4_102_444_800, 253_402_300_799]) {
    const own = { execution_id: executionId(second % 1000, 'scheduled_system', second), started_at: second, occurred_at_ms: second * 1000 + 1 };
    b.put(started(second % 1000, own));
    b.put(finished(second % 1000, { ...own, occurred_at_ms: second * 1000 + 2 }));
  }
  t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 2 started, 2 finished\n', stderr: '' });
  t.deepEqual(b.runs().map(({ status, duration_ms }) => [status, duration_ms]), [['succeeded', 1], ['succeeded', 1]]);
  t.is(b.counter('shadow_transition_lag_ms_sum'), 0);
});

test('a spool of 20,000 files: five ticks take it all in, none more than its bound, and the bridge may write again (DESIGN 12)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 20_000; number += 1) b.put(started(number));
  writeFileSync(b.paths.spoolFull, '');
  const said = Array.from({ length: 6 }, () => runOn(b, ['tick']).stdout);
  t.deepEqual(said, [15_904, 11_808, 7712, 3616].map((left) => `tick: 4096 started, ${left} waiting for the next pass\n`).concat('tick: 3616 started\n', ''));
  t.is(b.connection.prepare('SELECT count(*) FROM runs').pluck().get(), 20_000);
  t.false(existsSync(b.paths.spoolFull));
});

test('what was put aside stays counted when a row beside it is refused (DESIGN 4.4)', (t) => {
  const b = bench(t);
  b.connection.exec("CREATE TRIGGER bad BEFORE INSERT ON runs WHEN new.cron_id = 666 BEGIN SELECT RAISE(ABORT, 'no'); END");
  b.put('no envelope\n', '0.json');
  b.put(started(1), '1.json');
  b.put(started(2, { cron_id: 666 }), '2.json');
  t.like(b.ingest(), { started: 1, quarantined: 2 });
  t.is(b.counter('ql_sidecar_quarantined_total', 'error_class="malformed"'), 1);
  t.is(b.counter('ql_sidecar_quarantined_total'), 2);
});

test('eight ticks at once: each envelope is one Run, whoever takes it (DESIGN 4.4)', async (t) => {
  const b = bench(t);
  for (let number = 0; number < 400; number += 1) b.put(number % 2 === 0 ? started(number) : finished(number - 1));
  b.close();
  const outcomes = await Promise.all(Array.from({ length: 8 }, async () => runLater(['tick', '--data-dir', b.data])));
  for (const { code, stderr } of outcomes) t.deepEqual([code, stderr], [0, '']);
  t.is(runOn(b, ['tick']).stdout, '');
  t.deepEqual(b.runs().map(({ status }) => status), Array(200).fill('succeeded'));
  t.is(b.counter('shadow_run_create_total'), 200);
});

asRoot('a data directory of another user: root takes its envelopes in, and what it writes stays that user\'s (DESIGN 4.4)', (t) => {
  const b = bench(t);
  const nobody = 65_534;
  b.close();
  const envelope = path.join(b.paths.spool, b.put(started(1)));
  for (const place of [b.data, b.paths.sidecar, b.paths.spool, b.paths.ledger, envelope]) chownSync(place, nobody, nobody);
  t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started\n' });
  const owners = execFileSync('find', [b.paths.sidecar, '-not', '-user', String(nobody)], { encoding: 'utf8' });
  t.is(owners, '');
});

/**
 * Runs a shell `script` with a tmpfs of `size` as the data directory `$data`, in a mount namespace of its own. In it `ql WORDS`
 * is the command, which says its exit code besides, and `$envelope` a file with one. Answers what was printed.
 */
function onTmpfs(t: ExecutionContext, size: string, script: string): string {
  const place = mkdtempSync(path.join(tmpdir(), 'ql-full-'));
  t.teardown(() => rmSync(place, { recursive: true, force: true }));
  const [data, envelope] = [path.join(place, 'data'), path.join(place, 'envelope')];
  mkdirSync(data);
  writeFileSync(envelope, line(started(1)));
  const whole = `mount -t tmpfs -o "size=$size" tmpfs "$data" || exit 99
    ql() { "$command" "$@" --data-dir "$data" 2>&1; echo "exit $?"; }
    ${script}`;
  const outcome = spawnSync('unshare', ['-m', 'sh', '-c', whole], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, QL3_SHADOW_ORIGINS: 'scheduled_system', QL3_PROFILE: 'standalone', size, data, envelope, command: COMMAND },
  });
  t.not(outcome.status, 99);
  return outcome.stdout.replaceAll(data, 'DATA');
}

withMount('a full disk: said so, exit 74, the envelopes stay, and are taken in when there is room (DESIGN 10)', (t) => {
  const said = onTmpfs(t, '300k', `ql migrate >/dev/null
    cp "$envelope" "$data/ql-sidecar/spool/1.json"
    dd if=/dev/zero of="$data/fill" bs=1k count=1000 2>/dev/null
    ql tick; ls "$data/ql-sidecar/spool"
    rm "$data/fill"
    ql tick; ls "$data/ql-sidecar/spool"`);
  const full = 'ql-sidecar: disk is full: DATA/ql-sidecar/ledger.sqlite; free some space; nothing is lost, envelopes wait in the spool';
  t.is(said, `${full}\nexit 74\n1.json\ntick: 1 started\nexit 0\n`);
});

for (const size of ['20k', '60k']) {
  withMount(`migrate on a disk of ${size}: says that it is full, exit 74; with room it mends what it began (DESIGN 5)`, (t) => {
    const said = onTmpfs(t, size, 'ql migrate; ql tick; mount -o remount,size=1m "$data"; ql migrate; ql tick');
    const lines = said.split('\n');
    t.regex(lines[0] ?? '', /^ql-sidecar: disk is full: DATA\/ql-sidecar\/ledger\.sqlite; free some space/);
    t.is(lines[1], 'exit 74');
    t.regex(lines[2] ?? '', /^ql-sidecar: (disk is full|ledger is not ready: has no schema[^;]*): DATA\/ql-sidecar\/ledger\.sqlite; /);
    t.deepEqual(lines.slice(3), ['exit 74', 'ledger is ready: DATA/ql-sidecar/ledger.sqlite (applied 0001-ledger.sql)', 'exit 0', 'exit 0', '']);
  });
}

withMount('a file system that may only be read: says so, exit 74, for every command; the envelope stays (DESIGN 10)', (t) => {
  const said = onTmpfs(t, '1m', `ql migrate >/dev/null
    cp "$envelope" "$data/ql-sidecar/spool/1.json"
    mount -o remount,ro "$data"
    ql tick; ql ingest; ql migrate
    mount -o remount,rw "$data"
    ql tick`);
  const lines = said.split('\n');
  for (const at of [0, 2, 4]) {
    t.regex(lines[at] ?? '', /^ql-sidecar: ledger cannot be opened: DATA\/ql-sidecar\/ledger\.sqlite; [^;]*check rights and mount: [^;]*$/);
    t.is(lines[at + 1], 'exit 74');
  }
  t.deepEqual(lines.slice(6), ['tick: 1 started', 'exit 0', '']);
});
