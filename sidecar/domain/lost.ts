import type { GoneEvidence, RecordedProcess } from './process-identity.js';
import type { NewEvent, RunFacts, RunFill } from './run.js';
import { eventFor, type EventType } from './event-type.js';
import { isTerminal, pathBetween } from './status.js';

/**
 * What settling a Run as lost writes: the process is proven gone, and no finish was found in a drained spool (DESIGN 5.1).
 * When it ended is not known and is not made up; the Event tells when it was seen and by what evidence. Undefined when the
 * Run is settled already.
 */
export function decideLost(
  run: RunFacts,
  recorded: RecordedProcess,
  evidence: GoneEvidence,
  seenAtMs: number,
): { readonly fill: RunFill; readonly events: readonly NewEvent[] } | undefined {
  if (isTerminal(run.status)) return undefined;
  const path = pathBetween(run.status, 'lost') ?? [];
  const events = path.map((status): NewEvent => {
    const type: EventType = eventFor(status);
    return {
      type,
      occurredAtMs: seenAtMs,
      dedupeKey: null,
      payload:
        status === 'lost'
          ? { evidence, pid: recorded.pid, pid_start_ticks: recorded.startTicks, boot_id: recorded.bootId, host: recorded.host }
          : null,
    };
  });
  return { fill: { status: 'lost', reason: evidence }, events };
}
