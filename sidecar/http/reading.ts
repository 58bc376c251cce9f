import { statSync } from 'node:fs';
import { formatUuid } from '../domain/execution-id.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { readinessProblems } from '../ledger/readiness.js';
import { pageOfRuns } from '../ledger/run-page.js';
import { metrics } from '../operations/metrics.js';
import { showRun } from '../operations/show-run.js';
import { document, notNow, type Answer, type Failure } from './answer.js';
import { runsPage } from './page.js';
import { readRunsQuery } from './runs-query.js';
import type { ServedLedger } from './served-ledger.js';

/** Runs on the page for people. */
const PAGE_RUNS = 50;

/** `GET /healthz`: this process answers. It looks at nothing. */
export function health(): Answer {
  return document({ status: 'ok' });
}

/** `GET /readyz`: the ledger can be used as it is now, or why not (DESIGN 5). */
export function readiness(ledger: ServedLedger): Answer | Failure {
  let problems: readonly string[];
  try {
    problems = readinessProblems(ledger.context().connection);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    problems = [error.what];
  }
  if (problems.length === 0) return document({ status: 'ready' });
  return { ...notNow('ledger is not ready', 'ledger'), problems };
}

/** `GET /metrics`: the text of `ql-sidecar metrics`. */
export function metricsText(ledger: ServedLedger): Answer {
  const { connection, shadowOrigins, profile, spool } = ledger.context();
  const body = metrics({
    connection,
    shadowOrigins,
    profile,
    waiting: spool.names().length,
    ledgerBytes: statSync(ledger.invocation.paths.ledger).size,
  });
  return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body, headers: [] };
}

/** `GET /v1/runs`: the filters of `ql-sidecar runs`, in pages; `next_cursor` is null on the last one. */
export function runs(ledger: ServedLedger, query: string, nowMs: number): Answer | Failure {
  const filter = readRunsQuery(query, nowMs);
  if (!filter.ok) return { status: 400, error: filter.rule, field: filter.field };
  const page = pageOfRuns(ledger.context().connection, filter.value);
  return document({ runs: page.runs, next_cursor: page.next === null ? null : formatUuid(page.next) });
}

/** `GET /v1/runs/:id`: the document of `ql-sidecar show --json`; any name that `show` takes. */
export function run(ledger: ServedLedger, encodedName: string): Answer | Failure {
  let name: string;
  try {
    name = decodeURIComponent(encodedName);
  } catch {
    return { status: 400, error: 'is not percent-encoded', field: 'id' };
  }
  try {
    return document(showRun(ledger.context().connection, name));
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    if (error.exitCode === EXIT.found) return { status: 404, error: error.what, field: 'id' };
    if (error.exitCode === EXIT.usage) return { status: 400, error: error.what, field: 'id' };
    throw error;
  }
}

/** `GET /`. */
export function page(ledger: ServedLedger, nowMs: number): Answer {
  return runsPage(pageOfRuns(ledger.context().connection, { limit: PAGE_RUNS }).runs, nowMs);
}
