import { parseExecutionId, type ExecutionId } from './execution-id.js';
import { boundedName, isCount, isInteger, isLogPath } from './field.js';
import { accepted, refused, type Result } from './result.js';

/** The longest envelope in bytes, its newline included (DESIGN 4.4): what one append can write without tearing. */
export const ENVELOPE_BYTES_MAX = 4096;

/** The process that an envelope speaks of; the parts that the bridge could not learn are null (DESIGN 5.1). */
export interface ProcessClaim {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat, in clock ticks since boot. */
  readonly startTicks: number | null;
  readonly bootId: string | null;
  readonly host: string | null;
  /** Start ticks of pid 1 as the process saw it: which life of the container this was. */
  readonly initStartTicks: number | null;
}

/** One event of one legacy-owned execution, checked (docs/PROTOCOL.md). Times in ms since 1970 unless the name says s. */
export interface Envelope {
  readonly executionId: ExecutionId;
  readonly event: 'started' | 'finished';
  readonly cronId: number | null;
  readonly name: string | null;
  /** 64 lower-case hex digits, without the `sha256:` in front. */
  readonly taskRevision: string | null;
  readonly process: ProcessClaim | null;
  readonly logPath: string | null;
  readonly occurredAtMs: number;
  /** Null: not known (panels before 2.21 do not learn it). */
  readonly exitCode: number | null;
  readonly stopped: boolean;
  readonly signal: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

const KNOWN_FIELDS = new Set([
  'v',
  'execution_id',
  'seq',
  'event',
  'origin',
  'cron_id',
  'name',
  'task_revision',
  'pid',
  'pid_start_ticks',
  'boot_id',
  'host',
  'init_start_ticks',
  'log_path',
  'started_at',
  'occurred_at_ms',
  'exit_code',
  'duration_s',
  'stopped',
  'signal',
]);

const FINISH_ONLY_FIELDS = ['exit_code', 'duration_s', 'stopped', 'signal'] as const;

/** 2000-01-01 and 9999-12-31 in ms: outside, a clock was not set or a value is no time. */
const EARLIEST_MS = 946_684_800_000;
const LATEST_MS = 253_402_300_799_999;

// eslint-disable-next-line no-control-regex -- exactly the characters that must not reach a terminal
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** Half a character: SQLite would store another text than the one that the next envelope claims. */
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/** Reads one line as an envelope. `field` of a refusal is the field's name, `envelope` for the line as a whole. */
export function parseEnvelope(line: string): Result<Envelope> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return refused('envelope', 'must be one line of JSON');
  }
  return readEnvelope(value);
}

/** Checks a parsed JSON value as an envelope. */
export function readEnvelope(value: unknown): Result<Envelope> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refused('envelope', 'must be a JSON object');
  }
  const fields = value as Fields;
  for (const name in fields) {
    if (!KNOWN_FIELDS.has(name)) return refused(boundedName(name), 'is not a field of an envelope');
  }
  if (fields.v !== 1) return refused('v', 'must be 1');
  if (typeof fields.execution_id !== 'string') return refused('execution_id', 'must be a string');
  const executionId = parseExecutionId(fields.execution_id);
  if (!executionId.ok) return executionId;
  const { event } = fields;
  if (event !== 'started' && event !== 'finished') return refused('event', 'must be started or finished');
  const wrong = firstWrongField(fields, executionId.value, event);
  if (wrong !== undefined) return wrong;
  return accepted({
    executionId: executionId.value,
    event,
    cronId: (fields.cron_id as number | undefined) ?? null,
    name: (fields.name as string | undefined) ?? null,
    taskRevision: fields.task_revision === undefined ? null : (fields.task_revision as string).slice(7),
    process: processClaim(fields),
    logPath: (fields.log_path as string | undefined) ?? null,
    occurredAtMs: fields.occurred_at_ms as number,
    exitCode: (fields.exit_code as number | null | undefined) ?? null,
    stopped: fields.stopped === true,
    signal: (fields.signal as string | undefined) ?? null,
  });
}

function processClaim(fields: Fields): ProcessClaim | null {
  if (fields.pid === undefined) return null;
  return {
    pid: fields.pid as number,
    startTicks: (fields.pid_start_ticks as number | undefined) ?? null,
    bootId: (fields.boot_id as string | undefined) ?? null,
    host: (fields.host as string | undefined) ?? null,
    initStartTicks: (fields.init_start_ticks as number | undefined) ?? null,
  };
}

function firstWrongField(
  fields: Fields,
  id: ExecutionId,
  event: 'started' | 'finished',
): Result<never> | undefined {
  if (!isInteger(fields.seq, 1, 0x7fff_ffff)) return refused('seq', 'must be an integer from 1');
  if (fields.origin !== id.origin) return refused('origin', 'must agree with the kind in execution_id');
  if (fields.cron_id === undefined && fields.name === undefined) {
    return refused('cron_id', 'must be there, or name');
  }
  for (const [name, isRight, rule] of OPTIONAL_FIELDS) {
    if (fields[name] !== undefined && !isRight(fields[name])) return refused(name, rule);
  }
  if (fields.pid === undefined && fields.pid_start_ticks !== undefined) {
    return refused('pid', 'must be there when pid_start_ticks is');
  }
  if (fields.started_at !== undefined && fields.started_at !== id.startSeconds) {
    return refused('started_at', 'must equal the seconds in execution_id');
  }
  if (!isInteger(fields.occurred_at_ms, EARLIEST_MS, LATEST_MS)) {
    return refused('occurred_at_ms', 'must be integer milliseconds since 1970, after 1999');
  }
  if (event === 'started') {
    for (const name of FINISH_ONLY_FIELDS) {
      if (fields[name] !== undefined) return refused(name, 'belongs to a finished event');
    }
  }
  return undefined;
}

/** The fields that may be missing: name, check, rule. One row each (docs/PROTOCOL.md). */
const OPTIONAL_FIELDS: readonly (readonly [string, (value: unknown) => boolean, string])[] = [
  ['cron_id', (value) => isInteger(value, 1, Number.MAX_SAFE_INTEGER), 'must be an integer from 1'],
  ['name', (value) => isText(value, 128), 'must be 1 to 128 characters without control characters'],
  ['task_revision', isDigest, 'must be sha256: and 64 lower-case hex digits'],
  ['pid', (value) => isInteger(value, 1, 4_194_304), 'must be an integer from 1 to 4194304'],
  ['pid_start_ticks', isCount, 'must be an integer from 0'],
  ['boot_id', isUuid, 'must be a lower-case UUID'],
  ['host', (value) => isText(value, 253), 'must be 1 to 253 characters without control characters'],
  ['init_start_ticks', isCount, 'must be an integer from 0'],
  ['log_path', isLogPath, 'must be 1 to 1024 characters without a NUL'],
  ['exit_code', (value) => value === null || isInteger(value, 0, 255), 'must be an integer from 0 to 255, or null'],
  ['duration_s', isCount, 'must be an integer from 0'],
  ['stopped', (value) => typeof value === 'boolean', 'must be true or false'],
  ['signal', (value) => typeof value === 'string' && /^[A-Z0-9+]{1,12}$/.test(value), 'must be a signal name'],
];

function isText(value: unknown, longest: number): boolean {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= longest &&
    !CONTROL.test(value) &&
    !LONE_SURROGATE.test(value)
  );
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
}

function isUuid(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(value)
  );
}
