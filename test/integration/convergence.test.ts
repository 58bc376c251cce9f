import test from 'ava';
import fc from 'fast-check';
import { START_S, executionId, finished, started, uuid, type Fields } from '../fixtures/ledger/envelope.js';
import { Workbench, meaning } from '../fixtures/ledger/workbench.js';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const EXECUTIONS = 3;
const KINDS = ['start', 'finish', 'otherFinish', 'stopped', 'foreignStart', 'foreignFinish', 'foreignRevision'] as const;
type Kind = (typeof KINDS)[number];

/** One envelope that arrives: of which execution, of which kind. */
interface Arrival {
  readonly execution: number;
  readonly kind: Kind;
}

/** The envelopes of one execution. Start and finish know different things of it; each execution has its own second. */
function envelopeOf({ execution, kind }: Arrival): Fields {
  const startS = START_S + 60 * (EXECUTIONS - execution);
  const own = { execution_id: executionId(execution, 'scheduled_system', startS), started_at: startS, cron_id: 5 + (execution % 2) };
  const start = started(execution, { ...own, task_revision: DIGEST, occurred_at_ms: startS * 1000 + 100 });
  // The finish was told less: no log, no ticks.
  const finish = finished(execution, { ...own, log_path: undefined, pid_start_ticks: undefined, init_start_ticks: 100, occurred_at_ms: startS * 1000 + 9000 });
  switch (kind) {
    case 'start':
      return start;
    case 'finish':
      return finish;
    case 'otherFinish':
      return { ...finish, exit_code: 3, occurred_at_ms: startS * 1000 + 9500 };
    case 'stopped':
      return { ...finish, exit_code: 143, stopped: true, signal: 'TERM', occurred_at_ms: startS * 1000 + 9700 };
    case 'foreignStart':
      return { ...start, cron_id: 99 };
    case 'foreignFinish':
      return { ...finish, cron_id: 99, exit_code: 1 };
    case 'foreignRevision':
      return { ...start, task_revision: `sha256:${'b'.repeat(64)}`, cron_id: 99 };
  }
}

const FINISHES: readonly Kind[] = ['finish', 'otherFinish', 'stopped', 'foreignFinish'];
const FOREIGN: readonly Kind[] = ['foreignStart', 'foreignFinish', 'foreignRevision'];

/**
 * The same set in the plainest order: of each execution the claims that the first accepted one allows, the start, the
 * accepted finish, then the finishes that contradict it; each once.
 */
function plainOrder(arrivals: readonly Arrival[]): Arrival[] {
  const result: Arrival[] = [];
  for (let execution = 0; execution < EXECUTIONS; execution += 1) {
    const kinds = arrivals.filter((arrival) => arrival.execution === execution).map(({ kind }) => kind);
    const isForeign = kinds[0] !== undefined && FOREIGN.includes(kinds[0]);
    const allowed = kinds.filter((kind) => FOREIGN.includes(kind) === isForeign);
    // Two foreign starts claim two revisions: the first accepted claim stands here, too.
    const start = allowed.find((kind) => !FINISHES.includes(kind));
    const finishes = [...new Set(allowed.filter((kind) => FINISHES.includes(kind)))];
    for (const kind of [...(start === undefined ? [] : [start]), ...finishes]) result.push({ execution, kind });
  }
  return result;
}

function bench(arrivals: readonly Arrival[], groups: readonly number[]): { readonly rows: ReturnType<typeof meaning>; readonly counted: number[]; readonly left: number } {
  const b = new Workbench();
  try {
    let index = 0;
    for (let at = 0; at < arrivals.length; ) {
      const size = groups[index % groups.length] as number;
      index += 1;
      for (const arrival of arrivals.slice(at, at + size)) {
        b.put(`${JSON.stringify(envelopeOf(arrival))}\n`, String(1000 + at).padStart(6, '0'));
        at += 1;
      }
      b.ingest();
    }
    const names = ['shadow_run_create_total', 'ql_sidecar_runs_succeeded_total', 'ql_sidecar_runs_failed_total', 'ql_sidecar_runs_cancelled_total', 'shadow_terminal_mismatch_total'];
    return { rows: meaning(b.connection), counted: names.map((name) => b.counter(name)), left: b.spooled().length };
  } finally {
    b.remove();
  }
}

const arrival = fc.record({ execution: fc.nat({ max: EXECUTIONS - 1 }), kind: fc.constantFrom(...KINDS) });

test('any multiset and order of envelopes ends in the rows that the set determines, however it is grouped (0446 decision 6, DESIGN 5.1)', (t) => {
  fc.assert(
    fc.property(
      fc.array(arrival, { minLength: 1, maxLength: 24 }),
      fc.array(fc.integer({ min: 1, max: 24 }), { minLength: 1, maxLength: 4 }),
      (arrivals, groups) => {
        const plain = plainOrder(arrivals);
        const expected = bench(plain, [1]);
        const got = bench(arrivals, groups);
        t.deepEqual(got, expected);
      },
    ),
    { seed: 446, numRuns: 400 },
  );
});

test('two orders of one multiset without contradiction end in equal rows (0446 Response-loss)', (t) => {
  const agreeing = fc.record({ execution: fc.nat({ max: EXECUTIONS - 1 }), kind: fc.constantFrom<Kind>('start', 'finish') });
  fc.assert(
    fc.property(
      fc.array(agreeing, { minLength: 2, maxLength: 16 }).chain((arrivals) =>
        fc.tuple(fc.constant(arrivals), fc.shuffledSubarray(arrivals, { minLength: arrivals.length, maxLength: arrivals.length })),
      ),
      fc.integer({ min: 1, max: 16 }),
      ([one, other], size) => {
        t.deepEqual(bench(one, [size]), bench(other, [1]));
      },
    ),
    { seed: 447, numRuns: 200 },
  );
});

/** The rows of one execution, said by hand: what the property is measured against must not come from the code alone. */
for (const [title, kinds, status, exitCode, startedKnown, eventTypes] of [
  ['start', ['start'], 'running', null, true, []],
  ['finish', ['finish'], 'succeeded', 0, false, ['run.succeeded']],
  ['start, finish', ['start', 'finish'], 'succeeded', 0, true, ['run.succeeded']],
  ['finish, start', ['finish', 'start'], 'succeeded', 0, true, ['run.succeeded']],
  ['start, start, finish, finish, start', ['start', 'start', 'finish', 'finish', 'start'], 'succeeded', 0, true, ['run.succeeded']],
  ['finish, other finish', ['finish', 'otherFinish'], 'succeeded', 0, false, ['run.succeeded', 'compat.late_callback']],
  ['other finish, finish, other finish, finish', ['otherFinish', 'finish', 'otherFinish', 'finish'], 'failed', 3, false, ['run.failed', 'compat.late_callback']],
  ['stop, finish, start', ['stopped', 'finish', 'start'], 'cancelled', 143, true, ['run.cancelled', 'compat.late_callback']],
  ['start, foreign finish', ['start', 'foreignFinish'], 'running', null, true, []],
  ['foreign start, finish, foreign finish', ['foreignStart', 'finish', 'foreignFinish'], 'failed', 1, true, ['run.failed']],
] as const) {
  test(`${title}: ${status}, and these events (DESIGN 5.1)`, (t) => {
    const b = new Workbench();
    t.teardown(() => b.remove());
    for (const kind of kinds) b.feed(envelopeOf({ execution: 1, kind }));
    const [run, ...others] = b.runs();
    t.is(others.length, 0);
    if (run === undefined) return;
    t.like(run, { status, exit_code: exitCode, accepted_at_ms: (START_S + 120) * 1000, cron_id: kinds[0].startsWith('foreign') ? 99 : 6 });
    t.is(run.started_at_ms !== null, startedKnown);
    t.true(run.execution_id?.endsWith(uuid(1)));
    t.deepEqual(
      b.events(run).map(({ type }) => type),
      ['run.created', 'run.queued', 'run.dispatching', 'run.running', ...eventTypes],
    );
    t.deepEqual(b.events(run).map(({ sequence }) => sequence), b.events(run).map((_, index) => index + 1));
  });
}
