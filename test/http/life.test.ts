import test, { type ExecutionContext } from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runLater, runOn } from '../fixtures/ledger/command.js';
import { executionId, finished, started } from '../fixtures/ledger/envelope.js';
import { Workbench } from '../fixtures/ledger/workbench.js';
import { RunningReceiver, isThere, readToEnd, until } from '../fixtures/receiver/receiver.js';

const hasStrace = spawnSync('strace', ['-f', 'true']).status === 0;

function bench(t: ExecutionContext): Workbench {
  const made = new Workbench();
  t.teardown(() => made.remove());
  return made;
}

async function receiver(t: ExecutionContext, b: Workbench, options: Parameters<typeof RunningReceiver.start>[1] = {}): Promise<RunningReceiver> {
  const running = await RunningReceiver.start(b, options);
  t.teardown(() => running.child.kill('SIGKILL'));
  return running;
}

test('it says one line when it listens, and at SIGTERM and SIGINT ends with 0, silent, leaving neither socket nor announcement (DESIGN 11)', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const b = bench(t);
    const r = await receiver(t, b);
    t.is(r.stdout, `listening on ${b.paths.socket}\n`);
    t.is((await r.request('/healthz')).status, 200);
    t.deepEqual(await r.end(signal), { code: 0, signal: null });
    t.is(r.stdout.split('\n').length, 2);
    t.is(r.stderr, '');
    t.false(isThere(b.paths.socket));
    t.false(isThere(b.paths.receiver));
  }
});

test('--json: the line is one document', async (t) => {
  const r = await receiver(t, bench(t), { words: ['--json', '--listen', '127.0.0.1:0'] });
  const { listening } = JSON.parse(r.stdout) as { listening: string[] };
  t.is(listening[0], r.socketPath);
  t.regex(listening[1] ?? '', /^http:\/\/127\.0\.0\.1:\d+$/);
});

test('socket, announcement and token are for this user alone (DESIGN 11)', async (t) => {
  const b = bench(t);
  await receiver(t, b, { words: ['--listen=127.0.0.1:0'] });
  t.true(lstatSync(b.paths.socket).isSocket());
  for (const file of [b.paths.socket, b.paths.receiver, b.paths.token]) t.is(lstatSync(file).mode & 0o777, 0o600, file);
});

test('the socket is 0600 from its first instant, whatever the umask (DESIGN 11)', async (t) => {
  if (!hasStrace) {
    t.pass('strace is not found');
    return;
  }
  const b = bench(t);
  b.close();
  const log = path.join(b.data, 'strace.txt');
  const words = ['-f', '-o', log, '-e', 'trace=bind,umask,chmod,fchmod,fchmodat', 'sh', '-c', 'umask 000; exec "$0" serve --data-dir "$1"', path.resolve('dist/ql-sidecar/bin/ql-sidecar'), b.data];
  const child = spawn('strace', words, { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const lines = readFileSync(log, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes('bind(') && line.includes('AF_UNIX'));
  t.true(at > 0);
  t.regex(lines[at - 1] ?? '', /umask\(0177\)/);
  t.is(lstatSync(b.paths.socket).mode & 0o777, 0o600);
  process.kill(Number(/^\d+/.exec(lines[at] ?? '')?.[0]), 'SIGTERM');
  await once(child, 'close');
});

test('a second serve is refused with 75 and one line, and the first goes on (DESIGN 10)', async (t) => {
  const b = bench(t);
  const r = await receiver(t, b);
  const second = await runLater(['serve', '--data-dir', b.data]);
  t.deepEqual(second, { code: 75, signal: null, stdout: '', stderr: `ql-sidecar: another serve is running: ${b.paths.lock}; stop that one first\n` });
  t.is((await r.request('/readyz')).status, 200);
  t.true(isThere(b.paths.receiver));
});

test('of eight that start at once exactly one serves (DESIGN 11)', async (t) => {
  const b = bench(t);
  const all = await Promise.all(Array.from({ length: 8 }, async () => receiver(t, b)));
  const listening = all.filter(({ stdout }) => stdout !== '');
  t.is(listening.length, 1);
  for (const one of all) {
    if (one === listening[0]) continue;
    t.is((await one.ended()).code, 75);
    t.regex(one.stderr, /^ql-sidecar: another serve is running: [^\n]+\n$/);
  }
  t.is((await (listening[0] as RunningReceiver).request('/healthz')).status, 200);
});

test('the socket and the announcement of a killed serve are taken over (DESIGN 11)', async (t) => {
  const b = bench(t);
  const first = await receiver(t, b);
  await first.end('SIGKILL');
  t.true(isThere(b.paths.socket));
  const stale = readFileSync(b.paths.receiver, 'utf8');
  const second = await receiver(t, b);
  t.is((await second.request('/readyz')).status, 200);
  t.not(readFileSync(b.paths.receiver, 'utf8'), stale);
  t.deepEqual(readdirSync(b.paths.sidecar).filter((name) => name.includes('.new') || name.includes('journal')), []);
});

test('what stands where the socket belongs and is none is not removed (DESIGN 10)', async (t) => {
  const b = bench(t);
  writeFileSync(b.paths.socket, 'mine');
  const r = await receiver(t, b);
  t.is((await r.ended()).code, 74);
  t.is(r.stderr, `ql-sidecar: not a socket: ${b.paths.socket}; move it away\n`);
  t.is(readFileSync(b.paths.socket, 'utf8'), 'mine');
  t.false(isThere(b.paths.receiver));
});

test('a data directory that is too deep for a socket is a configuration error, told in one line', (t) => {
  const parent = mkdtempSync(path.join(tmpdir(), 'ql-deep-'));
  t.teardown(() => rmSync(parent, { recursive: true }));
  const data = path.join(parent, 'd'.repeat(100));
  mkdirSync(path.join(data, 'config'), { recursive: true });
  t.is(runOn({ data }, ['migrate']).code, 0);
  const outcome = runOn({ data }, ['serve']);
  t.is(outcome.code, 78);
  t.regex(outcome.stderr, /^ql-sidecar: socket path is longer than 107 bytes: [^\n]+; set QL_SIDECAR_DIR to a shorter one\n$/);
});

for (const [title, prepare, code] of [
  ['no ledger', (b: Workbench) => rmSync(b.paths.ledger), 74],
  ['a file that is no ledger', (b: Workbench) => writeFileSync(b.paths.ledger, 'x'.repeat(4096)), 74],
  ['a missing index', (b: Workbench) => void b.connection.exec('DROP INDEX runs_active'), 74],
  ['a ledger of a newer version', (b: Workbench) => void b.connection.exec("INSERT INTO schema_migrations VALUES ('9999-later.sql', 'x', 1)"), 74],
] as const) {
  test(`not ready at the start: ${title}: ${code} and one line, nothing listens (DESIGN 5)`, async (t) => {
    const b = bench(t);
    prepare(b);
    const r = await receiver(t, b);
    t.is((await r.ended()).code, code);
    t.regex(r.stderr, /^ql-sidecar: [^\n]+\n$/);
    t.true(r.stderr.includes(b.paths.ledger));
    t.is(r.stdout, '');
    t.false(isThere(b.paths.socket));
    t.false(isThere(b.paths.receiver));
  });
}

for (const address of ['0.0.0.0:5730', '[::]:5730', '192.168.0.1:5730', 'example.com:80', '5730', '127.0.0.1:99999', '']) {
  test(`--listen ${address || '(empty)'}: refused with 78 and one line (DESIGN 11)`, (t) => {
    const b = bench(t);
    const outcome = runOn(b, ['serve', '--listen', address]);
    t.is(outcome.code, 78);
    t.regex(outcome.stderr, /^ql-sidecar: listen [^\n]+\n$/);
    t.false(isThere(b.paths.socket));
  });
}

test('QL_SIDECAR_LISTEN in the configuration is heeded, the environment and then the flag win (DESIGN 13)', async (t) => {
  const b = bench(t);
  mkdirSync(path.join(b.data, 'config'));
  writeFileSync(path.join(b.data, 'config/ql-sidecar.env'), 'QL_SIDECAR_LISTEN=127.0.0.1:0\n');
  const r = await receiver(t, b);
  t.true(r.port > 0);
  await r.end();
  t.is(runOn(b, ['serve'], { environment: { QL_SIDECAR_LISTEN: '0.0.0.0:1' } }).code, 78);
  const flagged = await receiver(t, b, { words: ['--listen', '127.0.0.1:0'], environment: { QL_SIDECAR_LISTEN: '0.0.0.0:1' } });
  t.true(flagged.port > 0);
});

test('a port that another program has: one line, and nothing is left behind', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  const b = bench(t);
  const r = await receiver(t, b, { words: ['--listen', `127.0.0.1:${port}`] });
  t.is((await r.ended()).code, 74);
  t.regex(r.stderr, /^ql-sidecar: address is in use: [^\n]+\n$/);
  t.false(isThere(b.paths.socket));
  t.false(isThere(b.paths.receiver));
});

test('--listen is an option of serve alone, and --help names it', (t) => {
  const b = bench(t);
  t.is(runOn(b, ['tick', '--listen', '127.0.0.1:0']).code, 2);
  t.is(runOn(b, ['serve', '--listen']).code, 2);
  t.true(runOn(b, ['serve', '--help']).stdout.includes('--listen'));
});

test('over TCP everything but /healthz wants the token, which has 256 bits and stays the same (DESIGN 11)', async (t) => {
  const b = bench(t);
  const r = await receiver(t, b, { words: ['--listen', '127.0.0.1:0'] });
  const { port, token } = r;
  t.regex(token, /^[0-9a-f]{64}$/);
  const bearer = (value: string): { port: number; headers: Record<string, string> } => ({ port, headers: { authorization: value } });
  for (const place of ['/', '/readyz', '/metrics', '/v1/runs', `/v1/runs/${executionId(1)}`, '/nothing']) {
    const refused = await r.request(place, { port });
    t.is(refused.status, 401, place);
    t.is(refused.headers['www-authenticate'], 'Bearer');
  }
  for (const wrong of [token, `Basic ${token}`, 'Bearer', 'Bearer ', `Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, `Bearer ${token} ${token}`, `Bearer ${'0'.repeat(64)}`, `Bearer ${token.toUpperCase()}`]) {
    t.is((await r.request('/readyz', bearer(wrong))).status, 401, wrong);
  }
  t.is((await r.post(started(1), { port })).status, 401);
  t.like((await r.put({}, { port })).json, { code: 401, field: 'authorization' });
  t.is((await r.request('/healthz', { port })).status, 200);
  for (const right of [`Bearer ${token}`, `bearer ${token}`]) t.is((await r.request('/readyz', bearer(right))).status, 200);
  t.is((await r.post(started(1), bearer(`Bearer ${token}`))).status, 200);
  t.is((await r.request('/readyz')).status, 200);
  await r.end();
  t.is(r.stderr, '');
  t.false(r.stdout.includes(token));
  const again = await receiver(t, b, { words: ['--listen', '127.0.0.1:0'] });
  t.is(again.token, token);
  await again.end();
});

for (const [title, spoil, what] of [
  ['can be read by others', (file: string) => chmodSync(file, 0o640), 'token can be read by others'],
  ['is too short', (file: string) => writeFileSync(file, 'secret\n'), 'not a token of at least 43 plain characters'],
  ['is empty', (file: string) => writeFileSync(file, ''), 'not a token of at least 43 plain characters'],
  ['is a link', (file: string) => (renameSync(file, `${file}.x`), symlinkSync(`${file}.x`, file)), 'token is not a file'],
] as const) {
  test(`a token file that ${title}: 78 and one line (DESIGN 11)`, async (t) => {
    const b = bench(t);
    writeFileSync(b.paths.token, `${'a'.repeat(64)}\n`, { mode: 0o600 });
    spoil(b.paths.token);
    const r = await receiver(t, b, { words: ['--listen', '127.0.0.1:0'] });
    t.is((await r.ended()).code, 78);
    t.regex(r.stderr, new RegExp(`^ql-sidecar: ${what}: [^\\n]+\\n$`));
    t.false(isThere(b.paths.socket));
  });
}

test('the end waits for an answer that is due, not for clients that hang: 0 within 5 s (DESIGN 11)', async (t) => {
  const b = bench(t);
  const r = await receiver(t, b);
  const silent = await r.connect();
  const half = await r.connect();
  half.write('POST /v1/callbacks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{');
  const body = JSON.stringify(started(1));
  const late = await r.connect();
  late.write(`POST /v1/callbacks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`);
  const answers = [silent, half, late].map(readToEnd);
  await until(async () => (await r.request('/healthz')).status === 200);
  const from = performance.now();
  const ended = r.end();
  await until(() => !isThere(b.paths.socket));
  late.write(body.slice(10));
  t.deepEqual(await ended, { code: 0, signal: null });
  t.true(performance.now() - from < 5000);
  const [none, refused, answered] = await Promise.all(answers);
  t.is(none, '');
  t.is(refused, '');
  t.regex(answered ?? '', /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*started/);
  t.is(b.runs().length, 1);
  for (const socket of [silent, half, late]) socket.destroy();
});

test('what is spooled before the start is taken in before it listens, and what is left at the end is taken in then (DESIGN 11)', async (t) => {
  const b = bench(t);
  for (let at = 0; at < 600; at += 1) b.put(started(at));
  const r = await receiver(t, b);
  t.deepEqual(b.spooled(), []);
  t.is(b.runs().length, 600);
  b.put(finished(1));
  await r.end();
  t.deepEqual(b.spooled(), []);
  t.is(b.runs().filter(({ status }) => status === 'succeeded').length, 1);
});

test('serve loads no parser of arguments, no panel client, no calendar, and no Intl (DESIGN 12)', (t) => {
  const serve = readFileSync('dist/ql-sidecar/lib/serve.cjs', 'utf8');
  const main = readFileSync('dist/ql-sidecar/lib/ql-sidecar.cjs', 'utf8');
  for (const [name, text] of [['serve.cjs', serve], ['ql-sidecar.cjs', main]] as const) {
    for (const word of ['yargs', 'undici', 'croner', 'Intl.', 'toLocale']) t.false(text.includes(word), `${name}: ${word}`);
  }
});

function memoryKiB(pid: number, field: 'VmHWM' | 'VmRSS'): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

test('idle it takes at most 16 MiB more than a bare node (DESIGN 12)', async (t) => {
  const bare = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e9); console.log(1)'], { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => bare.kill('SIGKILL'));
  await once(bare.stdout, 'data');
  const r = await receiver(t, bench(t));
  t.is((await r.request('/healthz')).status, 200);
  const more = (memoryKiB(r.pid, 'VmHWM') - memoryKiB(bare.pid as number, 'VmRSS')) / 1024;
  t.log(`${more.toFixed(1)} MiB more than a bare node`);
  t.true(more <= 16, `${more} MiB`);
});

test('idle it makes no system call in 60 s, though it has served before (DESIGN 11)', async (t) => {
  if (!hasStrace) {
    t.pass('strace is not found');
    return;
  }
  t.timeout(120_000);
  const b = bench(t);
  const r = await receiver(t, b, { words: ['--listen', '127.0.0.1:0'] });
  t.is((await r.post(started(1))).status, 200);
  t.is((await r.request('/readyz', { port: r.port })).status, 401);
  await r.ring();
  const kept = await r.connect();
  kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  // A client that keeps its connection is let go after 5 s, and an exchange has 10 s: Node wakes once more then, though its
  // timer was cleared. From there on nothing is left that has a time.
  t.regex(await readToEnd(kept), /^HTTP\/1\.1 200 OK/);
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const log = path.join(b.data, 'idle.txt');
  const strace = spawn('strace', ['-f', '-o', log, '-p', String(r.pid)], { stdio: 'ignore' });
  await until(() => isThere(log) && /TracerPid:\s+[1-9]/.test(readFileSync(`/proc/${r.pid}/status`, 'utf8')));
  await new Promise((resolve) => setTimeout(resolve, 60_000));
  const lines = readFileSync(log, 'utf8').split('\n');
  // What it waits in was begun before; the trace shows it as resumed or unfinished, and nothing else.
  const calls = lines.filter((line) => line !== '' && !/(epoll_p?wait|futex|restart_syscall|read)\(.*(<unfinished \.\.\.>|$)/.test(line));
  t.deepEqual(calls, []);
  t.true(lines.length <= 16, lines.join('\n'));
  strace.kill('SIGTERM');
  await once(strace, 'close');
  t.is((await r.request('/healthz')).status, 200);
  t.true(statSync(log).size < 4096);
});
