import test, { type ExecutionContext } from 'ava';
import { runOn } from '../fixtures/ledger/command.js';
import { START_S, executionId, finished, started, type Fields } from '../fixtures/ledger/envelope.js';
import { readExposition } from '../fixtures/ledger/prometheus.js';
import { Workbench } from '../fixtures/ledger/workbench.js';
import { RunningReceiver } from '../fixtures/receiver/receiver.js';

async function receiver(t: ExecutionContext, envelopes: readonly Fields[] = []): Promise<RunningReceiver> {
  const bench = new Workbench();
  for (const envelope of envelopes) bench.put(`${JSON.stringify(envelope)}\n`);
  bench.ingest();
  const running = await RunningReceiver.start(bench);
  t.teardown(async () => {
    await running.end('SIGKILL');
    bench.remove();
  });
  return running;
}

/** Execution `number`, begun in a second of its own. */
function at(number: number, changes: Fields = {}): Fields {
  const startS = START_S + number;
  return { execution_id: executionId(number, 'scheduled_system', startS), started_at: startS, occurred_at_ms: startS * 1000 + 5, ...changes };
}

const SOME = [
  started(1, at(1)),
  started(2, at(2)),
  finished(2, at(2, { exit_code: 3 })),
  started(3, at(3, { cron_id: 6 })),
  finished(3, at(3, { cron_id: 6 })),
  started(4, { ...at(4), origin: 'manual', execution_id: executionId(4, 'manual', START_S + 4) }),
];

interface Page {
  readonly runs: readonly { readonly run_id: string; readonly execution_id: string; readonly status: string }[];
  readonly next_cursor: string | null;
}

test('/v1/runs answers what `runs --json` prints, with the same filters (DESIGN 11)', async (t) => {
  const r = await receiver(t, SOME);
  for (const [query, words] of [
    ['', []],
    ['?cron=5', ['--cron', '5']],
    ['?origin=manual', ['--origin', 'manual']],
    ['?status=active', ['--status', 'active']],
    ['?status=failed&cron=5', ['--status', 'failed', '--cron', '5']],
    ['?limit=2', ['--limit', '2']],
    [`?since=${(START_S + 3) * 1000}`, ['--since', String((START_S + 3) * 1000)]],
    ['?since=2026-12-01T03:00:04Z', ['--since', '2026-12-01T03:00:04Z']],
    ['?cron=404', ['--cron', '404']],
  ] as const) {
    const answer = await r.request(`/v1/runs${query}`);
    t.is(answer.status, 200, query);
    const printed = runOn(r.bench, ['runs', '--json', ...words]).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line) as unknown);
    t.deepEqual([...(answer.json as Page).runs] as unknown[], printed, query);
    t.is(answer.headers['content-type'], 'application/json; charset=utf-8');
    t.is(answer.headers['cache-control'], 'no-store');
  }
});

test('by cursor every Run comes once, newest first, also while others are added (DESIGN 11)', async (t) => {
  const r = await receiver(t, Array.from({ length: 25 }, (_, number) => started(number, at(number))));
  const seen: string[] = [];
  let cursor: string | null = '';
  let pages = 0;
  while (cursor !== null) {
    const page: Page = (await r.request(`/v1/runs?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`)).json as Page;
    seen.push(...page.runs.map(({ execution_id }) => execution_id));
    cursor = page.next_cursor;
    pages += 1;
    await r.post(started(100 + pages, at(100 + pages)));
  }
  t.is(pages, 4);
  t.deepEqual(seen, Array.from({ length: 25 }, (_, number) => executionId(24 - number, 'scheduled_system', START_S + 24 - number)));
});

test('a rare status in a long list: each answer looks at a bounded number of rows, and the cursor leads to the end', async (t) => {
  const bench = new Workbench();
  for (let from = 0; from < 12_000; from += 4_000) {
    for (let number = from; number < from + 4_000; number += 1) bench.put(`${JSON.stringify(number === 10 || number === 11_000 ? finished(number, at(number, { exit_code: 9 })) : started(number, at(number)))}\n`);
    bench.ingest({ limit: 4_000 });
  }
  const r = await RunningReceiver.start(bench);
  t.teardown(async () => {
    await r.end('SIGKILL');
    bench.remove();
  });
  const found: string[] = [];
  let cursor: string | null = '';
  let pages = 0;
  while (cursor !== null) {
    const page: Page = (await r.request(`/v1/runs?status=failed${cursor === '' ? '' : `&cursor=${cursor}`}`)).json as Page;
    found.push(...page.runs.map(({ execution_id }) => execution_id));
    cursor = page.next_cursor;
    pages += 1;
  }
  t.is(pages, 3);
  t.deepEqual(found, [11_000, 10].map((number) => executionId(number, 'scheduled_system', START_S + number)));
});

for (const [query, field] of [
  ['cron=0', 'cron'],
  ['cron=x', 'cron'],
  ['cron=', 'cron'],
  ['cron=5&cron=6', 'cron'],
  ['origin=moon', 'origin'],
  ['status=done', 'status'],
  ['since=yesterday', 'since'],
  ['since=2026-02-30', 'since'],
  ['limit=0', 'limit'],
  ['limit=501', 'limit'],
  ['limit=1e2', 'limit'],
  ['cursor=1', 'cursor'],
  ['cursor=%00', 'cursor'],
  ['order=asc', 'order'],
  ['__proto__=1', '__proto__'],
  ['%1b[2J=1', '??2J'],
  ['=1', ''],
] as const) {
  test(`/v1/runs?${query}: 400, and the parameter is named (bad input)`, async (t) => {
    const r = await receiver(t);
    const answer = await r.request(`/v1/runs?${query}`);
    t.is(answer.status, 400);
    t.is((answer.json as { field: string }).field, field);
  });
}

test('/v1/runs/:id answers the document of `show --json`, by every name that `show` takes (DESIGN 11)', async (t) => {
  const r = await receiver(t, SOME);
  const run = r.bench.runs().find(({ status }) => status === 'failed');
  const names = [run?.run_id, run?.run_id.replaceAll('-', ''), run?.run_id.slice(0, 30), executionId(2, 'scheduled_system', START_S + 2)].map(String);
  const printed: unknown = JSON.parse(runOn(r.bench, ['show', '--json', String(run?.run_id)]).stdout);
  for (const name of [...names, encodeURIComponent(names[3] ?? '')]) {
    const answer = await r.request(`/v1/runs/${name}`);
    t.is(answer.status, 200, name);
    t.deepEqual(answer.json, printed);
  }
});

for (const [name, status] of [
  ['00000000-0000-7000-8000-000000000000', 404],
  [executionId(77), 404],
  ['0123', 400],
  ['nonsense', 400],
  ['legacy-system:0:x', 400],
  ['%', 400],
  ['%ff', 400],
  ['%00', 400],
  ["'%20OR%201=1", 400],
  ['..%2f..%2fetc%2fpasswd', 400],
  ['01a', 400],
] as const) {
  test(`/v1/runs/${name}: ${status} (bad input)`, async (t) => {
    const r = await receiver(t, SOME);
    const answer = await r.request(`/v1/runs/${name}`);
    t.is(answer.status, status);
    t.like(answer.json, { field: 'id' });
  });
}

test('/healthz looks at no ledger, /readyz says what is wrong with it, with 503 (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  t.deepEqual((await r.request('/healthz')).json, { status: 'ok' });
  t.deepEqual((await r.request('/readyz')).json, { status: 'ready' });
  r.bench.connection.exec('DROP INDEX runs_active');
  const answer = await r.request('/readyz');
  t.is(answer.status, 503);
  t.deepEqual(answer.json, { error: 'ledger is not ready', field: 'ledger', problems: ['index runs_active is missing'] });
  t.is((await r.request('/healthz')).status, 200);
});

test('/metrics is the text of `ql-sidecar metrics` (ADR-0002 §16.1)', async (t) => {
  const r = await receiver(t, SOME);
  const answer = await r.request('/metrics');
  t.is(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  t.is(answer.text, runOn(r.bench, ['metrics']).stdout);
  t.true(readExposition(answer.text).size > 10);
});

test('the page shows the newest Runs, escaped, without a script, and forbids all that it does not need (DESIGN 11)', async (t) => {
  const names = ['<script>alert(1)</script>', '"><img src=x onerror=1>', "' onmouseover='x", '&amp;', '\u202egnp.exe'];
  const r = await receiver(t, [...SOME, ...names.map((name, index) => started(10 + index, at(10 + index, { cron_id: undefined, name })))]);
  const { status, headers, text } = await r.request('/');
  t.is(status, 200);
  t.is(headers['content-type'], 'text/html; charset=utf-8');
  t.regex(headers['content-security-policy'] as string, /^default-src 'none'; style-src 'unsafe-inline'(;|$)/);
  t.is(headers['x-content-type-options'], 'nosniff');
  t.false(/<script|<img|javascript:|onerror=1>|\u202e/i.test(text.replaceAll(/&lt;[^]*?&gt;/g, '')));
  t.true(text.includes('&lt;script&gt;alert(1)&lt;/script&gt;'));
  t.true(text.includes('name:&amp;amp;'));
  t.true(text.includes('color-scheme: light dark'));
  t.is(text.match(/<tr>/g)?.length, SOME.length - 2 + names.length + 1);
  const [newest] = r.bench.runs();
  t.true(text.indexOf(newest?.run_id ?? '?') > 0);
  for (const [, place] of text.matchAll(/href="([^"]+)"/g)) t.is((await r.request(place ?? '')).status, 200);
});

test('the page of an empty ledger says so, and a long list is cut to 50', async (t) => {
  const r = await receiver(t);
  t.true((await r.request('/')).text.includes('No Runs yet.'));
  for (let number = 0; number < 200; number += 1) r.bench.put(started(number, at(number)));
  r.bench.ingest();
  const { text } = await r.request('/');
  t.is(text.match(/<tr>/g)?.length, 51);
  t.true(text.length < 64 * 1024);
});

test('HEAD is GET without a body (RFC 9110)', async (t) => {
  const r = await receiver(t, SOME);
  for (const place of ['/', '/healthz', '/readyz', '/metrics', '/v1/runs']) {
    const answer = await r.request(place, { method: 'HEAD' });
    t.is(answer.status, 200, place);
    t.is(answer.text, '');
    t.true(Number(answer.headers['content-length']) > 0);
  }
});
