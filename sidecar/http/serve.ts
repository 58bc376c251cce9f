import { rmSync, writeSync } from 'node:fs';
import type { Server } from 'node:net';
import { reportFailure } from '../cli/failure.js';
import type { Invocation } from '../cli/invocation.js';
import { codeOf } from '../domain/error-code.js';
import { parseListenAddress, type ListenAddress } from '../domain/listen-address.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import { nativeModule } from '../host/artifact.js';
import { systemClock } from '../host/clock.js';
import { holdInstanceLock } from '../ledger/instance-lock.js';
import { accept } from '../operations/accept.js';
import { Bell } from './bell.js';
import { CommitQueue } from './commit-queue.js';
import { listenOnFile, listenOnLoopback } from './listeners.js';
import { Receiver } from './receiver.js';
import { ServedLedger } from './served-ledger.js';
import { SpoolDrain } from './spool-drain.js';
import { Trouble } from './trouble.js';

/** What the end of a serve may take: clients, then the spool (ms). Together less than the 10 s that services are given. */
const CLIENTS_LEAVE_MS = 2_500;
const STOP_MS = 4_000;

/**
 * `ql-sidecar serve`: receives callbacks until it is told to stop (DESIGN 11); answers the exit code. `listen` wins over
 * `QL_SIDECAR_LISTEN`. Says one line when it listens, and after that only what goes wrong.
 */
export async function serveCommand(invocation: Invocation, options: { readonly listen: string | null }): Promise<number> {
  try {
    const address = tcpAddress(options.listen ?? invocation.settings.listen);
    const ledger = new ServedLedger(invocation);
    ledger.context();
    const release = onlyInstance(invocation.paths.lock);
    endInOneLine(invocation);
    await serve(invocation, ledger, address);
    ledger.close();
    release();
    return EXIT.done;
  } catch (error) {
    return reportFailure(error, invocation.paths.sidecar);
  }
}

async function serve(invocation: Invocation, ledger: ServedLedger, address: ListenAddress | null): Promise<void> {
  const { paths } = invocation;
  const trouble = new Trouble(systemClock);
  const drain = new SpoolDrain(ledger, trouble);
  const stopped = stopSignal();
  const queue: CommitQueue = new CommitQueue(
    (submissions) => accept(ledger.context(), submissions),
    () => receiver.connections,
  );
  const receiver = new Receiver({ ledger, queue, trouble, clock: systemClock });

  drain.drain(() => false);
  const bell = await hangBell(paths.receiver, drain, trouble);
  const listeners: Server[] = [];
  const places: string[] = [];
  try {
    listeners.push(await listenOnFile(paths.socket, receiver));
    places.push(paths.socket);
    if (address !== null) {
      const { bearerCheck, readToken } = await import('./token.js');
      const { server, url } = await listenOnLoopback(address, receiver, bearerCheck(readToken(paths.token)));
      listeners.push(server);
      places.push(url);
    }
    bell?.announce();
    // What was spooled between the first drain and the announcement has rung no bell.
    drain.ring();
    say(invocation, places);
    await stopped;
  } finally {
    const over = performance.now() + STOP_MS;
    for (const listener of listeners) listener.close();
    bell?.takeDown();
    await receiver.stop(CLIENTS_LEAVE_MS);
    drain.stop();
    drain.drain(() => performance.now() > over);
  }
}

function tcpAddress(text: string | null): ListenAddress | null {
  if (text === null) return null;
  const address = parseListenAddress(text);
  if (address.ok) return address.value;
  throw new OperatorError(
    `${address.field} ${address.rule}`,
    text.slice(0, 80),
    'see QL_SIDECAR_LISTEN; from another machine, go through a tunnel or a proxy',
    EXIT.configuration,
  );
}

function onlyInstance(lock: string): () => void {
  const release = holdInstanceLock(lock, nativeModule);
  if (release !== undefined) return release;
  throw new OperatorError('another serve is running', lock, 'stop that one first', EXIT.tryAgain);
}

/** What nobody foresaw is one line, too, and no bell is left for a process that is gone. All that was answered is on the disk. */
function endInOneLine({ paths }: Invocation): void {
  process.once('uncaughtException', (error) => {
    rmSync(paths.receiver, { force: true });
    process.exit(reportFailure(error, paths.sidecar));
  });
}

/** Without a bell nothing is lost: the spool is seen at the next tick. */
async function hangBell(announcement: string, drain: SpoolDrain, trouble: Trouble): Promise<Bell | undefined> {
  try {
    return await Bell.hang(
      announcement,
      () => drain.ring(),
      (error) => trouble.say('bell', error, announcement),
    );
  } catch (error) {
    trouble.say('bell', error, announcement);
    return undefined;
  }
}

async function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve());
  });
}

function say({ json }: Invocation, places: readonly string[]): void {
  const line = json ? JSON.stringify({ listening: places }) : `listening on ${places.join(' and ')}`;
  try {
    writeSync(1, `${line}\n`);
  } catch (error) {
    // Nobody reads: that is no reason not to serve.
    if (!['EPIPE', 'EAGAIN', 'EBADF'].includes(codeOf(error))) throw error;
  }
}
