import { showRun } from '../operations/show-run.js';
import type { Invocation } from './invocation.js';
import { withLedger } from './open-ledger.js';
import { renderShown } from './render-runs.js';
import { screenStyle, write } from './screen.js';

/** `ql-sidecar show RUN`: fields, then the timeline; with `--json` one document that holds both. */
export async function showCommand(
  invocation: Invocation,
  options: { readonly run: string; readonly utc: boolean },
): Promise<void> {
  await withLedger(invocation.paths.ledger, async (connection) => {
    const run = showRun(connection, options.run);
    await write(invocation.json ? JSON.stringify(run) : renderShown(run, screenStyle(options.utc)));
  });
}
