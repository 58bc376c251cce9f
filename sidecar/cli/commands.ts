import yargs from 'yargs';
import { ORIGINS } from '../domain/origin.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { RUN_STATUSES } from '../domain/status.js';
import { VERSION } from '../host/artifact.js';
import { reportFailure } from './failure.js';
import { prepare, type Invocation } from './invocation.js';
import { metricsCommand } from './metrics.js';
import { migrateCommand } from './migrate.js';
import { runsCommand } from './runs.js';
import { showCommand } from './show.js';
import { ingestCommand, tickCommand } from './tick.js';

/** Parses and runs one command; answers the exit code (DESIGN 10). Options are checked before anything is opened. */
export async function runCommand(words: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.done;
  const prepared = (options: { readonly dataDir?: string | undefined; readonly json: boolean }): Invocation =>
    prepare({ dataDir: options.dataDir ?? null, json: options.json });

  const parser = yargs([...words])
    .scriptName('ql-sidecar')
    .usage('$0 [--data-dir D] [--json] COMMAND\n\nA truthful ledger of task runs beside a QingLong panel.')
    .option('data-dir', { type: 'string', requiresArg: true, describe: 'data directory of the panel (QL_DATA_DIR, $QL_DIR/data, /ql/data)' })
    .option('json', { type: 'boolean', default: false, describe: 'answer in JSON; lists: one object per line' })
    .command(
      'migrate',
      'make or update the ledger',
      (command) => command.option('check', { type: 'boolean', default: false, describe: 'only tell whether the ledger is ready' }),
      (options) => {
        exitCode = migrateCommand(prepared(options), options);
      },
    )
    .command('tick', 'one pass of work, as crond calls it each minute', (command) => command, (options) => tickCommand(prepared(options)))
    .command('ingest', 'take in what waits in the spool', (command) => command, (options) => ingestCommand(prepared(options)))
    .command(
      'serve',
      'receive callbacks over HTTP until stopped',
      (command) =>
        command.option('listen', { type: 'string', requiresArg: true, describe: 'also on TCP: 127.0.0.1:PORT, with the token of serve.token' }),
      async (options) => {
        exitCode = await (await import('../http/serve.js')).serveCommand(prepared(options), { listen: options.listen ?? null });
      },
    )
    .command(
      'runs',
      'list Runs, newest first',
      (command) =>
        command
          .option('cron', { type: 'string', requiresArg: true, describe: 'only this cron ID' })
          .option('origin', { choices: ORIGINS, requiresArg: true, describe: 'only this origin' })
          .option('status', { choices: [...RUN_STATUSES, 'active'] as const, requiresArg: true, describe: 'only this status' })
          .option('since', { type: 'string', requiresArg: true, describe: '2h, 7d, 2026-12-01, "2026-12-01 03:00", or ms' })
          .option('limit', { type: 'string', requiresArg: true, default: '50', describe: 'at most this many' })
          .option('utc', { type: 'boolean', default: false, describe: 'times in UTC' }),
      (options) => runsCommand(prepared(options), options),
    )
    .command(
      'show <run>',
      'one Run and its timeline',
      (command) =>
        command
          .positional('run', { type: 'string', demandOption: true, describe: 'Run ID, its first 8 digits or more, or execution ID' })
          .option('utc', { type: 'boolean', default: false, describe: 'times in UTC' }),
      (options) => showCommand(prepared(options), options),
    )
    .command('metrics', 'all metrics in the Prometheus text format', (command) => command, (options) => metricsCommand(prepared(options)))
    .demandCommand(1, 'name a command')
    .strict()
    .version(VERSION)
    .help()
    .alias('help', 'h')
    // One option given twice is a mistake that yargs would turn into a list.
    .parserConfiguration({ 'duplicate-arguments-array': false, 'dot-notation': false, 'camel-case-expansion': true, 'parse-positional-numbers': false })
    .wrap(Math.min(100, process.stdout.isTTY ? process.stdout.columns : 80))
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      // Typed as always there; for what a person mistyped it is not, or it is the parser's own.
      const thrown = error as Error | undefined;
      if (thrown !== undefined && thrown.name !== 'YError') throw thrown;
      throw new OperatorError(usageMessage(thrown?.message ?? message), 'command line', 'see "ql-sidecar --help"', EXIT.usage);
    });
  try {
    await parser.parseAsync();
  } catch (error) {
    return reportFailure(error, 'command line');
  }
  return exitCode;
}

/** yargs writes some of its messages on several lines; an operator gets one. */
function usageMessage(message: string): string {
  return message.split('\n').map((line) => line.trim()).filter((line) => line !== '').join(', ');
}
