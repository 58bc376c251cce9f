import type { Answer, Failure } from './answer.js';
import { answerCallbacks, answerStatus, readCallbacks, readStatus, type Understood } from './callbacks.js';
import { health, metricsText, page, readiness, run, runs } from './reading.js';
import type { ServedLedger } from './served-ledger.js';
import type { CorrelatedCallback } from '../operations/correlate.js';

/** A path that is only read. `rest` is what stands behind the prefix of the path, `query` what stands behind `?`. */
export interface ReadRoute {
  readonly kind: 'read';
  readonly allow: 'GET, HEAD';
  /** Whether it is answered without a token. */
  readonly isOpen: boolean;
  readonly answer: (ledger: ServedLedger, call: { readonly rest: string; readonly query: string; readonly nowMs: number }) => Answer | Failure;
}

/** A path that takes callbacks: a body in, an answer once it is durable. */
export interface WriteRoute {
  readonly kind: 'write';
  readonly allow: 'POST' | 'PUT';
  readonly isOpen: false;
  /** Whether failures are told in the words of the panel, too. */
  readonly isPanelRoute: boolean;
  readonly understand: (value: unknown, bytes: number) => Understood;
  readonly answer: (outcomes: readonly CorrelatedCallback[]) => Answer;
}

export type Route = ReadRoute | WriteRoute;

function read(answer: ReadRoute['answer'], isOpen = false): ReadRoute {
  return { kind: 'read', allow: 'GET, HEAD', isOpen, answer };
}

/** All that the receiver answers (DESIGN 11). */
const ROUTES = new Map<string, Route>([
  ['/open/crons/status', { kind: 'write', allow: 'PUT', isOpen: false, isPanelRoute: true, understand: readStatus, answer: answerStatus }],
  ['/v1/callbacks', { kind: 'write', allow: 'POST', isOpen: false, isPanelRoute: false, understand: readCallbacks, answer: answerCallbacks }],
  ['/healthz', read(() => health(), true)],
  ['/readyz', read((ledger) => readiness(ledger))],
  ['/metrics', read((ledger) => metricsText(ledger))],
  ['/v1/runs', read((ledger, { query, nowMs }) => runs(ledger, query, nowMs))],
  ['/', read((ledger, { nowMs }) => page(ledger, nowMs))],
]);

const ONE_RUN = '/v1/runs/';
const RUN_ROUTE = read((ledger, { rest }) => run(ledger, rest));

/** The route of a path, and what stands behind its prefix. */
export function routeOf(path: string): { readonly route: Route; readonly rest: string } | undefined {
  const route = ROUTES.get(path);
  if (route !== undefined) return { route, rest: '' };
  const rest = path.startsWith(ONE_RUN) ? path.slice(ONE_RUN.length) : '';
  return rest === '' || rest.includes('/') ? undefined : { route: RUN_ROUTE, rest };
}
