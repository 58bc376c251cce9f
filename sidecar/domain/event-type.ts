import type { RunStatus } from './status.js';

/** What an Event says, with the code that the ledger stores. Codes are never reused. */
export const EVENT_TYPES = {
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
} as const;

export type EventType = keyof typeof EVENT_TYPES;

const NAMES = new Map<number, EventType>(
  Object.entries(EVENT_TYPES).map(([name, code]) => [code, name as EventType]),
);

/** The name behind a stored code; a code of a newer version is shown as `unknown.<code>`. */
export function eventTypeName(code: number): string {
  return NAMES.get(code) ?? `unknown.${code}`;
}

/** The Event that records that a Run entered `status`. */
export function eventFor(status: RunStatus): EventType {
  return `run.${status}`;
}

/** Who brought a fact, in the order of the stored codes. Append only. */
export const ACTORS = ['bridge', 'liveness', 'receiver', 'reconciler', 'scheduler', 'operator'] as const;
export type Actor = (typeof ACTORS)[number];
