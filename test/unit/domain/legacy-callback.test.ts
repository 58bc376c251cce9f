import test from 'ava';
import { parseExecutionId } from '../../../sidecar/domain/execution-id.js';
import { envelopeFor, readStatusCallback, type LegacyCallback } from '../../../sidecar/domain/legacy-callback.js';
import { START_S, checked, executionId, finished, started, type Fields } from '../../fixtures/ledger/envelope.js';

/** What a 2.21 panel's shell sends (QINGLONG-2X, Callbacks). */
const START: Fields = { ids: ['5'], status: '0', pid: '4242', log_path: 'x_5/1.log', last_execution_time: START_S, last_running_time: 0 };
const END: Fields = { ...START, status: '1', last_running_time: 2, exit_code: 3 };

/** A value as a title names it; JSON has no word for some. */
function shown(value: unknown): string {
  return typeof value === 'number' || value === undefined ? String(value) : JSON.stringify(value).slice(0, 40);
}

function callbackOf(body: Fields): LegacyCallback {
  const read = readStatusCallback(body);
  if (!read.ok || read.value.kind !== 'legacy') throw new Error('expected a callback without an execution ID');
  return read.value.callback;
}

test('the start of a 2.x client (QINGLONG-2X)', (t) => {
  t.deepEqual(callbackOf(START), { cronIds: [5], event: 'started', pid: 4242, logPath: 'x_5/1.log', startedAtS: START_S, durationS: 0, exitCode: null });
});

test('the end of a 2.21 client, and of an older one that knows no exit code (QINGLONG-2X)', (t) => {
  t.like(callbackOf(END), { event: 'finished', durationS: 2, exitCode: 3 });
  t.like(callbackOf({ ...END, exit_code: undefined }), { event: 'finished', exitCode: null });
});

for (const [title, changes, expected] of [
  ['numbers as IDs', { ids: [5] }, { cronIds: [5] }],
  ['several crons, each once', { ids: ['1', '2', '1', 2] }, { cronIds: [1, 2] }],
  ['64 crons', { ids: Array.from({ length: 64 }, (_, at) => String(at + 1)) }, { cronIds: Array.from({ length: 64 }, (_, at) => at + 1) }],
  ['no pid and no log, as old clients', { pid: undefined, log_path: undefined }, { pid: null, logPath: null }],
  ['no times', { last_execution_time: undefined, last_running_time: undefined }, { startedAtS: null, durationS: null }],
  ['a start time that no clock has shown', { last_execution_time: 1 }, { startedAtS: null }],
  ['times with fractions', { last_execution_time: START_S + 0.5, last_running_time: 5.5 }, { startedAtS: START_S + 0.5, durationS: 5.5 }],
  ['an exit code in a start is no outcome', { exit_code: 3 }, { exitCode: null }],
  ['a log path with any character but NUL', { log_path: 'a\n\u001b[2J"\u{1f600}' }, { logPath: 'a\n\u001b[2J"\u{1f600}' }],
] as const) {
  test(`accepted: ${title}`, (t) => t.like(callbackOf({ ...START, ...changes }), expected));
}

for (const [field, values] of [
  ['ids', [undefined, null, '5', 5, {}, [], ['0'], [0], [-1], ['05'], ['5 '], [1.5], ['1e3'], [null], [['5']], ['9'.repeat(17)], Array.from({ length: 65 }, (_, at) => at + 1)]],
  ['status', [undefined, null, 0, 1, '', '2', '3', 'x', '00', ['1']]],
  ['pid', [null, 4242, '', '0', '-1', "''", '4242 ', '4194305', '0x10', '1.0', ['1']]],
  ['log_path', [null, 1, '', 'a\0b', 'x'.repeat(1025), ['a']]],
  ['last_execution_time', [null, '1796094000', -1, NaN, Infinity, 1e300, []]],
  ['last_running_time', [null, '2', -1, 1e300, {}]],
  ['exit_code', [null, '0', -1, 256, 0.5, true]],
  ['execution_id', [null, 5, {}, '']],
] as const) {
  for (const value of values) {
    test(`refused by name: ${field} ${shown(value)}`, (t) => {
      const read = readStatusCallback({ ...END, [field]: value });
      t.false(read.ok);
      if (!read.ok) t.is(read.field, field);
    });
  }
}

test('a field that 2.21 does not know is refused by name, and shown harmless', (t) => {
  t.like(readStatusCallback({ ...START, command: 'rm' }), { ok: false, field: 'command' });
  t.like(readStatusCallback({ ...START, 'a\u001b"\n': 1 }), { ok: false, field: 'a???' });
  t.like(readStatusCallback(JSON.parse(`{"__proto__":{},${JSON.stringify(START).slice(1)}`)), { ok: false, field: '__proto__' });
});

for (const value of [undefined, null, 5, 'x', [], [START]]) {
  test(`the whole must be an object: ${shown(value)}`, (t) => t.like(readStatusCallback(value), { ok: false, field: 'body' }));
}

test('with an execution ID it is the envelope that the bridge would have written, from the body alone (0446 decision 3)', (t) => {
  const read = readStatusCallback({ ...END, execution_id: executionId(1) });
  t.deepEqual(read, {
    ok: true,
    value: {
      kind: 'envelope',
      envelope: checked(
        finished(1, { exit_code: 3, pid_start_ticks: undefined, boot_id: undefined, host: undefined, init_start_ticks: undefined, occurred_at_ms: (START_S + 2) * 1000 }),
      ),
    },
  });
  const start = readStatusCallback({ ...START, execution_id: executionId(1) });
  t.deepEqual(start.ok && start.value.kind === 'envelope' ? start.value.envelope : undefined, checked(
    started(1, { pid_start_ticks: undefined, boot_id: undefined, host: undefined, init_start_ticks: undefined, occurred_at_ms: START_S * 1000 }),
  ));
});

for (const [title, changes, field] of [
  ['an ID that is not strict', { execution_id: executionId(1).toUpperCase() }, 'execution_id'],
  ['an ID with a UUIDv1', { execution_id: `legacy-system:${START_S}:0f5b2f0a-1111-1222-8333-444455556666` }, 'execution_id'],
  ['a reserved origin', { execution_id: executionId(1).replace('system', 'grpc') }, 'execution_id'],
  ['a start second of 1970', { execution_id: executionId(1, 'scheduled_system', 5) , last_execution_time: undefined }, 'execution_id'],
  ['two crons for one execution', { ids: ['5', '6'], execution_id: executionId(1) }, 'ids'],
  ['another start second than that of the ID', { execution_id: executionId(1), last_execution_time: START_S + 1 }, 'last_execution_time'],
] as const) {
  test(`refused: ${title} (0446 decision 3)`, (t) => t.like(readStatusCallback({ ...START, ...changes }), { ok: false, field }));
}

for (const [title, body, nowMs, expectedMs] of [
  ['a start: when it began', START, 9, START_S * 1000],
  ['a finish: the beginning and what it took', END, 9, (START_S + 2) * 1000],
  ['a fraction', { ...END, last_running_time: 0.25 }, 9, START_S * 1000 + 250],
  ['no time in the body: when it arrived', { ...END, last_execution_time: 0 }, 1_796_000_000_000, 1_796_000_000_000],
] as const) {
  test(`what a correlated callback tells of the time, ${title}`, (t) => {
    const id = parseExecutionId(executionId(1));
    if (!id.ok) throw new Error(id.rule);
    const envelope = envelopeFor(callbackOf(body), 5, id.value, nowMs);
    t.is(envelope.occurredAtMs, expectedMs);
    t.like(envelope, { cronId: 5, executionId: id.value, stopped: false, taskRevision: null });
  });
}
