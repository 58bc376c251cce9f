import test from 'ava';
import { ENVELOPE_BYTES_MAX, parseEnvelope, readEnvelope } from '../../../sidecar/domain/envelope.js';
import { BOOT, START_S, executionId, finished, started, type Fields } from '../../fixtures/ledger/envelope.js';

const DIGEST = 'a'.repeat(64);
const LATEST_MS = 253_402_300_799_999;

/** Field, the event it is tried in, values that are right, values that are wrong (docs/PROTOCOL.md, one row each). */
const FIELDS: readonly (readonly [string, 'started' | 'finished', readonly unknown[], readonly unknown[]])[] = [
  ['v', 'started', [1], [undefined, null, 0, 2, '1', 1.5, true, [1]]],
  ['execution_id', 'started', [executionId(1)], [undefined, null, 5, '', 'x', [executionId(1)], executionId(1).toUpperCase()]],
  ['seq', 'started', [1, 2, 0x7fff_ffff], [undefined, null, 0, -1, 1.5, '1', 0x8000_0000, true, 1e300]],
  ['event', 'started', ['started'], [undefined, null, '', 'running', 'Started', 'heartbeat', 1, ['started']]],
  ['origin', 'started', ['scheduled_system'], [undefined, null, '', 'manual', 'system', 'legacy-system', 1]],
  ['cron_id', 'started', [1, 5, Number.MAX_SAFE_INTEGER], [undefined, null, 0, -1, 1.5, '5', true, [5], Number.MAX_SAFE_INTEGER + 1, {}]],
  ['name', 'started', [undefined, 'x', '备份', ' ', 'n'.repeat(128)], [null, '', 'n'.repeat(129), 'a\nb', 'a\0b', '\u001b[31m', '\u009b', '\u007f', 5, {}, '\ud800', 'a\udc00b']],
  ['task_revision', 'started', [undefined, `sha256:${DIGEST}`], [null, '', DIGEST, `sha256:${DIGEST.slice(1)}`, `sha256:${DIGEST}a`, `SHA256:${DIGEST}`, `sha256:${'A'.repeat(64)}`, `sha256:${DIGEST}\n`, 5]],
  ['pid', 'started', [1, 4_194_304], [null, 0, -1, 4_194_305, '4242', 1.5, true]],
  ['pid_start_ticks', 'started', [undefined, 0, Number.MAX_SAFE_INTEGER], [null, -1, 1.5, '1', Number.MAX_SAFE_INTEGER + 1]],
  ['boot_id', 'started', [undefined, BOOT], [null, '', BOOT.toUpperCase().replace('1', 'A'), BOOT.slice(1), BOOT.replaceAll('-', ''), 5]],
  ['host', 'started', [undefined, 'a', '路由器', 'h'.repeat(253)], [null, '', 'h'.repeat(254), 'a\nb', '\u0085', 5, '\udfff']],
  ['init_start_ticks', 'started', [undefined, 0, 7], [null, -1, 0.5, '7']],
  ['log_path', 'started', [undefined, 'x', '/dev/null', 'a "b" %s \\ \n\t\u001b 日志', 'p'.repeat(1024)], [null, '', 'p'.repeat(1025), 'a\0b', 5, ['x']]],
  ['started_at', 'started', [undefined, START_S], [null, 0, START_S + 1, String(START_S), START_S + 0.5]],
  ['occurred_at_ms', 'started', [946_684_800_000, LATEST_MS], [undefined, null, 0, 946_684_799_999, LATEST_MS + 1, START_S, 1.5, '1796094000000', -1]],
  ['exit_code', 'finished', [undefined, null, 0, 1, 255], [-1, 256, 1.5, '0', true, {}]],
  ['duration_s', 'finished', [undefined, 0, 12, Number.MAX_SAFE_INTEGER], [null, -1, 1.5, '12']],
  ['stopped', 'finished', [undefined, true, false], [null, 0, 1, 'true', {}]],
  ['signal', 'finished', [undefined, 'TERM', 'RTMIN+1', 'A'.repeat(12)], [null, '', 'term', 'A'.repeat(13), 'SIG TERM', 'TERM\n', 9]],
];

const base = (event: 'started' | 'finished'): Fields => (event === 'started' ? started(1) : finished(1));

/** Through text, as a file is read: `undefined` leaves the field out. */
const read = (fields: Fields): ReturnType<typeof parseEnvelope> => parseEnvelope(JSON.stringify(fields));

for (const [field, event, right, wrong] of FIELDS) {
  for (const value of right) {
    test(`${field}: ${show(value)} is right (PROTOCOL)`, (t) => {
      const result = read({ ...base(event), [field]: value });
      t.true(result.ok, JSON.stringify(result));
    });
  }
  for (const value of wrong) {
    test(`${field}: ${show(value)} is refused by that name (PROTOCOL)`, (t) => {
      const result = read({ ...base(event), [field]: value });
      t.false(result.ok);
      if (!result.ok) {
        t.is(result.field, field);
        t.true(result.rule.length > 0 && result.rule.length < 100 && !result.rule.includes('\n'));
      }
    });
  }
}

for (const [field, value] of [['exit_code', 0], ['exit_code', null], ['duration_s', 1], ['stopped', false], ['signal', 'TERM']] as const) {
  test(`a start with ${field} ${String(value)} is refused: it belongs to a finish (PROTOCOL)`, (t) => {
    t.like(read({ ...started(1), [field]: value }), { ok: false, field });
  });
}

for (const name of ['command', 'env', 'token', 'run_id', 'V', 'cron id', '__proto__x', '']) {
  test(`a field that is not in the table is refused: ${name} (PROTOCOL)`, (t) => {
    t.like(read({ ...started(1), [name]: 'x' }), { ok: false, field: name === '' ? '(empty)' : name });
  });
}

test('the prototype cannot be reached from an envelope', (t) => {
  const text = JSON.stringify(started(1)).replace('{', '{"__proto__":{"cron_id":7},');
  t.like(parseEnvelope(text), { ok: false, field: '__proto__' });
  const inherited = JSON.stringify({ ...started(1), cron_id: undefined }).replace('{', '{"constructor":{},');
  t.like(parseEnvelope(inherited), { ok: false, field: 'constructor' });
});

test('the name of a hostile field is bounded and safe on a terminal', (t) => {
  const result = read({ ...started(1), [`\u001b]0;${'x'.repeat(3000)}\u0007\n`]: 1 });
  t.false(result.ok);
  if (!result.ok) {
    t.true(result.field.length <= 40);
    t.true(/^[ -~]+$/.test(result.field));
  }
});

for (const value of [null, [], [started(1)], 'x', 5, true, undefined]) {
  test(`not an object: ${show(value)}`, (t) => t.like(readEnvelope(value), { ok: false, field: 'envelope' }));
}

for (const text of ['', '{', '{}x', JSON.stringify(started(1)).slice(0, -1), `${JSON.stringify(started(1))}\n{}`, `\ufeff${JSON.stringify(started(1))}`, '[[', 'NaN', "{'v':1}"]) {
  test(`not one line of JSON: ${show(text)}`, (t) => t.like(parseEnvelope(text), { ok: false, field: 'envelope' }));
}

test('cron_id or name: one of them must be there, a named task needs no cron (PROTOCOL)', (t) => {
  t.like(read({ ...started(1), cron_id: undefined }), { ok: false, field: 'cron_id' });
  t.like(read({ ...started(1), cron_id: undefined, name: '备份' }), { ok: true, value: { cronId: null, name: '备份' } });
});

test('start ticks without a pid name no process (DESIGN 5.1)', (t) => {
  t.like(read({ ...started(1), pid: undefined }), { ok: false, field: 'pid' });
  const without = { ...started(1), pid: undefined, pid_start_ticks: undefined };
  t.like(read(without), { ok: true, value: { process: null } });
});

test('a whole finish is read into words and units (PROTOCOL)', (t) => {
  t.deepEqual(read(finished(1, { task_revision: `sha256:${DIGEST}`, exit_code: 3, stopped: true, signal: 'TERM', name: 'n' })), {
    ok: true,
    value: {
      executionId: { origin: 'scheduled_system', startSeconds: START_S, uuid: executionId(1).split(':')[2] as string },
      event: 'finished',
      cronId: 5,
      name: 'n',
      taskRevision: DIGEST,
      process: { pid: 4242, startTicks: 8_123_456, bootId: BOOT, host: 'panel', initStartTicks: 100 },
      logPath: 'x_5/1.log',
      occurredAtMs: START_S * 1000 + 12_345,
      exitCode: 3,
      stopped: true,
      signal: 'TERM',
    },
  });
});

test('what may be missing is null, never made up', (t) => {
  const bare = { v: 1, execution_id: executionId(1), seq: 2, event: 'finished', origin: 'scheduled_system', cron_id: 5, occurred_at_ms: START_S * 1000 };
  t.like(read(bare), {
    ok: true,
    value: { name: null, taskRevision: null, process: null, logPath: null, exitCode: null, stopped: false, signal: null },
  });
  t.is(ENVELOPE_BYTES_MAX, 4096);
});

function show(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 40)}… (${text.length})` : text;
}
