import test from 'ava';
import { driftOf, type RunIdentity } from '../../../sidecar/domain/drift.js';
import { packExecutionId } from '../../../sidecar/domain/execution-id.js';
import { START_S, checked, started, type Fields } from '../../fixtures/ledger/envelope.js';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const packed = packExecutionId(checked(started(1)).executionId);
const other = packExecutionId(checked(started(2)).executionId);
const recorded: RunIdentity = { cronId: 5, name: null, taskRevision: null, idempotencyKey: packed, createdAtMs: START_S * 1000 };
const named = { ...recorded, cronId: null, name: '备份' };

const ROWS: readonly (readonly [string, Partial<RunIdentity>, Fields, string | undefined])[] = [
  ['the same claims', recorded, {}, undefined],
  ['the same revision', { ...recorded, taskRevision: A }, { task_revision: `sha256:${A}` }, undefined],
  ['a revision that was not claimed before', recorded, { task_revision: `sha256:${A}` }, undefined],
  ['no claim of a revision', { ...recorded, taskRevision: A }, {}, undefined],
  ['another revision', { ...recorded, taskRevision: A }, { task_revision: `sha256:${B}` }, 'revision_drift'],
  ['another cron', recorded, { cron_id: 6 }, 'task_drift'],
  ['another cron and revision', { ...recorded, taskRevision: A }, { cron_id: 6, task_revision: `sha256:${B}` }, 'task_drift'],
  ['a name where a cron is recorded', recorded, { cron_id: undefined, name: 'x' }, 'task_drift'],
  ['a cron where a name is recorded', named, {}, 'task_drift'],
  ['the same name', named, { cron_id: undefined, name: '备份' }, undefined],
  ['another name', named, { cron_id: undefined, name: '备份2' }, 'task_drift'],
  ['a name beside the same cron', recorded, { name: 'a title' }, undefined],
  ['another identity behind the same derived ID', { ...recorded, idempotencyKey: other }, {}, 'identity_drift'],
  ['another accepted instant', { ...recorded, createdAtMs: START_S * 1000 + 1000 }, {}, 'identity_drift'],
];

for (const [title, run, change, drift] of ROWS) {
  test(`${title}: ${drift ?? 'no drift'} (0446 decision 6)`, (t) => {
    t.is(driftOf({ ...recorded, ...run }, checked(started(1, change)), packed, START_S * 1000), drift as never);
  });
}
