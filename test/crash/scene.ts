import Database from 'better-sqlite3';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathsBelow, type Paths } from '../../sidecar/host/paths.js';
import { executionId, fileName, finished, line, started, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench, dump } from '../fixtures/ledger/workbench.js';
import type { Victim } from './kill-points.js';

export type Journal = 'wal' | 'delete';

/** 2100-01-01: no event of these tests is older than the clock, so every lag counts 0 ms and the sum of lags is exact. */
const FAR_S = 4_102_444_800;

/** Envelope `number` in that second. */
function far(make: (number: number, changes?: Fields) => Fields, number: number, changes: Fields = {}): Fields {
  return make(number, {
    execution_id: executionId(number, 'scheduled_system', FAR_S),
    started_at: FAR_S,
    occurred_at_ms: FAR_S * 1000 + (make === started ? 123 : 12_345),
    ...changes,
  });
}

const firstLine = (file: string): string => readFileSync(file, 'utf8').split('\n', 1)[0] ?? '';

/** Field 22 of /proc/1/stat. */
function initStartTicks(): number {
  const stat = firstLine('/proc/1/stat');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
}

/** The claims of a process of this machine that is gone: its pid is above every pid that Linux gives. */
function gone(): Fields {
  return {
    pid: 4_194_304,
    pid_start_ticks: 4_000_000_000,
    boot_id: firstLine('/proc/sys/kernel/random/boot_id'),
    host: firstLine('/proc/sys/kernel/hostname'),
    init_start_ticks: initStartTicks(),
  };
}

/** What was recorded before: a Run that runs, one that ended, one that will be contradicted, two whose process is gone. */
export function ledgerBefore(journal: Journal): Buffer {
  const bench = new Workbench();
  try {
    bench.feed(far(started, 20), far(started, 21), far(finished, 21), far(started, 22));
    bench.feed(far(started, 30, gone()), far(started, 31, gone()));
    bench.connection.pragma(`journal_mode = ${journal}`);
    bench.close();
    return readFileSync(bench.paths.ledger);
  } finally {
    bench.remove();
  }
}

/** How many files of `ENVELOPES` are put aside, and how many envelopes contradict what is recorded. */
export const QUARANTINED = 5;
export const REFUSED = 1;

/** One of each kind that a spool can hold (DESIGN 4.4, 5.1); file name and bytes. */
const ENVELOPES: readonly (readonly [string, string | Buffer])[] = [
  ...[
    far(started, 1),
    far(started, 2),
    far(finished, 2, { exit_code: 3 }),
    far(finished, 3),
    far(finished, 20, { exit_code: 143, stopped: true, signal: 'TERM' }),
    far(finished, 21, { exit_code: 9 }),
    far(finished, 22, { cron_id: 77 }),
    far(started, 23, { cron_id: 8, task_revision: `sha256:${'a'.repeat(64)}` }),
    far(started, 40, { execution_id: executionId(40, 'manual', FAR_S), origin: 'manual' }),
  ].map((fields) => [fileName(fields), line(fields)] as const),
  ['again.json', line(far(started, 21))],
  ['bad.json', 'no envelope\n'],
  ['binary.json', Buffer.from([0xff, 0, 0x0a])],
  ['half.json', '{"v":1,"execution_id":"leg'],
  ['left.json', '{"v":1,"exec'],
  ['long.json', `${'x'.repeat(9000)}\n`],
];

/** A data directory as it stands before the process that is killed: ledger, and one of each kind in the spool. */
export function layOut(ledger: Buffer): Paths {
  const paths = layOutBare(ledger);
  writeFileSync(paths.spoolFull, '');
  for (const [name, content] of ENVELOPES) writeFileSync(path.join(paths.spool, name), content, { mode: 0o600 });
  mkdirSync(path.join(paths.spool, 'directory'));
  const old = new Date(Date.now() - 60 * 60_000);
  utimesSync(path.join(paths.spool, 'left.json'), old, old);
  return paths;
}

/** The same with start and finish of `count` / 2 executions in the spool, of three crons. */
export function layOutMany(ledger: Buffer, count: number): Paths {
  const paths = layOutBare(ledger);
  for (let number = 100; number < 100 + count / 2; number += 1) {
    const own = { cron_id: 5 + (number % 3) };
    for (const fields of [far(started, number, own), far(finished, number, { ...own, exit_code: number % 2 })]) {
      writeFileSync(path.join(paths.spool, fileName(fields)), line(fields), { mode: 0o600 });
    }
  }
  return paths;
}

/** Ledger, and an empty spool. */
function layOutBare(ledger: Buffer): Paths {
  const paths = bareDirectory();
  for (const directory of [paths.sidecar, paths.spool, paths.notices]) mkdirSync(directory, { mode: 0o700 });
  writeFileSync(paths.ledger, ledger);
  return paths;
}

/** A data directory in which nothing of ours is. */
export function bareDirectory(): Paths {
  return pathsBelow(mkdtempSync(path.join(tmpdir(), 'ql-crash-')), null);
}

/** A process of ours in such a directory. All that it touches is watched, also what it makes; of the spool these files. */
export function victimIn(paths: Paths, words: readonly string[], files: readonly string[] = [...ENVELOPES.map(([name]) => name), 'directory']): Victim {
  const side = ['', '-wal', '-shm', '-journal'].map((end) => `${paths.ledger}${end}`);
  const spooled = files.map((name) => path.join(paths.spool, name));
  return {
    words,
    data: paths.data,
    environment: { QL3_SHADOW_ORIGINS: 'scheduled_system', QL3_PROFILE: 'standalone' },
    watched: [paths.sidecar, paths.spool, paths.quarantine, paths.notices, paths.spoolFull, ...side, ...spooled],
  };
}

/** What a person finds afterwards. Equal ends are equal to the byte, but for the instants that the clock gave. */
export interface End {
  readonly rows: Readonly<Record<string, readonly string[]>>;
  readonly file: readonly unknown[];
  readonly spooled: readonly string[];
  readonly quarantined: readonly string[];
  readonly besides: readonly string[];
}

export function endOf(paths: Paths): End {
  const connection = new Database(paths.ledger, { readonly: true });
  const file = ['page_size', 'auto_vacuum', 'journal_mode', 'integrity_check'].map((name) => connection.pragma(name, { simple: true }));
  connection.close();
  const rows = dump(paths.ledger);
  return {
    rows: {
      ...rows,
      run_events: (rows.run_events ?? []).map(withoutSeenAt).sort(),
      schema_migrations: (rows.schema_migrations ?? []).map((row) => JSON.stringify((JSON.parse(row) as unknown[]).slice(0, 2))),
      counters: (rows.counters ?? []).filter((row) => !INEXACT.some((name) => row.includes(name))),
    },
    file,
    spooled: names(paths.spool),
    // <ms>-<reason>-<name>
    quarantined: names(paths.quarantine).map((name) => name.replace(/^\d+-/, '')).sort(),
    besides: names(paths.sidecar).filter((name) => !/-(wal|shm)$/.test(name)),
  };
}

/** A Run is lost when that was seen, and that is the clock's. */
function withoutSeenAt(row: string): string {
  const [run, sequence, type, actor, attempt, occurredAt, dedupe, payload] = JSON.parse(row) as unknown[];
  const seen = typeof payload === 'string' && payload.includes('evidence');
  return JSON.stringify([run, sequence, type, actor, attempt, seen ? null : occurredAt, dedupe, payload]);
}

const QUARANTINED_TOTAL = 'ql_sidecar_quarantined_total';
const REFUSED_TOTAL = 'shadow_run_create_failed_total';

/**
 * The two counters that no transaction can make exact, since what they count leaves no row: a file that was moved aside just
 * before the kill goes uncounted, and a refusal that was committed just before it is met and counted again. All others must
 * be equal.
 */
const INEXACT = [QUARANTINED_TOTAL, REFUSED_TOTAL];

/** What those two say. */
export function inexactCounts(paths: Paths): { readonly quarantined: number; readonly refused: number } {
  const connection = new Database(paths.ledger, { readonly: true });
  const sum = connection.prepare('SELECT coalesce(sum(value), 0) FROM counters WHERE name = ?').pluck();
  const [quarantined, refused] = INEXACT.map((name) => sum.get(name) as number) as [number, number];
  connection.close();
  return { quarantined, refused };
}

export function remove(paths: Paths): void {
  rmSync(paths.data, { recursive: true, force: true });
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}
