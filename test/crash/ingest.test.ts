// A process that is killed at any instant loses no envelope and doubles no row (DESIGN 4.4, ADR-0446 §Response-loss). The
// kills are real SIGKILLs of real processes over real files; strace places them so that every state of the disk is met that
// the system calls of a run go through. A loss of power, which can also undo what was not synced, is not tried here: that
// promise is SQLite's, with synchronous=FULL.
import test, { type ExecutionContext } from 'ava';
import { existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ENVELOPE_BYTES_MAX } from '../../sidecar/domain/envelope.js';
import type { Paths } from '../../sidecar/host/paths.js';
import { fileName, line, started } from '../fixtures/ledger/envelope.js';
import { canTrace, eachOf, killAt, killPoints, nameOf, runWhole, type KillPoint, type Victim } from './kill-points.js';
import {
  QUARANTINED,
  REFUSED,
  bareDirectory,
  endOf,
  inexactCounts,
  layOut,
  layOutMany,
  ledgerBefore,
  remove,
  victimIn,
  type Journal,
} from './scene.js';

/** How many instants to kill at where strace cannot say which (each of six scenes). */
const INSTANTS = 100;

const how = canTrace ? 'after each system call that changes something' : `at ${INSTANTS} instants (strace cannot trace here)`;

for (const journal of ['wal', 'delete'] satisfies Journal[]) {
  for (const command of ['ingest', 'tick']) {
    test.serial(`${command} killed ${how}, journal ${journal}: no envelope lost, no row doubled, counters exact (DESIGN 4.4)`, async (t) => {
      const before = ledgerBefore(journal);
      const scene = (): Paths => layOut(before);
      const expected = await undisturbed(t, scene(), command);
      t.deepEqual([expected.spooled, expected.besides], [['half.json'], ['ledger.sqlite', 'notices', 'quarantine', 'spool']]);
      t.is(expected.quarantined.length, QUARANTINED);
      t.deepEqual(expected.file, [1024, 2, journal, 'ok']);
      await killEach(t, scene, (paths) => victimIn(paths, [command]), async (paths, point) => {
        t.like(await runWhole(victimIn(paths, [command])), { code: 0, stderr: '' }, nameOf(point));
        t.deepEqual(endOf(paths), expected, nameOf(point));
        const counts = inexactCounts(paths);
        t.true(counts.quarantined <= QUARANTINED && counts.refused >= REFUSED && counts.refused <= 2 * REFUSED, nameOf(point));
      });
    });
  }
}

test.serial(`ingest of more than one transaction killed ${how}: no envelope lost, no row doubled, counters exact (DESIGN 4.4)`, async (t) => {
  const before = ledgerBefore('wal');
  const scene = (): Paths => layOutMany(before, 600);
  const expected = await undisturbed(t, scene(), 'ingest');
  t.deepEqual(expected.spooled, []);
  // One file more, one page more is the same state again: of the files the first, the last and those around the second
  // commit do, of the pages every 50th.
  const watched = (paths: Paths): string[] =>
    readdirSync(paths.spool).sort().filter((_, index) => [0, 1, 510, 511, 512, 513, 598, 599].includes(index));
  await killEach(t, scene, (paths) => victimIn(paths, ['ingest'], watched(paths)), async (paths, point) => {
    t.like(await runWhole(victimIn(paths, ['ingest'])), { code: 0, stderr: '' }, nameOf(point));
    t.deepEqual(endOf(paths), expected, nameOf(point));
  }, everyPage(50));
});

test.serial(`migrate killed ${how}: tick takes nothing and says so in one line, or works; migrate again mends it (DESIGN 5)`, async (t) => {
  const expected = await undisturbed(t, bareDirectory(), 'migrate');
  await killEach(t, bareDirectory, (paths) => victimIn(paths, ['migrate']), async (paths, point) => {
    const envelope = path.join(paths.spool, fileName(started(1)));
    const hasSpool = existsSync(paths.spool);
    if (hasSpool) writeFileSync(envelope, line(started(1)));
    const early = await runWhole(victimIn(paths, ['tick']));
    if (early.code === 0) t.is(early.stdout, 'tick: 1 started\n', nameOf(point));
    else {
      t.is(early.code, 74, nameOf(point));
      t.regex(early.stderr, /^ql-sidecar: ledger (cannot be opened|is not ready): [^\n]+run "ql-sidecar migrate"[^\n]*\n$/, nameOf(point));
      t.is(existsSync(envelope), hasSpool, nameOf(point));
    }
    t.like(await runWhole(victimIn(paths, ['migrate'])), { code: 0, stderr: '' }, nameOf(point));
    const end = endOf(paths);
    if (early.code === 0) t.is(end.rows.runs?.length, 1, nameOf(point));
    else t.deepEqual(end, { ...expected, spooled: hasSpool ? [path.basename(envelope)] : [] }, nameOf(point));
    t.deepEqual(end.file, expected.file, nameOf(point));
  }, everyPage(4));
});

const traced = canTrace ? test : test.skip;

traced('a reader that finds a transaction cut off says so, exit 75; the next tick takes it back (DESIGN 10)', async (t) => {
  const paths = layOut(ledgerBefore('delete'));
  t.teardown(() => remove(paths));
  const journal = `${paths.ledger}-journal`;
  const killed = await killAt({ ...victimIn(paths, ['ingest']), watched: [journal] }, { call: 'unlink', nth: 1 });
  t.is(killed.signal, 'SIGKILL');
  t.true(existsSync(journal));
  for (const words of [['runs'], ['metrics'], ['migrate', '--check']]) {
    const outcome = await runWhole(victimIn(paths, words));
    t.is(outcome.code, 75, outcome.stderr);
    t.regex(outcome.stderr, /^ql-sidecar: a write was cut off: [^\n]+; run "ql-sidecar tick", which takes it back\n$/);
  }
  t.is((await runWhole(victimIn(paths, ['tick']))).code, 0);
  t.is((await runWhole(victimIn(paths, ['runs']))).code, 0);
});

for (const call of ['ftruncate', 'rename']) {
  traced(`killed at the ${call} of a file that is too long: the quarantine never holds it whole (DESIGN 4.4)`, async (t) => {
    const paths = layOut(ledgerBefore('delete'));
    t.teardown(() => remove(paths));
    const long = path.join(paths.spool, 'long.json');
    // Where the file is cut is what this is about: in the spool or behind it.
    const watched = call === 'rename' ? [long] : [];
    t.is((await killAt({ ...victimIn(paths, ['ingest']), watched }, { call, nth: 1 })).signal, 'SIGKILL');
    for (let pass = 0; pass < 2; pass += 1) {
      for (const name of existsSync(paths.quarantine) ? readdirSync(paths.quarantine) : []) {
        const { size } = lstatSync(path.join(paths.quarantine, name));
        t.true(size <= ENVELOPE_BYTES_MAX + 1 || name.endsWith('-directory'), `${name}: ${size}`);
      }
      t.is((await runWhole(victimIn(paths, ['ingest']))).code, 0);
    }
    t.is(readdirSync(paths.quarantine).filter((name) => name.includes('-oversize-long.json')).length, 1);
  });
}

for (const journal of ['wal', 'delete'] satisfies Journal[]) {
  test.serial(`four ingests over one spool at once, one of them killed, journal ${journal}: no envelope lost, no row doubled (DESIGN 4.4)`, async (t) => {
    const before = ledgerBefore(journal);
    const expected = await undisturbed(t, layOutMany(before, 1200), 'ingest');
    for (const afterMs of [60, 80, 100, 120, 150, 200]) {
      const paths = layOutMany(before, 1200);
      try {
        const victim = victimIn(paths, ['ingest']);
        const others = [1, 2, 3].map(async () => runWhole(victim));
        await killAt(victim, { afterUs: afterMs * 1000 });
        for (const { code, stderr } of await Promise.all(others)) {
          if (code !== 0) t.regex(`${code} ${stderr}`, /^75 ql-sidecar: ledger is locked: [^\n]+try again\n$/);
        }
        t.like(await runWhole(victim), { code: 0, stderr: '' });
        t.deepEqual(endOf(paths), expected, `killed after ${afterMs} ms`);
      } finally {
        remove(paths);
      }
    }
  });

  test.serial(`four ticks at once, journal ${journal}: each Run is settled once, each file put aside once, counters exact (DESIGN 5.1)`, async (t) => {
    const before = ledgerBefore(journal);
    const expected = await undisturbed(t, layOut(before), 'tick');
    for (let round = 0; round < 5; round += 1) {
      const paths = layOut(before);
      try {
        const outcomes = await Promise.all([1, 2, 3, 4].map(async () => runWhole(victimIn(paths, ['tick']))));
        for (const { code, stderr } of outcomes) t.deepEqual([code, stderr], [0, '']);
        t.deepEqual(endOf(paths), expected);
        t.is(inexactCounts(paths).quarantined, QUARANTINED);
      } finally {
        remove(paths);
      }
    }
  });
}

/** Chooses all points but pages written or read: of those every `nth`. */
function everyPage(nth: number): (point: KillPoint) => boolean {
  return (point) => !('call' in point) || !/^p(write|read)64$/.test(point.call) || point.nth % nth === 1;
}

/** The end of a scene in which nobody was killed. */
async function undisturbed(t: ExecutionContext, paths: Paths, command: string): Promise<ReturnType<typeof endOf>> {
  t.teardown(() => remove(paths));
  t.like(await runWhole(victimIn(paths, [command])), { code: 0, stderr: '' });
  return endOf(paths);
}

/** Kills at each point that `isTold` chooses, in a scene of its own, then looks. Says how many died. */
async function killEach(
  t: ExecutionContext,
  scene: () => Paths,
  victimOf: (paths: Paths) => Victim,
  look: (paths: Paths, point: KillPoint) => Promise<void>,
  isTold: (point: KillPoint) => boolean = () => true,
): Promise<void> {
  const recorded = scene();
  const points = (await killPoints(victimOf(recorded), INSTANTS)).filter(isTold);
  remove(recorded);
  let kills = 0;
  await eachOf(points, 2, async (point) => {
    const paths = scene();
    try {
      const killed = await killAt(victimOf(paths), point);
      if (killed.signal === 'SIGKILL') kills += 1;
      else if (canTrace) t.fail(`${nameOf(point)} was not reached: ${JSON.stringify(killed)}`);
      await look(paths, point);
    } finally {
      remove(paths);
    }
  });
  t.true(kills > 0);
  t.log(`${kills} kills`);
}
