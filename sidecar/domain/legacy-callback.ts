import { readEnvelope, type Envelope } from './envelope.js';
import { parseExecutionId, type ExecutionId } from './execution-id.js';
import { boundedName, isInteger, isLogPath } from './field.js';
import { accepted, refused, type Result } from './result.js';

/** What a 2.x client puts to `/open/crons/status` (QINGLONG-2X, Callbacks), checked. */
export interface LegacyCallback {
  /** Each cron once, in the order of the body. */
  readonly cronIds: readonly number[];
  readonly event: 'started' | 'finished';
  readonly pid: number | null;
  readonly logPath: string | null;
  /** When the execution began, in s since 1970; null where the body tells no time that a clock could have shown. */
  readonly startedAtS: number | null;
  /** How long it ran, in s. */
  readonly durationS: number | null;
  readonly exitCode: number | null;
}

/** With an execution ID it is an envelope in other words (ADR-0446 decision 3); without one it has to be correlated. */
export type StatusCallback =
  | { readonly kind: 'envelope'; readonly envelope: Envelope }
  | { readonly kind: 'legacy'; readonly callback: LegacyCallback };

type Fields = Readonly<Record<string, unknown>>;

/** As many crons as one body may name. */
const CRONS_MAX = 64;

/** 2000-01-01 and the last second of 9999: a time outside was not read from a clock. */
const EARLIEST_S = 946_684_800;
const LATEST_S = 253_402_300_799;

const TEN_YEARS_S = 315_360_000;

/** The fields of the body: name, check, rule. All but the first two may be missing, as old clients leave them out. */
const FIELDS: readonly (readonly [string, (value: unknown) => boolean, string])[] = [
  ['ids', isCronIds, `must be a list of 1 to ${CRONS_MAX} cron IDs`],
  ['status', (value) => value === '0' || value === '1', 'must be "0" (running) or "1" (idle)'],
  ['pid', orMissing(isPid), 'must be a process ID as a string, "1" to "4194304"'],
  ['log_path', orMissing(isLogPath), 'must be a string of 1 to 1024 characters without a NUL'],
  ['last_execution_time', orMissing((value) => isNumber(value, LATEST_S)), 'must be seconds since 1970'],
  ['last_running_time', orMissing((value) => isNumber(value, TEN_YEARS_S)), 'must be a number of seconds'],
  ['exit_code', orMissing((value) => isInteger(value, 0, 255)), 'must be an integer from 0 to 255'],
  ['execution_id', orMissing((value) => typeof value === 'string'), 'must be a string'],
];

const KNOWN = new Set(FIELDS.map(([name]) => name));

/** What a field of the envelope is called in this body. */
const BODY_NAME: Readonly<Record<string, string>> = {
  cron_id: 'ids',
  started_at: 'last_execution_time',
  occurred_at_ms: 'execution_id',
};

/** Checks a parsed body; a refusal names the field, `body` for the whole. As strict as the panel of 2.21 is. */
export function readStatusCallback(value: unknown): Result<StatusCallback> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refused('body', 'must be a JSON object');
  const fields = value as Fields;
  for (const [name, isRight, rule] of FIELDS) {
    if (!isRight(Object.hasOwn(fields, name) ? fields[name] : undefined)) return refused(name, rule);
  }
  for (const name in fields) {
    if (!KNOWN.has(name)) return refused(boundedName(name), 'is not a field of a status callback');
  }
  const callback = legacyCallback(fields);
  if (fields.execution_id === undefined) return accepted({ kind: 'legacy', callback });
  const executionId = parseExecutionId(fields.execution_id as string);
  if (!executionId.ok) return executionId;
  if (callback.cronIds.length !== 1) return refused('ids', 'must name one cron when there is an execution_id');
  return identified(callback, executionId.value, fields);
}

/**
 * What a correlated callback says of the Run that it was found to belong to. `nowMs` stands in where the body tells no
 * usable time (ms since 1970).
 */
export function envelopeFor(callback: LegacyCallback, cronId: number, executionId: ExecutionId, nowMs: number): Envelope {
  return {
    executionId,
    event: callback.event,
    cronId,
    name: null,
    taskRevision: null,
    process: processOf(callback.pid),
    logPath: callback.logPath,
    occurredAtMs: occurredAtMs(callback, callback.startedAtS) ?? nowMs,
    exitCode: callback.exitCode,
    stopped: false,
    signal: null,
  };
}

/** Goes through the checks of an envelope: no way into the ledger is less strict than the other. */
function identified(callback: LegacyCallback, id: ExecutionId, fields: Fields): Result<StatusCallback> {
  const isFinish = callback.event === 'finished';
  const envelope = readEnvelope({
    v: 1,
    execution_id: fields.execution_id,
    seq: isFinish ? 2 : 1,
    event: callback.event,
    origin: id.origin,
    cron_id: callback.cronIds[0],
    // The time comes from the body and the ID alone: a repeat an hour later must say the same.
    occurred_at_ms: occurredAtMs(callback, id.startSeconds),
    ...(callback.pid === null ? {} : { pid: callback.pid }),
    ...(callback.logPath === null ? {} : { log_path: callback.logPath }),
    ...(callback.startedAtS === null ? {} : { started_at: Math.floor(callback.startedAtS) }),
    ...(isFinish ? { exit_code: callback.exitCode } : {}),
  });
  if (!envelope.ok) return refused(BODY_NAME[envelope.field] ?? envelope.field, envelope.rule);
  return accepted({ kind: 'envelope', envelope: envelope.value });
}

function legacyCallback(fields: Fields): LegacyCallback {
  const isFinish = fields.status === '1';
  const began = fields.last_execution_time as number | undefined;
  return {
    cronIds: [...new Set((fields.ids as (string | number)[]).map(Number))],
    event: isFinish ? 'finished' : 'started',
    pid: fields.pid === undefined ? null : Number(fields.pid),
    logPath: (fields.log_path as string | undefined) ?? null,
    startedAtS: began === undefined || began < EARLIEST_S ? null : began,
    durationS: (fields.last_running_time as number | undefined) ?? null,
    exitCode: isFinish ? ((fields.exit_code as number | undefined) ?? null) : null,
  };
}

function occurredAtMs(callback: LegacyCallback, startedAtS: number | null): number | null {
  if (startedAtS === null) return null;
  return Math.round((startedAtS + (callback.event === 'finished' ? (callback.durationS ?? 0) : 0)) * 1000);
}

function processOf(pid: number | null): Envelope['process'] {
  return pid === null ? null : { pid, startTicks: null, bootId: null, host: null, initStartTicks: null };
}

function orMissing(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isRight(value);
}

function isCronIds(value: unknown): boolean {
  return Array.isArray(value) && value.length >= 1 && value.length <= CRONS_MAX && value.every(isCronId);
}

/** The shell quotes IDs, the panel takes both. */
function isCronId(value: unknown): boolean {
  const id = typeof value === 'string' && /^[1-9]\d{0,15}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(id) && (id as number) >= 1;
}

function isPid(value: unknown): boolean {
  return typeof value === 'string' && /^[1-9]\d{0,6}$/.test(value) && Number(value) <= 4_194_304;
}

function isNumber(value: unknown, most: number): boolean {
  return typeof value === 'number' && value >= 0 && value <= most;
}
