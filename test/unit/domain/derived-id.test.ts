import test from 'ava';
import fc from 'fast-check';
import { deriveId } from '../../../sidecar/domain/derived-id.js';
import { formatUuid, packExecutionId } from '../../../sidecar/domain/execution-id.js';
import { START_S, uuid } from '../../fixtures/ledger/envelope.js';

const AT_MS = START_S * 1000;
const packed = (number: number): Buffer => packExecutionId({ origin: 'scheduled_system', startSeconds: START_S, uuid: uuid(number) });

test('the derivation never changes: a replay years later computes the same keys (0446 decision 6)', (t) => {
  const identity = packExecutionId({ origin: 'scheduled_system', startSeconds: 1_796_094_000, uuid: '0f0e0d0c-0b0a-4908-8706-050403020100' });
  t.is(formatUuid(deriveId(identity, 1_796_094_000_000, 'run')), '01a22f8b-7b80-7a0a-8dc7-87daf6714d5f');
  t.is(formatUuid(deriveId(identity, 1_796_094_000_000, 'attempt')), '01a22f8b-7b80-7d21-9d9c-82601b351142');
});

test('the shape is a UUIDv7 of the accepted instant (0446 decision 6)', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 22, maxLength: 22 }), fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.constantFrom('run' as const, 'attempt' as const), (bytes, atMs, purpose) => {
      const id = deriveId(Buffer.from(bytes), atMs, purpose);
      t.regex(formatUuid(id), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      t.is(id.readUIntBE(0, 6), atMs);
      t.deepEqual(deriveId(Buffer.from(bytes), atMs, purpose), id);
    }),
    { seed: 446, numRuns: 300 },
  );
});

test('the identity is left as it was', (t) => {
  const identity = packed(1);
  const before = identity.toString('hex');
  deriveId(identity, AT_MS, 'run');
  t.is(identity.toString('hex'), before);
});

test('another execution, another purpose or another length is another ID', (t) => {
  const ids = [
    deriveId(packed(1), AT_MS, 'run'),
    deriveId(packed(1), AT_MS, 'attempt'),
    deriveId(packed(2), AT_MS, 'run'),
    deriveId(Buffer.concat([packed(1), Buffer.from([0])]), AT_MS, 'run'),
  ];
  t.is(new Set(ids.map((id) => id.toString('hex'))).size, ids.length);
});

test('one bit of the execution ID turns about half of the derived bits (spread)', (t) => {
  let turned = 0;
  let tries = 0;
  for (let number = 0; number < 40; number += 1) {
    const identity = packed(number);
    const id = deriveId(identity, AT_MS, 'run');
    for (let bit = 0; bit < 22 * 8; bit += 7) {
      const other = Buffer.from(identity);
      other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
      turned += differingBits(id, deriveId(other, AT_MS, 'run'));
      tries += 1;
    }
  }
  const mean = turned / tries;
  t.true(mean > 33 && mean < 41, `${mean} of 74 bits`);
});

test('100,000 executions of the same second have 100,000 IDs', (t) => {
  const seen = new Set<string>();
  const identity = packed(1);
  for (let number = 0; number < 100_000; number += 1) {
    identity.writeUInt32BE(number, 18);
    seen.add(deriveId(identity, AT_MS, 'run').toString('hex'));
  }
  t.is(seen.size, 100_000);
});

function differingBits(one: Buffer, other: Buffer): number {
  let count = 0;
  for (let at = 0; at < 16; at += 1) {
    for (let bits = (one[at] as number) ^ (other[at] as number); bits > 0; bits &= bits - 1) count += 1;
  }
  return count;
}
