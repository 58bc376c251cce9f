// Real crond, the stand-in panel, the bridge, and `ql-sidecar tick` in the same crontab, over two full minutes. A machine
// without one of the two families says why it skips it.
import test, { type ExecutionContext } from 'ava';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { COMMAND, run } from '../fixtures/ledger/command.js';
import { Panel } from '../fixtures/panel/panel.js';
import type { RunView } from '../../sidecar/ledger/run-views.js';
import { ArgumentWatch, happened, missing, nodeDirectory, startCrond, stopCrond, type Family } from './crond.js';

const MINUTE_MS = 60_000;

/** Cron ID, script, what it holds, and the status and exit code of its Run. Cron 5 stands on two lines; 6 lasts until told. */
const TASKS = [
  [1, 'ok.js', "console.log('all well')", 'succeeded', 0],
  [2, 'exit3.sh', 'exit 3', 'failed', 3],
  [3, 'fail.js', 'process.exit(4)', 'failed', 4],
  [4, 'killed.sh', 'kill -9 $$; sleep 5', 'lost', null],
  [5, 'slow.sh', 'sleep 4', 'succeeded', 0],
  [6, 'hold.sh', 'while [ -e "$QL_DIR/hold" ]; do sleep 0.2; done', 'succeeded', 0],
] as const;

for (const family of ['busybox', 'debian'] satisfies Family[]) {
  const why = missing(family);
  const title = `${family} crond, two minutes: one Run for each line and minute, its exit code, the killed one lost at the next tick, overlapping ones apart, and no process of ours with a task's command (DESIGN 4.5, 5.1)`;
  if (why !== null) test.skip(`${title}: ${why}`, (t) => t.fail());
  else test(title, async (t) => underCrond(t, family));
}

async function underCrond(t: ExecutionContext, family: Family): Promise<void> {
  t.timeout(4 * MINUTE_MS);
  const panel = await Panel.start();
  t.teardown(() => panel.stop());
  // Names of this test alone: other tests run beside it, and their processes are none of its.
  const scriptOf = (name: string): string => `${family}_${process.pid}_${name}`;
  for (const [, name, text] of TASKS) panel.script(scriptOf(name), `${text}\n`);
  writeFileSync(path.join(panel.data, 'config/ql-sidecar.env'), 'QL3_SHADOW_ORIGINS=scheduled_system\n');
  writeFileSync(path.join(panel.dir, 'hold'), '');
  t.is(sidecar(panel, 'migrate').code, 0);

  const marked = (id: number, name: string): string =>
    `QL_EXECUTION_ORIGIN=scheduled_system real_time=false no_tee=true ID=${id} log_name=${name}_${id} task ${scriptOf(name)}`;
  const lines = [
    ...TASKS.map(([id, name]) => `* * * * * ${marked(id, name)}`),
    `* * * * * sleep 1; ${marked(5, 'slow.sh')}`,
    `* * * * * ${COMMAND} tick --data-dir ${panel.data} >>${panel.dir}/tick.log 2>&1`,
  ];
  const watch = new ArgumentWatch((line) => line.includes(`${family}_${process.pid}_`) || line.includes('ql-sidecar'));
  t.teardown(() => watch.stop());
  const crond = startCrond(family, panel.dir, lines, {
    PATH: `${panel.dir}/front:${panel.dir}/bin:${nodeDirectory}:${process.env.PATH ?? ''}`,
    HOME: panel.dir,
    QL_DIR: panel.dir,
    QL_DATA_DIR: panel.data,
  });
  t.teardown(async () => stopCrond(crond));

  // The panel is told of each start. The second minute begins with the second start of cron 1: no third one may begin.
  const starts = (id: number): number =>
    panel.requests().filter(({ body }) => body.status === '0' && (body.ids as string[])[0] === String(id)).length;
  await happened('cron 1 to start in two minutes', 150, () => starts(1) === 2);
  const second = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  // Both lines of cron 5, and cron 6 again where this family starts what still runs.
  const holds = family === 'busybox' ? 1 : 2;
  await happened('every line to start twice', 50, () => [1, 2, 3, 4].every((id) => starts(id) === 2) && starts(5) === 4 && starts(6) === holds);
  await stopCrond(crond);

  const lost = await happened("crond's own tick to find the task that was killed a minute before", 30, () =>
    runsOf(panel).find((one) => one.status === 'lost' && minuteOf(one) < second));
  t.deepEqual([lost.cron_id, lost.reason, lost.exit_code, lost.finished_at_ms], [4, 'pid_absent', null, null]);

  rmSync(path.join(panel.dir, 'hold'));
  await happened('every task to end', 40, () => {
    sidecar(panel, 'tick');
    return runsOf(panel).every(({ status }) => status !== 'running');
  });
  watch.stop();

  const runs = runsOf(panel);
  const expected = [second - MINUTE_MS, second].flatMap((minute) =>
    TASKS.flatMap(([id, , , status, exitCode]) => {
      const times = id === 5 ? 2 : id === 6 && family === 'busybox' && minute === second ? 0 : 1;
      return Array.from({ length: times }, () => ({ minute, id, status, exitCode }));
    }),
  );
  const got = runs.map((one) => ({ minute: minuteOf(one), id: one.cron_id ?? 0, status: one.status, exitCode: one.exit_code }));
  const inOrder = (one: { minute: number; id: number }, other: { minute: number; id: number }): number => one.minute - other.minute || one.id - other.id;
  t.deepEqual(got.sort(inOrder), expected.sort(inOrder));
  t.is(new Set(runs.map(({ execution_id }) => execution_id)).size, runs.length);

  for (const id of family === 'busybox' ? [5] : [5, 6]) overlap(t, runs.filter(({ cron_id }) => cron_id === id), id);
  t.regex(sidecar(panel, 'tick').stdout, /^$/);

  const ours = [...watch.seen].filter((line) => line.includes('ql-sidecar'));
  t.true(ours.some((line) => line.includes('ql-sidecar.cjs tick')), 'a tick was seen');
  // The panel's stop kills what matches a task's command: crond's shell and the panel's own `task` do, and nothing else may.
  const commands = [...watch.seen].filter((line) => line.includes(`task ${family}_${process.pid}_`));
  t.true(commands.length > 0);
  for (const line of commands) t.regex(line, PANELS_OWN);
  for (const line of ours) t.false(commands.includes(line), line);
}

/** The shell that crond starts with a line, and the panel's `task` (its forks look the same). */
const PANELS_OWN = /^(\S*sh -c (sleep 1; )?QL_EXECUTION_ORIGIN=|(\/usr\/bin\/env )?bash \S+\/bin\/task \S+$)/;

/** Two Runs of one cron that were alive at the same time have their own process, log and end. */
function overlap(t: ExecutionContext, runs: readonly RunView[], id: number): void {
  const [one, other] = [...runs].sort((left, right) => (left.started_at_ms ?? 0) - (right.started_at_ms ?? 0));
  if (one === undefined || other === undefined) return t.fail(`cron ${id} has not run twice`);
  t.true((other.started_at_ms ?? 0) < (one.finished_at_ms ?? 0), `cron ${id} did not overlap`);
  t.not(one.pid, other.pid);
  t.not(one.log_path, other.log_path);
}

const minuteOf = (one: RunView): number => Math.floor(one.accepted_at_ms / MINUTE_MS) * MINUTE_MS;

function sidecar(panel: Panel, ...words: readonly string[]): ReturnType<typeof run> {
  return run([...words, '--data-dir', panel.data], { environment: { QL3_SHADOW_ORIGINS: undefined } });
}

function runsOf(panel: Panel): RunView[] {
  const lines = sidecar(panel, 'runs', '--json').stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as RunView);
}
