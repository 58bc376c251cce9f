import test from 'ava';
import { decideLost } from '../../../sidecar/domain/lost.js';
import type { RunFacts } from '../../../sidecar/domain/run.js';
import { RUN_STATUSES, isTerminal } from '../../../sidecar/domain/status.js';

const recorded = { pid: 42, startTicks: 5000, bootId: 'boot-1', host: 'panel', initStartTicks: 100 };
const base: Omit<RunFacts, 'status'> = {
  startedAtMs: 1,
  finishedAtMs: null,
  exitCode: null,
  reason: null,
  logPath: null,
  taskRevision: null,
  pid: 42,
  pidStartTicks: 5000,
  hostKnown: true,
};

for (const status of RUN_STATUSES) {
  test(`${status}: ${isTerminal(status) ? 'settled, stays' : 'lost, with its evidence; when it ended is not made up'} (DESIGN 5.1)`, (t) => {
    const decision = decideLost({ ...base, status }, recorded, 'pid_reused', 99);
    if (isTerminal(status)) {
      t.is(decision, undefined);
      return;
    }
    t.deepEqual(decision?.fill, { status: 'lost', reason: 'pid_reused' });
    t.deepEqual(decision?.events.at(-1), {
      type: 'run.lost',
      occurredAtMs: 99,
      dedupeKey: null,
      payload: { evidence: 'pid_reused', pid: 42, pid_start_ticks: 5000, boot_id: 'boot-1', host: 'panel' },
    });
    t.is(decision?.events.filter(({ type }) => type === 'run.lost').length, 1);
  });
}
