import test, { type ExecutionContext } from 'ava';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { configDirectory, run, runOn, type CommandOptions } from '../fixtures/ledger/command.js';
import { started } from '../fixtures/ledger/envelope.js';
import { Workbench, dump } from '../fixtures/ledger/workbench.js';

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

/** One line, for a person: what, where, what to do; no stack, nothing that steers a terminal. */
function isOneLine(t: ExecutionContext, stderr: string, pattern: RegExp): void {
  t.regex(stderr, /^ql-sidecar: [^\n]+\n$/);
  t.regex(stderr, pattern);
  t.false(/\p{Cc}/u.test(stderr.slice(0, -1)), JSON.stringify(stderr));
  t.true(stderr.length < 600);
  t.false(/\bat .*:\d+:\d+/.test(stderr));
}

for (const [words, pattern] of [
  [[], /name a command/],
  [['frobnicate'], /Unknown argument: frobnicate/],
  [['runs', '--bogus'], /bogus/],
  [['runs', 'extra'], /extra/],
  [['runs', '--cron', 'x'], /--cron must be a whole number/],
  [['runs', '--cron', '0'], /--cron/],
  [['runs', '--cron', '-5'], /cron/],
  [['runs', '--cron', '9007199254740993'], /--cron/],
  [['runs', '--cron', '1e3'], /--cron/],
  [['runs', '--cron', ''], /--cron/],
  [['runs', '--cron'], /cron/],
  [['runs', '--limit', '0'], /--limit/],
  [['runs', '--limit', '1000001'], /--limit/],
  [['runs', '--origin', 'cron'], /origin/],
  [['runs', '--status', 'done'], /status/],
  [['runs', '--since', 'yesterday'], /--since must be/],
  [['runs', '--since', '2026-02-30'], /--since/],
  [['runs', '--since', '\u001b[31mred\nline'], /--since/],
  [['show'], /Not enough|name/],
  [['show', 'xyz'], /not a Run/],
  [['show', '1234567'], /not a Run/],
  [['show', '\u001b[31m'], /not a Run/],
  [['show', 'legacy-system:5:x'], /execution_id/],
  [['show', 'a', 'b'], /b/],
  [['tick', 'now'], /now/],
  [['ingest', '--limit', '5'], /limit/],
  [['migrate', '--force'], /force/],
  [['metrics', '--utc'], /utc/],
  [['tick', '--data-dir', ''], /empty path/],
  [['\u009b31m'], /Unknown/],
] as const) {
  test(`ql-sidecar ${words.map((word) => JSON.stringify(word)).join(' ')}: exit 2, one line (DESIGN 10)`, (t) => {
    const b = bench(t);
    const before = dump(b.paths.ledger);
    const outcome = run(words, { environment: { QL_DATA_DIR: b.data } });
    t.is(outcome.code, 2, outcome.stderr);
    t.is(outcome.stdout, '');
    isOneLine(t, outcome.stderr, pattern);
    t.deepEqual(dump(b.paths.ledger), before);
  });
}

test('--data-dir without its directory: exit 2 (DESIGN 10)', (t) => {
  for (const command of ['runs', 'tick', 'migrate']) {
    const outcome = run([command, '--data-dir']);
    t.is(outcome.code, 2, outcome.stderr);
    isOneLine(t, outcome.stderr, /data-dir/);
  }
});

for (const words of [['--help'], ['runs', '--help'], ['tick', '--help'], ['--version'], ['-h']]) {
  test(`ql-sidecar ${words.join(' ')}: exit 0, on stdout, 80 columns (DESIGN 10)`, (t) => {
    const outcome = run(words);
    t.is(outcome.code, 0);
    t.is(outcome.stderr, '');
    for (const line of outcome.stdout.split('\n')) t.true(line.length <= 80, line);
    t.true(outcome.stdout.length > 3);
  });
}

for (const command of ['tick', 'ingest', 'runs', 'metrics', 'migrate']) {
  test(`${command}: a data directory that does not exist: exit 78, its path, and nothing is made (DESIGN 10)`, (t) => {
    const b = bench(t);
    const outcome = run([command, '--data-dir', path.join(b.data, 'none')]);
    t.is(outcome.code, 78);
    isOneLine(t, outcome.stderr, /none; pass --data-dir/);
  });
}

test('a data directory that is a file: exit 78', (t) => {
  const b = bench(t);
  const outcome = run(['tick', '--data-dir', b.paths.ledger]);
  t.is(outcome.code, 78);
  isOneLine(t, outcome.stderr, /data directory does not exist/);
});

test('a hostile path goes back to the terminal without its controls', (t) => {
  const outcome = run(['tick', '--data-dir', '/nonexistent/\u001b[31m\n\u009b5m\u0007']);
  t.is(outcome.code, 78);
  isOneLine(t, outcome.stderr, /data directory does not exist/);
});

for (const [title, environment, cwd] of [
  ['--data-dir wins', { QL_DATA_DIR: '/nonexistent', QL_DIR: '/nonexistent' }, undefined],
  ['$QL_DIR/data', { QL_DIR: '<parent>' }, undefined],
  ['QL_DATA_DIR before QL_DIR', { QL_DATA_DIR: '<data>', QL_DIR: '/nonexistent' }, undefined],
  ['a relative path', { QL_DATA_DIR: 'data' }, '<parent>'],
  ['a slash at the end', { QL_DATA_DIR: '<data>///' }, undefined],
] as const) {
  test(`where the data lies: ${title} (DESIGN 13)`, (t) => {
    const b = bench(t);
    const data = path.join(b.data, 'data');
    mkdirSync(data);
    const fill = (text: string): string => text.replace('<parent>', b.data).replace('<data>', data);
    const options: CommandOptions = {
      environment: Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, fill(value)])),
      ...(cwd === undefined ? {} : { cwd: fill(cwd) }),
    };
    const outcome = run(['migrate', ...(title === '--data-dir wins' ? ['--data-dir', data] : [])], options);
    t.is(outcome.code, 0, outcome.stderr);
    t.regex(outcome.stdout, new RegExp(`^ledger is ready: ${data}/ql-sidecar/ledger.sqlite `));
  });
}

for (const [title, text, warning, taken] of [
  ['switches an origin on', 'QL3_SHADOW_ORIGINS=scheduled_system\n', null, true],
  ['an unknown origin', 'QL3_SHADOW_ORIGINS=scheduled_system,grpc,\u001b[31m\n', /QL3_SHADOW_ORIGINS: .*ignored: grpc, \?/, true],
  ['an unknown key', 'QL3_SHADOW_ORIGIN=scheduled_system\n', /unknown keys ignored: QL3_SHADOW_ORIGIN/, false],
  ['lines that are none', 'QL3_SHADOW_ORIGINS=scheduled_system\n<html>\n', /1 lines are not KEY=VALUE/, true],
  ['binary', Buffer.from([0, 1, 2, 0xff, 0x0a, 0x80]).toString('latin1'), /not KEY=VALUE/, false],
  ['too large', `QL3_SHADOW_ORIGINS=scheduled_system\n${'#'.repeat(65 * 1024)}`, /larger than 64 KiB, ignored/, false],
  ['an unknown profile', 'QL3_PROFILE=tiny\nQL3_SHADOW_ORIGINS=scheduled_system\n', /QL3_PROFILE: must be edge or standalone, got tiny/, true],
] as const) {
  test(`the configuration file ${title}: ${warning === null ? 'no word' : 'one warning'}, origin ${taken ? 'on' : 'off'} (DESIGN 13)`, (t) => {
    const b = bench(t);
    writeFileSync(path.join(configDirectory(b.data), 'ql-sidecar.env'), text);
    b.put(started(1));
    const outcome = runOn(b, ['ingest'], { environment: { QL3_SHADOW_ORIGINS: undefined, QL3_PROFILE: undefined } });
    t.is(outcome.code, 0);
    t.is(outcome.stdout, taken ? 'ingest: 1 started\n' : 'ingest: 1 of origins that are off\n');
    if (warning === null) t.is(outcome.stderr, '');
    else isOneLine(t, outcome.stderr, warning);
  });
}

test('a configuration file that cannot be read: all off, one warning (DESIGN 13)', (t) => {
  const b = bench(t);
  mkdirSync(path.join(configDirectory(b.data), 'ql-sidecar.env'));
  b.put(started(1));
  const outcome = runOn(b, ['ingest'], { environment: { QL3_SHADOW_ORIGINS: undefined } });
  t.is(outcome.stdout, 'ingest: 1 of origins that are off\n');
  isOneLine(t, outcome.stderr, /warning: .*ql-sidecar.env: cannot be read \(EISDIR\), ignored/);
});

test('QL_SIDECAR_DIR moves everything; a relative one is refused with exit 78 (DESIGN 13)', (t) => {
  const b = bench(t);
  const elsewhere = path.join(b.data, 'elsewhere');
  const moved = runOn(b, ['migrate'], { environment: { QL_SIDECAR_DIR: elsewhere } });
  t.is(moved.stdout, `ledger is ready: ${elsewhere}/ledger.sqlite (applied 0001-ledger.sql)\n`);
  const refused = runOn(b, ['tick'], { environment: { QL_SIDECAR_DIR: 'elsewhere' } });
  t.is(refused.code, 78);
  isOneLine(t, refused.stderr, /not an absolute path: QL_SIDECAR_DIR/);
});

test('the launcher without node: exit 78, one line (DESIGN 4.6)', (t) => {
  const b = bench(t);
  const empty = path.join(b.data, 'empty');
  mkdirSync(empty);
  chmodSync(empty, 0o755);
  const outcome = run(['tick', '--data-dir', b.data], { environment: { QL_SIDECAR_NODE: '/nonexistent/node', PATH: empty } });
  // Where a package has put node in one of the usual places, the launcher finds it there.
  if (outcome.code === 0) t.pass();
  else {
    t.is(outcome.code, 78);
    isOneLine(t, outcome.stderr, /node is not found/);
  }
});
