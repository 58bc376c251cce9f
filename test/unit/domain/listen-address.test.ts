import test from 'ava';
import { parseListenAddress } from '../../../sidecar/domain/listen-address.js';

for (const [text, host, port] of [
  ['127.0.0.1:5730', '127.0.0.1', 5730],
  ['127.0.0.1:0', '127.0.0.1', 0],
  ['127.255.0.9:65535', '127.255.0.9', 65535],
  ['[::1]:80', '::1', 80],
  ['localhost:80', '127.0.0.1', 80],
] as const) {
  test(`loopback: ${text} (DESIGN 11)`, (t) => t.deepEqual(parseListenAddress(text), { ok: true, value: { host, port } }));
}

for (const text of [
  '',
  '5730',
  ':5730',
  '127.0.0.1',
  '127.0.0.1:',
  '127.0.0.1:65536',
  '127.0.0.1:-1',
  '127.0.0.1: 80',
  '127.0.0.256:80',
  '127.1:80',
  '0.0.0.0:80',
  '10.0.0.1:80',
  '192.168.1.2:80',
  '[::]:80',
  '::1:80',
  '[::ffff:127.0.0.1]:80',
  'example.com:80',
  'localhost.example.com:80',
  '127.0.0.1.example.com:80',
  '127.0.0.1:80\n',
  '*:80',
]) {
  test(`refused: ${JSON.stringify(text)} (DESIGN 11)`, (t) => t.like(parseListenAddress(text), { ok: false, field: 'listen' }));
}
