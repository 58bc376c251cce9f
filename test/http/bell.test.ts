import test, { type ExecutionContext } from 'ava';
import { createSocket } from 'node:dgram';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { finished, started } from '../fixtures/ledger/envelope.js';
import { Workbench } from '../fixtures/ledger/workbench.js';
import { RunningReceiver, isThere, until } from '../fixtures/receiver/receiver.js';

async function receiver(t: ExecutionContext): Promise<RunningReceiver> {
  const bench = new Workbench();
  const running = await RunningReceiver.start(bench);
  t.teardown(async () => {
    await running.end('SIGKILL');
    bench.remove();
  });
  return running;
}

test('a datagram makes it drain the spool at once (DESIGN 4.4)', async (t) => {
  const r = await receiver(t);
  t.regex(readFileSync(r.bench.paths.receiver, 'utf8'), /^\d{1,5}\n$/);
  r.bench.put(started(1));
  await r.ring();
  await until(() => r.bench.runs().length === 1);
  r.bench.put(finished(1));
  await r.ring();
  await until(() => r.bench.runs()[0]?.status === 'succeeded');
  t.deepEqual(r.bench.spooled(), []);
});

test('the bridge itself rings it: exec.sh around a command, and the Run has ended when the command has (DESIGN 4.4)', async (t) => {
  const r = await receiver(t);
  const script = path.resolve('dist/ql-sidecar/shell/exec.sh');
  const { status } = spawnSync('bash', [script, '--origin', 'script', '--name', 'backup', '--', 'true'], {
    env: { PATH: process.env.PATH, QL_DATA_DIR: r.bench.data, QL3_SHADOW_ORIGINS: 'script' },
  });
  t.is(status, 0);
  await until(() => r.bench.runs()[0]?.status === 'succeeded');
  t.like(r.bench.runs()[0], { origin: 'script', task_id: 'name:backup', exit_code: 0 });
});

test('a thousand datagrams are a few drains, and what is in the spool is taken in once', async (t) => {
  const r = await receiver(t);
  for (let at = 0; at < 50; at += 1) r.bench.put(started(at));
  await r.ring(1000);
  await until(() => r.bench.spooled().length === 0);
  await until(async () => (await r.request('/healthz')).status === 200);
  t.is(r.bench.runs().length, 50);
  t.is(r.bench.counter('shadow_run_create_total'), 50);
});

test('whatever a datagram holds, it is only a bell (bad input)', async (t) => {
  const r = await receiver(t);
  const port = Number(readFileSync(r.bench.paths.receiver, 'utf8'));
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  for (const bytes of ['', JSON.stringify(started(1)), '\0'.repeat(60_000), '\u001b[2J', 'x'.repeat(5)]) {
    await new Promise<void>((resolve) => socket.send(bytes, port, '127.0.0.1', () => resolve()));
  }
  r.bench.put(started(2));
  await r.ring();
  await until(() => r.bench.runs().length === 1);
  t.is(r.stderr, '');
});

test('3,000 envelopes and one bell: drained in passes between which requests are answered (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  for (let at = 0; at < 3000; at += 1) r.bench.put(started(at));
  await r.ring();
  let answered = 0;
  await until(async () => {
    const { status } = await r.post(finished(answered));
    t.is(status, 200);
    answered += 1;
    return r.bench.spooled().length === 0;
  });
  t.true(answered > 1, String(answered));
  t.is(r.bench.runs().length, 3000);
});

test('files that are no envelopes are put aside and stop neither the drain nor the receiver', async (t) => {
  const r = await receiver(t);
  for (let at = 0; at < 300; at += 1) r.bench.put('not an envelope\n', `0-${String(at).padStart(4, '0')}`);
  mkdirSync(path.join(r.bench.paths.spool, '0-directory'));
  r.bench.put(started(1));
  await r.ring();
  await until(() => r.bench.runs().length === 1);
  t.is(r.bench.counter('ql_sidecar_quarantined_total'), 301);
  t.is((await r.request('/healthz')).status, 200);
});

test('a spool that cannot be read: one line, requests are served, and the next bell finds it mended', async (t) => {
  const r = await receiver(t);
  const spool = r.bench.paths.spool;
  r.bench.put(started(1));
  const aside = `${spool}.aside`;
  renameSync(spool, aside);
  writeFileSync(spool, 'no directory');
  for (let at = 0; at < 5; at += 1) await r.ring();
  await until(() => r.stderr !== '');
  t.is((await r.post(started(2))).status, 200);
  await r.ring(5);
  t.regex(r.stderr, /^ql-sidecar: [^\n]+\n$/);
  rmSync(spool);
  renameSync(aside, spool);
  chmodSync(spool, 0o700);
  await r.ring();
  await until(() => r.bench.runs().length === 2);
  t.true(isThere(r.socketPath));
  t.regex(r.stderr, /^ql-sidecar: [^\n]+\n$/);
});
