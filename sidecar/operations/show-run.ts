import { parseExecutionId, formatUuid } from '../domain/execution-id.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import type { Connection } from '../ledger/database.js';
import { readEvents, readRun, runIdOfExecution, runIdsByPrefix, type EventView, type RunView } from '../ledger/run-views.js';

/** A Run with its history. */
export interface ShownRun extends RunView {
  readonly events: readonly EventView[];
}

/** Finds one Run by its ID, by the unique beginning of it (8 hex digits at least), or by its execution ID. */
export function showRun(connection: Connection, name: string): ShownRun {
  const runId = findRun(connection, name);
  const run = runId === undefined ? undefined : readRun(connection, runId);
  if (runId === undefined || run === undefined) {
    throw new OperatorError('no such Run', printable(name), 'list them with "ql-sidecar runs"', EXIT.found);
  }
  return { ...run, events: readEvents(connection, runId) };
}

function findRun(connection: Connection, name: string): Buffer | undefined {
  if (name.startsWith('legacy-')) {
    const id = parseExecutionId(name);
    if (!id.ok) throw new OperatorError(`${id.field} ${id.rule}`, printable(name), 'copy it from "ql-sidecar runs --json"', EXIT.usage);
    return runIdOfExecution(connection, id.value);
  }
  const hex = name.toLowerCase().replaceAll('-', '');
  if (!/^[0-9a-f]{8,32}$/.test(hex)) {
    throw new OperatorError(
      'not a Run',
      printable(name),
      'give a Run ID, at least its first 8 digits, or an execution ID',
      EXIT.usage,
    );
  }
  const found = runIdsByPrefix(connection, hex, 3);
  if (found.length > 1) {
    const some = found.map((id) => formatUuid(id)).slice(0, 2).join(' and ');
    throw new OperatorError('more than one Run begins so', printable(name), `give more digits: ${some}`, EXIT.usage);
  }
  return found[0];
}

function printable(text: string): string {
  // eslint-disable-next-line no-control-regex -- what a person typed goes back to a terminal
  return text.slice(0, 80).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}
