import type { Style } from './render-runs.js';

/** Colours only on a terminal that takes them (NO_COLOR, TERM=dumb). */
export function screenStyle(utc: boolean): Style {
  const { NO_COLOR: refused, TERM: terminal } = process.env;
  return { utc, colour: process.stdout.isTTY && !refused && terminal !== 'dumb' };
}

let closed = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // `runs | head`: who reads has seen enough.
  if (error.code !== 'EPIPE') throw error;
  closed = true;
});

/** Writes one line to stdout; waits while the reader is slow, so that a long list stays out of memory. */
export async function write(line: string): Promise<void> {
  if (closed) process.exit(0);
  if (!process.stdout.write(`${line}\n`)) await roomOnScreen();
}

/** Resolves when the reader has caught up, or has gone: an error is told by `closed`, and is none of a waiting write's. */
async function roomOnScreen(): Promise<void> {
  const events = ['drain', 'close', 'error'];
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const event of events) process.stdout.off(event, done);
      resolve();
    };
    for (const event of events) process.stdout.on(event, done);
  });
}
