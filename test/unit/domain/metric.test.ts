import test from 'ava';
import { COUNTERS, GAUGES, LAG, renderMetrics } from '../../../sidecar/domain/metric.js';
import { readExposition } from '../../fixtures/ledger/prometheus.js';

const FAMILIES = [...COUNTERS, LAG, ...GAUGES];

test('the metrics of ADR-0002 §16.1 are there under their names', (t) => {
  const names = FAMILIES.map(({ name }) => name);
  for (const name of [
    'shadow_run_create_total',
    'shadow_run_create_failed_total',
    'shadow_callback_unmatched_total',
    'shadow_transition_mismatch_total',
    'shadow_terminal_mismatch_total',
    'shadow_transition_lag_seconds',
    'legacy_fallback_total',
  ]) {
    t.true(names.includes(name), name);
  }
  t.is(new Set(names).size, names.length);
});

test('every family has one HELP, one TYPE, and its own samples together', (t) => {
  const samples = [
    ...GAUGES.map(({ name }) => ({ name, labels: '', value: 1 })),
    { name: `${LAG.name}_sum`, labels: 'origin="manual"', value: 1.5 },
    ...COUNTERS.map(({ name }, index) => ({ name, labels: 'origin="manual",profile="edge"', value: index })),
    { name: `${LAG.name}_count`, labels: 'origin="manual"', value: 3 },
    ...COUNTERS.map(({ name }) => ({ name, labels: 'origin="boot",profile="edge"', value: 7 })),
  ];
  const read = readExposition(renderMetrics(FAMILIES, samples));
  t.deepEqual([...read.keys()], FAMILIES.map(({ name }) => name));
  for (const { name, type, help } of FAMILIES) t.like(read.get(name), { type, help });
  t.is(read.get('shadow_run_create_total')?.samples.get('shadow_run_create_total{origin="boot",profile="edge"}'), 7);
  t.is(read.get(LAG.name)?.samples.get(`${LAG.name}_sum{origin="manual"}`), 1.5);
});

test('a family without samples is left out whole', (t) => {
  t.is(renderMetrics(FAMILIES, [{ name: 'legacy_fallback_total', labels: '', value: 0 }]).split('\n').length, 4);
});

for (const [rule, text] of [
  ['no newline at the end', '# HELP a_total A.\n# TYPE a_total counter\na_total 1'],
  ['no HELP', '# TYPE a_total counter\na_total 1\n'],
  ['no TYPE', '# HELP a_total A.\na_total 1\n'],
  ['a family twice', '# HELP a_total A.\n# TYPE a_total counter\na_total 1\n# HELP a_total A.\n# TYPE a_total counter\na_total 1\n'],
  ['a sample twice', '# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total 1\n'],
  ['a sample of another family', '# HELP a_total A.\n# TYPE a_total counter\nb_total 1\n'],
  ['a counter without _total', '# HELP a A.\n# TYPE a counter\na 1\n'],
  ['a gauge with _total', '# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n'],
  ['a summary without its count', '# HELP a A.\n# TYPE a summary\na_sum 1\n'],
  ['a label that is not bounded', '# HELP a_total A.\n# TYPE a_total counter\na_total{cron="5"} 1\n'],
  ['a label without quotes', '# HELP a_total A.\n# TYPE a_total counter\na_total{origin=x} 1\n'],
  ['an unescaped quote', '# HELP a_total A.\n# TYPE a_total counter\na_total{origin="x"y"} 1\n'],
  ['an empty line', '# HELP a_total A.\n# TYPE a_total counter\na_total 1\n\n'],
  ['a word for a value', '# HELP a_total A.\n# TYPE a_total counter\na_total null\n'],
] as const) {
  test(`the checker of these tests refuses ${rule}`, (t) => {
    t.throws(() => readExposition(text));
  });
}
