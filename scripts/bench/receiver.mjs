// The receiver at 1, 8 and 64 connections: against one commit for each request, and against a bare server of node:http.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundle, dataDirectory } from './data-directory.mjs';
import { cleanEnvironment, figure, median, scratchDirectory } from './measure.mjs';

const ROUNDS = 9;
const ROUND_MS = 500;
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

async function started(words) {
  const child = spawn(process.execPath, words, { env: cleanEnvironment, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

let firstSecond = 1_764_572_400;

/** Answered requests a second. */
async function rate(socketPath, connections) {
  firstSecond += 100_000;
  const words = [here('receiver-client.mjs'), socketPath, ...[connections, ROUND_MS, firstSecond].map(String)];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: cleanEnvironment });
  return Number(stdout);
}

export async function run() {
  const scratch = scratchDirectory();
  const data = { grouped: dataDirectory('standalone', scratch), single: dataDirectory('standalone', scratch) };
  const sockets = {
    bare: path.join(scratch, 'bare.sock'),
    single: path.join(scratch, 'single.sock'),
    grouped: path.join(data.grouped, 'ql-sidecar/serve.sock'),
  };
  const servers = await Promise.all([
    started([here('receiver-servers.mjs'), 'bare', sockets.bare]),
    started([here('receiver-servers.mjs'), 'single', sockets.single, data.single]),
    started([bundle, 'serve', '--data-dir', data.grouped]),
  ]);
  const figures = [];
  try {
    for (const connections of [1, 8, 64]) {
      const rates = { bare: [], single: [], grouped: [] };
      for (let round = -1; round < ROUNDS; round += 1) {
        // Each round in another order: what one leaves behind, a checkpoint or a warm cache, meets each of the others.
        const names = Object.keys(rates);
        for (const name of [...names.slice(round % 3), ...names.slice(0, round % 3)]) {
          const answered = await rate(sockets[name], connections);
          if (round >= 0) rates[name].push(answered);
        }
      }
      const ratio = (a, b) => median(rates[a].map((value, round) => value / rates[b][round]));
      const bar = { 1: { atLeast: 0.9 }, 8: {}, 64: { atLeast: 5 } }[connections];
      figures.push(figure(`callbacks a second, ${connections} connections`, median(rates.grouped), '/s', {}));
      figures.push(figure(`durable, shared commits x one commit each, ${connections} connections`, ratio('grouped', 'single'), 'x', bar));
      figures.push(figure(`durable x bare node:http, ${connections} connections`, ratio('grouped', 'bare'), 'x', {}));
    }
  } finally {
    for (const server of servers) server.kill();
  }
  return figures;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { name, value, unit, target, ok } of await run()) {
    console.log(`${ok ? 'ok  ' : 'MISS'} ${name}: ${value.toFixed(2)} ${unit}${target === null ? '' : ` (${target})`}`);
  }
}
