/** A metric family as the text format names it. Labels are bounded: origin, profile, executor type, error class (DESIGN 12). */
export interface MetricFamily {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'summary';
  readonly help: string;
  /** Whether each enabled origin shows a zero before anything happened, so that an alert has something to watch. */
  readonly perOrigin: boolean;
}

/** Every counter that the ledger keeps: the eight of ADR-0002 §16.1 (as far as they are counters), and ours. */
export const COUNTERS: readonly MetricFamily[] = [
  counter('shadow_run_create_total', 'Shadow Runs created.', true),
  counter('shadow_run_create_failed_total', 'Callbacks refused because they contradict the recorded Run.'),
  counter('shadow_callback_unmatched_total', 'Callbacks without an execution ID that no single Run could be found for.'),
  counter('ql_sidecar_correlation_truncated_total', 'Callbacks without an execution ID that had more candidates than are compared.'),
  counter('shadow_transition_mismatch_total', 'Callbacks that have no legal transition.'),
  counter('shadow_terminal_mismatch_total', 'Finishes that contradict the recorded outcome.', true),
  counter('legacy_fallback_total', 'Executions of runtime-owned tasks that were left to the panel.'),
  counter('ql_sidecar_runs_succeeded_total', 'Runs that succeeded.', true),
  counter('ql_sidecar_runs_failed_total', 'Runs that failed.', true),
  counter('ql_sidecar_runs_cancelled_total', 'Runs that were stopped.', true),
  counter('ql_sidecar_runs_lost_total', 'Runs whose process was proven gone without a finish.'),
  counter('ql_sidecar_quarantined_total', 'Files taken out of the spool because they hold no valid envelope.'),
];

/** Time from an event to its acceptance; kept as two counters, in ms and in events. */
export const LAG: MetricFamily = {
  name: 'shadow_transition_lag_seconds',
  type: 'summary',
  help: 'Time from an event to its acceptance in the ledger.',
  perOrigin: false,
};
export const LAG_SUM_MS = 'shadow_transition_lag_ms_sum';
export const LAG_COUNT = 'shadow_transition_lag_ms_count';

export const GAUGES: readonly MetricFamily[] = [
  gauge('ql_sidecar_active_runs', 'Runs that have not ended.', true),
  gauge('ql_sidecar_spool_envelopes', 'Envelopes that wait in the spool.'),
  gauge('ql_sidecar_ledger_bytes', 'Size of the ledger file.'),
  gauge('ql_sidecar_build_info', 'Always 1; the label names the profile.'),
];

export interface MetricSample {
  readonly name: string;
  /** The label part, e.g. `origin="manual"`, or empty. */
  readonly labels: string;
  readonly value: number;
}

/** The Prometheus text format: families in the given order, each with its help and type, then its samples. */
export function renderMetrics(families: readonly MetricFamily[], samples: readonly MetricSample[]): string {
  const lines: string[] = [];
  for (const { name, type, help } of families) {
    const own = samples.filter((sample) => familyOf(sample.name, type) === name);
    if (own.length === 0) continue;
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const sample of own) {
      lines.push(`${sample.name}${sample.labels === '' ? '' : `{${sample.labels}}`} ${sample.value}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function familyOf(sample: string, type: MetricFamily['type']): string {
  return type === 'summary' ? sample.replace(/_(sum|count)$/, '') : sample;
}

function gauge(name: string, help: string, perOrigin = false): MetricFamily {
  return { name, type: 'gauge', help, perOrigin };
}

function counter(name: string, help: string, perOrigin = false): MetricFamily {
  return { name, type: 'counter', help, perOrigin };
}
