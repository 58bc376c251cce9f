import test from 'ava';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { BASHES, finish, Panel, until } from '../fixtures/panel/panel.js';

const EXEC = path.join(process.cwd(), 'shell/exec.sh');

for (const bash of BASHES) {
  const start = async (): Promise<Panel> => Panel.start({ bash, bridge: 'none', mode: 'dead' });

  test.serial(`any command: its exit code, output and input, and two envelopes (DESIGN 14) [${bash}]`, async (t) => {
    const panel = await start();
    t.teardown(() => panel.stop());
    for (const [command, code, stdout] of [
      ['true', 0, ''],
      ['sh -c "exit 7"', 7, ''],
      ['printf "%s|" a "b c" "" "*"', 0, 'a|b c||*|'],
      ['/nonexistent/command', 127, ''],
      ['sh -c "kill -KILL \\$\\$"', 137, ''],
    ] as const) {
      const outcome = await panel.run(`${EXEC} --origin script --name 备份 -- ${command}`, {});
      t.deepEqual([outcome.code, outcome.stdout], [code, stdout], command);
      const lines = panel.envelopes();
      t.like(lines[0], { event: 'started', origin: 'script', name: '备份' });
      t.like(lines[1], { event: 'finished', exit_code: code, stopped: false, execution_id: lines[0]?.execution_id });
      rmSync(panel.spool, { recursive: true });
      await panel.run(`mkdir ${panel.spool}`, {});
    }
    const piped = await panel.run(`echo hello | ${EXEC} --origin script -- cat`, {});
    t.is(piped.stdout, 'hello\n');
    t.is(piped.stderr, '');
    t.is(panel.envelopes()[0]?.name, 'script');
    const closed = await panel.run(`${EXEC} --origin script -- sh -c 'cat; echo end' <&-`, {});
    t.regex(closed.stdout, /end/);
  });

  for (const origin of ['boot', 'subscription', 'system', 'script', 'manual', 'scheduled_system', 'scheduled_node']) {
    test.serial(`--origin ${origin} --id: recorded as that cron (DESIGN 4.1) [${bash}]`, async (t) => {
      const panel = await start();
      t.teardown(() => panel.stop());
      await panel.run(`${EXEC} --origin=${origin} --id 7 -- true`, {});
      t.deepEqual(panel.envelopes().map((line) => [line.origin, line.cron_id, line.name]), [[origin, 7, undefined], [origin, 7, undefined]]);
    });
  }

  for (const [signal, number] of [['SIGTERM', 15], ['SIGINT', 2], ['SIGHUP', 1], ['SIGQUIT', 3]] as const) {
    test.serial(`${signal} goes to the command and is reported; we end by it as the command did (DESIGN 5.1) [${bash}]`, async (t) => {
      const panel = await start();
      t.teardown(() => panel.stop());
      const flag = path.join(panel.dir, 'ready');
      const child = spawn(path.join(panel.dir, 'front/bash'), [EXEC, '--origin', 'script', '--', 'sh', '-c', `: >${flag}; exec sleep 30`], {
        env: panel.environment({}),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const ended = finish(child);
      await until(() => existsSync(flag));
      await until(() => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').some((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('sleep')));
      child.kill(signal);
      const outcome = await ended;
      t.deepEqual([outcome.stdout, outcome.stderr], ['', '']);
      // bash ignores QUIT, so it cannot end by it.
      if (signal === 'SIGQUIT') t.is(outcome.code, 131);
      else t.is(outcome.signal, signal);
      t.like(panel.envelopes()[1], { exit_code: 128 + number, stopped: true, signal: signal.slice(3) });
    });
  }

  test.serial(`a command that handles TERM keeps its own exit code (DESIGN 5.1) [${bash}]`, async (t) => {
    const panel = await start();
    t.teardown(() => panel.stop());
    const flag = path.join(panel.dir, 'ready');
    const child = spawn(path.join(panel.dir, 'front/bash'), [EXEC, '--origin', 'script', '--', 'node', '-e', `process.on("SIGTERM", () => process.exit(5)); require("fs").writeFileSync("${flag}", ""); setTimeout(() => {}, 30000)`], {
      env: panel.environment({}),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = finish(child);
    await until(() => existsSync(flag));
    child.kill('SIGTERM');
    t.is((await ended).code, 5);
    t.like(panel.envelopes()[1], { exit_code: 5, stopped: true, signal: 'TERM' });
  });

  test.serial(`the command's environment is its own: no marker, no state of ours (DESIGN 4.1) [${bash}]`, async (t) => {
    const panel = await start();
    t.teardown(() => panel.stop());
    const secret = { QL_EXECUTION_ORIGIN: 'manual', QL_CALLBACK_TOKEN: 'x', QL_RUN_ID: 'x', MINE: '1', QLB_LIBRARY: '1' };
    const { stdout } = await panel.run(`${EXEC} --origin script -- env`, secret);
    t.regex(stdout, /^MINE=1$/m);
    t.notRegex(stdout, /QL_EXECUTION|QL_CALLBACK|QL_RUN|QLB_|qlb_/);
  });

  test.serial(`wrong options: status 2, one line, in the operator's language, and nothing runs [${bash}]`, async (t) => {
    const panel = await start();
    t.teardown(() => panel.stop());
    const wrong = ['', '--origin once -- true', '-- true', '--origin script', '--origin script --', '--origin script true', '--origin script --id 0 -- true', '--origin script --id 1 --name x -- true', `--origin script --name ${'x'.repeat(129)} -- true`, `--origin script --name $'a\\nb' -- true`, '--origin'];
    for (const options of wrong) {
      const english = await panel.run(`${EXEC} ${options}`, { QL_LANG: 'en' });
      t.is(english.code, 2, options);
      t.regex(english.stderr, /^exec\.sh: Expected .*\n$/, options);
      const chinese = await panel.run(`${EXEC} ${options}`, { LANG: 'zh_CN.UTF-8' });
      t.regex(chinese.stderr, /[一-龥].*\n$/);
    }
    t.is(panel.envelopes().length, 0);
  });

  test.serial(`no spool, no share.sh beside it, called through a link: the command runs all the same (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await start();
    t.teardown(() => panel.stop());
    const linked = await panel.run(`ln -s ${EXEC} $QL_DIR/bin/ql-exec; ql-exec --origin script -- echo ran`, {});
    t.is(linked.stdout, 'ran\n');
    t.is(panel.envelopes().length, 2);
    rmSync(panel.sidecar, { recursive: true });
    const alone = await panel.run(`cp ${EXEC} $QL_DIR/alone.sh; bash $QL_DIR/alone.sh --origin script -- sh -c 'echo ran; exit 4'`, {});
    t.deepEqual([alone.code, alone.stdout, alone.stderr], [4, 'ran\n', '']);
    const none = await panel.run(`${EXEC} --origin script -- echo ran`, {});
    t.deepEqual([none.code, none.stdout, none.stderr], [0, 'ran\n', '']);
  });
}
