import test from 'ava';
import { codeOf } from '../../../sidecar/domain/error-code.js';
import { ACTORS, EVENT_TYPES, eventFor, eventTypeName } from '../../../sidecar/domain/event-type.js';
import { KIND_OF_ORIGIN, ORIGINS, OWNERS, isOrigin, isShadowOrigin, originCode } from '../../../sidecar/domain/origin.js';
import { PROFILES, profileForMemory } from '../../../sidecar/domain/profile.js';
import { RUN_STATUSES } from '../../../sidecar/domain/status.js';

test('the codes of origins and owners never move (ADR-0002 §5.1)', (t) => {
  t.deepEqual(
    ORIGINS.map((origin) => [origin, originCode(origin)]),
    [['manual', 0], ['scheduled_system', 1], ['scheduled_node', 2], ['once', 3], ['boot', 4], ['grpc', 5], ['subscription', 6], ['system', 7], ['script', 8]],
  );
  t.deepEqual(OWNERS, ['legacy', 'runtime']);
});

for (const [word, origin, shadow] of [
  ['scheduled_system', true, true],
  ['system', true, true],
  ['once', true, false],
  ['grpc', true, false],
  ['internal', false, false],
  ['Manual', false, false],
  ['', false, false],
  ['constructor', false, false],
  ['toString', false, false],
  ['__proto__', false, false],
] as const) {
  test(`${word === '' ? 'an empty word' : word} is ${origin ? '' : 'not '}an origin, and can ${shadow ? '' : 'not '}be shadowed (DESIGN 2)`, (t) => {
    t.is(isOrigin(word), origin);
    t.is(isShadowOrigin(word), shadow);
  });
}

test('once and grpc are the only origins that cannot be shadowed (DESIGN 2)', (t) => {
  t.deepEqual(ORIGINS.filter((origin) => !isShadowOrigin(origin)), ['once', 'grpc']);
  t.is(new Set(Object.values(KIND_OF_ORIGIN)).size, Object.keys(KIND_OF_ORIGIN).length);
});

test('the codes of Events and actors never move, and every status has its Event (DESIGN 5.1)', (t) => {
  t.deepEqual(EVENT_TYPES, {
    'run.created': 1,
    'run.queued': 2,
    'run.dispatching': 3,
    'run.running': 4,
    'run.succeeded': 5,
    'run.failed': 6,
    'run.cancelled': 7,
    'run.lost': 8,
    'compat.late_callback': 20,
    'compat.transition_mismatch': 21,
  });
  for (const status of RUN_STATUSES) t.is(eventTypeName(EVENT_TYPES[eventFor(status)]), `run.${status}`);
  t.is(eventTypeName(999), 'unknown.999');
  t.deepEqual(ACTORS, ['bridge', 'liveness', 'receiver', 'reconciler', 'scheduler', 'operator']);
});

for (const [mebibytes, profile] of [[0, 'edge'], [128, 'edge'], [511.9, 'edge'], [512, 'standalone'], [65_536, 'standalone']] as const) {
  test(`${mebibytes} MiB of memory is ${profile} (DESIGN 13)`, (t) => t.is(profileForMemory(mebibytes * 1024 * 1024), profile));
}

test('the bounds of a pass are those of the table (DESIGN 12)', (t) => {
  t.like(PROFILES.edge, { ingestEnvelopes: 256, livenessChecks: 64 });
  t.like(PROFILES.standalone, { ingestEnvelopes: 4096, livenessChecks: 1024 });
});

test('the code of an error is its word, and nothing else', (t) => {
  t.is(codeOf(Object.assign(new Error('x'), { code: 'ENOENT' })), 'ENOENT');
  for (const other of [null, undefined, 'ENOENT', 5, new Error('x'), { code: 5 }]) t.is(codeOf(other), '');
});
