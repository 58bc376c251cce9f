import { KIND_OF_ORIGIN, type ShadowOrigin } from './origin.js';
import { accepted, refused, type Result } from './result.js';

/** The one identity of one execution, shared by its start and its finish (ADR-0446 decision 2, DESIGN 2). */
export interface ExecutionId {
  readonly origin: ShadowOrigin;
  /** When the execution began, in s since 1970; the panel's own `begin_timestamp`. */
  readonly startSeconds: number;
  /** Lower-case UUIDv4. */
  readonly uuid: string;
}

const FORM =
  /^legacy-([a-z]+):([1-9][0-9]{0,11}):([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/;

/** The last second of the year 9999: what lies beyond is not a time that anybody meant. */
const LAST_SECOND = 253_402_300_799;

/** Kinds in the order of the codes that packed identities carry; append only. */
const KINDS: readonly ShadowOrigin[] = [
  'scheduled_system',
  'manual',
  'scheduled_node',
  'boot',
  'subscription',
  'system',
  'script',
];

const ORIGIN_OF_KIND = new Map<string, ShadowOrigin>(
  KINDS.map((origin) => [KIND_OF_ORIGIN[origin], origin]),
);

/** Reads the strict text form; anything else is refused (ADR-0446 decision 3). */
export function parseExecutionId(text: string): Result<ExecutionId> {
  const match = FORM.exec(text);
  if (match === null) {
    return refused('execution_id', 'must be legacy-<kind>:<start-seconds>:<lower-case uuid-v4>');
  }
  const origin = ORIGIN_OF_KIND.get(match[1] as string);
  if (origin === undefined) return refused('execution_id', 'names an unknown kind');
  const startSeconds = Number(match[2]);
  if (startSeconds > LAST_SECOND) return refused('execution_id', 'start second is after the year 9999');
  return accepted({ origin, startSeconds, uuid: match[3] as string });
}

/** The text form, as it stands in envelopes and on screens. */
export function formatExecutionId(id: ExecutionId): string {
  return `legacy-${KIND_OF_ORIGIN[id.origin]}:${id.startSeconds}:${id.uuid}`;
}

/**
 * 22 bytes that stand for the text without loss: kind (1), start second (5, big-endian), UUID (16). Time-ordered
 * within a kind, and 39 bytes shorter than the text: each is stored twice, in a row and in its unique index.
 */
export function packExecutionId(id: ExecutionId): Buffer {
  const packed = Buffer.allocUnsafe(22);
  packed[0] = KINDS.indexOf(id.origin) + 1;
  packed.writeUIntBE(id.startSeconds, 1, 5);
  packed.write(id.uuid.replaceAll('-', ''), 6, 16, 'hex');
  return packed;
}

/** The reverse of `packExecutionId`; undefined when the bytes are not a packed execution ID. */
export function unpackExecutionId(packed: Buffer): ExecutionId | undefined {
  const origin = packed.length === 22 ? KINDS[(packed[0] as number) - 1] : undefined;
  if (origin === undefined) return undefined;
  return { origin, startSeconds: packed.readUIntBE(1, 5), uuid: formatUuid(packed.subarray(6)) };
}

/** 16 bytes as 8-4-4-4-12 lower-case hex. */
export function formatUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** The 16 bytes of a UUID in its text form, or undefined when it is not one. */
export function parseUuid(text: string): Buffer | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)
    ? Buffer.from(text.replaceAll('-', ''), 'hex')
    : undefined;
}
