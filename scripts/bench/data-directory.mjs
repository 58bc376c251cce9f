// A throw-away data directory with a ledger.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cleanEnvironment, scratchDirectory } from './measure.mjs';

export const bundle = path.resolve('dist/ql-sidecar/lib/ql-sidecar.cjs');

/** Makes one under `parent` with that profile and scheduled_system in shadow; answers its path. */
export function dataDirectory(profile, parent = scratchDirectory()) {
  const data = mkdtempSync(path.join(parent, 'data-'));
  mkdirSync(path.join(data, 'config'));
  writeFileSync(path.join(data, 'config/ql-sidecar.env'), `QL3_SHADOW_ORIGINS=scheduled_system\nQL3_PROFILE=${profile}\n`);
  execFileSync(process.execPath, [bundle, 'migrate', '--data-dir', data], { env: cleanEnvironment });
  return data;
}
