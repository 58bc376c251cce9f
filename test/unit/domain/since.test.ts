import test from 'ava';
import { parseSince } from '../../../sidecar/domain/since.js';

const NOW = Date.UTC(2026, 11, 1, 12, 0, 0);

// These run with TZ=UTC; what a local zone does is shown in test/unit/cli/render-time.test.ts.
for (const [text, ms] of [
  ['90s', NOW - 90_000],
  ['30m', NOW - 1_800_000],
  ['2h', NOW - 7_200_000],
  ['7d', NOW - 604_800_000],
  ['2w', NOW - 1_209_600_000],
  ['0s', NOW],
  ['999999w', NOW - 999_999 * 604_800_000],
  ['1796094000000', 1_796_094_000_000],
  ['2026-12-01', Date.UTC(2026, 11, 1)],
  ['2026-12-01 03:00', Date.UTC(2026, 11, 1, 3)],
  ['2026-12-01T03:00:05', Date.UTC(2026, 11, 1, 3, 0, 5)],
  ['2026-12-01T03:00:05.120', Date.UTC(2026, 11, 1, 3, 0, 5, 120)],
  ['2026-12-01T03:00Z', Date.UTC(2026, 11, 1, 3)],
  ['2026-12-01T03:00+08:00', Date.UTC(2026, 10, 30, 19)],
  ['2026-12-01T03:00+0800', Date.UTC(2026, 10, 30, 19)],
  ['2024-02-29', Date.UTC(2024, 1, 29)],
] as const) {
  test(`--since ${text} (DESIGN 10)`, (t) => t.deepEqual(parseSince(text, NOW), { ok: true, value: ms }));
}

for (const text of ['', ' ', '2', '2x', '-2h', '1.5h', '2h30m', 'yesterday', '2026-13-01', '2026-12-32', '2026-02-30', '2025-02-29', '2026-12-01 25:00', '2026-12-01 24:01', '2026-12-1', '01.12.2026', '2026/12/01', '1234567h', '1e12', '179609400000000', '2026-12-01T03:00 UTC', 'constructor', '2h\n']) {
  test(`--since ${JSON.stringify(text)} is refused in words (DESIGN 10)`, (t) => {
    t.like(parseSince(text, NOW), { ok: false, field: 'since' });
  });
}
