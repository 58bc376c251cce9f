// The panel's stop kills every process whose command line matches the task's command (QINGLONG-2X.md): none of ours may.
import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { COMMAND, run } from '../fixtures/ledger/command.js';
import { MARKED, Panel } from '../fixtures/panel/panel.js';
import { canTrace } from '../crash/kill-points.js';
import { ArgumentWatch, happened } from './crond.js';

const TASK = 'task ok.js secret-word-7391';
const SECRET = 'secret-word-7391';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Every command that is executed under `command`, as its arguments, one line each. */
function executed(trace: string): string[] {
  return readFileSync(trace, 'utf8')
    .split('\n')
    .flatMap((line) => /execve\("[^"]*", \[(.*)\], /.exec(line)?.[1] ?? [])
    .map((words) => [...words.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word]) => word).join(' '));
}

const traced = canTrace ? test.serial : test.serial.skip;

for (const way of ['spool', 'post'] as const) {
  traced(`a task with the bridge (${way}): nothing that it executes besides has the task's command in its arguments (DESIGN 4.5)`, async (t) => {
    const under = async (bridge: 'hook' | 'none'): Promise<string[]> => {
      const panel = await Panel.start({ bridge });
      t.teardown(() => panel.stop());
      const trace = path.join(panel.dir, 'trace');
      const url = way === 'post' ? { QL_SIDECAR_URL: 'http://127.0.0.1:9', QL_SIDECAR_TOKEN: 'token-of-serve' } : {};
      const outcome = await panel.run(`strace -f -s 4096 -e trace=execve -o ${trace} ${TASK}`, { ...MARKED, ...url });
      t.is(outcome.code, 0);
      if (bridge === 'hook') t.is(panel.envelopes().length, 2);
      // Times, pids and the directory of the panel differ from run to run.
      return executed(trace).map((line) => line.replaceAll(panel.dir, 'PANEL').replaceAll(/\d+/g, 'N'));
    };
    const [without, withBridge] = [await under('none'), await under('hook')];
    t.true(without.some((line) => line.includes('ok.js')));
    const left = [...without];
    const added = withBridge.filter((line) => {
      const at = left.indexOf(line);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    t.deepEqual([...new Set(added)], way === 'post' ? ['curl -q -K -'] : []);
    t.deepEqual(left, []);
  });
}

test.serial('serve, tick and ingest while tasks run, spooled and posted: none of them has a task\'s command in its arguments (DESIGN 4.5)', async (t) => {
  const panel = await Panel.start();
  t.teardown(() => panel.stop());
  const port = await freePort();
  t.is(run(['migrate', '--data-dir', panel.data]).code, 0);
  const watch = new ArgumentWatch((line) => line.includes(SECRET) || line.includes('ql-sidecar') || line.startsWith('curl'));
  t.teardown(() => watch.stop());
  const serve = spawn(COMMAND, ['serve', '--data-dir', panel.data], {
    env: { PATH: process.env.PATH, QL3_SHADOW_ORIGINS: 'scheduled_system', QL_SIDECAR_LISTEN: `127.0.0.1:${port}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => serve.kill('SIGKILL'));
  await once(serve.stdout, 'data');
  const url = `http://127.0.0.1:${port}`;
  for (let round = 0; round < 3; round += 1) {
    const tasks = [panel.run(TASK, MARKED), panel.run(TASK, { ...MARKED, QL_SIDECAR_URL: url })];
    for (const command of ['tick', 'ingest']) {
      const child = spawn(COMMAND, [command, '--data-dir', panel.data], { env: { PATH: process.env.PATH, QL3_SHADOW_ORIGINS: 'scheduled_system' }, stdio: 'ignore' });
      tasks.push(once(child, 'exit').then(() => ({ code: child.exitCode, signal: null, stdout: '', stderr: '', took_ms: 0 })));
    }
    for (const { code } of await Promise.all(tasks)) t.is(code, 0);
  }
  const succeeded = (): number => run(['runs', '--status', 'succeeded', '--json', '--data-dir', panel.data]).stdout.split('\n').length - 1;
  await happened('six Runs to succeed', 20, () => succeeded() === 6);
  watch.stop();
  const lines = [...watch.seen];
  for (const command of ['serve', 'tick', 'ingest']) t.true(lines.some((line) => line.includes(`ql-sidecar.cjs ${command} `)), command);
  // The task's own processes alone: the shell of the line, the panel's `task`, and the program with its arguments.
  for (const line of lines.filter((one) => one.includes(SECRET))) t.regex(line, /^(\S*bash -c task |(\/usr\/bin\/env )?bash \S+\/bin\/task |node )/);
});
