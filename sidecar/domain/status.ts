/** The states of a Run and of an Attempt, in the order of the codes that the ledger stores (DESIGN 5.1). Append only. */
export const RUN_STATUSES = [
  'created',
  'queued',
  'dispatching',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'lost',
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const ATTEMPT_STATUSES = [
  'claimed',
  'starting',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'lost',
] as const;
export type AttemptStatus = (typeof ATTEMPT_STATUSES)[number];

export const TERMINAL_STATUSES = ['succeeded', 'failed', 'cancelled', 'lost'] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

/** Whether nothing may follow this state. */
export function isTerminal(status: RunStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly string[]).includes(status);
}

export function runStatusCode(status: RunStatus): number {
  return RUN_STATUSES.indexOf(status);
}

export function attemptStatusCode(status: AttemptStatus): number {
  return ATTEMPT_STATUSES.indexOf(status);
}

/**
 * The one table of legal transitions (DESIGN 5.1, ADR-0002 §9.2). Each row: from, to, and the state that the Attempt has
 * then. Nothing else writes a status; no row leads out of a terminal state.
 */
export const TRANSITIONS = [
  { from: 'created', to: 'queued', attempt: 'claimed' },
  { from: 'queued', to: 'dispatching', attempt: 'starting' },
  { from: 'queued', to: 'cancelled', attempt: 'cancelled' },
  { from: 'dispatching', to: 'running', attempt: 'running' },
  { from: 'dispatching', to: 'failed', attempt: 'failed' },
  { from: 'dispatching', to: 'cancelled', attempt: 'cancelled' },
  { from: 'dispatching', to: 'lost', attempt: 'lost' },
  { from: 'running', to: 'succeeded', attempt: 'succeeded' },
  { from: 'running', to: 'failed', attempt: 'failed' },
  { from: 'running', to: 'cancelled', attempt: 'cancelled' },
  { from: 'running', to: 'lost', attempt: 'lost' },
] as const satisfies readonly { from: RunStatus; to: RunStatus; attempt: AttemptStatus }[];

/** The states that a fact which shows a process implies, in order. */
const OBSERVED: readonly RunStatus[] = ['created', 'queued', 'dispatching', 'running'];

/**
 * The states to pass on the way from `from` (undefined: the Run does not exist) to `to`, with what an early fact implies
 * filled in, in order (DESIGN 5.1). Undefined when the table has no such way: a mismatch.
 */
export function pathBetween(from: RunStatus | undefined, to: RunStatus): readonly RunStatus[] | undefined {
  const reached = from === undefined ? -1 : OBSERVED.indexOf(from);
  if (from !== undefined && reached < 0) return undefined;
  const target = OBSERVED.indexOf(to);
  if (target >= 0) return target > reached ? OBSERVED.slice(reached + 1, target + 1) : undefined;
  return [...OBSERVED.slice(reached + 1), to];
}

/** The state of the Attempt when its Run is in `status`. */
export function attemptStatusFor(status: RunStatus): AttemptStatus {
  if (status === 'created' || status === 'queued') return 'claimed';
  return status === 'dispatching' ? 'starting' : status;
}
