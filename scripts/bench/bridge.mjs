// What the bridge costs a task: the same task of the stand-in panel without it and with it, in turn. The stand-in does about
// as much as a real panel before and after a task; a real task is longer, and its ratio smaller.
import { finish, MARKED, Panel } from '../../build/test/fixtures/panel/panel.js';
import { figure, median } from './measure.mjs';

const PAIRS = 60;
const { QL_EXECUTION_ORIGIN: _marker, ...UNMARKED } = MARKED;

async function timed(panel, line, variables) {
  const started = performance.now();
  const { code } = await finish(panel.spawn(line, variables));
  if (code === null) throw new Error(`${line}: ended by a signal`);
  return performance.now() - started;
}

async function compare(plain, bridged, line, variables) {
  const without = [];
  const within = [];
  for (let at = 0; at < PAIRS + 2; at += 1) {
    const order = at % 2 === 0 ? [plain, bridged] : [bridged, plain];
    const times = new Map();
    for (const panel of order) times.set(panel, await timed(panel, line, variables));
    // The first two warm the caches.
    if (at < 2) continue;
    without.push(times.get(plain));
    within.push(times.get(bridged));
  }
  return { ratio: median(within) / median(without), addedMs: median(within) - median(without) };
}

export async function* run() {
  const plain = await Panel.start({ bridge: 'none' });
  const bridged = await Panel.start({});
  try {
    for (const line of ['task ok.sh', 'task ok.js']) {
      const { ratio, addedMs } = await compare(plain, bridged, line, MARKED);
      yield figure(`${line} with the bridge, wall`, ratio, 'x without', { atMost: 1.25 });
      yield figure(`${line} with the bridge, added`, addedMs, 'ms', { atMost: 5 });
    }
    const { addedMs } = await compare(plain, bridged, 'task ok.sh', UNMARKED);
    yield figure('task ok.sh without a marker, added', addedMs, 'ms');
  } finally {
    plain.stop();
    bridged.stop();
  }
}
