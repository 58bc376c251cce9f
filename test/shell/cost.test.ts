import test from 'ava';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { BASHES, finish, MARKED, Panel } from '../fixtures/panel/panel.js';

const hasStrace = spawnSync('strace', ['-f', 'true']).status === 0;
const traced = hasStrace ? test.serial : test.serial.skip;

interface Trace {
  readonly forks: number;
  readonly execs: number;
  readonly words: string;
}

/** How many processes a command line makes, and every argument list it executes. */
async function trace(panel: Panel, line: string, variables: Record<string, string>): Promise<Trace> {
  const file = path.join(panel.dir, 'trace');
  const calls = 'trace=clone,clone3,fork,vfork,execve';
  const outcome = await finish(panel.spawn(`exec strace -f -s 4096 -o ${file} -e ${calls} bash -c ${JSON.stringify(line)}`, variables));
  if (outcome.code !== 0 && outcome.code !== 3) throw new Error(outcome.stderr);
  const lines = readFileSync(file, 'utf8').split('\n');
  // A call that another process interrupts is written as two lines.
  const done = (one: string): boolean => /execve(\(| resumed>).* = 0$/.test(one);
  return {
    // curl resolves names in a thread, or not: no process.
    forks: lines.filter((one) => /\b(clone3?|v?fork)\(/.test(one) && !one.includes('CLONE_THREAD')).length,
    execs: lines.filter(done).length,
    // Every attempt, also those along PATH that find nothing: their arguments are as public.
    words: lines.filter((one) => one.includes('execve(') && !one.includes(' = -1')).join('\n'),
  };
}

for (const bash of BASHES) {
  for (const line of ['task ok.sh', 'task fail.js', 'task exit3.sh', 'ql check']) {
    traced(`${line}: the bridge adds no process, and none of ours carries the command (DESIGN 4.4, 4.5) [${bash}]`, async (t) => {
      const plain = await Panel.start({ bash, bridge: 'none' });
      const bridged = await Panel.start({ bash });
      t.teardown(() => [plain, bridged].forEach((panel) => panel.stop()));
      for (const variables of [MARKED, { ID: '5', no_tee: 'true', real_time: 'false' }]) {
        const [a, b] = [await trace(plain, line, variables), await trace(bridged, line, variables)];
        t.is(b.forks, a.forks);
        t.is(b.execs, a.execs);
        const mentions = ({ words }: Trace): number => words.split(line.split(' ')[1] as string).length;
        t.is(mentions(b), mentions(a));
      }
      t.is(bridged.envelopes().length, 2);
    });
  }

  traced(`a refused task, a full spool, a bell: still no process (DESIGN 4.4) [${bash}]`, async (t) => {
    const plain = await Panel.start({ bash, bridge: 'none' });
    const bridged = await Panel.start({ bash });
    t.teardown(() => [plain, bridged].forEach((panel) => panel.stop()));
    spawnSync('sh', ['-c', `echo 9 >${bridged.sidecar}/receiver; rm -r ${bridged.notices}`]);
    const a = await trace(plain, 'task ok.sh', MARKED);
    const b = await trace(bridged, 'task ok.sh', MARKED);
    t.is(b.forks, a.forks);
    spawnSync('rm', ['-r', bridged.spool]);
    // The first run has made the log directory, with a process.
    const again = await trace(plain, 'task ok.sh', MARKED);
    t.is((await trace(bridged, 'task ok.sh', MARKED)).forks, again.forks);
  });
}
