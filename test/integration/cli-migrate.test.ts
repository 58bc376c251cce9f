import test, { type ExecutionContext } from 'ava';
import Database from 'better-sqlite3';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, runLater, runOn } from '../fixtures/ledger/command.js';
import { finished, started } from '../fixtures/ledger/envelope.js';
import { Workbench, dump, integrity } from '../fixtures/ledger/workbench.js';

const IS_ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;
const asRoot = IS_ROOT ? test : test.skip;

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

function bareDirectory(t: ExecutionContext): string {
  const data = mkdtempSync(path.join(tmpdir(), 'ql-bare-'));
  t.teardown(() => rmSync(data, { recursive: true, force: true }));
  return data;
}

test('migrate makes ledger, spool, quarantine and notices, each for the owner alone; again it changes nothing (DESIGN 5)', (t) => {
  const data = bareDirectory(t);
  const file = `${data}/ql-sidecar/ledger.sqlite`;
  t.deepEqual(run(['migrate', '--data-dir', data]), { code: 0, signal: null, stdout: `ledger is ready: ${file} (applied 0001-ledger.sql)\n`, stderr: '' });
  for (const name of ['', '/spool', '/quarantine', '/notices']) t.is(statSync(`${data}/ql-sidecar${name}`).mode & 0o777, 0o700, name);
  const before = dump(file);
  t.is(run(['migrate', '--data-dir', data]).stdout, `ledger is up to date: ${file}\n`);
  t.deepEqual(dump(file), before);
  t.deepEqual(integrity(file), ['ok']);
  t.is(run(['migrate', '--check', '--data-dir', data]).stdout, `ledger is ready: ${file}\n`);
  t.deepEqual(JSON.parse(run(['migrate', '--check', '--json', '--data-dir', data]).stdout), { ledger: file, ready: true, problems: [] });
});

test('migrate --check before migrate: exit 1, says what to do, makes nothing (DESIGN 5)', (t) => {
  const data = bareDirectory(t);
  const outcome = run(['migrate', '--check', '--data-dir', data]);
  t.is(outcome.code, 1);
  t.is(outcome.stdout, `${data}/ql-sidecar/ledger.sqlite: there is no ledger yet: run "ql-sidecar migrate"\n`);
  t.false(existsSync(`${data}/ql-sidecar`));
});

for (const command of ['tick', 'ingest', 'runs', 'metrics']) {
  test(`${command} before migrate: exit 74, and no ledger comes of it (DESIGN 5)`, (t) => {
    const data = bareDirectory(t);
    const outcome = run([command, '--data-dir', data]);
    t.is(outcome.code, 74);
    t.regex(outcome.stderr, /^ql-sidecar: ledger cannot be opened: .*run "ql-sidecar migrate".*\n$/);
    t.false(existsSync(`${data}/ql-sidecar`));
  });
}

/** What may be wrong with the schema, how it comes about, and the line that tells it. */
const UNREADY: readonly (readonly [string, string, RegExp])[] = [
  ['an edited migration', `UPDATE schema_migrations SET sha256 = '${'0'.repeat(64)}'`, /migration 0001-ledger.sql was edited after it was applied/],
  ['an unknown newer migration', `INSERT INTO schema_migrations VALUES ('9999-future.sql', 'x', 1)`, /migration 9999-future.sql is of a newer version/],
  ['a missing migration row', 'DELETE FROM schema_migrations', /migration 0001-ledger.sql is not applied/],
  ['a missing index', 'DROP INDEX runs_active', /index runs_active is missing/],
  ['the missing unique index', 'DROP INDEX runs_idempotency', /index runs_idempotency is missing/],
  ['a missing dedupe index', 'DROP INDEX run_events_dedupe', /index run_events_dedupe is missing/],
  ['a missing table', 'DROP TABLE cursors', /table cursors is missing/],
  ['a missing table of history', 'DROP TABLE run_events', /table run_events is missing/],
  ['no table of capabilities', 'DROP TABLE capabilities', /table capabilities is missing/],
  ['no table of migrations', 'DROP TABLE schema_migrations', /has no schema|not applied/],
  ['a missing capability', `DELETE FROM capabilities WHERE name = 'shadow_scheduled_system'`, /capability shadow_scheduled_system is missing, must be 1/],
  ['a newer contract', 'UPDATE capabilities SET contract_version = 2', /capability ledger is 2, must be 1/],
];

for (const [title, sql, pattern] of UNREADY) {
  test(`${title}: --check exits 1 and names it, tick exits 74 in one line, nothing is repaired (DESIGN 5)`, (t) => {
    const b = bench(t);
    b.put(started(1));
    b.connection.pragma('foreign_keys = OFF');
    b.connection.exec(sql);
    b.close();
    const before = dump(b.paths.ledger);
    const check = runOn(b, ['migrate', '--check']);
    t.is(check.code, 1);
    t.regex(check.stdout, pattern);
    t.is(check.stderr, '');
    for (const command of ['tick', 'runs']) {
      const outcome = runOn(b, [command]);
      t.is(outcome.code, 74, command);
      t.regex(outcome.stderr, pattern);
      t.regex(outcome.stderr, /^ql-sidecar: ledger is not ready: [^\n]+\n$/);
    }
    t.deepEqual(dump(b.paths.ledger), before);
    t.is(b.spooled().length, 1);
  });
}

for (const [title, sql] of UNREADY.filter(([, , pattern]) => /edited|newer version|index|table (cursors|run_events|cap)/.test(pattern.source))) {
  test(`migrate itself refuses ${title}: exit 74, nothing is written (DESIGN 5)`, (t) => {
    const b = bench(t);
    b.connection.pragma('foreign_keys = OFF');
    b.connection.exec(sql);
    b.close();
    const before = dump(b.paths.ledger);
    const outcome = runOn(b, ['migrate']);
    t.is(outcome.code, 74);
    t.regex(outcome.stderr, /^ql-sidecar: [^\n]+\n$/);
    t.deepEqual(dump(b.paths.ledger), before);
  });
}

for (const [title, content, pattern] of [
  ['text', 'this is not a database, and it is long enough to be none\n'.repeat(100), /not a ledger, or damaged/],
  ['a short text', 'x'.repeat(600), /not a ledger, or damaged/],
] as const) {
  test(`a ledger file that is ${title}: exit 74 for every command, the file is left alone (DESIGN 5)`, (t) => {
    const b = bench(t);
    writeFileSync(b.paths.ledger, content);
    for (const words of [['migrate'], ['migrate', '--check'], ['tick'], ['runs'], ['metrics']]) {
      const outcome = runOn(b, words);
      t.is(outcome.code, 74, words.join(' '));
      t.regex(outcome.stderr, /^ql-sidecar: [^\n]+\n$/);
      t.regex(outcome.stderr, pattern);
    }
    t.is(readFileSync(b.paths.ledger, 'utf8'), content);
  });
}

test('an empty ledger file is no ledger: --check says so, migrate fills it (DESIGN 5)', (t) => {
  const b = bench(t);
  writeFileSync(b.paths.ledger, '');
  t.like(runOn(b, ['migrate', '--check']), { code: 1 });
  t.like(runOn(b, ['tick']), { code: 74 });
  t.like(runOn(b, ['migrate']), { code: 0 });
  t.like(runOn(b, ['migrate', '--check']), { code: 0 });
});

test('a ledger file that is a directory: exit 74 (DESIGN 5)', (t) => {
  const b = bench(t);
  rmSync(b.paths.ledger);
  mkdirSync(b.paths.ledger);
  for (const words of [['migrate'], ['tick'], ['runs']]) {
    const outcome = runOn(b, words);
    t.is(outcome.code, 74, words.join(' '));
    // Opened to be read, a directory only fails at its first page.
    t.regex(outcome.stderr, /^ql-sidecar: (ledger cannot be opened|disk error under the ledger): [^\n]+\n$/);
  }
});

test('a damaged ledger: exit 74 in one line, the envelopes stay (DESIGN 5)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 200; number += 1) b.put(started(number));
  b.ingest();
  b.close();
  const bytes = readFileSync(b.paths.ledger);
  // Everything behind the schema: pages of rows and of indexes.
  bytes.fill(0xa5, 20 * 1024);
  writeFileSync(b.paths.ledger, bytes);
  b.put(finished(1));
  for (const words of [['tick'], ['runs']]) {
    const outcome = runOn(b, words);
    t.is(outcome.code, 74, words.join(' '));
    t.regex(outcome.stderr, /^ql-sidecar: ledger is damaged: [^\n]+\n$/);
  }
  t.is(b.spooled().length, 1);
});

for (const words of [['migrate', '--check'], ['tick'], ['runs'], ['migrate']]) {
  test(`${words.join(' ')} while another process holds the ledger: exit 75 within seconds, nothing lost (DESIGN 10)`, async (t) => {
    const b = bench(t);
    b.put(started(1));
    const other = new Database(b.paths.ledger);
    t.teardown(() => other.close());
    // As an ingest has it while it is alone.
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const begun = performance.now();
    const outcome = await runLater([...words, '--data-dir', b.data]);
    t.true(performance.now() - begun < 60_000);
    t.is(outcome.code, 75, outcome.stderr);
    t.regex(outcome.stderr, /^ql-sidecar: ledger is locked: [^\n]+ try again\n$/);
    t.is(b.spooled().length, 1);
    other.exec('ROLLBACK');
    other.close();
    t.like(runOn(b, ['tick']), { code: 0, stdout: 'tick: 1 started\n' });
  });
}

asRoot('a long file of root in another user\'s spool, which that user cannot cut, is removed: the quarantine stays bounded (DESIGN 4.4)', (t) => {
  const b = bench(t);
  const user = unprivileged(t);
  b.put('x'.repeat(100_000), '1.json');
  b.put('no envelope\n', '2.json');
  b.close();
  for (const place of [b.data, b.paths.sidecar, b.paths.spool, b.paths.ledger]) chownSync(place, NOBODY, NOBODY);
  for (const name of b.spooled()) chmodSync(path.join(b.paths.spool, name), 0o644);
  t.like(runOn(b, ['tick'], user), { code: 0, stdout: 'tick: 2 quarantined\n', stderr: '' });
  t.deepEqual(b.spooled(), []);
  t.deepEqual(b.quarantined().map((name) => name.replace(/^\d+-/, '')), ['malformed-2.json']);
});

test('who only reads does not wait for who writes (DESIGN 5)', (t) => {
  const b = bench(t);
  b.put(started(1));
  t.is(runOn(b, ['tick']).code, 0);
  const other = new Database(b.paths.ledger);
  t.teardown(() => other.close());
  other.exec('BEGIN IMMEDIATE; UPDATE runs SET status = 5');
  t.regex(runOn(b, ['runs']).stdout, / running /);
  other.exec('COMMIT');
  t.regex(runOn(b, ['runs']).stdout, / failed /);
});

test('a pass leaves its WAL to the next one, which reads it, and a long one is copied into the ledger (DESIGN 5)', (t) => {
  const b = bench(t);
  const sizes = new Set<number>();
  for (let at = 1; at <= 80; at += 1) {
    b.put(started(at));
    t.is(runOn(b, ['tick']).code, 0);
    sizes.add(statSync(`${b.paths.ledger}-wal`, { throwIfNoEntry: false })?.size ?? 0);
    // Alone, a pass has the index of the WAL in memory.
    t.false(existsSync(`${b.paths.ledger}-shm`));
  }
  t.true(sizes.size > 20, 'nothing was left');
  t.true(sizes.has(0), 'nothing was copied');
  t.true(Math.max(...sizes) <= 1024 * 1024);
  t.is(b.runs().length, 80);
  t.deepEqual(integrity(b.paths.ledger), ['ok']);
});

// Serial: other tests of this process would hold up the timer, and with it the lock.
test.serial('a lock that goes away in time costs nothing but the wait (DESIGN 5)', async (t) => {
  const b = bench(t);
  b.put(started(1));
  const other = new Database(b.paths.ledger);
  t.teardown(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const waiting = runLater(['tick', '--data-dir', b.data]);
  await new Promise((resolve) => setTimeout(resolve, 500));
  other.exec('COMMIT');
  t.like(await waiting, { code: 0, stdout: 'tick: 1 started\n' });
});

/** The artifact where every user may run it, and a user who may not write. */
function unprivileged(t: ExecutionContext): { readonly command: string; readonly uid?: number } {
  const place = mkdtempSync(path.join(tmpdir(), 'ql-artifact-'));
  t.teardown(() => rmSync(place, { recursive: true, force: true }));
  chmodSync(place, 0o755);
  cpSync('dist/ql-sidecar', path.join(place, 'ql-sidecar'), { recursive: true });
  return { command: path.join(place, 'ql-sidecar/bin/ql-sidecar'), ...(IS_ROOT ? { uid: NOBODY } : {}) };
}

test('a directory that may not be written: exit 74, one line, for every command (DESIGN 10)', (t) => {
  const b = bench(t);
  const user = unprivileged(t);
  b.put(started(1));
  b.ingest();
  b.put(finished(1));
  b.close();
  if (IS_ROOT) for (const place of [b.data, b.paths.sidecar, b.paths.spool, b.paths.ledger]) chownSync(place, NOBODY, NOBODY);
  if (IS_ROOT) for (const name of b.spooled()) chownSync(path.join(b.paths.spool, name), NOBODY, NOBODY);
  chmodSync(b.paths.sidecar, 0o500);
  t.teardown(() => chmodSync(b.paths.sidecar, 0o700));
  const tick = runOn(b, ['tick'], user);
  t.is(tick.code, 74, tick.stderr);
  t.regex(tick.stderr, /^ql-sidecar: [^\n]+\n$/);
  t.is(b.spooled().length, 1);
  const migrate = runOn(b, ['migrate'], user);
  t.is(migrate.code, 74, migrate.stderr);
  t.regex(migrate.stderr, /^ql-sidecar: cannot make a directory \(EACCES\): [^\n]+\n$/);
  // The index of the WAL is a file beside it, for readers too.
  const runs = runOn(b, ['runs'], user);
  t.is(runs.code, 74);
  t.regex(runs.stderr, /^ql-sidecar: ledger is read-only: [^\n]+; [^\n]*even reading needs to write beside it\n$/);
});

for (const words of [['migrate'], ['tick']]) {
  for (const [title, isThere] of [['none', false], ['one of root', true]] as const) {
    asRoot(`${words.join()} of root where the spool is another user's and the quarantine ${title}: it is that user's then, who can go on (DESIGN 4.4)`, (t) => {
      const b = bench(t);
      const user = unprivileged(t);
      b.close();
      for (const place of [b.data, b.paths.sidecar, b.paths.spool, b.paths.ledger]) chownSync(place, NOBODY, NOBODY);
      if (isThere) mkdirSync(b.paths.quarantine, { mode: 0o700 });
      b.put('no envelope\n');
      t.is(runOn(b, words).code, 0);
      const { uid, gid, mode } = statSync(b.paths.quarantine);
      t.deepEqual([uid, gid, mode & 0o777], [NOBODY, NOBODY, 0o700]);
      b.put('no envelope\n');
      t.is(runOn(b, ['tick'], user).code, 0);
      t.deepEqual(b.spooled(), []);
      t.is(b.quarantined().length, 2);
    });
  }
}

test('a ledger of another user: exit 74, one line (DESIGN 10)', (t) => {
  const b = bench(t);
  const user = unprivileged(t);
  b.close();
  if (IS_ROOT) chmodSync(b.data, 0o755);
  chmodSync(b.paths.ledger, 0);
  if (IS_ROOT) chmodSync(b.paths.sidecar, 0o755);
  for (const command of ['tick', 'runs']) {
    const outcome = runOn(b, [command], user);
    t.is(outcome.code, 74, command);
    t.regex(outcome.stderr, /^ql-sidecar: ledger cannot be opened: [^\n]+\n$/);
  }
});

test('an artifact whose migration was edited does not touch a ledger (DESIGN 5)', (t) => {
  const data = bareDirectory(t);
  const { command } = unprivileged(t);
  const migration = path.join(path.dirname(path.dirname(command)), 'migrations/0001-ledger.sql');
  const sql = readFileSync(migration, 'utf8');
  writeFileSync(migration, `${sql}-- edited\n`);
  const edited = run(['migrate', '--data-dir', data], { command });
  t.is(edited.code, 74);
  t.regex(edited.stderr, /^ql-sidecar: migration file was edited: 0001-ledger.sql; [^\n]+\n$/);
  rmSync(migration);
  const missing = run(['migrate', '--data-dir', data], { command });
  t.is(missing.code, 74);
  t.regex(missing.stderr, /^ql-sidecar: migration file is missing: [^\n]+\n$/);
});

test('two migrations at once: both end well, and the ledger has one schema (DESIGN 5)', async (t) => {
  const data = bareDirectory(t);
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => runLater(['migrate', '--data-dir', data])));
  for (const outcome of outcomes) t.is(outcome.code, 0, outcome.stderr);
  t.is(outcomes.filter(({ stdout }) => stdout.includes('applied 0001')).length, 1);
  t.deepEqual(integrity(`${data}/ql-sidecar/ledger.sqlite`), ['ok']);
});
