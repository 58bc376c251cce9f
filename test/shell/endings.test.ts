import test from 'ava';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BASHES, MARKED, Panel, until, type PanelOptions } from '../fixtures/panel/panel.js';

/** How a task ends, and what the finish envelope then says; null: no finish, the reconciler settles it. */
interface Ending {
  readonly line: string;
  readonly is: string;
  readonly finish: Readonly<Record<string, unknown>> | null;
  /** The exit code of the `task` command itself, which the bridge must not change. */
  readonly code: number | null;
}

const ENDINGS: readonly Ending[] = [
  { line: 'task ok.sh', is: 'a .sh task', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ok.js', is: 'a .js task', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ok.py', is: 'a .py task', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ok.ts', is: 'a .ts task', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task fail.js', is: 'a .js task that fails', finish: { exit_code: 3, stopped: false }, code: 0 },
  { line: 'task fail.py', is: 'a .py task that fails', finish: { exit_code: 4, stopped: false }, code: 0 },
  { line: 'task ok.js now', is: 'now', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ok.js conc PANEL_VARIABLE', is: 'conc', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ok.js desi PANEL_VARIABLE 1', is: 'desi', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ok.js conc', is: 'conc without its variable', finish: { exit_code: 1, stopped: false }, code: 1 },
  { line: 'task ok.sh -- a "b c"', is: 'script parameters', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task ls -la /', is: 'a plain command', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task -m 1s long.js', is: 'a time-out', finish: { exit_code: 124, stopped: false }, code: 0 },
  { line: 'task return5.sh', is: 'return', finish: { exit_code: 5, stopped: false }, code: 0 },
  { line: 'task exit3.sh', is: 'exit 3 in a sourced task', finish: { exit_code: 3, stopped: false }, code: 3 },
  { line: 'task exit0.sh', is: 'exit 0 in a sourced task', finish: { exit_code: 0, stopped: false }, code: 0 },
  { line: 'task set_e.sh', is: 'a failure under set -e', finish: { exit_code: 1, stopped: false }, code: 1 },
  { line: 'task usr1.sh', is: 'a signal without a trap', finish: { stopped: true }, code: null },
  { line: 'task term.sh', is: 'TERM', finish: { exit_code: 1, stopped: true, signal: 'TERM' }, code: 1 },
  { line: 'task kill9.sh', is: 'SIGKILL', finish: null, code: null },
  { line: 'task exec.sh', is: 'exec', finish: null, code: 0 },
  { line: 'task own_trap.sh', is: 'an EXIT trap of its own', finish: null, code: 6 },
];

const reports = test.macro({
  async exec(t, options: PanelOptions, ending: Ending) {
    const panel = await Panel.start(options);
    t.teardown(() => panel.stop());
    writeFileSync(path.join(panel.dir, 'bin/ts-node-transpile-only'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const outcome = await panel.run(ending.line);
    t.is(outcome.code, ending.code);
    t.is(outcome.stdout, '');
    t.is(outcome.stderr, '');
    const [start, finish, ...more] = panel.envelopes();
    t.like(start, { seq: 1, event: 'started', origin: 'scheduled_system', cron_id: 5 });
    t.deepEqual(more, []);
    if (ending.finish === null) {
      t.is(finish, undefined);
      return;
    }
    t.like(finish, { seq: 2, event: 'finished', execution_id: start?.execution_id, ...ending.finish });
    t.is(finish?.exit_code, ending.finish.exit_code);
  },
  title: (_, options: PanelOptions, ending: Ending) =>
    `${ending.is}: one start and the right finish, and the command's own exit code (DESIGN 4.3, 5.1) [${options.bash}]`,
});

for (const bash of BASHES) {
  for (const ending of ENDINGS) test.serial(reports, { bash }, ending);

  for (const version of ['2.17.0', '2.17.13', '2.19.2']) {
    test.serial(`${version} never learns exit codes, the envelope has them (DESIGN 4.3) [${bash}]`, async (t) => {
      const panel = await Panel.start({ bash, version });
      t.teardown(() => panel.stop());
      await panel.run('task fail.js');
      t.like(panel.envelopes()[1], { event: 'finished', exit_code: 3, stopped: false });
      t.is(panel.requests().at(-1)?.body.exit_code, undefined);
    });

    test.serial(`${version}: TERM is reported as stopped (DESIGN 5.1) [${bash}]`, async (t) => {
      const panel = await Panel.start({ bash, version });
      t.teardown(() => panel.stop());
      panel.script('stop.sh', 'kill -TERM $PPID; :\n');
      panel.script('term.js', 'process.kill(process.ppid, "SIGTERM");\n');
      const { code } = await panel.run('task term.js');
      t.is(code, 1);
      const lines = panel.envelopes();
      t.is(lines.length, 2);
      t.like(lines[1], { event: 'finished', stopped: true });
    });
  }

  test.serial(`a syntax error in a sourced task ends with its code (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    await panel.run('task syntax.sh');
    const code = panel.envelopes()[1]?.exit_code;
    // bash 4.4 says 1, later ones 2.
    t.true(code === 1 || code === 2);
  });

  test.serial(`two signals in a row make one finish (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    panel.script('two.sh', 'kill -TERM $$; kill -INT $$; kill -TERM $$; :\n');
    await panel.run('task two.sh');
    t.deepEqual(panel.envelopes().map((line) => line.seq), [1, 2]);
  });

  test.serial(`the exit trap of the operator runs after ours and sees its own status (DESIGN 4.4) [${bash}]`, async (t) => {
    for (const [script, seen] of [['exit3.sh', '3'], ['set_e.sh', '1'], ['exit0.sh', '0'], ['ok.sh', '0']] as const) {
      const panel = await Panel.start({ bash, bridge: 'none' });
      t.teardown(() => panel.stop());
      panel.configure(`trap 'echo "it'\\''s $? EXIT" >"$QL_DIR/trapped"' EXIT`);
      panel.hook();
      await panel.run(`task ${script}`);
      const trapped = readFileSync(path.join(panel.dir, 'trapped'), 'utf8');
      t.is(trapped, `it's ${seen} EXIT\n`, script);
      t.is(panel.envelopes().length, 2);
    }
  });

  test.serial(`with tee the finish comes from the process that runs the task (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const { stdout } = await panel.run('task return5.sh', { ...MARKED, no_tee: '' });
    t.regex(stdout, /退出码 5/);
    t.deepEqual(panel.envelopes().map((line) => [line.seq, line.exit_code]), [[1, undefined], [2, 5]]);
  });

  test.serial(`a task that redefines the bridge's functions still runs (DESIGN 4.3) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const { code } = await panel.run('task redefine.sh');
    t.is(code, 0);
    t.regex(panel.log(), /my own main/);
  });

  test.serial(`an exit in the operator's task_after keeps the task's own code (DESIGN 5.1) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    writeFileSync(path.join(panel.data, 'config/task_after.sh'), 'exit 9\n');
    const { code } = await panel.run('task fail.js');
    t.is(code, 9);
    t.like(panel.envelopes()[1], { exit_code: 3, stopped: false });
  });

  test.serial(`a ql line gives one start and one finish, its own exit code, no log path (DESIGN 4.2) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const { code } = await panel.run('ql check');
    t.is(code, 0);
    const lines = panel.envelopes();
    t.deepEqual(lines.map((line) => [line.event, line.exit_code, line.log_path]), [
      ['started', undefined, undefined],
      ['finished', 0, undefined],
    ]);
    await panel.run('ql check', { ID: '5', no_tee: 'true' });
    t.is(panel.envelopes().length, 2);
  });

  test.serial(`a panel that hangs hides neither start nor finish (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash, mode: 'hang' });
    const child = panel.spawn('task ok.sh');
    t.teardown(() => panel.stop());
    await until(() => panel.requests().length === 1);
    t.is(panel.envelopes().length, 1);
    child.kill('SIGKILL');
  });

  test.serial(`the envelope is there before the panel hears of it, at start and at end (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    await panel.run('task ok.sh');
    const [start, finish] = panel.envelopes();
    const [told, done] = panel.requests();
    t.true((start?.occurred_at_ms as number) <= (told?.at_ms as number));
    t.true((finish?.occurred_at_ms as number) <= (done?.at_ms as number));
    t.like(told?.body, { status: '0', pid: String(start?.pid), log_path: start?.log_path });
    t.like(start, { started_at: told?.body.last_execution_time });
  });

  test.serial(`a dead panel, a refusing one, a token that is refused: two envelopes (DESIGN 4.4) [${bash}]`, async (t) => {
    for (const mode of ['dead', '400', '401'] as const) {
      const panel = await Panel.start({ bash, mode });
      t.teardown(() => panel.stop());
      await panel.run('task ok.sh');
      t.is(panel.envelopes().length, 2, mode);
    }
  });
}

const real = process.env.QL_REAL_DIR;
(real === undefined ? test.skip : test.serial)('a real panel tree: the same endings (QL_REAL_DIR)', async (t) => {
  const panel = await Panel.start({ tree: real as string });
  t.teardown(() => panel.stop());
  mkdirSync(path.join(panel.dir, '.tmp'), { recursive: true });
  for (const [line, code] of [['ok.sh', 0], ['exit3.sh', 3], ['fail.js', 3], ['fail.py', 4], ['ls -la /', 0]] as const) {
    await panel.run(`task ${line}`);
    const lines = panel.envelopes();
    t.deepEqual(lines.slice(-2).map((one) => one.seq).length, 2);
    t.true(lines.some((one) => one.seq === 2 && one.exit_code === code), line);
  }
});
