import test from 'ava';
import { parseFrequent, type FrequentCall } from '../../../sidecar/cli/frequent-call.js';

const call = (command: FrequentCall['command'], dataDir: string | null = null, json = false): FrequentCall => ({ command, dataDir, json });

for (const [words, expected] of [
  [['tick'], call('tick')],
  [['ingest'], call('ingest')],
  [['serve'], call('serve')],
  [['tick', '--json'], call('tick', null, true)],
  [['--json', 'tick'], call('tick', null, true)],
  [['tick', '--data-dir', '/ql/data'], call('tick', '/ql/data')],
  [['--data-dir', '/ql/data', 'tick'], call('tick', '/ql/data')],
  [['--data-dir=/ql/data', 'tick', '--json'], call('tick', '/ql/data', true)],
  [['tick', '--data-dir='], call('tick', '')],
  [['--data-dir', 'tick', 'ingest'], call('ingest', 'tick')],
  [['tick', '--data-dir', 'a b=c'], call('tick', 'a b=c')],
] as const) {
  test(`${words.join(' ')}: parsed by hand (DESIGN 12)`, (t) => t.deepEqual(parseFrequent(words), expected));
}

for (const words of [
  [],
  ['runs'],
  ['migrate'],
  ['--json'],
  ['tick', 'ingest'],
  ['tick', 'tick'],
  ['tick', '--help'],
  ['--version', 'tick'],
  ['tick', '--data-dir'],
  ['tick', '--data-dir', 'a', '--data-dir', 'b'],
  ['tick', '--data-dir=a', '--data-dir=b'],
  ['tick', '--dataDir', 'a'],
  ['tick', '-j'],
  ['tick', '--json=true'],
  ['tick', ''],
  ['TICK'],
  ['constructor'],
]) {
  test(`${words.join(' ') || '(nothing)'}: left to the full parser`, (t) => t.is(parseFrequent(words), undefined));
}
