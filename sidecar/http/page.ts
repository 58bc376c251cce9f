import { renderInstant, renderSpan } from '../cli/render-time.js';
import type { RunView } from '../ledger/run-views.js';
import type { Answer } from './answer.js';

/** No script, no image, nothing from elsewhere: a task that is called `<script>` stays a name. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --good: #18794e; --bad: #c62a2f; --odd: #8e4ec6; --now: #0b68cb; }
@media (prefers-color-scheme: dark) { :root { --good: #4cc38a; --bad: #ff6369; --odd: #bf7af0; --now: #52a9ff; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.25rem; } .wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: start; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number { text-align: end; } code { font-size: .85em; }
.succeeded { color: var(--good); } .failed { color: var(--bad); } .lost, .cancelled { color: var(--odd); } .running { color: var(--now); }`;

/** The newest Runs for a person, read-only; times in UTC. */
export function runsPage(runs: readonly RunView[], nowMs: number): Answer {
  const rows = runs.map(row).join('\n');
  const table =
    runs.length === 0
      ? '<p>No Runs yet.</p>'
      : `<div class="wide"><table>
<thead><tr><th scope="col">Started</th><th scope="col">Task</th><th scope="col">Origin</th><th scope="col">Status</th><th scope="col">Exit</th><th scope="col">Took</th><th scope="col">Run</th></tr></thead>
<tbody>
${rows}
</tbody>
</table></div>`;
  const body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>ql-sidecar: Runs</title><style>${STYLE}
</style></head>
<body>
<h1>The newest Runs</h1>
<p>${runs.length} shown, at ${instant(nowMs)}.</p>
${table}
</body>
</html>
`;
  return {
    status: 200,
    type: 'text/html; charset=utf-8',
    body,
    headers: ['Content-Security-Policy', POLICY, 'Referrer-Policy', 'no-referrer'],
  };
}

function row(run: RunView): string {
  const cells = [
    `<td>${instant(run.started_at_ms ?? run.accepted_at_ms)}</td>`,
    `<td><bdi>${escaped(run.task_id)}</bdi></td>`,
    `<td>${escaped(run.origin)}</td>`,
    `<td class="${run.status}">${run.status}${run.reason === null ? '' : ` (<bdi>${escaped(run.reason)}</bdi>)`}</td>`,
    `<td class="number">${run.exit_code ?? ''}</td>`,
    `<td class="number">${run.duration_ms === null ? '' : renderSpan(run.duration_ms)}</td>`,
    `<td><a href="/v1/runs/${run.run_id}"><code>${run.run_id}</code></a></td>`,
  ];
  return `<tr>${cells.join('')}</tr>`;
}

function instant(ms: number): string {
  const text = renderInstant(ms, true);
  return `<time datetime="${text.replace(' ', 'T')}">${text.slice(0, 19)}</time>`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  // eslint-disable-next-line no-control-regex -- controls, line separators and what turns the direction of writing
  return text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] as string).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '?');
}
