import test, { type ExecutionContext } from 'ava';
import Database from 'better-sqlite3';
import { spawnSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import path from 'node:path';
import { runOn } from '../fixtures/ledger/command.js';
import { executionId, finished, started } from '../fixtures/ledger/envelope.js';
import { Workbench, integrity } from '../fixtures/ledger/workbench.js';
import { RunningReceiver, until } from '../fixtures/receiver/receiver.js';

const hasStrace = spawnSync('strace', ['-f', 'true']).status === 0;

async function receiver(t: ExecutionContext, bench = new Workbench(), environment: Readonly<Record<string, string>> = {}): Promise<RunningReceiver> {
  const running = await RunningReceiver.start(bench, { environment });
  t.teardown(async () => {
    await running.end('SIGKILL');
    bench.remove();
  });
  return running;
}

test('killed under load, five times: whatever was answered is there, and nothing is damaged (DESIGN 11)', async (t) => {
  const bench = new Workbench();
  t.teardown(() => bench.remove());
  let number = 0;
  const answered: string[] = [];
  for (let life = 0; life < 5; life += 1) {
    const r = await RunningReceiver.start(bench);
    t.teardown(() => r.child.kill('SIGKILL'));
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    let isDead = false;
    let count = 0;
    const clients = Array.from({ length: 16 }, async () => {
      while (!isDead) {
        const mine = (number += 1);
        try {
          const { status } = await r.post(started(mine), { agent });
          if (status === 200) answered.push(executionId(mine));
          count += 1;
        } catch {
          return;
        }
      }
    });
    await until(() => count >= 60 + life * 37);
    await r.end('SIGKILL');
    isDead = true;
    await Promise.all(clients);
    agent.destroy();
  }
  t.true(answered.length >= 300);
  const recorded = new Set(bench.runs().map(({ execution_id }) => execution_id));
  t.deepEqual(answered.filter((id) => !recorded.has(id)), []);
  t.deepEqual(integrity(bench.paths.ledger), ['ok']);
});

test('each answer comes behind the fdatasync of the commit that holds it, and those that come together share one (DESIGN 11)', async (t) => {
  if (!hasStrace) {
    t.pass('strace is not found');
    return;
  }
  const bench = new Workbench();
  // One sync a commit, where the rollback journal has several.
  bench.connection.pragma('journal_mode = wal');
  const r = await receiver(t, bench);
  // Everything is prepared once, so that only commits are counted.
  t.is((await r.post(started(0))).status, 200);
  const log = path.join(r.bench.data, 'sync.txt');
  const strace = spawn('strace', ['-f', '-o', log, '-s', '24', '-e', 'trace=fdatasync,fsync,write,writev,sendmsg,sendto', '-p', String(r.pid)], { stdio: 'ignore' });
  await until(() => /TracerPid:\s+[1-9]/.test(readFileSync(`/proc/${r.pid}/status`, 'utf8')));
  const sockets = await Promise.all(Array.from({ length: 48 }, async () => r.connect()));
  const answers = sockets.map(
    async (socket) =>
      new Promise<string>((resolve) => {
        socket.once('data', (data: Buffer) => resolve(data.toString('latin1')));
      }),
  );
  sockets.forEach((socket, at) => {
    const body = JSON.stringify(started(1 + at));
    socket.write(`POST /v1/callbacks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  });
  for (const text of await Promise.all(answers)) t.regex(text, /^HTTP\/1\.1 200 /);
  for (const socket of sockets) socket.destroy();
  strace.kill('SIGTERM');
  await once(strace, 'close');
  const lines = readFileSync(log, 'utf8').split('\n');
  const isSync = (line: string): boolean => /f(data)?sync\(/.test(line);
  const isAnswer = (line: string): boolean => line.includes('HTTP/1.1 200');
  const syncs = lines.filter(isSync).length;
  t.true(syncs >= 1 && syncs <= 24, `${syncs} syncs for 48 answers`);
  t.is(lines.filter(isAnswer).length, 48);
  t.true(lines.findIndex(isSync) < lines.findIndex(isAnswer));
  t.is(r.bench.runs().length, 49);
});

test('a ledger that another process has locked: 503 with Retry-After, nothing is lost, and the next time it is taken (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  const other = new Database(r.bench.paths.ledger);
  t.teardown(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const refused = await Promise.all([r.post(started(1)), r.post([started(2), finished(2)]), r.put({ ids: ['5'], status: '1', pid: '4242', log_path: 'x' })]);
  for (const answer of refused) {
    t.is(answer.status, 503);
    t.is(answer.headers['retry-after'], '1');
    t.like(answer.json, { error: 'ledger is locked', field: 'ledger' });
  }
  t.is((await r.request('/healthz')).status, 200);
  r.bench.put(started(3));
  await r.ring();
  other.exec('ROLLBACK');
  t.is((await r.post(started(1))).status, 200);
  t.is((await r.post([started(2), finished(2)])).status, 200);
  await until(() => r.bench.runs().length === 3);
  t.deepEqual(r.bench.spooled(), []);
  // Each subject once, however often it went wrong.
  t.true(r.stderr.split('\n').length <= 3, r.stderr);
  for (const line of r.stderr.split('\n').slice(0, -1)) t.regex(line, /^ql-sidecar: ledger is locked: /);
});

test('trouble that nobody reads any more ends no service: its stderr and stdout are closed (DESIGN 10)', async (t) => {
  const r = await receiver(t);
  r.child.stdout?.destroy();
  r.child.stderr?.destroy();
  const other = new Database(r.bench.paths.ledger);
  t.teardown(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  for (let at = 0; at < 3; at += 1) t.is((await r.post(started(1))).status, 503);
  other.exec('ROLLBACK');
  t.is((await r.post(started(1))).status, 200);
  t.is((await r.end()).code, 0);
});

test('a ledger that was moved away: no callback goes to the file that is gone (DESIGN 5)', async (t) => {
  const r = await receiver(t);
  t.is((await r.post(started(1))).status, 200);
  r.bench.close();
  for (const suffix of ['', '-wal', '-shm']) {
    try {
      renameSync(`${r.bench.paths.ledger}${suffix}`, path.join(r.bench.data, `old${suffix}`));
    } catch {
      // Not every journal mode has it.
    }
  }
  const refused = await r.post(started(2));
  t.is(refused.status, 503);
  t.is((await r.request('/readyz')).status, 503);
  t.is((await r.request('/healthz')).status, 200);
  t.is(runOn(r.bench, ['migrate']).code, 0);
  t.is((await r.post(started(2))).status, 200);
  t.deepEqual(r.bench.runs().map(({ execution_id }) => execution_id), [executionId(2)]);
});

test('serve and tick side by side: each envelope once, whichever of them takes it', async (t) => {
  const r = await receiver(t);
  for (let round = 0; round < 5; round += 1) {
    for (let at = 0; at < 40; at += 1) r.bench.put(started(round * 100 + at));
    const posted = Promise.all(Array.from({ length: 20 }, async (_, at) => r.post([finished(round * 100 + at), started(round * 100 + 50 + at)])));
    await r.ring();
    t.is(runOn(r.bench, ['tick']).code, 0);
    for (const { status } of await posted) t.is(status, 200);
  }
  await until(() => r.bench.spooled().length === 0);
  t.is(r.bench.runs().length, 300);
  t.is(r.bench.counter('shadow_run_create_total'), 300);
  t.deepEqual(integrity(r.bench.paths.ledger), ['ok']);
  t.is(r.stderr, '');
});

test('a lone client is committed at once: a hundred requests, one after the other, wait for no window (LIMITS, Receiver)', async (t) => {
  if (!hasStrace) {
    t.pass('strace is not found');
    return;
  }
  const r = await receiver(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  t.is((await r.post(started(0), { agent })).status, 200);
  const log = path.join(r.bench.data, 'wait.txt');
  const strace = spawn('strace', ['-o', log, '-e', 'trace=epoll_wait,epoll_pwait', '-p', String(r.pid)], { stdio: 'ignore' });
  await until(() => /TracerPid:\s+[1-9]/.test(readFileSync(`/proc/${r.pid}/status`, 'utf8')));
  for (let at = 1; at <= 100; at += 1) t.is((await r.post(started(at), { agent })).status, 200);
  strace.kill('SIGTERM');
  await once(strace, 'close');
  // A window would show as a wait of at most 1 ms that nothing ended.
  const windows = readFileSync(log, 'utf8').split('\n').filter((line) => /\[\], 1024, 1[,)].*= 0/.test(line));
  t.true(windows.length <= 5, `${windows.length} windows`);
  rmSync(log);
});
