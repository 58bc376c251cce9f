import test from 'ava';
import { judgeProcess, type ObservingHost, type ProcessSight, type ProcessVerdict, type RecordedProcess } from '../../../sidecar/domain/process-identity.js';

const recorded: RecordedProcess = { pid: 42, startTicks: 5000, bootId: 'boot-1', host: 'panel', initStartTicks: 100 };
const here: ObservingHost = { host: 'panel', bootId: 'boot-1', initStartTicks: 100 };
const absent: ProcessSight = { kind: 'absent' };
const same: ProcessSight = { kind: 'present', startTicks: 5000 };
const reused: ProcessSight = { kind: 'present', startTicks: 5001 };
const unreadable: ProcessSight = { kind: 'unreadable' };

const gone = (evidence: 'host_rebooted' | 'container_restarted' | 'pid_absent' | 'pid_reused'): ProcessVerdict => ({ kind: 'gone', evidence });
const unproven = (why: 'no_identity' | 'other_host' | 'unreadable'): ProcessVerdict => ({ kind: 'unproven', why });

const ROWS: readonly (readonly [string, Partial<RecordedProcess>, Partial<ObservingHost>, ProcessSight, ProcessVerdict])[] = [
  ['the same process', {}, {}, same, { kind: 'alive' }],
  ['no such pid', {}, {}, absent, gone('pid_absent')],
  ['the pid has other start ticks', {}, {}, reused, gone('pid_reused')],
  ['/proc shows nothing', {}, {}, unreadable, unproven('unreadable')],
  ['start ticks were not recorded', { startTicks: null }, {}, absent, unproven('no_identity')],
  ['boot was not recorded', { bootId: null }, {}, absent, unproven('no_identity')],
  ['host was not recorded', { host: null }, {}, absent, unproven('no_identity')],
  ['another host, pid absent here', { host: 'other' }, {}, absent, unproven('other_host')],
  ['another host that has booted since', { host: 'other', bootId: 'boot-0' }, {}, absent, unproven('other_host')],
  ['our own boot cannot be read', {}, { bootId: null }, absent, unproven('unreadable')],
  ['this host has booted since', { bootId: 'boot-0' }, {}, same, gone('host_rebooted')],
  ['this host has booted since, /proc shows nothing', { bootId: 'boot-0' }, {}, unreadable, gone('host_rebooted')],
  ['the container started after the process', {}, { initStartTicks: 6000 }, absent, gone('container_restarted')],
  ['the container started after the process, its pid is in use', {}, { initStartTicks: 6000 }, same, gone('container_restarted')],
  ['seen from outside the container', {}, { initStartTicks: 10 }, absent, unproven('other_host')],
  ['the first process started in the same tick', {}, { initStartTicks: 5000 }, absent, unproven('other_host')],
  ['the first process was not recorded', { initStartTicks: null }, { initStartTicks: 6000 }, absent, gone('pid_absent')],
  ['our own first process cannot be read', {}, { initStartTicks: null }, absent, gone('pid_absent')],
];

for (const [title, was, is, sight, verdict] of ROWS) {
  test(`${title}: ${verdict.kind === 'alive' ? 'alive' : verdict.kind === 'gone' ? `gone, ${verdict.evidence}` : `nothing proven, ${verdict.why}`} (DESIGN 5.1)`, (t) => {
    t.deepEqual(judgeProcess({ ...recorded, ...was }, { ...here, ...is }, sight), verdict);
  });
}
