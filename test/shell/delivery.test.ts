import test from 'ava';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { BASHES, finish, MARKED, Panel, receiver, until } from '../fixtures/panel/panel.js';

/** Names that look like envelopes of the sixteenth that is counted. */
function fill(spool: string, count: number): void {
  for (let index = 0; index < count; index += 1) {
    const uuid = `00000000-0000-4000-8000-${String(index).padStart(11, '0')}0`;
    writeFileSync(path.join(spool, `1764572400-${uuid}-1.json`), '{}\n');
  }
}

/** Runs tasks until one has drawn a UUID that ends in 0, at most 200: each is one start in 16. */
async function runUntil(panel: Panel, look: () => boolean): Promise<void> {
  for (let index = 0; index < 200 && !look(); index += 1) await panel.run('task ok.sh');
}

for (const bash of BASHES) {
  test.serial(`spool files are private whatever the umask, named as PROTOCOL says (PROTOCOL) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    await panel.run('umask 000; task ok.sh');
    for (const name of readdirSync(panel.spool)) {
      t.regex(name, /^[1-9][0-9]*-[0-9a-f-]{36}-[12]\.json$/);
      t.is(statSync(path.join(panel.spool, name)).mode & 0o777, 0o600);
    }
  });

  for (const [name, spoil] of Object.entries({
    missing: (panel: Panel) => rmSync(panel.sidecar, { recursive: true }),
    'a file': (panel: Panel) => {
      rmSync(panel.spool, { recursive: true });
      writeFileSync(panel.spool, '');
    },
    'a link to nowhere': (panel: Panel) => {
      rmSync(panel.spool, { recursive: true });
      symlinkSync('/nonexistent/x', panel.spool);
    },
    'not writable': (panel: Panel) => chmodSync(panel.spool, 0o500),
  })) {
    test.serial(`a spool that is ${name} changes nothing for the task (DESIGN 4.4) [${bash}]`, async (t) => {
      const panel = await Panel.start({ bash });
      const plain = await Panel.start({ bash, bridge: 'none' });
      t.teardown(() => [panel, plain].forEach((one) => one.stop()));
      spoil(panel);
      for (const line of ['task ok.sh', 'task exit3.sh', 'task fail.js']) {
        const [a, b] = [await panel.run(line), await plain.run(line)];
        t.deepEqual([a.code, a.stdout, a.stderr, panel.log()], [b.code, b.stdout, b.stderr, plain.log()]);
      }
    });
  }

  test.serial(`a full disk changes nothing for the task, not even its later output (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4k,nr_inodes=64', 'none', panel.spool]);
    t.teardown(() => {
      spawnSync('umount', [panel.spool]);
      panel.stop();
    });
    if (mounted.status !== 0) return t.pass('skipped: no right to mount a tmpfs here');
    spawnSync('sh', ['-c', `head -c 4096 /dev/zero >${panel.spool}/.filler`]);
    const { code, stdout, stderr } = await panel.run('task fail.js');
    t.deepEqual([code, stdout, stderr], [0, '', '']);
    t.notRegex(panel.log(), /execution_id|space left/);
    t.regex(panel.log(), /退出码 3/);
    for (const name of readdirSync(panel.spool)) {
      if (!name.startsWith('.')) t.is(statSync(path.join(panel.spool, name)).size, 0);
    }
    return undefined;
  });

  test.serial(`spool.full: no start, no finish without a start; a start that was written gets its finish (PROTOCOL) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const flag = path.join(panel.sidecar, 'spool.full');
    writeFileSync(flag, '');
    await panel.run('task ok.sh');
    t.is(panel.envelopes().length, 0);
    rmSync(flag);
    panel.script('full.sh', `touch ${flag}\n`);
    await panel.run('task full.sh');
    t.deepEqual(panel.envelopes().map((line) => line.seq), [1, 2]);
    panel.script('emptied.sh', `rm ${flag}\n`);
    await panel.run('task emptied.sh');
    t.is(panel.envelopes().length, 3);
  });

  test.serial(`the bridge counts one start in sixteen and closes the spool at its bound (PROTOCOL) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash, mode: 'dead' });
    t.teardown(() => panel.stop());
    writeFileSync(path.join(panel.data, 'config/ql-sidecar.env'), 'QL3_PROFILE=edge\n');
    fill(panel.spool, 65);
    const flag = path.join(panel.sidecar, 'spool.full');
    await runUntil(panel, () => existsSync(flag));
    t.true(existsSync(flag));
    t.is(statSync(flag).mode & 0o777, 0o600);
  });

  test.serial(`a receiver that has announced itself hears one newline per envelope (PROTOCOL) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    const socket = createSocket('udp4');
    t.teardown(() => [panel.stop(), socket.close()]);
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const heard: string[] = [];
    socket.on('message', (message) => heard.push(message.toString()));
    writeFileSync(path.join(panel.sidecar, 'receiver'), `${socket.address().port}\n`);
    await panel.run('task ok.sh');
    await until(() => heard.length === 2);
    t.deepEqual(heard, ['\n', '\n']);
  });

  test.serial(`a receiver that is gone, or whose announcement is nonsense or a pipe, costs nothing (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const file = path.join(panel.sidecar, 'receiver');
    for (const text of ['9\n', '0\n', '65536\n', '99999999\n', '', '127.0.0.1:80\n', '$(touch x)\n']) {
      writeFileSync(file, text);
      const { code, stdout, stderr } = await panel.run('task ok.sh');
      t.deepEqual([code, stdout, stderr], [0, '', ''], text);
    }
    rmSync(file);
    spawnSync('mkfifo', [file]);
    await panel.run('task ok.sh');
    t.is(panel.envelopes().length, 16);
  });

  test.serial(`QL_SIDECAR_URL: posted with its token and not spooled; the token is in no argument (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    const remote = await receiver(200);
    t.teardown(() => [panel.stop(), remote.close()]);
    writeFileSync(path.join(panel.sidecar, 'serve.token'), 'secret-1\n');
    panel.script('look.sh', 'echo fine\n');
    writeFileSync(path.join(panel.dir, 'bin/curl'), `#!/bin/sh\nprintf '%s\\n' "$*" >>"${panel.dir}/argv"\nexec /usr/bin/curl "$@"\n`, { mode: 0o755 });
    await panel.run(`task ok.sh`, { ...MARKED, QL_SIDECAR_URL: `${remote.url}/` });
    t.is(panel.envelopes().length, 0);
    t.deepEqual(remote.got.map(({ body }) => (JSON.parse(body) as { seq: number }).seq), [1, 2]);
    t.is(remote.got[0]?.request.url, '/v1/callbacks');
    t.is(remote.got[0]?.request.headers.authorization, 'Bearer secret-1');
    const { stdout } = spawnSync('grep', ['-c', 'secret-1', path.join(panel.dir, 'argv')], { encoding: 'utf8' });
    t.is(stdout.trim(), '0');
  });

  test.serial(`QL_SIDECAR_URL: refused, redirected, dead or hanging, it is spooled within a bound (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const before = await panel.run('task ok.sh');
    for (const status of [500, 302, 401, null]) {
      const remote = await receiver(status);
      const { code, stdout, stderr, took_ms } = await panel.run('task ok.sh', { ...MARKED, QL_SIDECAR_URL: remote.url });
      t.deepEqual([code, stdout, stderr], [0, '', '']);
      t.true(took_ms < before.took_ms + 2 * 1000 + 3000, `took ${took_ms}`);
      remote.close();
    }
    await panel.run('task ok.sh', { ...MARKED, QL_SIDECAR_URL: 'http://127.0.0.1:9' });
    t.is(panel.envelopes().length, 12);
  });

  test.serial(`QL_SIDECAR_DIR puts the spool elsewhere, from the environment or the file (DESIGN 13) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash });
    t.teardown(() => panel.stop());
    const other = path.join(panel.dir, 'else where/spool');
    mkdirSync(other, { recursive: true });
    await panel.run('task ok.sh', { ...MARKED, QL_SIDECAR_DIR: path.dirname(other) });
    t.is(readdirSync(other).length, 2);
    writeFileSync(path.join(panel.data, 'config/ql-sidecar.env'), `QL_SIDECAR_DIR='${path.dirname(other)}'\n`);
    await panel.run('task ok.sh');
    t.is(readdirSync(other).length, 4);
    t.is(panel.envelopes().length, 0);
  });

  test.serial(`fifty tasks at once: fifty starts, fifty finishes, none torn (DESIGN 4.4) [${bash}]`, async (t) => {
    const panel = await Panel.start({ bash, mode: 'dead' });
    t.teardown(() => panel.stop());
    const line = 'for i in {1..50}; do task ok.sh & done; wait';
    await finish(panel.spawn(line));
    const lines = panel.envelopes();
    t.is(lines.length, 100);
    t.is(new Set(lines.map((one) => one.execution_id)).size, 50);
  });
}
