// Commands in interleaved pairs, from a clean environment: a variable such as NODE_EXTRA_CA_CERTS would flatter every ratio.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const cleanEnvironment = { PATH: process.env.PATH, TZ: 'UTC' };

/** A directory that goes when the benchmark ends. */
export function scratchDirectory() {
  const directory = mkdtempSync(path.join(tmpdir(), 'ql-bench-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** Wall time of one command in ms; throws when it fails. */
export function wall([command, ...words], env = cleanEnvironment) {
  const started = process.hrtime.bigint();
  const { status, stderr, error } = spawnSync(command, words, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ms = Number(process.hrtime.bigint() - started) / 1e6;
  if (error || status !== 0) throw new Error(`${command} ${words.join(' ')}: ${error ?? stderr}`);
  return ms;
}

/**
 * Runs `subject` and `base` in turn, `pairs` times; `before` prepares each run of the subject, untimed. The ratio is that
 * of the medians.
 */
export function interleaved({ subject, base, pairs, before = () => {} }) {
  const subjectMs = [];
  const baseMs = [];
  for (let at = 0; at < pairs + 2; at += 1) {
    before();
    const pair = at % 2 === 0 ? [wall(subject), wall(base)] : [wall(base), wall(subject)].reverse();
    // The first two warm the caches.
    if (at < 2) continue;
    subjectMs.push(pair[0]);
    baseMs.push(pair[1]);
  }
  return { ratio: median(subjectMs) / median(baseMs), subjectMs: median(subjectMs), baseMs: median(baseMs) };
}

/** Peak resident memory of a node command in MiB, median of `runs`. */
export function peakMiB([command, ...words], runs, before = () => {}) {
  const scratch = scratchDirectory();
  const peakFile = path.join(scratch, 'peak');
  const probe = path.join(scratch, 'peak.cjs');
  const read = `process.on('exit', () => require('fs').writeFileSync(${JSON.stringify(peakFile)}, String(process.resourceUsage().maxRSS)));`;
  writeFileSync(probe, read);
  const peaks = [];
  for (let at = 0; at < runs; at += 1) {
    before();
    wall([command, '--require', probe, ...words]);
    peaks.push(Number(readFileSync(peakFile, 'utf8')) / 1024);
  }
  return median(peaks);
}

/** One figure with its bar: `atMost` or `atLeast`; without a bar it only informs. */
export function figure(name, value, unit, bar = {}) {
  const ok = (bar.atMost === undefined || value <= bar.atMost) && (bar.atLeast === undefined || value >= bar.atLeast);
  const target = bar.atMost !== undefined ? `at most ${bar.atMost}` : bar.atLeast !== undefined ? `at least ${bar.atLeast}` : null;
  return { name, value, unit, target, ok };
}
