import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { START_S, executionId, finished, started } from '../fixtures/ledger/envelope.js';
import { generator, hostileFiles } from '../fixtures/ledger/hostile.js';
import { parseEnvelope } from '../../sidecar/domain/envelope.js';
import { Workbench, dump, integrity } from '../fixtures/ledger/workbench.js';
import { RunningReceiver, readToEnd, until } from '../fixtures/receiver/receiver.js';

const GOOD = JSON.stringify(started(99));

async function receiver(t: ExecutionContext): Promise<RunningReceiver> {
  const bench = new Workbench();
  bench.feed(started(1), finished(2), started(3), finished(3, { exit_code: 3 }));
  const running = await RunningReceiver.start(bench, { words: ['--listen', '127.0.0.1:0'] });
  t.teardown(async () => {
    await running.end('SIGKILL');
    bench.remove();
  });
  return running;
}

/** The ledger without its counters, which may tell of refusals. */
function rows(r: RunningReceiver): unknown {
  return { ...dump(r.bench.paths.ledger), counters: [] };
}

/** Alive, silent, and with the rows of before. */
async function unharmed(t: ExecutionContext, r: RunningReceiver, before: unknown): Promise<void> {
  t.is((await r.request('/readyz')).status, 200);
  t.deepEqual(rows(r), before);
  t.is(r.stderr, '');
  t.is(r.child.exitCode, null);
}

function head(lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function post(body: string | Buffer, headers: readonly string[] = [], path = '/v1/callbacks', method = 'POST'): Buffer {
  const bytes = Buffer.from(body);
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', `Content-Length: ${bytes.length}`, ...headers];
  return Buffer.concat([Buffer.from(head(lines)), bytes]);
}

const CHUNKED = ['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Transfer-Encoding: chunked'];

/** Raw bytes, and the status of the answer; 0: it may hang up without one. */
const RAW: readonly (readonly [title: string, bytes: string | Buffer, status: number])[] = [
  ['nothing but a newline, then garbage', '\r\n\u0001\u0002\r\n\r\n', 400],
  ['not HTTP', 'hello\r\n\r\n', 400],
  ['binary', Buffer.from(Array.from({ length: 512 }, (_, at) => (at * 7) % 256)), 400],
  ['a TLS greeting', Buffer.from('16030100f8010000f40303', 'hex'), 400],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['HTTP/3.0 in the line', 'GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n', 400],
  ['no version', 'GET /healthz\r\n\r\n', 400],
  ['a method in lower case', 'get /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['an unknown method', 'FROB /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['two spaces before the path', 'GET  /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 200],
  ['a NUL in the path', 'GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['bytes above ASCII in the path', Buffer.from('GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 'latin1'), 400],
  ['a star', 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
  ['a fragment', 'GET /healthz#x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
  ['a path of 4,000 bytes', `GET /${'a'.repeat(4000)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 400],
  ['a path of 100,000 bytes', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
  ['CONNECT', 'CONNECT 10.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
  ['no Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n', 400],
  ['a header without a colon', 'GET /healthz HTTP/1.1\r\nHost x\r\n\r\n', 400],
  ['a space before the colon', 'GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n', 400],
  ['a folded header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n', 400],
  ['a NUL in a header', 'GET /healthz HTTP/1.1\r\nHost: x\0y\r\n\r\n', 400],
  ['a bare carriage return in a header', 'GET /healthz HTTP/1.1\r\nHost: x\ry\r\n\r\n', 400],
  ['a flood of headers', `GET /healthz HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(20_000)}\r\n`, 431],
  ['one header of 64 KiB', `GET /healthz HTTP/1.1\r\nHost: x\r\nA: ${'b'.repeat(65_536)}\r\n\r\n`, 431],
  ['two lengths that differ', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Content-Length: 5', 'Content-Length: 6']), 400],
  ['two lengths that agree', `${head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', `Content-Length: ${GOOD.length}`, `Content-Length: ${GOOD.length}`])}${GOOD}`, 400],
  ['a list of lengths', `${head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', `Content-Length: ${GOOD.length}, ${GOOD.length}`])}${GOOD}`, 400],
  ['a negative length', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Length: -1']), 400],
  ['a length in hex', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Length: 0x10']), 400],
  ['a length with a plus', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Length: +5']), 400],
  ['a length that overflows', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Length: 99999999999999999999999']), 400],
  ['a length of 10 GB', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Content-Length: 10000000000']), 413],
  ['length and chunks', `${head([...CHUNKED, 'Content-Length: 5'])}0\r\n\r\n`, 400],
  ['chunks that are not the last coding', `${head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Transfer-Encoding: chunked, identity'])}0\r\n\r\n`, 400],
  ['an unknown coding', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Transfer-Encoding: xchunked']), 400],
  ['chunks with a wrong size', `${head(CHUNKED)}zz\r\n${GOOD}\r\n0\r\n\r\n`, 400],
  ['a chunk that is longer than it says', `${head(CHUNKED)}5\r\n${GOOD}\r\n0\r\n\r\n`, 400],
  ['a chunk of a huge size', `${head(CHUNKED)}ffffffffffffffff1\r\n`, 400],
  ['a chunk extension of 100 KiB', `${head(CHUNKED)}5;a=${'b'.repeat(102_400)}\r\n`, 413],
  ['trailers of 100 KiB', `${head(CHUNKED)}0\r\n${'A: b\r\n'.repeat(20_000)}\r\n`, 431],
  ['17 KiB in chunks', `${head(CHUNKED)}${`400\r\n${'a'.repeat(1024)}\r\n`.repeat(17)}`, 413],
  ['one chunk of 16 MiB that begins', `${head(CHUNKED)}1000000\r\n${'a'.repeat(200_000)}`, 413],
  ['an unknown expectation', 'POST /v1/callbacks HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\nContent-Length: 5\r\nConnection: close\r\n\r\n', 417],
  ['Expect with a body that is too long: refused before it is sent', head(['POST /v1/callbacks HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Content-Length: 20000', 'Expect: 100-continue']), 413],
  ['an upgrade to a web socket', 'GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Key: x\r\n\r\n', 200],
  ['HTTP/1.0', 'GET /healthz HTTP/1.0\r\n\r\n', 200],
  ['an absolute form', 'GET http://evil.example/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 200],
];

for (const [title, bytes, status] of RAW) {
  for (const way of ['socket', 'tcp'] as const) {
    test(`raw over ${way}: ${title}: ${status} (bad input)`, async (t) => {
      const r = await receiver(t);
      const before = rows(r);
      const socket = await r.connect(way === 'tcp' ? r.port : undefined);
      const answer = readToEnd(socket);
      socket.write(bytes);
      const text = await answer;
      // Over TCP it has no token: whatever is understood as a request for more than health is refused for that.
      const isGuarded = way === 'tcp' && text.startsWith('HTTP/1.1 401 ') && [400, 413, 415, 431].includes(status);
      if (!isGuarded) t.regex(text, new RegExp(`^HTTP/1\\.1 ${status} `));
      t.is(text.match(/^HTTP\/1\.1 /gm)?.length, 1);
      t.false(/\bat .*:\d+|node:|Error:/.test(text));
      if (status !== 200) t.is(typeof (JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { error: string }).error, 'string');
      await unharmed(t, r, before);
    });
  }
}

/** Requests that are HTTP and no callbacks: bytes, status, field. */
const WRONG: readonly (readonly [title: string, bytes: Buffer, status: number, field: string])[] = [
  ['no body', post(''), 400, 'body'],
  ['not JSON', post('hello'), 400, 'body'],
  ['half', post(GOOD.slice(0, 100)), 400, 'body'],
  ['two documents', post(`${GOOD}\n${GOOD}`), 400, 'body'],
  ['a comment', post(`/* */${GOOD}`), 400, 'body'],
  ['a BOM', post(`\ufeff${GOOD}`), 400, 'body'],
  ['a NUL at the end', post(`${GOOD}\0`), 400, 'body'],
  ['a NUL in a text', post(GOOD.replace('x_5', 'x\0')), 400, 'body'],
  ['an escaped NUL in a path', post(GOOD.replace('x_5', '\\u0000')), 400, 'log_path'],
  ['UTF-16', post(Buffer.from(GOOD, 'utf16le')), 400, 'body'],
  ['invalid UTF-8', post(Buffer.concat([Buffer.from(GOOD.slice(0, -1)), Buffer.from([0xff, 0x7d])])), 400, 'body'],
  ['an overlong slash', post(Buffer.from(GOOD.replace('x_5', 'x\xc0\xaf'), 'latin1')), 400, 'body'],
  ['half a surrogate', post(JSON.stringify(started(99, { host: 'a' })).replace('"a"', '"\\ud800"')), 400, 'host'],
  ['16 KiB of brackets', post('['.repeat(16_000)), 400, 'body'],
  ['8,000 levels', post(`${'['.repeat(8000)}${']'.repeat(8000)}`), 400, 'envelope'],
  ['2,000 levels of objects', post(`${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`), 400, 'a'],
  ['null', post('null'), 400, 'envelope'],
  ['a number', post('1e400'), 400, 'envelope'],
  ['__proto__', post(GOOD.replace('{', '{"__proto__":{"v":1},')), 400, '__proto__'],
  ['a command', post(GOOD.replace('{', '{"command":"reboot",')), 400, 'command'],
  ['17 KiB', post(JSON.stringify('a'.repeat(17_000))), 413, 'body'],
  ['no content type', Buffer.from(post(GOOD).toString().replace('Content-Type: application/json\r\n', '')), 415, 'content-type'],
  ['a form', Buffer.from(post(GOOD).toString().replace('application/json', 'application/x-www-form-urlencoded')), 415, 'content-type'],
  ['plain text, as a page elsewhere could send it', Buffer.from(post(GOOD).toString().replace('application/json', 'text/plain')), 415, 'content-type'],
  ['another charset', Buffer.from(post(GOOD).toString().replace('application/json', 'application/json; charset=gbk')), 415, 'content-type'],
  ['JSON in the name only', Buffer.from(post(GOOD).toString().replace('application/json', 'application/jsonx')), 415, 'content-type'],
  ['two content types', post(GOOD, ['Content-Type: text/plain']), 400, 'content-type'],
  ['compressed', post(GOOD, ['Content-Encoding: gzip']), 415, 'content-encoding'],
  ['GET with a body', post(GOOD, [], '/v1/callbacks', 'GET'), 405, 'method'],
  ['DELETE', post('', [], '/v1/runs', 'DELETE'), 405, 'method'],
  ['POST to the status', post('{}', [], '/open/crons/status'), 405, 'method'],
  ['PUT to the callbacks', post('{}', [], '/v1/callbacks', 'PUT'), 405, 'method'],
  ['POST to a Run', post('{}', [], `/v1/runs/${executionId(1)}`), 405, 'method'],
  ['TRACE', post('', [], '/', 'TRACE'), 405, 'method'],
  ['OPTIONS', post('', [], '/v1/callbacks', 'OPTIONS'), 405, 'method'],
  ['another path', post(GOOD, [], '/v1/callbacks/'), 404, 'path'],
  ['an encoded path', post(GOOD, [], '/v1/%63allbacks'), 404, 'path'],
  ['a path with dots', post(GOOD, [], '/healthz/../v1/callbacks'), 404, 'path'],
  ['two slashes', post(GOOD, [], '//v1/callbacks'), 404, 'path'],
  ['the panel', post('{}', [], '/open/crons/run', 'PUT'), 404, 'path'],
];

test(`${WRONG.length} requests that are HTTP and no callbacks: each its status and field, and nothing changes (bad input)`, async (t) => {
  const r = await receiver(t);
  const before = rows(r);
  for (const [title, bytes, status, field] of WRONG) {
    const text = await r.raw(Buffer.from(bytes.toString('latin1').replace('\r\n', '\r\nConnection: close\r\n'), 'latin1'));
    t.regex(text, new RegExp(`^HTTP/1\\.1 ${status} `), title);
    const json = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { error: string; field: string };
    t.is(json.field, field, title);
    t.regex(json.error, /^[\x20-\x7e]{5,200}$/, title);
    if (status === 405) t.regex(text, /^Allow: (GET, HEAD|POST|PUT)\r$/m, title);
  }
  await unharmed(t, r, before);
  t.deepEqual(integrity(r.bench.paths.ledger), ['ok']);
});

test('400 hostile envelopes as bodies: 400 each, and nothing changes (bad input)', async (t) => {
  const r = await receiver(t);
  const before = rows(r);
  const files = hostileFiles(400, (bytes) => parseEnvelope(bytes.toString('utf8').trim()).ok);
  t.true(files.length >= 300);
  for (const { title, bytes } of files) {
    // A list of envelopes, and space around one that makes a line too long, are wrong in the spool alone.
    if (title === 'an array of envelopes' || title === '5,000 bytes') continue;
    const { status, text } = await r.request('/v1/callbacks', { method: 'POST', headers: { 'content-type': 'application/json' }, body: bytes });
    t.true(status === 400 || status === 413, `${title}: ${status} ${text}`);
  }
  await unharmed(t, r, before);
});

test('3,000 requests with a byte changed, left out or doubled: it lives, and what was not 200 changed nothing (bad input)', async (t) => {
  t.timeout(120_000);
  const r = await receiver(t);
  const random = generator(11);
  const source = post(JSON.stringify(started(1)));
  for (let at = 0; at < 3000; at += 1) {
    const bytes = Buffer.from(source);
    const place = random(bytes.length);
    const kind = random(3);
    const spoiled =
      kind === 0
        ? (bytes.writeUInt8(random(256), place), bytes)
        : kind === 1
          ? Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1)])
          : Buffer.concat([bytes.subarray(0, place), bytes.subarray(place, place + 1), bytes.subarray(place)]);
    const socket = await r.connect();
    socket.on('error', () => undefined);
    socket.end(spoiled);
    const text = await readToEnd(socket);
    t.regex(text, /^(HTTP\/1\.1 \d{3} |$)/);
  }
  t.is((await r.request('/readyz')).status, 200);
  t.is(r.stderr, '');
  t.deepEqual(integrity(r.bench.paths.ledger), ['ok']);
  // A changed digit can make another right envelope of the same form: those may be there, the first four must be as they were.
  t.true(r.bench.runs().length >= 3);
  for (const run of r.bench.runs()) t.true(run.accepted_at_ms >= 0 && run.accepted_at_ms < (START_S + 10_000_000_000) * 1000);
});

test('what follows a request is the next one, and spoils only itself (bad input)', async (t) => {
  const r = await receiver(t);
  const text = await r.raw(Buffer.concat([post(JSON.stringify(started(50))), post(JSON.stringify(started(51))), Buffer.from('garbage\r\n\r\n')]));
  t.deepEqual(text.match(/^HTTP\/1\.1 \d+/gm), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
  t.is(r.bench.runs().length, 5);
});

test('a body that is cut off is no request: nothing is applied (bad input)', async (t) => {
  const r = await receiver(t);
  const before = rows(r);
  for (const end of [20, 150, 300]) {
    const socket = await r.connect();
    socket.on('error', () => undefined);
    socket.write(post(GOOD).subarray(0, end));
    socket.destroy();
    const half = await r.connect();
    half.on('error', () => undefined);
    half.end(post(GOOD).subarray(0, end));
    await readToEnd(half);
  }
  await unharmed(t, r, before);
  t.is((await r.post(started(99))).status, 200);
});

test('16 KiB are taken, one byte more is not, with a length or in chunks; what is too long is not read to its end (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  const padded = (length: number): string => GOOD + ' '.repeat(length - GOOD.length);
  const options = (headers: Record<string, string>, body: string): Parameters<RunningReceiver['request']>[1] => ({ method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
    t.is((await r.request('/v1/callbacks', options(headers, padded(16_384)))).status, 200);
    t.is((await r.request('/v1/callbacks', options(headers, padded(16_385)))).status, 413);
  }
  for (const port of [undefined]) {
    const socket = await r.connect(port);
    socket.on('error', () => undefined);
    const answer = readToEnd(socket);
    socket.write(head(CHUNKED));
    let sent = 0;
    while (!socket.destroyed && socket.writable && sent < 64 * 1024 * 1024) {
      const chunk = `10000\r\n${'a'.repeat(65_536)}\r\n`;
      sent += chunk.length;
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
    }
    t.regex(await answer, /^HTTP\/1\.1 413 /);
    t.true(sent < 8 * 1024 * 1024, `${sent} bytes were taken`);
  }
});

test('64 connections at once; the next is told so and comes in when one has left (DESIGN 11)', async (t) => {
  const r = await receiver(t);
  const sockets = await Promise.all(Array.from({ length: 64 }, async () => r.connect()));
  sockets.forEach((socket) => socket.on('error', () => undefined));
  const answer = await r.post(started(60));
  t.is(answer.status, 503);
  t.is(answer.headers['retry-after'], '1');
  t.is(answer.headers.connection, 'close');
  t.deepEqual(answer.json, { error: 'has 64 connections', field: 'server' });
  t.is(r.bench.runs().length, 3);
  // A flood of 500 more is bounded: each is told so or hung up on.
  const flood = await Promise.all(
    Array.from({ length: 500 }, async () => {
      const socket = await r.connect();
      return readToEnd(socket);
    }),
  );
  for (const text of flood) t.regex(text, /^(HTTP\/1\.1 503 |$)/);
  // Those that were there first are served.
  const first = sockets[0] as (typeof sockets)[number];
  const served = readToEnd(first);
  first.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  t.regex(await served, /^HTTP\/1\.1 200 /);
  await until(async () => (await r.post(started(60))).status === 200);
  for (const socket of sockets) socket.destroy();
});

test('a client that sends a byte now and then is answered 408 after 10 s, one that says nothing is let go (bad input)', async (t) => {
  const r = await receiver(t);
  const slow = await r.connect();
  const silent = await r.connect();
  const body = await r.connect();
  const [slowAnswer, silentAnswer, bodyAnswer] = [slow, silent, body].map(readToEnd);
  for (const socket of [slow, body]) socket.on('error', () => undefined);
  body.write(post(GOOD).subarray(0, 200));
  slow.write('GET /healthz HTTP/1.1\r\n');
  const drip = setInterval(() => {
    if (slow.writable) slow.write('A: b\r\n');
    if (body.writable) body.write(' ');
  }, 500);
  const texts = await Promise.all([slowAnswer, silentAnswer, bodyAnswer]);
  clearInterval(drip);
  t.regex(texts[0] ?? '', /^HTTP\/1\.1 408 Request Timeout\r\n/);
  t.is(texts[1], '');
  t.regex(texts[2] ?? '', /^HTTP\/1\.1 408 Request Timeout\r\n/);
  t.is(r.bench.runs().length, 3);
  t.is((await r.request('/healthz')).status, 200);
});

test('a client that keeps its connection and begins the next request slowly is answered 408 as well (bad input)', async (t) => {
  const r = await receiver(t);
  const socket = await r.connect();
  socket.on('error', () => undefined);
  const answer = readToEnd(socket);
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  socket.write('GET /healthz HTTP/1.1\r\n');
  const drip = setInterval(() => {
    if (socket.writable) socket.write('A: b\r\n');
  }, 500);
  t.teardown(() => clearInterval(drip));
  t.deepEqual((await answer).match(/^HTTP\/1\.1 \d+/gm), ['HTTP/1.1 200', 'HTTP/1.1 408']);
});

test('Expect: 100-continue is answered, and then the request (RFC 9110 §10.1.1)', async (t) => {
  const r = await receiver(t);
  const socket = await r.connect();
  const answer = readToEnd(socket);
  const bytes = post(JSON.stringify(started(70)), ['Expect: 100-continue', 'Connection: close']);
  const at = bytes.indexOf('\r\n\r\n') + 4;
  socket.write(bytes.subarray(0, at));
  await once(socket, 'data');
  socket.write(bytes.subarray(at));
  t.deepEqual((await answer).match(/^HTTP\/1\.1 \d+/gm), ['HTTP/1.1 100', 'HTTP/1.1 200']);
  t.is(r.bench.runs().length, 4);
});
