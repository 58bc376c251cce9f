import { isOrigin, isShadowOrigin, type ShadowOrigin } from './origin.js';
import type { ProfileName } from './profile.js';
import { PROFILES } from './profile.js';

/** The settings that both halves read (DESIGN 13). `warnings` are one line each, bounded, to be shown once. */
export interface Settings {
  readonly profile: ProfileName | null;
  readonly shadowOrigins: ReadonlySet<ShadowOrigin>;
  readonly listen: string | null;
  readonly sidecarDir: string | null;
  readonly warnings: readonly string[];
}

const KEYS = [
  'QL3_PROFILE',
  'QL3_SHADOW_ORIGINS',
  'QL3_REPAIR',
  'QL3_ALERTS',
  'QL3_TIMEZONE',
  'QL_SIDECAR_URL',
  'QL_SIDECAR_TOKEN',
  'QL_SIDECAR_LISTEN',
  'QL_SIDECAR_DIR',
] as const;
type Key = (typeof KEYS)[number];

/** Reads `KEY=VALUE` lines; the environment wins over the file. Whatever is not understood is off, and named once. */
export function readSettings(
  fileText: string | null,
  environment: Readonly<Record<string, string | undefined>>,
): Settings {
  const warnings: string[] = [];
  const values = parseFile(fileText ?? '', warnings);
  for (const key of KEYS) {
    const fromEnvironment = environment[key];
    if (fromEnvironment !== undefined) values.set(key, fromEnvironment);
  }
  return {
    profile: readProfile(values.get('QL3_PROFILE'), warnings),
    shadowOrigins: readOrigins(values.get('QL3_SHADOW_ORIGINS'), warnings),
    listen: values.get('QL_SIDECAR_LISTEN') || null,
    sidecarDir: values.get('QL_SIDECAR_DIR') || null,
    warnings,
  };
}

function parseFile(text: string, warnings: string[]): Map<Key, string> {
  const values = new Map<Key, string>();
  const unknown: string[] = [];
  let malformed = 0;
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line);
    if (match === null) malformed += 1;
    else if ((KEYS as readonly string[]).includes(match[1] as string)) {
      values.set(match[1] as Key, unquoted((match[2] as string).trim()));
    } else unknown.push(match[1] as string);
  }
  if (unknown.length > 0) warnings.push(`ql-sidecar.env: unknown keys ignored: ${shortList(unknown)}`);
  if (malformed > 0) warnings.push(`ql-sidecar.env: ${malformed} lines are not KEY=VALUE and are ignored`);
  return values;
}

/** One pair of quotes around a value is taken off, since people write them; nothing is expanded. */
function unquoted(value: string): string {
  return /^(["']).*\1$/.test(value) && value.length >= 2 ? value.slice(1, -1) : value;
}

function readProfile(value: string | undefined, warnings: string[]): ProfileName | null {
  if (value === undefined || value === '') return null;
  if (Object.hasOwn(PROFILES, value)) return value as ProfileName;
  warnings.push(`QL3_PROFILE: must be edge or standalone, got ${shortList([value])}; chosen by memory`);
  return null;
}

function readOrigins(value: string | undefined, warnings: string[]): ReadonlySet<ShadowOrigin> {
  const enabled = new Set<ShadowOrigin>();
  const ignored: string[] = [];
  for (const word of (value ?? '').split(',')) {
    const origin = word.trim();
    if (origin === '') continue;
    if (isOrigin(origin) && isShadowOrigin(origin)) enabled.add(origin);
    else ignored.push(origin);
  }
  if (ignored.length > 0) {
    warnings.push(`QL3_SHADOW_ORIGINS: not an origin that can be shadowed, ignored: ${shortList(ignored)}`);
  }
  return enabled;
}

/** At most three words of at most 32 plain characters each: bounded, and safe on a terminal. */
function shortList(words: readonly string[]): string {
  const shown = words.slice(0, 3).map((word) => word.slice(0, 32).replace(/[^\w.:/@-]/g, '?'));
  return words.length > 3 ? `${shown.join(', ')} and ${words.length - 3} more` : shown.join(', ');
}
