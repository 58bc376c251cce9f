import test from 'ava';
import fc from 'fast-check';
import {
  formatExecutionId,
  formatUuid,
  packExecutionId,
  parseExecutionId,
  parseUuid,
  unpackExecutionId,
} from '../../../sidecar/domain/execution-id.js';
import { KIND_OF_ORIGIN, type ShadowOrigin } from '../../../sidecar/domain/origin.js';

const UUID = '0f0e0d0c-0b0a-4908-8706-050403020100';

for (const [origin, kind] of Object.entries(KIND_OF_ORIGIN)) {
  test(`legacy-${kind} is the origin ${origin} (DESIGN 2)`, (t) => {
    const text = `legacy-${kind}:1796094000:${UUID}`;
    const result = parseExecutionId(text);
    t.deepEqual(result, { ok: true, value: { origin: origin as ShadowOrigin, startSeconds: 1_796_094_000, uuid: UUID } });
    if (result.ok) t.is(formatExecutionId(result.value), text);
  });
}

for (const text of [
  `legacy-system:1:${UUID}`,
  `legacy-system:253402300799:${UUID}`,
  'legacy-system:5:00000000-0000-4000-8000-000000000000',
  'legacy-system:5:ffffffff-ffff-4fff-bfff-ffffffffffff',
]) {
  test(`the edge of the form is accepted: ${text} (0446 decision 3)`, (t) => t.true(parseExecutionId(text).ok));
}

for (const [why, text] of [
  ['nothing', ''],
  ['an upper-case UUID', `legacy-system:5:${UUID.toUpperCase()}`],
  ['one upper-case digit', `legacy-system:5:${UUID.replace('f', 'F')}`],
  ['UUID version 1', 'legacy-system:5:0f0e0d0c-0b0a-1908-8706-050403020100'],
  ['UUID version 7', 'legacy-system:5:0f0e0d0c-0b0a-7908-8706-050403020100'],
  ['another UUID variant', 'legacy-system:5:0f0e0d0c-0b0a-4908-c706-050403020100'],
  ['a UUID without dashes', `legacy-system:5:${UUID.replaceAll('-', '')}`],
  ['a digit too few', `legacy-system:5:${UUID.slice(1)}`],
  ['a digit too many', `legacy-system:5:${UUID}0`],
  ['braces', `legacy-system:5:{${UUID}}`],
  ['second 0', `legacy-system:0:${UUID}`],
  ['a negative second', `legacy-system:-5:${UUID}`],
  ['a signed second', `legacy-system:+5:${UUID}`],
  ['a leading zero', `legacy-system:05:${UUID}`],
  ['a fraction', `legacy-system:5.0:${UUID}`],
  ['an exponent', `legacy-system:5e3:${UUID}`],
  ['hex', `legacy-system:0x5:${UUID}`],
  ['no second', `legacy-system::${UUID}`],
  ['a second after 9999', `legacy-system:253402300800:${UUID}`],
  ['thirteen digits', `legacy-system:1796094000000:${UUID}`],
  ['other digits', `legacy-system:٥:${UUID}`],
  ['an unknown kind', `legacy-cron:5:${UUID}`],
  ['the word of the origin', `legacy-scheduled_system:5:${UUID}`],
  ['a reserved origin', `legacy-grpc:5:${UUID}`],
  ['a property of every object', `legacy-constructor:5:${UUID}`],
  ['an empty kind', `legacy-:5:${UUID}`],
  ['an upper-case kind', `legacy-System:5:${UUID}`],
  ['another prefix', `runtime-system:5:${UUID}`],
  ['a space before', ` legacy-system:5:${UUID}`],
  ['a space behind', `legacy-system:5:${UUID} `],
  ['a newline behind', `legacy-system:5:${UUID}\n`],
  ['a second line', `x\nlegacy-system:5:${UUID}`],
  ['NUL behind', `legacy-system:5:${UUID}\0`],
] as const) {
  test(`refused by its field: ${why} (0446 decision 3)`, (t) => {
    const result = parseExecutionId(text);
    t.false(result.ok);
    if (!result.ok) t.is(result.field, 'execution_id');
  });
}

const bytes = (length: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array));

const ids = fc.record({
  origin: fc.constantFrom(...(Object.keys(KIND_OF_ORIGIN) as ShadowOrigin[])),
  startSeconds: fc.integer({ min: 1, max: 253_402_300_799 }),
  uuid: bytes(16).map((uuid) => {
    uuid[6] = ((uuid[6] as number) & 0x0f) | 0x40;
    uuid[8] = ((uuid[8] as number) & 0x3f) | 0x80;
    return formatUuid(uuid);
  }),
});

test('packing loses nothing, takes 22 bytes, and keeps the order of time within a kind (DESIGN 5)', (t) => {
  fc.assert(
    fc.property(ids, ids, (one, other) => {
      const packed = packExecutionId(one);
      t.is(packed.length, 22);
      t.deepEqual(unpackExecutionId(packed), one);
      t.deepEqual(parseExecutionId(formatExecutionId(one)), { ok: true, value: one });
      const later = packExecutionId({ ...other, origin: one.origin });
      if (one.startSeconds < other.startSeconds) t.is(Buffer.compare(packed, later), -1);
    }),
    { seed: 446, numRuns: 500 },
  );
});

test('two IDs never pack to the same bytes (DESIGN 5)', (t) => {
  fc.assert(
    fc.property(ids, ids, (one, other) => {
      const same = formatExecutionId(one) === formatExecutionId(other);
      t.is(packExecutionId(one).equals(packExecutionId(other)), same);
    }),
    { seed: 446, numRuns: 500 },
  );
});

test('the codes of the kinds never move: old ledgers keep their meaning (DESIGN 5)', (t) => {
  const codes = Object.keys(KIND_OF_ORIGIN).map((origin) => [
    origin,
    packExecutionId({ origin: origin as ShadowOrigin, startSeconds: 1, uuid: UUID })[0],
  ]);
  t.deepEqual(Object.fromEntries(codes), {
    scheduled_system: 1,
    manual: 2,
    scheduled_node: 3,
    boot: 4,
    subscription: 5,
    system: 6,
    script: 7,
  });
});

for (const [why, packed] of [
  ['nothing', Buffer.alloc(0)],
  ['a byte too few', Buffer.alloc(21, 1)],
  ['a byte too many', Buffer.alloc(23, 1)],
  ['kind 0', Buffer.alloc(22)],
  ['a kind that is not known', Buffer.alloc(22, 8)],
] as const) {
  test(`not a packed execution ID: ${why}`, (t) => t.is(unpackExecutionId(packed), undefined));
}

test('a UUID and its 16 bytes are each other', (t) => {
  t.is(parseUuid(UUID)?.toString('hex'), UUID.replaceAll('-', ''));
  t.is(formatUuid(parseUuid(UUID) as Buffer), UUID);
  for (const text of ['', UUID.toUpperCase(), `${UUID}0`, UUID.slice(1), `${UUID}\n`]) t.is(parseUuid(text), undefined, text);
});
