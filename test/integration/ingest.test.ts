import test from 'ava';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, linkSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ExecutionContext } from 'ava';
import { ENVELOPE_BYTES_MAX } from '../../sidecar/domain/envelope.js';
import { Spool } from '../../sidecar/host/spool.js';
import { emptyReport } from '../../sidecar/operations/ingest.js';
import { executionId, finished, line, started } from '../fixtures/ledger/envelope.js';
import { Workbench, dump } from '../fixtures/ledger/workbench.js';

const MINUTE_MS = 60_000;
const IS_ROOT = process.getuid?.() === 0;
/** Only root can make a file of another user; only another user can be refused a file. */
const asRoot = IS_ROOT ? test : test.skip;
const asUser = IS_ROOT ? test.skip : test;

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

/** What may lie in a spool, how it is made, and the reason under which it is put aside. */
const REJECTED: readonly (readonly [string, string, (place: string) => void])[] = [
  ['no JSON', 'malformed', (place) => writeFileSync(place, 'hello\n')],
  ['an empty line', 'malformed', (place) => writeFileSync(place, '\n')],
  ['two envelopes', 'malformed', (place) => writeFileSync(place, line(started(8)) + line(started(9)))],
  ['bytes that are no text', 'malformed', (place) => writeFileSync(place, Buffer.from([0xff, 0xfe, 0, 0x0a]))],
  ['a field too much', 'malformed', (place) => writeFileSync(place, line(started(8, { command: 'rm -rf /' })))],
  ['a valid envelope of one byte too many', 'oversize', (place) => writeFileSync(place, `${JSON.stringify(started(8)).padEnd(ENVELOPE_BYTES_MAX)}\n`)],
  ['a megabyte', 'oversize', (place) => writeFileSync(place, Buffer.alloc(1 << 20, 0x0a))],
  ['a sparse terabyte', 'oversize', (place) => execFileSync('truncate', ['-s', '1T', place])],
  ['a link to a valid envelope', 'not_a_file', (place) => {
    writeFileSync(`${path.dirname(path.dirname(place))}/target`, line(started(8)));
    symlinkSync('../target', place);
  }],
  ['a link to nothing', 'not_a_file', (place) => symlinkSync('/nonexistent', place)],
  ['a link to itself', 'not_a_file', (place) => symlinkSync(place, place)],
  ['a link to a device', 'not_a_file', (place) => symlinkSync('/dev/zero', place)],
  ['a fifo that nobody writes to', 'not_a_file', (place) => execFileSync('mkfifo', [place])],
  ['a directory', 'not_a_file', (place) => mkdirSync(place)],
  ['a directory with an envelope in it', 'not_a_file', (place) => {
    mkdirSync(place);
    writeFileSync(`${place}/x.json`, line(started(8)));
  }],
];

for (const [title, reason, make] of REJECTED) {
  test(`${title} is put aside as ${reason}; what lies around it is taken in (DESIGN 4.4)`, (t) => {
    const b = bench(t);
    b.put(started(1), '0.json');
    make(path.join(b.paths.spool, '1.json'));
    b.put(started(2), '2.json');
    t.deepEqual(b.ingest(), { ...emptyReport(), started: 2, quarantined: 1 });
    t.deepEqual(b.spooled(), []);
    t.deepEqual(b.quarantined(), [`${b.nowMs}-${reason}-1.json`]);
    t.is(b.counter('ql_sidecar_quarantined_total', `error_class="${reason}"`), 1);
    t.is(b.runs().length, 2);
    t.deepEqual(b.ingest(), emptyReport());
  });
}

test('an envelope of exactly 4,096 bytes is taken in (PROTOCOL)', (t) => {
  const b = bench(t);
  b.put(`${JSON.stringify(started(1)).padEnd(ENVELOPE_BYTES_MAX - 1)}\n`);
  t.like(b.ingest(), { started: 1, quarantined: 0 });
});

/** The size of each entry of the quarantine. */
function keptSizes(b: Workbench): number[] {
  return b.quarantined().map((name) => lstatSync(path.join(b.paths.quarantine, name)).size);
}

test('what is put aside is cut to one byte more than an envelope, and a link is never followed (DESIGN 4.4)', (t) => {
  const b = bench(t);
  const victim = path.join(b.data, 'victim');
  writeFileSync(victim, 'x'.repeat(100_000));
  symlinkSync(victim, path.join(b.paths.spool, 'link.json'));
  b.put('y'.repeat(100_000), 'long.json');
  b.put('y'.repeat(ENVELOPE_BYTES_MAX + 1), 'longer.json');
  t.like(b.ingest(), { quarantined: 3 });
  t.is(readFileSync(victim, 'utf8').length, 100_000);
  t.deepEqual(keptSizes(b), [victim.length, ENVELOPE_BYTES_MAX + 1, ENVELOPE_BYTES_MAX + 1]);
});

test('a long file with a second name elsewhere leaves the spool; what it holds is not touched (DESIGN 4.4)', (t) => {
  const b = bench(t);
  const elsewhere = path.join(b.data, 'elsewhere');
  writeFileSync(elsewhere, 'x'.repeat(100_000));
  linkSync(elsewhere, path.join(b.paths.spool, '1.json'));
  t.deepEqual(b.ingest(), { ...emptyReport(), quarantined: 1 });
  t.deepEqual([b.spooled(), b.quarantined()], [[], []]);
  t.is(readFileSync(elsewhere, 'utf8').length, 100_000);
});

asRoot('a long file of another user is cut like any other before it is put aside (DESIGN 4.4)', (t) => {
  const b = bench(t);
  chownSync(path.join(b.paths.spool, b.put('y'.repeat(100_000))), 65_534, 65_534);
  t.deepEqual(b.ingest(), { ...emptyReport(), quarantined: 1 });
  t.deepEqual(keptSizes(b), [ENVELOPE_BYTES_MAX + 1]);
});

asRoot('a file of another user is put aside; of the owner of the spool it is taken in (DESIGN 4.4)', (t) => {
  const b = bench(t);
  b.put(started(1), '1.json');
  chownSync(path.join(b.paths.spool, '1.json'), 65_534, 65_534);
  t.deepEqual(b.ingest(), { ...emptyReport(), quarantined: 1 });
  t.deepEqual(b.quarantined(), [`${b.nowMs}-foreign_owner-1.json`]);
  chownSync(b.paths.spool, 65_534, 65_534);
  b.put(started(2), '2.json');
  chownSync(path.join(b.paths.spool, '2.json'), 65_534, 65_534);
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 1 });
});

test('the longest file name, in any script, is put aside like any other (DESIGN 4.4)', (t) => {
  const b = bench(t);
  for (const name of ['x'.repeat(255), '备'.repeat(85), '😀'.repeat(63), "a'b\"c\\d\n%s"]) b.put('no envelope\n', name);
  b.put(started(1), 'zz.json');
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 1, quarantined: 4 });
  t.deepEqual(b.spooled(), []);
});

/** A path below the spool whose name has these bytes. */
function spoolPath(b: Workbench, name: readonly number[]): Buffer {
  return Buffer.concat([Buffer.from(`${b.paths.spool}/`), Buffer.from(name)]);
}

test('a name that is not UTF-8 is met like any other: what is no envelope is put aside, an envelope is taken in (DESIGN 4.4)', (t) => {
  const b = bench(t);
  writeFileSync(spoolPath(b, [0x61, 0xff]), 'no envelope\n');
  writeFileSync(spoolPath(b, [0x61, 0xfe]), 'no envelope either\n');
  writeFileSync(spoolPath(b, new Array<number>(255).fill(0xc3)), '\n');
  mkdirSync(spoolPath(b, [0xe5, 0xa4]));
  writeFileSync(spoolPath(b, [0xe5, 0xa4, 0x2e]), line(started(1)));
  writeFileSync(spoolPath(b, [0x2e, 0xff]), 'hidden');
  b.put(started(2), '备.json');
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 2, quarantined: 4 });
  t.deepEqual(readdirSync(b.paths.spool, 'latin1'), ['.\xff']);
  const kept = ['malformed-a\xfe', 'malformed-a\xff', `malformed-${'\xc3'.repeat(100)}`, 'not_a_file-\xe5\xa4'];
  t.deepEqual(b.quarantined(), kept.map((name) => `${b.nowMs}-${name}`));
  t.is(b.counter('ql_sidecar_quarantined_total'), 4);
  t.deepEqual(b.ingest(), emptyReport());
});

test('what somebody put into the quarantine under a name that is not UTF-8 does not stay there for ever (DESIGN 4.4)', (t) => {
  const b = bench(t);
  mkdirSync(b.paths.quarantine);
  writeFileSync(Buffer.concat([Buffer.from(`${b.paths.quarantine}/0`), Buffer.from([0xff])]), 'x');
  for (let index = 0; index < 256; index += 1) b.put('x\n');
  b.ingest();
  t.deepEqual(b.quarantined().filter((name) => !name.startsWith(String(b.nowMs))), []);
  t.is(b.quarantined().length, 256);
});

test('a name that begins with a dot is no envelope (PROTOCOL)', (t) => {
  const b = bench(t);
  b.put(started(1), '.hidden');
  t.deepEqual(b.ingest(), emptyReport());
  t.deepEqual(b.spooled(), ['.hidden']);
});

for (const [title, content] of [['empty', ''], ['half', line(started(1)).slice(0, 50)], ['without its newline', line(started(1)).trimEnd()]] as const) {
  test(`an incomplete file (${title}) waits for its writer; after ten minutes it is put aside (DESIGN 4.4)`, (t) => {
    const b = bench(t);
    const file = path.join(b.paths.spool, b.put(content));
    b.put(started(2));
    const age = (ms: number): void => utimesSync(file, new Date(b.nowMs - ms), new Date(b.nowMs - ms));
    age(10 * MINUTE_MS);
    t.deepEqual(b.ingest(), { ...emptyReport(), started: 1, incomplete: 1 });
    t.deepEqual(b.spooled(), ['1.json']);
    age(10 * MINUTE_MS + 1000);
    t.deepEqual(b.ingest(), { ...emptyReport(), quarantined: 1 });
    t.deepEqual(b.quarantined(), [`${b.nowMs}-incomplete-1.json`]);
  });
}

test('an incomplete file that its writer completes is taken in (DESIGN 4.4)', (t) => {
  const b = bench(t);
  const text = line(started(1));
  const name = b.put(text.slice(0, 100));
  b.ingest();
  writeFileSync(path.join(b.paths.spool, name), text);
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 1 });
});

test('the quarantine keeps the newest 256 (DESIGN 4.4)', (t) => {
  const b = bench(t);
  for (let index = 0; index < 300; index += 1) b.put('x\n');
  t.is(b.ingest().quarantined, 300);
  t.is(b.quarantined().length, 256);
  b.nowMs += 1000;
  mkdirSync(path.join(b.paths.spool, 'directory/with/depth'), { recursive: true });
  for (let index = 0; index < 10; index += 1) b.put('x\n');
  t.is(b.ingest().quarantined, 11);
  t.is(b.quarantined().length, 256);
  t.is(b.quarantined().filter((name) => name.startsWith(String(b.nowMs))).length, 11);
  b.nowMs += 1000;
  for (let index = 0; index < 256; index += 1) b.put('x\n');
  b.ingest();
  t.is(b.quarantined().filter((name) => name.startsWith(String(b.nowMs))).length, 256);
});

test('a pass takes at most its bound, oldest names first, and says what remains (DESIGN 12)', (t) => {
  const b = bench(t);
  for (let number = 10; number < 35; number += 1) b.put(number % 5 === 0 ? 'x\n' : started(number), `${number}.json`);
  t.deepEqual(b.ingest({ limit: 10 }), { ...emptyReport(), started: 8, quarantined: 2, remaining: 15 });
  t.is(b.spooled()[0], '20.json');
  t.deepEqual(b.ingest({ limit: 10 }), { ...emptyReport(), started: 8, quarantined: 2, remaining: 5 });
  t.deepEqual(b.ingest({ limit: 10 }), { ...emptyReport(), started: 4, quarantined: 1 });
  t.deepEqual(b.ingest({ limit: 10 }), emptyReport());
  t.is(b.runs().length, 20);
});

test('what waits for its writer does not use up the bound (DESIGN 12)', (t) => {
  const b = bench(t);
  for (let index = 0; index < 5; index += 1) b.put('{', `0${index}.json`);
  b.put(started(1), '1.json');
  b.nowMs = Date.now();
  t.deepEqual(b.ingest({ limit: 1 }), { ...emptyReport(), started: 1, incomplete: 5 });
});

test('1,300 envelopes pass in groups; each is one Run (DESIGN 4.4)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 1300; number += 1) b.put(started(number));
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 1300 });
  t.is(b.runs().length, 1300);
  t.is(b.counter('shadow_run_create_total'), 1300);
});

test('one row that the schema refuses is put aside; the others of its group are taken in, once (DESIGN 4.4)', (t) => {
  const b = bench(t);
  b.connection.exec("CREATE TRIGGER bad BEFORE INSERT ON runs WHEN new.cron_id = 666 BEGIN SELECT RAISE(ABORT, 'no'); END");
  for (let number = 0; number < 40; number += 1) b.put(started(number, { cron_id: number === 17 ? 666 : 5 }));
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 39, quarantined: 1 });
  t.is(b.runs().length, 39);
  t.true(b.quarantined()[0]?.includes('-refused_by_ledger-'));
  t.is(b.counter('shadow_run_create_total'), 39);
  t.is(b.counter('ql_sidecar_quarantined_total', 'error_class="refused_by_ledger"'), 1);
});

/** A spool that tells, at each unlink, what a second reader sees in the ledger then. */
class WatchedSpool extends Spool {
  readonly seen: number[] = [];
  constructor(readonly bench: Workbench) {
    super(bench.paths.spool, bench.paths.quarantine, bench.paths.spoolFull);
  }
  override remove(name: string): void {
    this.seen.push(dump(this.bench.paths.ledger).runs?.length ?? 0);
    super.remove(name);
  }
}

test('a file is unlinked only after the commit that holds it (DESIGN 4.4)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 5; number += 1) b.put(started(number));
  const spool = new WatchedSpool(b);
  b.ingest({ spool });
  t.deepEqual(spool.seen, [5, 5, 5, 5, 5]);
});

test('killed between commit and unlink: the replay changes no row and counts nothing twice (DESIGN 4.4)', (t) => {
  const b = bench(t);
  class DyingSpool extends Spool {
    override remove(): void {
      throw new Error('killed');
    }
  }
  for (let number = 0; number < 5; number += 1) b.put(started(number));
  b.put(finished(3, { exit_code: 7 }));
  const spool = new DyingSpool(b.paths.spool, b.paths.quarantine, b.paths.spoolFull);
  t.throws(() => b.ingest({ spool }), { message: 'killed' });
  const before = dump(b.paths.ledger);
  t.is(b.spooled().length, 6);
  t.deepEqual(b.ingest(), { ...emptyReport(), replayed: 6 });
  t.deepEqual(dump(b.paths.ledger), before);
  t.deepEqual(b.spooled(), []);
});

test('a ledger error leaves every file and every row as they were (DESIGN 4.4)', (t) => {
  const b = bench(t);
  b.connection.pragma('max_page_count = 1');
  for (let number = 0; number < 700; number += 1) b.put(started(number));
  const before = dump(b.paths.ledger);
  const error = t.throws(() => b.ingest(), { any: true }) as { code?: string };
  t.is(error.code, 'SQLITE_FULL');
  t.is(b.spooled().length, 700);
  t.deepEqual(b.quarantined(), []);
  t.deepEqual(dump(b.paths.ledger), before);
  b.connection.pragma('max_page_count = 1000000');
  t.deepEqual(b.ingest(), { ...emptyReport(), started: 700 });
});

test('a full disk in the middle: what was committed is gone from the spool, the rest is still there (DESIGN 4.4)', (t) => {
  const b = bench(t);
  for (let number = 0; number < 4000; number += 1) b.put(started(number));
  b.connection.pragma(`max_page_count = ${(b.connection.pragma('page_count', { simple: true }) as number) + 700}`);
  const error = t.throws(() => b.ingest(), { any: true }) as { code?: string };
  t.is(error.code, 'SQLITE_FULL');
  const left = b.spooled().length;
  t.true(left > 0 && left < 4000, String(left));
  t.is(b.runs().length, 4000 - left);
  b.connection.pragma('max_page_count = 1000000');
  t.deepEqual(b.ingest(), { ...emptyReport(), started: left });
  t.is(b.counter('shadow_run_create_total'), 4000);
});

test('no spool: nothing to do. A spool that cannot be read is an error (DESIGN 10)', (t) => {
  const b = bench(t);
  rmSync(b.paths.spool, { recursive: true });
  t.deepEqual(b.ingest(), emptyReport());
  writeFileSync(b.paths.spool, '');
  t.throws(() => b.ingest(), { code: 'ENOTDIR' });
});

for (const [profile, bound] of [['edge', 1024], ['standalone', 8192]] as const) {
  for (const [title, remaining, removed] of [
    ['an empty spool', 0, true],
    ['one below the bound', bound - 1, true],
    ['the bound itself', bound, false],
  ] as const) {
    test(`${profile}: spool.full with ${title} left is ${removed ? 'removed' : 'kept'} (PROTOCOL)`, (t) => {
      const b = bench(t);
      writeFileSync(b.paths.spoolFull, '');
      const names = Array.from({ length: remaining + (remaining === 0 ? 0 : 1) }, (_, index) => `${index}`);
      class CountedSpool extends Spool {
        override names(): string[] {
          return names;
        }
      }
      const spool = new CountedSpool(b.paths.spool, b.paths.quarantine, b.paths.spoolFull);
      if (remaining > 0) b.put(started(1), '0');
      t.is(b.ingest({ spool, limit: 1, profile }).remaining, remaining);
      t.is(existsSync(b.paths.spoolFull), !removed);
    });
  }
}

test('an origin that is off: its envelopes leave the spool and no row (0446 decision 7)', (t) => {
  const b = bench(t);
  const before = dump(b.paths.ledger);
  b.put(started(1));
  b.put(finished(1));
  b.put(finished(2));
  t.deepEqual(b.ingest({ shadowOrigins: new Set() }), { ...emptyReport(), off: 3 });
  t.deepEqual(b.spooled(), []);
  t.deepEqual(dump(b.paths.ledger), before);
});

test('origins are switched one by one (0446 decision 7)', (t) => {
  const b = bench(t);
  const manual = { execution_id: executionId(2, 'manual'), origin: 'manual' };
  b.put(started(1));
  b.put(started(2, manual));
  t.deepEqual(b.ingest({ shadowOrigins: new Set(['manual']) }), { ...emptyReport(), started: 1, off: 1 });
  t.deepEqual(b.runs().map(({ origin }) => origin), ['manual']);
});

asUser('a file that nobody may read is put aside, not waited for (DESIGN 4.4)', (t) => {
  const b = bench(t);
  chmodSync(path.join(b.paths.spool, b.put(started(1))), 0);
  t.deepEqual(b.ingest(), { ...emptyReport(), quarantined: 1 });
});
