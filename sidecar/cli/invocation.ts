import { readFileSync } from 'node:fs';
import os from 'node:os';
import { PROFILES, profileForMemory, type Profile, type ProfileName } from '../domain/profile.js';
import { readSettings, type Settings } from '../domain/settings.js';
import { configurationText, dataDirectory, pathsBelow, type Paths } from '../host/paths.js';

/** What every command needs, read once (DESIGN 13). */
export interface Invocation {
  readonly paths: Paths;
  readonly settings: Settings;
  readonly profileName: ProfileName;
  readonly profile: Profile;
  readonly json: boolean;
}

/** Reads directory and configuration; tells each warning on stderr, one line each. */
export function prepare(options: { readonly dataDir: string | null; readonly json: boolean }): Invocation {
  const data = dataDirectory(options.dataDir, process.env, process.cwd());
  const configuration = configurationText(data);
  const settings = readSettings(configuration.text, process.env);
  if (configuration.warning !== null) warn(configuration.warning);
  for (const warning of settings.warnings) warn(warning);
  const profileName = settings.profile ?? profileForMemory(machineMemory());
  return {
    paths: pathsBelow(data, settings.sidecarDir),
    settings,
    profileName,
    profile: PROFILES[profileName],
    json: options.json,
  };
}

function warn(line: string): void {
  process.stderr.write(`ql-sidecar: warning: ${line}\n`);
}

/** Bytes that this process may use: the machine's memory, or the container's where that is less. */
function machineMemory(): number {
  const limit = cgroupLimit('/sys/fs/cgroup/memory.max') ?? cgroupLimit('/sys/fs/cgroup/memory/memory.limit_in_bytes');
  return Math.min(os.totalmem(), limit ?? Infinity);
}

function cgroupLimit(file: string): number | null {
  try {
    const bytes = Number(readFileSync(file, 'latin1'));
    return Number.isFinite(bytes) && bytes > 0 ? bytes : null;
  } catch {
    return null;
  }
}
