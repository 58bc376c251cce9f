import { prepare, type Invocation } from './invocation.js';
import { reportFailure } from './failure.js';
import { parseFrequent, type FrequentCall, type FrequentCommand } from './frequent-call.js';
import { ingestCommand, tickCommand } from './tick.js';

const FREQUENT: Readonly<Record<FrequentCommand, (invocation: Invocation, call: FrequentCall) => void | Promise<void>>> = {
  tick: tickCommand,
  ingest: ingestCommand,
  serve: async (invocation, { listen = null }) => {
    process.exitCode = await (await import('../http/serve.js')).serveCommand(invocation, { listen });
  },
};

async function main(words: readonly string[]): Promise<void> {
  const call = parseFrequent(words);
  try {
    if (call === undefined) process.exitCode = await (await import('./commands.js')).runCommand(words);
    else await FREQUENT[call.command](prepare(call), call);
    // Everything is written and closed: taking the engine apart would only cost a tick its last milliseconds.
    if (call !== undefined) process.exit();
  } catch (error) {
    process.exitCode = reportFailure(error, call?.command ?? 'command line');
  }
}

void main(process.argv.slice(2));
