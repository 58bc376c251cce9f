import test, { type ExecutionContext } from 'ava';
import { readdirSync } from 'node:fs';
import { ENVELOPE_BYTES_MAX, parseEnvelope } from '../../sidecar/domain/envelope.js';
import { runOn } from '../fixtures/ledger/command.js';
import { finished, started } from '../fixtures/ledger/envelope.js';
import { hostileFiles, type Hostile } from '../fixtures/ledger/hostile.js';
import { Workbench, dump, integrity } from '../fixtures/ledger/workbench.js';

/** The one decoder that is not under test says what a file of the spool is: one line of at most 4,096 bytes, read strictly. */
function isEnvelope(bytes: Buffer): boolean {
  return bytes.length <= ENVELOPE_BYTES_MAX && parseEnvelope(bytes.toString('utf8', 0, bytes.length - 1)).ok;
}

const HOSTILE = hostileFiles(400, isEnvelope);

/** The ledger without the counters, which may tell of refusals. */
function rows(b: Workbench): unknown {
  return { ...dump(b.paths.ledger), counters: [] };
}

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  made.feed(started(1), finished(2), started(3), finished(3, { exit_code: 3 }));
  made.close();
  return made;
}

test('there are at least 300 hostile envelopes, and no two are the same (bad input)', (t) => {
  t.true(HOSTILE.length >= 300, String(HOSTILE.length));
  t.true(new Set(HOSTILE.map(({ bytes }) => bytes.toString('latin1'))).size > HOSTILE.length * 0.95);
});

/** Puts these into the spool, lets the real command run, and checks all that an operator could see. */
function survives(t: ExecutionContext, b: Workbench, files: readonly Hostile[]): void {
  const before = rows(b);
  const quarantinedBefore = b.counter('ql_sidecar_quarantined_total');
  b.close();
  files.forEach(({ bytes }, index) => b.put(bytes, `${String(index).padStart(5, '0')}.json`));
  const outcome = runOn(b, ['ingest']);
  t.deepEqual(outcome, { code: 0, signal: null, stdout: `ingest: ${files.length} quarantined\n`, stderr: '' });
  t.deepEqual(rows(b), before);
  t.deepEqual(b.spooled(), []);
  t.is(b.counter('ql_sidecar_quarantined_total') - quarantinedBefore, files.length);
  const classes = b.connection.prepare("SELECT labels FROM counters WHERE name = 'ql_sidecar_quarantined_total'").pluck().all();
  for (const labels of classes) t.regex(String(labels), /^error_class="(malformed|oversize)"$/);
  for (const name of readdirSync(b.paths.quarantine)) t.regex(name, /^\d{13}-(malformed|oversize)-\d{5}\.json$/);
  b.close();
}

test(`${HOSTILE.length} hostile envelopes at once: the ledger is as it was, every file is put aside, exit 0 (bad input)`, (t) => {
  const b = bench(t);
  survives(t, b, HOSTILE);
  t.deepEqual(integrity(b.paths.ledger), ['ok']);
});

test('in small portions, each by a process of its own (bad input)', (t) => {
  const b = bench(t);
  for (let at = 0; at < HOSTILE.length; at += 60) survives(t, b, HOSTILE.slice(at, at + 60));
});

test('right envelopes among them are taken in, each once (bad input)', (t) => {
  const b = bench(t);
  HOSTILE.forEach(({ bytes }, index) => b.put(bytes, `${String(index).padStart(5, '0')}-bad.json`));
  const good = [started(11), finished(11), started(12), started(11)];
  good.forEach((fields, index) => b.put(`${JSON.stringify(fields)}\n`, `${String(index * 90).padStart(5, '0')}-good.json`));
  const outcome = runOn(b, ['ingest', '--json']);
  t.is(outcome.code, 0);
  t.like(JSON.parse(outcome.stdout), { started: 2, finished: 1, replayed: 1, quarantined: HOSTILE.length, remaining: 0 });
  t.is(b.runs().length, 5);
});

test('envelopes that are right in form and mean harm in content change no other Run (bad input)', (t) => {
  const b = bench(t);
  const names = ["'; DROP TABLE runs; --", '"><script>', '$(reboot)', '../../etc/passwd', '%s%n', '備份 \u{1f600}'];
  names.forEach((name, index) => b.put(started(100 + index, { name, host: name, log_path: `${name}\u001b[2J\n` })));
  const before = b.runs();
  b.close();
  t.is(runOn(b, ['ingest']).stdout, `ingest: ${names.length} started\n`);
  const after = b.runs();
  t.is(after.length, before.length + names.length);
  for (const run of before) t.deepEqual(after.find(({ run_id }) => run_id === run.run_id), run);
  t.deepEqual(integrity(b.paths.ledger), ['ok']);
  const table = runOn(b, ['runs']);
  t.false(/[\p{Cc}]/u.test(table.stdout.replaceAll('\n', '')));
});
