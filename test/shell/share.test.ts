import test from 'ava';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BASHES, MARKED, Panel, SHARE } from '../fixtures/panel/panel.js';

const ID_FORM = /^legacy-system:[1-9][0-9]*:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UNMARKED = { ID: '5', no_tee: 'true', real_time: 'false' };
const REVISION = `sha256:${'0123456789abcdef'.repeat(4)}`;
const MANUAL = {
  SERVICE_TYPE: 'http',
  QL3_SHADOW_ORIGINS: 'manual,scheduled_node',
  ID: '5',
  no_tee: 'true',
  real_time: 'true',
  no_delay: 'true',
  real_log_path: 'ok_5/manual.log',
};
const NODE = { SERVICE_TYPE: 'grpc', QL3_SHADOW_ORIGINS: 'scheduled_node', ...UNMARKED };

/** As the panel does it: the variables stand on the command line, its own environment has only SERVICE_TYPE. */
function panelLine(variables: Readonly<Record<string, string>>, command: string): [string, Record<string, string>] {
  const { SERVICE_TYPE, QL3_SHADOW_ORIGINS, ...onLine } = variables;
  const words = Object.entries(onLine).map(([name, value]) => `${name}=${value}`);
  const environment: Record<string, string> = {};
  if (SERVICE_TYPE !== undefined) environment.SERVICE_TYPE = SERVICE_TYPE;
  if (QL3_SHADOW_ORIGINS !== undefined) environment.QL3_SHADOW_ORIGINS = QL3_SHADOW_ORIGINS;
  return [`${words.join(' ')} ${command}`, environment];
}

for (const bash of BASHES) {
  test.serial(`a marker makes one strict ID, the same at start and finish (0446 decisions 1 and 2) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    await panel.run('task ok.sh', { ...MARKED, QL_TASK_REVISION: REVISION });
    const [start, finish] = panel.envelopes();
    t.regex(start?.execution_id ?? '', ID_FORM);
    t.is(start?.execution_id, finish?.execution_id);
    t.like(start, { task_revision: REVISION, started_at: Number(start?.execution_id.split(':')[1]) });
    t.is(start?.boot_id, readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
    t.is(start?.host, readFileSync('/proc/sys/kernel/hostname', 'utf8').trim());
    t.is(typeof start?.pid_start_ticks, 'number');
    t.like(finish, { duration_s: 1 });
  });

  for (const [origin, kind] of Object.entries({
    manual: 'manual',
    scheduled_node: 'node',
    boot: 'boot',
    subscription: 'subscription',
    system: 'internal',
    script: 'script',
  })) {
    test.serial(`the marker ${origin} gives the kind ${kind} (DESIGN 2) [${bash}]`, async (t) => {
      const panel = await Panel.start({ bash });
      t.teardown(() => panel.stop());
      await panel.run('task ok.sh', { ...MARKED, QL_EXECUTION_ORIGIN: origin });
      t.regex(panel.envelopes()[0]?.execution_id ?? '', new RegExp(`^legacy-${kind}:`));
    });
  }

  test.serial(`reserved, unknown or empty markers, and IDs that are none, give no ID (DESIGN 2, 4.1) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    for (const origin of ['once', 'grpc', 'SYSTEM', 'scheduled_system ', '', '*']) {
      await panel.run('task ok.sh', { ...MARKED, QL_EXECUTION_ORIGIN: origin });
    }
    for (const id of ['', '0', '-1', '5x', '9007199254740992', '99999999999999999999']) {
      await panel.run('task ok.sh', { ...MARKED, ID: id });
    }
    await panel.run('task ok.sh', { ...MARKED, QL_TASK_REVISION: 'sha256:nonsense' });
    const lines = panel.envelopes();
    t.is(lines.length, 2);
    t.is(lines[0]?.task_revision, undefined);
  });

  test.serial(`no marker: the same output, callbacks and exit code, and no file (0446 decision 2) [${bash}]`, async (t) => {
    const plain = await Panel.start({ bash, bridge: 'none' });
    const bridged = await Panel.start({ bash });
    t.teardown(() => [plain, bridged].forEach((panel) => panel.stop()));
    for (const line of ['task ok.sh', 'task fail.js', 'task exit3.sh', 'task ls /', 'task', 'ql check']) {
      for (const variables of [UNMARKED, MARKED]) {
        const [a, b] = [await plain.run(line, variables), await bridged.run(line, variables)];
        const scrub = (text: string, panel: Panel): string =>
          text.replaceAll(panel.dir, 'DIR').replaceAll(/\d{4}-\d\d-\d\d[ -][\d:-]+|耗时 \d+/g, 'TIME');
        t.deepEqual(
          [a.code, scrub(a.stdout, plain), scrub(a.stderr, plain), plain.log()],
          [b.code, scrub(b.stdout, bridged), scrub(b.stderr, bridged), bridged.log()],
          line,
        );
        if (variables === UNMARKED) t.is(bridged.envelopes().length, 0);
      }
      readdirSync(bridged.spool).forEach((name) => execFileSync('rm', [path.join(bridged.spool, name)]));
    }
  });

  test.serial(`user code sees nothing of the marker, the tokens or the bridge (DESIGN 4.1) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    panel.script('see.js', 'require("fs").writeFileSync(process.env.QL_DIR + "/seen", Object.keys(process.env).join("\\n"));\n');
    const secret = {
      QL_TASK_REVISION: REVISION,
      QL_RUN_ID: '1',
      QL_ATTEMPT_ID: '1',
      QL_CALLBACK_SEQUENCE: '1',
      QL_CALLBACK_TOKEN: 't',
      QL_CALLBACK_TOKEN_FILE: '/t',
      QL_SIDECAR_TOKEN: 't',
      QLB_PID: '1',
      QLB_TOKEN: 't',
      QLB_STATE: 'open',
    };
    for (const line of ['task environment.sh', 'task see.js']) {
      await panel.run(line, { ...MARKED, ...secret });
    }
    for (const file of ['seen', 'data/scripts/environment']) {
      t.notRegex(readFileSync(path.join(panel.dir, file), 'utf8'), /QL_EXECUTION|QL_TASK|QL_RUN|QL_ATTEMPT|QL_CALL|TOKEN|QLB_|qlb_/);
    }
    t.is(panel.envelopes().length, 4);
  });

  test.serial(`a task inside a task is no second execution, from a marker or from proof (DESIGN 4.1) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    panel.script('nested.js', 'require("child_process").execSync("task ok.sh inner");\n');
    for (const script of ['nested.sh', 'nested.js']) {
      await panel.run(`task ${script}`);
      await panel.run(...panelLine(MANUAL, `task ${script}`));
      await panel.run(...panelLine(NODE, `task ${script}`));
    }
    t.is(new Set(panel.envelopes().map((line) => line.execution_id)).size, 6);
    t.is(panel.envelopes().length, 12);
  });

  test.serial(`manual and scheduled_node only when listed and fully proven (DESIGN 4.1) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const { no_delay: _1, ...withoutDelay } = MANUAL;
    const { real_log_path: _2, ...withoutPath } = MANUAL;
    const { QL3_SHADOW_ORIGINS: _3, ...unlisted } = MANUAL;
    const { SERVICE_TYPE: _4, ...terminal } = MANUAL;
    for (const variables of [withoutDelay, withoutPath, unlisted, terminal, { ...NODE, SERVICE_TYPE: 'other' }]) {
      await panel.run(...panelLine(variables, 'task ok.sh'));
    }
    await panel.run(...panelLine({ ...NODE, QL3_SHADOW_ORIGINS: 'manual' }, 'task ok.sh'));
    await panel.run(...panelLine({ ...NODE, real_log_path: 'x/y.log' }, 'task ok.sh'));
    t.is(panel.envelopes().length, 0);
    writeFileSync(path.join(panel.data, 'config/ql-sidecar.env'), '# mine\r\n QL3_SHADOW_ORIGINS = x\nQL3_SHADOW_ORIGINS="manual, scheduled_node" \r\n');
    await panel.run(...panelLine(unlisted, 'task ok.sh'));
    await panel.run(...panelLine(NODE, 'task ok.sh'));
    t.deepEqual(panel.envelopes().filter((line) => line.seq === 1).map((line) => line.origin).sort(), ['manual', 'scheduled_node']);
    t.is(panel.envelopes().find((line) => line.origin === 'manual')?.log_path, 'ok_5/manual.log');
    await panel.run(...panelLine({ ...MANUAL, QL3_SHADOW_ORIGINS: '' }, 'task ok.sh'));
    t.is(panel.envelopes().length, 4, 'the environment wins over the file');
  });

  test.serial(`sourced twice, and mounted with the hook as well: one execution (DESIGN 4.3) [${bash}]`, async (t) => {
    for (const version of ['2.17.0', '2.21.0']) {
      const twice = await Panel.start({ bash, version });
      t.teardown(() => twice.stop());
      twice.hook();
      await twice.run('task ok.sh');
      t.is(twice.envelopes().length, 2);
      const mounted = await Panel.start({ bash, version, bridge: 'mount' });
      t.teardown(() => mounted.stop());
      await mounted.run('task fail.js');
      t.is(mounted.envelopes()[1]?.exit_code, 3);
      mounted.hook();
      await mounted.run('task exit3.sh');
      await mounted.run('ql check');
      t.is(mounted.envelopes().length, 6);
    }
  });

  test.serial(`set -e callers without task functions, and start.sh, live on (DESIGN 4.3) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const { code, stderr } = await panel.run('$QL_DIR/shell/start.sh', {});
    t.deepEqual([code, stderr], [0, '']);
    const alone = spawnSync(path.join(panel.dir, 'front/bash'), ['-euc', `set -o pipefail; . ${SHARE}; echo alive $-`], {
      env: { QL_EXECUTION_ORIGIN: 'manual', ID: '1', QL_DATA_DIR: panel.data, PATH: process.env.PATH ?? '' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.regex(alone.stdout, /^alive .*e.*u|^alive .*u.*e/);
    t.is(alone.stderr, '');
    t.deepEqual(readdirSync(panel.notices), ['bridge-missing-function']);
  });

  test.serial(`a function of an unknown shape is left alone, and doctor is told once (DESIGN 4.3) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash, bridge: 'none' });
    t.teardown(() => panel.stop());
    panel.configure('handle_task_start() { echo other; }');
    panel.hook();
    const { code, stderr } = await panel.run('task ok.sh');
    await panel.run('task ok.sh');
    t.deepEqual([code, stderr], [0, '']);
    t.is(panel.envelopes().length, 0);
    t.regex(panel.log(), /other/);
    t.deepEqual(readdirSync(panel.notices), ['bridge-unknown-shape']);
  });

  test.serial(`a function larger than any pipe does not hang the task (DESIGN 4.3) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash, bridge: 'none' });
    t.teardown(() => panel.stop());
    const body = `: ${'x'.repeat(1000)}\n`.repeat(300);
    panel.configure(`eval "huge$(declare -f handle_task_start)"; handle_task_start() {\n${body}: update_cron\nhugehandle_task_start "$@"\n}`);
    panel.hook();
    await panel.run('task ok.sh');
    t.is(panel.envelopes().length, 2);
  });

  const odd: Readonly<Record<string, string>> = {
    'set -eu and pipefail': 'set -euo pipefail; set +e',
    noclobber: 'set -C',
    'noglob and failglob': 'set -f; shopt -s failglob',
    'nullglob, extglob, nocasematch, nocaseglob': 'shopt -s nullglob extglob nocasematch nocaseglob dotglob',
    allexport: 'set -a',
    'readonly names': 'readonly line key value host code port IFS LC_ALL status',
    'no brace expansion': 'set +B',
    'an old compatibility level': 'BASH_COMPAT=4.4',
    'an inheriting local': 'shopt -s localvar_inherit 2>/dev/null; declare -i line=1',
    'an odd umask': 'umask 027',
    'aliases': "shopt -s expand_aliases; alias printf='echo no' mapfile=false umask=false set=false builtin='echo '",
    'shadowed builtins': 'read() { false; }; umask() { false; }; mapfile() { false; }; trap_() { :; }',
  };
  for (const [name, setting] of Object.entries(odd)) {
    test.serial(`${name}: two envelopes, and the setting is kept (DESIGN 4.4) [${bash}]`, async (t) => {
      const panel = await Panel.start({ bash, bridge: 'none' });
      t.teardown(() => panel.stop());
      panel.configure(`before=$(shopt; set +o; IFS=x; builtin umask)`);
      panel.configure(setting);
      panel.configure('settings() { local a=$-; builtin printf "%s\\n" "$a" "$(shopt)" "$(builtin umask)" "${IFS@Q}" "${LC_ALL-unset}" "$(builtin trap -p TERM INT)"; }');
      panel.configure('settings >"$QL_DIR/before"');
      panel.hook();
      panel.configure('settings >|"$QL_DIR/after"');
      panel.script('kept.sh', 'settings >|"$QL_DIR/inside"; echo hello\n');
      await panel.run('task kept.sh');
      t.is(panel.envelopes().length, 2);
      const [before, after] = ['before', 'after'].map((file) => readFileSync(path.join(panel.dir, file), 'utf8'));
      t.is(before, after);
      for (const file of readdirSync(panel.spool)) t.is(statSync(path.join(panel.spool, file)).mode & 0o777, 0o600);
      t.regex(panel.log(), /hello/);
    });
  }

  test.serial(`any IFS and any locale, also one that is not installed (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash, bridge: 'none' });
    const plain = await Panel.start({ bash, bridge: 'none' });
    t.teardown(() => [panel, plain].forEach((one) => one.stop()));
    panel.hook();
    for (const one of [panel, plain]) one.script('length.sh', 'x=中文; echo "${#x}"\n');
    const locales = ['C', 'C.UTF-8', 'zh_CN.UTF-8', 'de_DE.UTF-8', 'xx_XX'];
    for (const LC_ALL of locales) {
      const [a, b] = [await panel.run('task length.sh', { ...MARKED, LC_ALL }), await plain.run('task length.sh', { ...MARKED, LC_ALL })];
      t.is(a.stderr.replaceAll(panel.dir, ''), b.stderr.replaceAll(plain.dir, ''), LC_ALL);
      t.is(panel.log(), plain.log(), LC_ALL);
    }
    t.is(panel.envelopes().length, 2 * locales.length);
    panel.configure(`IFS='5/:-'`);
    await panel.run('task ok.sh');
    t.true(panel.envelopes().length >= 2 * locales.length);
  });

  const names: Readonly<Record<string, string>> = {
    plain: 'ok_5/2026.log',
    quotes: `it's "quoted" \\back\\`,
    percent: '100%s%d%%',
    newline: 'two\nlines\ttab\u0001\u007f',
    Chinese: '签到/任务 一.log',
    emoji: '🎉/𝒳.log',
    blanks: '  a  b  ',
    glob: '*?[a]{b}$(touch x)`id`',
  };
  for (const [name, log] of Object.entries(names)) {
    test.serial(`a log path of ${name} comes out as it went in (DESIGN 4.4) [${bash}]`, async (t) => {
      const panel = await Panel.start({ bash });
      t.teardown(() => panel.stop());
      await panel.run('task ok.sh', { ...MARKED, real_time: 'true', real_log_path: log });
      t.is(panel.envelopes()[0]?.log_path, log);
    });
  }

  test.serial(`a log path of invalid UTF-8 is still valid JSON; too long a one is left out (PROTOCOL) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const bytes = String.raw`a\xff\xc0\xaf\xed\xa0\x80\xe4\xb8\xf4\x90\x80\x80z\xf0\x9f\x8e`;
    await panel.run(`real_log_path=$'${bytes}' task ok.sh`, { ...MARKED, real_time: 'true' });
    t.regex(panel.envelopes()[0]?.log_path as string, /^a\ufffd+z\ufffd+$/);
    for (const log of ['x'.repeat(1025), '中'.repeat(1025), '\u0001'.repeat(800), '🎉'.repeat(513)]) {
      await panel.run('task ok.sh', { ...MARKED, real_time: 'true', real_log_path: log });
    }
    t.is(panel.envelopes().filter((line) => line.log_path !== undefined).length, 2);
    t.is(panel.envelopes().length, 10);
  });
}
