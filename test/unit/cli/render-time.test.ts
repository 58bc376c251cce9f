import test from 'ava';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { renderInstant, renderShort, renderSpan } from '../../../sidecar/cli/render-time.js';

const AT_MS = Date.UTC(2026, 11, 1, 3, 4, 5, 678);

test('--utc: year to millisecond, and Z (DESIGN 10)', (t) => {
  t.is(renderInstant(AT_MS, true), '2026-12-01 03:04:05.678Z');
  t.is(renderShort(AT_MS, true), '12-01 03:04:05');
});

for (const [ms, shown] of [
  [0, '0.0s'],
  [49, '0.0s'],
  [400, '0.4s'],
  [9_949, '9.9s'],
  [9_950, '10s'],
  [12_345, '12s'],
  [59_499, '59s'],
  [59_500, '1m00s'],
  [185_000, '3m05s'],
  [3_599_999, '1h00m'],
  [7_800_000, '2h10m'],
  [86_399_999, '1d00h'],
  [3 * 86_400_000 + 4 * 3_600_000, '3d04h'],
  [99 * 86_400_000, '99d00h'],
  [100 * 86_400_000, '100d'],
  [1_826 * 86_400_000, '1826d'],
  [9_999 * 86_400_000, '9999d'],
  [10_000 * 86_400_000, '27y'],
  [252_455_616_000_000, '7999y'],
] as const) {
  test(`${ms} ms is ${shown}`, (t) => t.is(renderSpan(ms), shown));
}

test('no span is wider than six columns', (t) => {
  for (let ms = 1; ms < 3e14; ms = Math.ceil(ms * 1.07)) t.true(renderSpan(ms).length <= 6, `${ms}: ${renderSpan(ms)}`);
});

/** What a process in this zone prints; each run of Node knows one zone only. */
function inZone(zone: string, expression: string): string {
  const module = path.join(process.cwd(), 'build/sidecar');
  const code = `
    import { renderInstant, renderShort } from '${module}/cli/render-time.js';
    import { parseSince } from '${module}/domain/since.js';
    console.log(${expression});`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', code], { env: { TZ: zone }, encoding: 'utf8' }).trim();
}

for (const [zone, ms, shown] of [
  ['UTC', AT_MS, '2026-12-01 03:04:05.678+00:00'],
  ['Asia/Shanghai', AT_MS, '2026-12-01 11:04:05.678+08:00'],
  ['Asia/Kolkata', AT_MS, '2026-12-01 08:34:05.678+05:30'],
  ['America/St_Johns', AT_MS, '2026-11-30 23:34:05.678-03:30'],
  ['America/New_York', Date.UTC(2026, 10, 1, 5, 30), '2026-11-01 01:30:00.000-04:00'],
  ['America/New_York', Date.UTC(2026, 10, 1, 6, 30), '2026-11-01 01:30:00.000-05:00'],
  ['Australia/Lord_Howe', Date.UTC(2026, 0, 1), '2026-01-01 11:00:00.000+11:00'],
] as const) {
  test(`in ${zone}: ${shown} (DESIGN 10)`, (t) => {
    t.is(inZone(zone, `renderInstant(${ms}, false)`), shown);
    t.is(inZone(zone, `renderShort(${ms}, false)`), shown.slice(5, 19));
    t.is(inZone(zone, `renderInstant(${ms}, true)`), renderInstant(ms, true));
  });
}

test('a date without a zone is a local one; with a zone it is that instant (DESIGN 10)', (t) => {
  const read = (text: string): number => Number(inZone('Asia/Shanghai', `parseSince('${text}', 0).value`));
  t.is(read('2026-12-01'), Date.UTC(2026, 10, 30, 16));
  t.is(read('2026-12-01 03:00'), Date.UTC(2026, 10, 30, 19));
  t.is(read('2026-12-01T03:00Z'), Date.UTC(2026, 11, 1, 3));
});
