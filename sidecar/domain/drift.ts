import type { Envelope } from './envelope.js';

/** What a recorded Run says of itself, as far as an envelope can contradict it. */
export interface RunIdentity {
  readonly cronId: number | null;
  readonly name: string | null;
  readonly taskRevision: string | null;
  readonly idempotencyKey: Buffer;
  readonly createdAtMs: number;
}

/** The bounded classes under which a refused replay is counted (ADR-0446 decision 6). */
export const DRIFT_CLASSES = ['identity_drift', 'task_drift', 'revision_drift'] as const;
export type DriftClass = (typeof DRIFT_CLASSES)[number];

/**
 * Whether an envelope contradicts the Run that its execution ID names: another task, another revision, or another
 * identity behind the same derived ID. A claim that either side does not make is no drift (DESIGN 5).
 */
export function driftOf(
  run: RunIdentity,
  envelope: Envelope,
  packedId: Buffer,
  acceptedAtMs: number,
): DriftClass | undefined {
  if (run.createdAtMs !== acceptedAtMs || !packedId.equals(run.idempotencyKey)) return 'identity_drift';
  if (envelope.cronId !== run.cronId) return 'task_drift';
  if (run.cronId === null && envelope.name !== run.name) return 'task_drift';
  if (
    envelope.taskRevision !== null &&
    run.taskRevision !== null &&
    envelope.taskRevision !== run.taskRevision
  ) {
    return 'revision_drift';
  }
  return undefined;
}
