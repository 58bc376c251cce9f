import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** The two families of crond that QINGLONG-2X.md describes. */
export type Family = 'busybox' | 'debian';

/** Why this machine cannot run a crond of that family on a crontab of our own, or null. */
export function missing(family: Family): string | null {
  if (process.getuid?.() !== 0) return 'a crond of our own needs root';
  if (family === 'busybox') {
    const applets = spawnSync('busybox', ['--list'], { encoding: 'utf8' });
    return applets.status === 0 && applets.stdout.split('\n').includes('crond') ? null : 'busybox with crond is not installed (busybox-static)';
  }
  if (spawnSync('sh', ['-c', 'command -v cron']).status !== 0) return "Debian's cron is not installed";
  return spawnSync('unshare', ['-m', 'true']).status === 0 ? null : 'mount namespaces cannot be made here';
}

/**
 * Starts a crond in the foreground that knows these lines alone. `environment` is all that the lines are given: busybox hands
 * its own environment on, Debian's takes it from the crontab.
 */
export function startCrond(family: Family, directory: string, lines: readonly string[], environment: Readonly<Record<string, string>>): ChildProcess {
  const user = os.userInfo().username;
  const tabs = path.join(directory, 'crontabs');
  mkdirSync(tabs);
  const head = family === 'busybox' ? [] : ['MAILTO=""', ...Object.entries(environment).map(([key, value]) => `${key}=${value}`)];
  writeFileSync(path.join(tabs, user), [...head, ...lines, ''].join('\n'), { mode: 0o600 });
  if (family === 'busybox') {
    const words = ['crond', '-f', '-l', '8', '-L', path.join(directory, 'crond.log'), '-c', tabs];
    return spawn('busybox', words, { env: { SHELL: '/bin/sh', ...environment }, stdio: 'ignore' });
  }
  for (const name of ['none', 'run']) mkdirSync(path.join(directory, name));
  chmodSync(tabs, 0o700);
  // In a mount namespace of its own it sees no crontab of this machine, and its pid file is no other cron's.
  const mounts = 'mount --bind "$1/crontabs" /var/spool/cron/crontabs && mount --bind "$1/none" /etc/cron.d && mount --bind /dev/null /etc/crontab && mount --bind "$1/run" /run && exec cron -f';
  return spawn('unshare', ['-m', 'sh', '-c', mounts, '-', directory], { env: { PATH: process.env.PATH }, stdio: 'ignore' });
}

/** Ends a crond; what it has started goes on. */
export async function stopCrond(crond: ChildProcess): Promise<void> {
  if (crond.exitCode !== null || crond.signalCode !== null) return;
  const ended = once(crond, 'exit');
  crond.kill('SIGKILL');
  await ended;
}

/** Looks at the arguments of every process again and again, and keeps those that `isOf` is interested in. */
export class ArgumentWatch {
  readonly seen = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(isOf: (line: string) => boolean) {
    const look = (): void => {
      for (const pid of readdirSync('/proc')) {
        if (!/^\d/.test(pid)) continue;
        try {
          const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
          if (isOf(line)) this.seen.add(line);
        } catch {
          // Gone meanwhile.
        }
      }
      this.#timer = setTimeout(look, 5);
    };
    look();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Waits until `look` gives something; throws after `atMostS` seconds, saying what was waited for. */
export async function happened<T>(what: string, atMostS: number, look: () => T | undefined | false): Promise<T> {
  for (const end = Date.now() + atMostS * 1000; ; ) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`Expected ${what} within ${atMostS} s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** The directory of the node that runs this test, for a PATH. */
export const nodeDirectory = path.dirname(execFileSync('sh', ['-c', 'command -v node'], { encoding: 'utf8' }).trim());
