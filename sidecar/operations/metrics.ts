import { COUNTERS, GAUGES, LAG, LAG_COUNT, LAG_SUM_MS, renderMetrics, type MetricSample } from '../domain/metric.js';
import type { ShadowOrigin } from '../domain/origin.js';
import { readCounters } from '../ledger/counters.js';
import type { Connection } from '../ledger/database.js';
import { countActive } from '../ledger/run-views.js';

export interface MetricsContext {
  readonly connection: Connection;
  readonly shadowOrigins: ReadonlySet<ShadowOrigin>;
  readonly profile: string;
  /** How many envelopes wait in the spool. */
  readonly waiting: number;
  readonly ledgerBytes: number;
}

/** All metrics in the Prometheus text format (ADR-0002 §16.1); counters add up over every process that ever ran. */
export function metrics(context: MetricsContext): string {
  const { connection, profile } = context;
  const samples: MetricSample[] = readCounters(connection).map(({ name, labels, value }) => {
    if (name === LAG_SUM_MS) return { name: `${LAG.name}_sum`, labels, value: value / 1000 };
    return { name: name === LAG_COUNT ? `${LAG.name}_count` : name, labels, value };
  });
  const active = countActive(connection);
  const shown = new Set<string>([...context.shadowOrigins, ...active.keys()]);
  for (const origin of shown) {
    const value = active.get(origin as ShadowOrigin) ?? 0;
    samples.push({ name: 'ql_sidecar_active_runs', labels: `origin="${origin}",profile="${profile}"`, value });
  }
  samples.push({ name: 'ql_sidecar_spool_envelopes', labels: '', value: context.waiting });
  samples.push({ name: 'ql_sidecar_ledger_bytes', labels: '', value: context.ledgerBytes });
  samples.push({ name: 'ql_sidecar_build_info', labels: `profile="${profile}"`, value: 1 });
  return renderMetrics([...COUNTERS, LAG, ...GAUGES], [...samples, ...zeros(samples, context)]);
}

/** A zero for every counter that has not counted yet: an alert can only watch what is there. */
function zeros(samples: readonly MetricSample[], context: MetricsContext): readonly MetricSample[] {
  const present = new Set(samples.map(({ name, labels }) => `${name}{${labels}`));
  const names = new Set(samples.map(({ name }) => name));
  return COUNTERS.flatMap(({ name, perOrigin }) => {
    if (!perOrigin) return names.has(name) ? [] : [{ name, labels: '', value: 0 }];
    return [...context.shadowOrigins]
      .map((origin) => `origin="${origin}",profile="${context.profile}"`)
      .filter((labels) => !present.has(`${name}{${labels}`))
      .map((labels) => ({ name, labels, value: 0 }));
  });
}
