// A client in a process of its own: keeps CONNECTIONS busy for MS on a socket file, each with one request after the other,
// and prints how many were answered a second. Every request is another execution, begun a second after the one before: keys
// that are not in the order of time would measure pages that no day of a panel writes. FIRST is the second of the first.
// Usage: receiver-client.mjs SOCKET CONNECTIONS MS FIRST
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';

const socketPath = process.argv[2];
const [connections, ms, first] = process.argv.slice(3).map(Number);
const tail = JSON.stringify({
  seq: 1,
  event: 'started',
  origin: 'scheduled_system',
  cron_id: 5,
  task_revision: `sha256:${'a'.repeat(64)}`,
  pid: 4242,
  pid_start_ticks: 8123456,
  boot_id: '11111111-2222-4333-8444-555555555555',
  host: 'router',
  init_start_ticks: 12,
  log_path: 'job_5/2026-12-01-03-00-00-000.log',
}).slice(1, -1);
let second = first;

function request() {
  second += 1;
  const body = `{"v":1,"execution_id":"legacy-system:${second}:${randomUUID()}",${tail},"started_at":${second},"occurred_at_ms":${second}080}`;
  return `POST /v1/callbacks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

let answered = 0;
let isOver = false;
const from = performance.now();
for (let at = 0; at < connections; at += 1) {
  const socket = connect(socketPath);
  socket.setEncoding('latin1');
  let held = '';
  socket.on('data', (text) => {
    held += text;
    const head = held.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(held)?.[1] ?? 0);
    if (held.length < head + 4 + length) return;
    if (!/^HTTP\/1\.1 20[04] /.test(held)) throw new Error(held);
    held = '';
    answered += 1;
    if (isOver) socket.destroy();
    else socket.write(request());
  });
  socket.write(request());
}
setTimeout(() => {
  isOver = true;
  console.log(String((answered * 1000) / (performance.now() - from)));
}, ms);
