import type { ShownRun } from '../operations/show-run.js';
import type { EventView, RunView } from '../ledger/run-views.js';
import { renderInstant, renderShort, renderSpan } from './render-time.js';

/** How a person wants it: local zone or UTC, and whether the screen takes colours. */
export interface Style {
  readonly utc: boolean;
  readonly colour: boolean;
}

const COLOURS: Readonly<Record<string, number>> = { succeeded: 32, failed: 31, lost: 35, cancelled: 33, running: 36 };

/** The head of the table of Runs. Every row fits 80 columns. */
export const RUNS_HEAD = `${'RUN'.padEnd(36)} ${'TASK'.padEnd(6)} ${'STATUS'.padEnd(9)} EXIT ${'STARTED'.padEnd(14)}  TOOK`;

/** One row of the table. */
export function renderRow(run: RunView, style: Style): string {
  const task = run.cron_id === null ? run.task_id.replace(/^name:/, '') : String(run.cron_id);
  return [
    run.run_id,
    fitted(task, 6),
    coloured(run.status, 9, style),
    (run.exit_code === null ? '-' : String(run.exit_code)).padStart(4),
    renderShort(run.started_at_ms ?? run.accepted_at_ms, style.utc),
    (run.duration_ms === null ? '-' : renderSpan(run.duration_ms)).padStart(5),
  ].join(' ');
}

/** One Run: its fields, then its timeline. */
export function renderShown(run: ShownRun, style: Style): string {
  const instant = (ms: number | null): string | null => (ms === null ? null : renderInstant(ms, style.utc));
  const fields: readonly (readonly [string, string | number | null])[] = [
    ['Run', run.run_id],
    ['Task', run.task_id],
    ['Origin', `${run.origin}, owned by ${run.owner}`],
    ['Status', coloured(run.status, 0, style)],
    ['Exit code', run.exit_code],
    ['Reason', run.reason],
    ['Execution', run.execution_id],
    ['Revision', run.task_revision],
    ['Scheduled', instant(run.scheduled_for_ms)],
    ['Accepted', instant(run.accepted_at_ms)],
    ['Started', instant(run.started_at_ms)],
    ['Finished', instant(run.finished_at_ms)],
    ['Took', run.duration_ms === null ? null : renderSpan(run.duration_ms)],
    ['Process', processOf(run)],
    ['Log', run.log_path],
  ];
  const shown = fields
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.padEnd(10)} ${name === 'Status' ? value : printable(String(value))}`);
  return [...shown, '', ...run.events.map((event) => renderEvent(event, style))].join('\n');
}

function renderEvent(event: EventView, style: Style): string {
  const details = Object.entries(event.payload ?? {}).map(([key, value]) => `${key}=${printable(String(value))}`);
  const line = [
    String(event.sequence).padStart(3),
    renderInstant(event.occurred_at_ms, style.utc),
    event.type.padEnd(15),
    `by ${event.actor}`,
    ...details,
  ];
  return line.join(' ');
}

function processOf(run: RunView): string | null {
  if (run.pid === null) return null;
  const start = run.pid_start_ticks === null ? '' : `, start tick ${run.pid_start_ticks}`;
  return `pid ${run.pid}${start}${run.host === null ? '' : `, on ${run.host}`}`;
}

function coloured(status: string, width: number, style: Style): string {
  const colour = style.colour ? COLOURS[status] : undefined;
  const padded = width === 0 ? status : fitted(status, width);
  return colour === undefined ? padded : `\u001b[${colour}m${padded}\u001b[0m`;
}

/** Padded to a number of columns, or cut and marked with `~`; a wide (CJK) character takes two. */
function fitted(text: string, columns: number): string {
  const characters = Array.from(printable(text));
  let used = characters.reduce((sum, character) => sum + widthOf(character), 0);
  if (used <= columns) return characters.join('') + ' '.repeat(columns - used);
  while (used > columns - 1) used -= widthOf(characters.pop() as string);
  return `${characters.join('')}~${' '.repeat(columns - 1 - used)}`;
}

function widthOf(character: string): number {
  return isWide(character.codePointAt(0) as number) || EMOJI.test(character) ? 2 : 1;
}

/** Emoji that terminals draw in two columns; they lie scattered over the symbols. */
const EMOJI = /\p{Emoji_Presentation}/u;

function isWide(point: number): boolean {
  return (
    (point >= 0x1100 && point <= 0x115f) ||
    (point >= 0x2e80 && point <= 0xa4cf) ||
    (point >= 0xa960 && point <= 0xa97c) ||
    (point >= 0xac00 && point <= 0xd7a3) ||
    (point >= 0xf900 && point <= 0xfaff) ||
    (point >= 0xfe30 && point <= 0xfe6f) ||
    (point >= 0xff00 && point <= 0xff60) ||
    (point >= 0xffe0 && point <= 0xffe6) ||
    (point >= 0x16fe0 && point <= 0x1b2ff) ||
    (point >= 0x1f200 && point <= 0x1faff) ||
    (point >= 0x20000 && point <= 0x3fffd)
  );
}

/** Controls, line separators and what turns the direction of writing: exactly the characters that steer a terminal. */
// eslint-disable-next-line no-control-regex -- see above
const STEERING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udfff]/gu;

/** What tasks and logs are called must not steer a terminal: colours come from us alone. */
function printable(text: string): string {
  return text.replace(STEERING, '?');
}
