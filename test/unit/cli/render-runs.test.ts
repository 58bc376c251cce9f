import test from 'ava';
import fc from 'fast-check';
import { RUNS_HEAD, renderRow, renderShown } from '../../../sidecar/cli/render-runs.js';
import type { RunView } from '../../../sidecar/ledger/run-views.js';
import { RUN_STATUSES } from '../../../sidecar/domain/status.js';
import { executionId } from '../../fixtures/ledger/envelope.js';

const PLAIN = { utc: true, colour: false };
const COLOUR = { utc: true, colour: true };

const RUN: RunView = {
  run_id: '01a22f8b-7b80-7a0a-8dc7-87daf6714d5f',
  task_id: 'legacy-cron:5',
  cron_id: 5,
  origin: 'scheduled_system',
  owner: 'legacy',
  status: 'failed',
  exit_code: 3,
  reason: null,
  execution_id: executionId(1),
  task_revision: null,
  accepted_at_ms: 1_796_094_000_000,
  started_at_ms: 1_796_094_000_123,
  finished_at_ms: 1_796_094_012_345,
  duration_ms: 12_222,
  pid: 4242,
  pid_start_ticks: 8_123_456,
  host: 'panel',
  boot_id: null,
  log_path: 'x_5/1.log',
  scheduled_for_ms: null,
};

/** Columns by the properties of Unicode itself; what combines or joins is counted as one, which only overstates. */
function columns(text: string): number {
  const wide = /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303e\uff01-\uff60]/u;
  return Array.from(text).reduce((sum, character) => sum + (wide.test(character) && !/[\uff61-\uffdc]/.test(character) ? 2 : 1), 0);
}

/** Anything that steers a terminal: controls, bidirectional overrides, line separators. */
const STEERING = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}\ufeff]/u;

test('a row says Run, task, status, exit code, start and span (DESIGN 10)', (t) => {
  t.is(RUNS_HEAD, 'RUN                                  TASK   STATUS    EXIT STARTED         TOOK');
  t.is(renderRow(RUN, PLAIN), '01a22f8b-7b80-7a0a-8dc7-87daf6714d5f 5      failed       3 12-01 03:00:00   12s');
  t.is(
    renderRow({ ...RUN, status: 'running', exit_code: null, finished_at_ms: null, duration_ms: null }, PLAIN),
    '01a22f8b-7b80-7a0a-8dc7-87daf6714d5f 5      running      - 12-01 03:00:00     -',
  );
});

test('a finish whose start was lost shows when it was accepted', (t) => {
  t.true(renderRow({ ...RUN, started_at_ms: null, accepted_at_ms: Date.UTC(2026, 0, 2) }, PLAIN).includes(' 01-02 00:00:00 '));
});

for (const [name, shown] of [
  ['backup', 'backup'],
  ['backups', 'backu~'],
  ['备份', '备份  '],
  ['备份数', '备份数'],
  ['备份数据', '备份~ '],
  ['a备份数据', 'a备份~'],
  ['✅✅✅', '✅✅✅'],
  ['✅✅✅✅', '✅✅~ '],
  ['ﾊﾝｶｸ', 'ﾊﾝｶｸ  '],
  ['😀😀😀😀', '😀😀~ '],
  ['\u001b[31mx', '?[31mx'],
  ['\u202egnp', '?gnp  '],
] as const) {
  test(`a task called ${JSON.stringify(name)} is shown as "${shown}" in six columns`, (t) => {
    const row = renderRow({ ...RUN, cron_id: null, task_id: `name:${name}` }, PLAIN);
    t.is(row.slice(37, 37 + shown.length), shown);
    t.is(columns(shown), 6);
  });
}

const hostileText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\u001b', '\u009b', '\u0007', '\n', '\r', '\t', '\0', '\u007f', '\u202e', '\u2066', '\u2028', '\u200f', '\ufeff', '\ud800', '备', '份', '✅', '⏰', '🀄', '👨‍👩‍👧', 'ａ', '가', 'a', 'é', '"', '%', '\\'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 40,
});

test('80 columns and nothing that steers the terminal, whatever a task is called or a clock did', (t) => {
  fc.assert(
    fc.property(
      hostileText,
      fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
      fc.option(fc.integer({ min: 0, max: 255 })),
      fc.option(fc.integer({ min: 0, max: 252_455_616_000_000 })),
      fc.constantFrom(...RUN_STATUSES),
      (name, cronId, exitCode, durationMs, status) => {
        const run = { ...RUN, cron_id: cronId, task_id: cronId === null ? `name:${name}` : `legacy-cron:${cronId}`, exit_code: exitCode, duration_ms: durationMs, status };
        const row = renderRow(run, PLAIN);
        t.false(STEERING.test(row), JSON.stringify(row));
        t.true(columns(row) <= 80, `${columns(row)}: ${row}`);
      },
    ),
    { seed: 80, numRuns: 2000 },
  );
});

test('colours stand around the status alone, and only when the screen takes them (DESIGN 10)', (t) => {
  // eslint-disable-next-line no-control-regex -- the colours themselves
  const colour = /\u001b\[\d+m/g;
  for (const status of RUN_STATUSES) {
    const plain = renderRow({ ...RUN, status }, PLAIN);
    const coloured = renderRow({ ...RUN, status }, COLOUR);
    t.is(plain.match(colour), null);
    t.is(coloured.replace(colour, ''), plain);
    t.is(coloured !== plain, !['created', 'queued', 'dispatching'].includes(status), status);
    if (coloured !== plain) t.regex(coloured, new RegExp(`\u001b\\[\\d+m${status} *\u001b\\[0m`));
  }
});

test('show: the fields that are known, then the timeline in order (DESIGN 10)', (t) => {
  const shown = renderShown(
    {
      ...RUN,
      events: [
        { sequence: 1, type: 'run.created', actor: 'bridge', attempt: 1, occurred_at_ms: 1_796_094_000_000, payload: null },
        { sequence: 2, type: 'run.failed', actor: 'bridge', attempt: 1, occurred_at_ms: 1_796_094_012_345, payload: { exit_code: 3 } },
      ],
    },
    PLAIN,
  );
  t.deepEqual(shown.split('\n'), [
    'Run        01a22f8b-7b80-7a0a-8dc7-87daf6714d5f',
    'Task       legacy-cron:5',
    'Origin     scheduled_system, owned by legacy',
    'Status     failed',
    'Exit code  3',
    `Execution  ${executionId(1)}`,
    'Accepted   2026-12-01 03:00:00.000Z',
    'Started    2026-12-01 03:00:00.123Z',
    'Finished   2026-12-01 03:00:12.345Z',
    'Took       12s',
    'Process    pid 4242, start tick 8123456, on panel',
    'Log        x_5/1.log',
    '',
    '  1 2026-12-01 03:00:00.000Z run.created     by bridge',
    '  2 2026-12-01 03:00:12.345Z run.failed      by bridge exit_code=3',
  ]);
});

test('show: nothing that came from outside steers the terminal', (t) => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const shown = renderShown(
        {
          ...RUN,
          task_id: `name:${text}`,
          host: text,
          log_path: text,
          reason: text,
          events: [{ sequence: 1, type: 'run.lost', actor: 'liveness', attempt: 1, occurred_at_ms: 1, payload: { host: text } }],
        },
        PLAIN,
      );
      const lines = shown.split('\n');
      t.is(lines.length, 15);
      for (const line of lines) t.false(STEERING.test(line), JSON.stringify(line));
    }),
    { seed: 80, numRuns: 500 },
  );
});
