import test from 'ava';
import {
  ATTEMPT_STATUSES,
  RUN_STATUSES,
  TERMINAL_STATUSES,
  TRANSITIONS,
  attemptStatusCode,
  attemptStatusFor,
  isTerminal,
  pathBetween,
  runStatusCode,
  type RunStatus,
} from '../../../sidecar/domain/status.js';

/** What one fact may do to a Run, written out: rows are where it is, columns where the fact says it is (DESIGN 5.1). */
const WAYS: Readonly<Record<RunStatus | 'absent', Partial<Record<RunStatus, string>>>> = {
  absent: {
    created: 'created',
    queued: 'created queued',
    dispatching: 'created queued dispatching',
    running: 'created queued dispatching running',
    succeeded: 'created queued dispatching running succeeded',
    failed: 'created queued dispatching running failed',
    cancelled: 'created queued dispatching running cancelled',
    lost: 'created queued dispatching running lost',
  },
  created: {
    queued: 'queued',
    dispatching: 'queued dispatching',
    running: 'queued dispatching running',
    succeeded: 'queued dispatching running succeeded',
    failed: 'queued dispatching running failed',
    cancelled: 'queued dispatching running cancelled',
    lost: 'queued dispatching running lost',
  },
  queued: {
    dispatching: 'dispatching',
    running: 'dispatching running',
    succeeded: 'dispatching running succeeded',
    failed: 'dispatching running failed',
    cancelled: 'dispatching running cancelled',
    lost: 'dispatching running lost',
  },
  dispatching: {
    running: 'running',
    succeeded: 'running succeeded',
    failed: 'running failed',
    cancelled: 'running cancelled',
    lost: 'running lost',
  },
  running: { succeeded: 'succeeded', failed: 'failed', cancelled: 'cancelled', lost: 'lost' },
  succeeded: {},
  failed: {},
  cancelled: {},
  lost: {},
};

const legal = new Set<string>(TRANSITIONS.map(({ from, to }) => `${from} ${to}`));

for (const from of [undefined, ...RUN_STATUSES]) {
  for (const to of RUN_STATUSES) {
    const expected = WAYS[from ?? 'absent'][to];
    test(`${from ?? 'no Run'} -> ${to}: ${expected ?? 'a mismatch'} (DESIGN 5.1)`, (t) => {
      const way = pathBetween(from, to);
      t.is(way?.join(' '), expected);
      let at = from;
      for (const next of way ?? []) {
        if (at === undefined) t.is(next, 'created');
        else t.true(legal.has(`${at} ${next}`), `${at} ${next} is a row of the table`);
        at = next;
      }
    });
  }
}

test('nothing leads out of a terminal state, and none is missing (DESIGN 5.1)', (t) => {
  t.deepEqual(RUN_STATUSES.filter(isTerminal), [...TERMINAL_STATUSES]);
  t.deepEqual(TRANSITIONS.filter(({ from }) => isTerminal(from)), []);
  for (const status of RUN_STATUSES) {
    t.is(TRANSITIONS.some(({ from }) => from === status), !isTerminal(status), status);
    if (status !== 'created') t.true(TRANSITIONS.some(({ to }) => to === status), status);
  }
});

test('the table has each pair once, and the Attempt that goes with it (DESIGN 5.1)', (t) => {
  t.is(legal.size, TRANSITIONS.length);
  for (const { to, attempt } of TRANSITIONS) t.is(attempt, attemptStatusFor(to), to);
  t.is(attemptStatusFor('created'), 'claimed');
});

test('the stored codes never move: 4 and above is terminal, as the index of active Runs says (DESIGN 5)', (t) => {
  t.deepEqual(
    RUN_STATUSES.map((status) => [status, runStatusCode(status)]),
    [['created', 0], ['queued', 1], ['dispatching', 2], ['running', 3], ['succeeded', 4], ['failed', 5], ['cancelled', 6], ['lost', 7]],
  );
  t.deepEqual(
    ATTEMPT_STATUSES.map((status) => [status, attemptStatusCode(status)]),
    [['claimed', 0], ['starting', 1], ['running', 2], ['succeeded', 3], ['failed', 4], ['cancelled', 5], ['lost', 6]],
  );
  for (const status of RUN_STATUSES) t.is(runStatusCode(status) >= 4, isTerminal(status));
});
