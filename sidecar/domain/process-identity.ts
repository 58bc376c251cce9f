/** A process as a Run recorded it (DESIGN 5.1). Ticks are clock ticks since boot. */
export interface RecordedProcess {
  readonly pid: number;
  readonly startTicks: number | null;
  readonly bootId: string | null;
  readonly host: string | null;
  readonly initStartTicks: number | null;
}

/** The machine that looks: what it calls itself, and which life of it this is. */
export interface ObservingHost {
  readonly host: string;
  readonly bootId: string | null;
  readonly initStartTicks: number | null;
}

/** What /proc shows under a pid now: absent, a process that started at these ticks, or nothing that can be read. */
export type ProcessSight =
  | { readonly kind: 'absent' }
  | { readonly kind: 'present'; readonly startTicks: number }
  | { readonly kind: 'unreadable' };

export type ProcessVerdict =
  | { readonly kind: 'gone'; readonly evidence: GoneEvidence }
  | { readonly kind: 'alive' }
  | { readonly kind: 'unproven'; readonly why: 'no_identity' | 'other_host' | 'unreadable' };

export type GoneEvidence = 'host_rebooted' | 'container_restarted' | 'pid_absent' | 'pid_reused';

/**
 * Whether a recorded process is proven gone. Proof needs the same host; everything else leaves the Run pending (DESIGN
 * 5.1). A machine that has booted since, or a container whose first process started after the recorded one, has no process
 * of that former life; a first process that is older only means that we look from outside, where the pid says nothing.
 */
export function judgeProcess(
  recorded: RecordedProcess,
  observer: ObservingHost,
  sight: ProcessSight,
): ProcessVerdict {
  if (recorded.host === null || recorded.bootId === null || recorded.startTicks === null) {
    return { kind: 'unproven', why: 'no_identity' };
  }
  if (recorded.host !== observer.host) return { kind: 'unproven', why: 'other_host' };
  if (observer.bootId === null) return { kind: 'unproven', why: 'unreadable' };
  if (recorded.bootId !== observer.bootId) return { kind: 'gone', evidence: 'host_rebooted' };
  if (
    recorded.initStartTicks !== null &&
    observer.initStartTicks !== null &&
    recorded.initStartTicks !== observer.initStartTicks
  ) {
    return observer.initStartTicks > recorded.startTicks
      ? { kind: 'gone', evidence: 'container_restarted' }
      : { kind: 'unproven', why: 'other_host' };
  }
  switch (sight.kind) {
    case 'absent':
      return { kind: 'gone', evidence: 'pid_absent' };
    case 'present':
      return sight.startTicks === recorded.startTicks
        ? { kind: 'alive' }
        : { kind: 'gone', evidence: 'pid_reused' };
    case 'unreadable':
      return { kind: 'unproven', why: 'unreadable' };
  }
}
