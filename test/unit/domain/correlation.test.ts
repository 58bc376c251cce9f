import test from 'ava';
import { CANDIDATES_MAX, correlate, logArtifact, type Candidate } from '../../../sidecar/domain/correlation.js';

interface Run extends Candidate {
  readonly name: string;
}

function run(name: string, log: string | null, pid: number | null): Run {
  return { name, logArtifact: logArtifact(log), pid };
}

const A = run('a', 'x/a.log', 1);
const B = run('b', 'x/b.log', 2);
const SAME_LOG = run('same log as a', 'x/a.log', 3);
const SAME_PID = run('same pid as a', 'x/c.log', 1);
const BARE = run('bare', null, null);

/** Each row: what it shows, candidates, log and pid of the callback, the Run and the evidence, or the class. */
for (const [title, candidates, log, pid, expected] of [
  ['rule 3: the log decides', [A, B], 'x/a.log', null, ['a', 'log']],
  ['rule 3: log and pid agree', [A, B], 'x/b.log', 2, ['b', 'log']],
  ['rule 3: the log decides where the pid is known to none', [A, B], 'x/a.log', 99, ['a', 'log']],
  ['rule 3: the log decides where several have the pid', [A, SAME_PID], 'x/a.log', 1, ['a', 'log']],
  ['rule 3: then the pid', [A, B], null, 2, ['b', 'pid']],
  ['rule 3: the pid decides where the log is /dev/null', [A, B], '/dev/null', 2, ['b', 'pid']],
  ['rule 3: the pid decides where the log is known to none', [A, B], 'x/z.log', 2, ['b', 'pid']],
  ['rule 3: the pid decides between two of one log', [A, SAME_LOG, B], 'x/a.log', 3, ['same log as a', 'pid']],
  ['rule 3: then the only candidate, which has told nothing', [BARE], 'x/a.log', 1, ['bare', 'only']],
  ['rule 3: then the only candidate, of which the callback tells nothing', [A], null, null, ['a', 'only']],
  ['rule 3: no candidate', [], 'x/a.log', 1, 'none'],
  ['rule 3: the only candidate is another execution by log and pid', [A], 'x/b.log', 2, 'none'],
  ['rule 3: the only candidate is another execution by its log', [run('l', 'x/a.log', null)], 'x/b.log', null, 'none'],
  ['rule 3: the only candidate is another execution by its pid', [run('p', null, 1)], null, 2, 'none'],
  ['rule 3: several, and nothing that tells them apart', [A, B], null, null, 'several'],
  ['rule 3: several, and the callback is of none of them', [A, B], 'x/z.log', 99, 'several'],
  ['rule 3: several of one log, and a pid of none', [A, SAME_LOG], 'x/a.log', 99, 'several'],
  ['rule 3: several of one pid', [A, SAME_PID], null, 1, 'several'],
  ['rule 3: log and pid point to different Runs', [A, B], 'x/a.log', 2, 'conflict'],
  ['rule 3: the pid points past the two of one log', [A, SAME_LOG, B], 'x/a.log', 2, 'conflict'],
  ['rule 4: two tasks without a log do not share one', [run('1', '/dev/null', 1), run('2', '/dev/null', 2)], '/dev/null', 1, ['1', 'pid']],
  ['rule 4: /dev/null alone tells nothing', [run('1', '/dev/null', 1), run('2', '/dev/null', 2)], '/dev/null', null, 'several'],
] as const) {
  test(`ADR-0002 §9.4 ${title}`, (t) => {
    const found = correlate<Run>(candidates, { logArtifact: logArtifact(log), pid }, false);
    t.deepEqual(found.kind === 'matched' ? [found.run.name, found.by] : found.errorClass, expected as unknown);
    // The order in which a query answers must not matter.
    t.deepEqual(correlate<Run>([...candidates].reverse(), { logArtifact: logArtifact(log), pid }, false), found);
  });
}

test('ADR-0002 §9.4 rule 2: of more candidates than are compared, a strong field decides, and its absence is not "none"', (t) => {
  const many = Array.from({ length: CANDIDATES_MAX }, (_, at) => run(String(at), `x/${at}.log`, 100 + at));
  t.like(correlate(many, { logArtifact: logArtifact('x/7.log'), pid: null }, true), { kind: 'matched', by: 'log' });
  t.deepEqual(correlate(many, { logArtifact: logArtifact('x/z.log'), pid: 5 }, true), { kind: 'unmatched', errorClass: 'several' });
  t.deepEqual(correlate([], { logArtifact: null, pid: 5 }, true), { kind: 'unmatched', errorClass: 'several' });
  t.is(CANDIDATES_MAX, 64);
});

test('ADR-0002 §9.4 rule 4: what is compared has at most 36 characters and does not give the path away', (t) => {
  const paths = ['a', 'x_5/2026-12-01-09-49-34-995.log', 'secret/'.repeat(100), '備份/1.log', '\u0000\u001b[2J', 'a\0', 'a '];
  for (const path of paths) {
    const artifact = logArtifact(path) as string;
    t.regex(artifact, /^log:[0-9a-f]{32}$/);
    t.true(artifact.length <= 36);
    t.is(logArtifact(path), artifact);
  }
  t.is(new Set(paths.map(logArtifact)).size, paths.length);
  t.is(logArtifact(null), null);
  t.is(logArtifact('/dev/null'), null);
});

test('ADR-0002 §9.4 rule 4: 50,000 log paths of one task, no two with one artifact', (t) => {
  const seen = new Set(Array.from({ length: 50_000 }, (_, at) => logArtifact(`x_5/2026-12-01-03-${Math.floor(at / 1000)}-${at % 1000}.log`)));
  t.is(seen.size, 50_000);
});
