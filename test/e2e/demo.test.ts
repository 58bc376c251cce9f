// What a stranger does first: a clean copy of the tree, `make demo`, `make demo-clean`.
import test, { type ExecutionContext } from 'ava';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, lchownSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { happened } from './crond.js';

const ROOT = process.cwd();
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? test.serial : test.serial.skip;
const CROND = ['cron', 'crond', 'busybox', 'unshare'];

/** The tree as it is committed, or as it lies here where there is no git, with the packages that are installed. */
function cleanCopy(t: ExecutionContext): string {
  const copy = mkdtempSync(path.join(tmpdir(), 'ql-demo-'));
  t.teardown(() => rmSync(copy, { recursive: true, force: true }));
  chmodSync(copy, 0o755);
  const files = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
  if (files.status !== 0) execFileSync('sh', ['-c', 'tar -c --exclude=./node_modules --exclude=./build --exclude=./dist . | tar -x -C "$1"', '-', copy], { cwd: ROOT });
  else execFileSync('sh', ['-c', 'tar -c --null -T - | tar -x -C "$1"', '-', copy], { cwd: ROOT, input: files.stdout });
  execFileSync('sh', ['-c', 'cp -al node_modules "$1/" 2>/dev/null || cp -a node_modules "$1/"', '-', copy], { cwd: ROOT });
  // What is installed counts as fresh: nothing is to be fetched here.
  const now = new Date();
  for (const name of ['package.json', 'package-lock.json']) utimesSync(path.join(copy, name), new Date(0), new Date(0));
  utimesSync(path.join(copy, 'node_modules'), now, now);
  for (const words of [['init', '-q'], ['add', '-A'], ['-c', 'user.name=demo', '-c', 'user.email=demo@localhost', 'commit', '-qm', 'copy']]) spawnSync('git', words, { cwd: copy });
  return copy;
}

/** A PATH with every command of this machine but a crond. */
function pathWithoutCrond(t: ExecutionContext): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'ql-path-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  chmodSync(directory, 0o755);
  for (const place of (process.env.PATH ?? '').split(':').filter((name) => existsSync(name))) {
    for (const name of readdirSync(place)) {
      const link = path.join(directory, name);
      if (!CROND.includes(name) && lstatSync(link, { throwIfNoEntry: false }) === undefined) symlinkSync(path.join(place, name), link);
    }
  }
  return directory;
}

interface Made {
  readonly code: number | null;
  readonly output: string;
  readonly tookS: number;
}

interface Who {
  readonly path?: string;
  readonly uid?: number;
}

function start(copy: string, target: string, who: Who): ChildProcess {
  return spawn('make', [target], {
    cwd: copy,
    env: { PATH: who.path ?? process.env.PATH, HOME: copy },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    ...(who.uid === undefined ? {} : { uid: who.uid, gid: who.uid }),
  });
}

async function make(copy: string, target: string, who: Who = {}): Promise<Made> {
  const begun = performance.now();
  const child = start(copy, target, who);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output, tookS: (performance.now() - begun) / 1000 };
}

/** Everything that the demo promises to show. */
function shows(t: ExecutionContext, { code, output, tookS }: Made): void {
  t.is(code, 0, output);
  t.true(tookS < 100, `${tookS} s`);
  t.regex(output, /^tick: 6 started, 5 finished, 1 lost$/m);
  const rows = output.split('\n').filter((line) => /^[0-9a-f-]{36} /.test(line)).map((line) => line.split(/ +/).slice(1, 4).join(' '));
  t.deepEqual(rows.sort(), ['1 succeeded 0', '2 failed 4', '3 failed 3', '4 lost -', '5 succeeded 0', '5 succeeded 0'], output);
  t.regex(output, /^Reason +pid_absent$/m);
  t.regex(output, /run\.lost +by liveness evidence=pid_absent pid=\d+ pid_start_ticks=\d+/);
  t.regex(output, /Cron 3 calls "exit 3" itself.*Cron 5 ran twice at once/);
  const next = output.slice(output.indexOf('\nNext, from ')).split('\n').filter((line) => line.startsWith('  '));
  t.is(next.length, 3, output);
  t.notRegex(output, /\bat .*:\d+:\d+|command not found|No such file/);
}

/** The three commands that the demo ends with, as a person pastes them. */
function nextCommands(copy: string, output: string, who: Who): { readonly code: number | null; readonly stdout: string }[] {
  const lines = output.slice(output.indexOf('\nNext, from ')).split('\n').filter((line) => line.startsWith('  '));
  return lines.map((line) => {
    const { status, stdout } = spawnSync('sh', ['-c', line], { cwd: copy, encoding: 'utf8', env: { PATH: who.path ?? process.env.PATH, HOME: copy }, ...(who.uid === undefined ? {} : { uid: who.uid, gid: who.uid }) });
    return { code: status, stdout };
  });
}

/** Processes that were started from the copy: their environment or arguments name it. */
function leftOf(copy: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return ['environ', 'cmdline'].some((name) => readFileSync(`/proc/${pid}/${name}`, 'latin1').includes(copy));
    } catch {
      return false;
    }
  });
}

async function leavesNothing(t: ExecutionContext, copy: string): Promise<void> {
  await happened('every process of the demo to be gone', 10, () => leftOf(copy).length === 0);
  t.false(existsSync(path.join(copy, '.demo')));
  const status = spawnSync('git', ['status', '--porcelain'], { cwd: copy, encoding: 'utf8' });
  if (status.error === undefined) t.is(status.stdout, '');
}

test.serial('make demo shows all that it promises within 100 s, and its three next commands work; demo-clean leaves nothing', async (t) => {
  const copy = cleanCopy(t);
  const made = await make(copy, 'demo');
  shows(t, made);
  t.regex(made.output, /(crond|cron) runs six lines at the next full minute|the lines are run once with the environment of crond/);
  const [failed, metrics, clean] = nextCommands(copy, made.output, {});
  t.regex(failed?.stdout ?? '', / 3 +failed +3 /);
  t.regex(metrics?.stdout ?? '', /^ql_sidecar_runs_lost_total\{error_class="pid_absent"\} 1$/m);
  t.is(clean?.code, 0);
  await leavesNothing(t, copy);
});

test.serial('make demo without any crond, twice: the lines are run once each time, and it says so', async (t) => {
  const copy = cleanCopy(t);
  const who = { path: pathWithoutCrond(t) };
  for (const time of ['first', 'second']) {
    const made = await make(copy, 'demo', who);
    shows(t, made);
    t.regex(made.output, /^no crond[^\n]*: the lines are run once with the environment of crond instead\.$/m, time);
  }
  t.is((await make(copy, 'demo-clean', who)).code, 0);
  await leavesNothing(t, copy);
});

asRoot('make demo as a user who is not root: works, and says why there is no crond', async (t) => {
  const copy = cleanCopy(t);
  // The packages may be the very files of this checkout: they stay as they are.
  lchownSync(copy, NOBODY, NOBODY);
  for (const name of readdirSync(copy).filter((entry) => entry !== 'node_modules')) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, path.join(copy, name)]);
  const made = await make(copy, 'demo', { uid: NOBODY });
  shows(t, made);
  t.regex(made.output, /^no crond \(a crond of our own needs root\): the lines are run once/m);
  for (const { code } of nextCommands(copy, made.output, { uid: NOBODY })) t.is(code, 0);
  await happened('every process of the demo to be gone', 10, () => leftOf(copy).length === 0);
  t.false(existsSync(path.join(copy, '.demo')));
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test.serial(`make demo that is ended by ${signal} while it waits leaves no process, and demo-clean nothing`, async (t) => {
    const copy = cleanCopy(t);
    const child = start(copy, 'demo', {});
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
    await happened('the lines to be with a crond, or to be run', 30, () => /six lines at|lines are run once/.test(output));
    process.kill(-(child.pid as number), signal);
    await ended;
    await happened('every process of the demo to be gone', 20, () => leftOf(copy).length === 0);
    t.is((await make(copy, 'demo-clean')).code, 0);
    await leavesNothing(t, copy);
  });
}
