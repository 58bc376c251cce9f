import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { ending, type Outcome } from '../fixtures/ledger/command.js';

const BUNDLE = path.join(process.cwd(), 'dist/ql-sidecar/lib/ql-sidecar.cjs');

/** A process of ours to be run: its words, its data directory, and the paths whose system calls matter. */
export interface Victim {
  readonly words: readonly string[];
  readonly data: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly watched: readonly string[];
}

/** One place to die: before the `nth` call of `call` that touches a watched path, or after so many microseconds. */
export type KillPoint = { readonly call: string; readonly nth: number } | { readonly afterUs: number };

/** Whether this machine lets one process trace another with strace. */
export const canTrace = spawnSync('strace', ['-f', '-o', '/dev/null', '-e', 'inject=getppid:signal=KILL:when=1', 'true']).status === 0;

/** How a point is called in a message. */
export function nameOf(point: KillPoint): string {
  return 'call' in point ? `${point.call} #${point.nth}` : `${point.afterUs} us`;
}

/** Calls that leave the disk as it is: a kill after one of them is the same as a kill before it. */
const READING = new Set(['access', 'close', 'faccessat2', 'fcntl', 'fstat', 'getdents64', 'lseek', 'lstat', 'newfstatat', 'pread64', 'read', 'stat', 'statx']);

/**
 * Where to kill so that every state of the watched paths is met that an undisturbed run goes through: before its first
 * system call on them, and after each one that may change something. Without strace: `count` instants spread over the time
 * that such a run takes.
 */
export async function killPoints(victim: Victim, count: number): Promise<readonly KillPoint[]> {
  if (!canTrace) return instants(victim, count);
  const log = `${victim.data}.trace`;
  const ending = await run(victim, ['strace', '-f', '-o', log, ...watch(victim)]);
  if (ending.code !== 0) throw new Error(`Expected an undisturbed run to end with 0, got ${JSON.stringify(ending)}`);
  const seen = new Map<string, number>();
  const points: KillPoint[] = [];
  const lines = readFileSync(log, 'utf8').split('\n');
  rmSync(log);
  const main = lines[0]?.split(' ', 1)[0];
  let isNewState = true;
  for (const line of lines) {
    const call = /^(\d+) +(\w+)\(/.exec(line);
    // Only the main thread touches ledger and spool: every call of ours waits for its answer.
    if (call === null || call[1] !== main) continue;
    const name = call[2] as string;
    const nth = (seen.get(name) ?? 0) + 1;
    seen.set(name, nth);
    if (isNewState) points.push({ call: name, nth });
    isNewState = !READING.has(name);
  }
  return points;
}

/** Runs `victim` and kills it with SIGKILL at `point`: with strace before that call is carried out. */
export async function killAt(victim: Victim, point: KillPoint): Promise<Outcome> {
  if ('call' in point) {
    const inject = `inject=${point.call}:signal=KILL:when=${point.nth}`;
    // Not with --seccomp-bpf, although it is faster: an injected signal never arrives then.
    return run(victim, ['strace', '-f', '-o', '/dev/null', ...watch(victim), '-e', inject]);
  }
  return run(victim, [], point.afterUs);
}

/** Runs `victim` to its end. */
export async function runWhole(victim: Victim): Promise<Outcome> {
  return run(victim, []);
}

function watch(victim: Victim): string[] {
  return victim.watched.flatMap((name) => ['-P', name]);
}

async function instants(victim: Victim, count: number): Promise<KillPoint[]> {
  const begun = performance.now();
  await run(victim, []);
  const tookUs = (performance.now() - begun) * 1000;
  return Array.from({ length: count }, (_, index) => ({ afterUs: Math.round((tookUs * (index + 1)) / count) }));
}

async function run(victim: Victim, before: readonly string[], afterUs?: number): Promise<Outcome> {
  const [command, ...words] = [...before, process.execPath, BUNDLE, ...victim.words, '--data-dir', victim.data];
  const child = spawn(command, words, { env: { PATH: process.env.PATH, TZ: 'UTC', ...victim.environment }, stdio: ['ignore', 'pipe', 'pipe'] });
  if (afterUs !== undefined) setTimeout(() => child.kill('SIGKILL'), afterUs / 1000);
  return ending(child);
}

/** Calls `work` for each of `items`, `width` at a time. */
export async function eachOf<Item>(items: readonly Item[], width: number, work: (item: Item, index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next;
      next += 1;
      await work(items[index] as Item, index);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}
