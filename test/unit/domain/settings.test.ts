import test from 'ava';
import { readSettings } from '../../../sidecar/domain/settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

const ORIGINS: readonly (readonly [string, string | null, Environment, readonly string[]])[] = [
  ['nothing set: all off', null, {}, []],
  ['an empty value: all off', 'QL3_SHADOW_ORIGINS=', {}, []],
  ['one', 'QL3_SHADOW_ORIGINS=scheduled_system', {}, ['scheduled_system']],
  ['several, with spaces and empty parts', 'QL3_SHADOW_ORIGINS= manual , ,boot,', {}, ['manual', 'boot']],
  ['one twice', 'QL3_SHADOW_ORIGINS=manual,manual', {}, ['manual']],
  ['double quotes are taken off', 'QL3_SHADOW_ORIGINS="manual,boot"', {}, ['manual', 'boot']],
  ['single quotes are taken off', "QL3_SHADOW_ORIGINS='manual'", {}, ['manual']],
  ['the environment wins', 'QL3_SHADOW_ORIGINS=manual', { QL3_SHADOW_ORIGINS: 'boot' }, ['boot']],
  ['an empty environment wins: off', 'QL3_SHADOW_ORIGINS=manual', { QL3_SHADOW_ORIGINS: '' }, []],
  ['the last line wins', 'QL3_SHADOW_ORIGINS=manual\nQL3_SHADOW_ORIGINS=boot', {}, ['boot']],
  ['Windows line ends', 'QL3_PROFILE=edge\r\nQL3_SHADOW_ORIGINS=boot\r\n', {}, ['boot']],
  ['a comment is no setting', '# QL3_SHADOW_ORIGINS=manual', {}, []],
  ['nothing is expanded', 'QL3_SHADOW_ORIGINS=$X', { X: 'manual' }, []],
  ['a prefix of the name is another key', 'QL3_SHADOW_ORIGINSX=manual', {}, []],
  ['export is not understood: off', 'export QL3_SHADOW_ORIGINS=manual', {}, []],
];

for (const [title, text, environment, expected] of ORIGINS) {
  test(`QL3_SHADOW_ORIGINS: ${title} (DESIGN 13)`, (t) => {
    t.deepEqual([...readSettings(text, environment).shadowOrigins], expected as never);
  });
}

for (const word of ['once', 'grpc', 'Manual', 'all', '*', 'constructor', '__proto__', 'scheduled-system']) {
  test(`the origin ${word} is ignored, the others hold, and one line says so (0446 decision 7)`, (t) => {
    const settings = readSettings(null, { QL3_SHADOW_ORIGINS: `${word},manual` });
    t.deepEqual([...settings.shadowOrigins], ['manual']);
    t.is(settings.warnings.length, 1);
    t.true(settings.warnings[0]?.includes(word.replace(/[^\w-]/g, '?')));
  });
}

test('hostile settings get bounded, printable warnings (DESIGN 13)', (t) => {
  const hostile = `\u001b[31m${'x'.repeat(9000)}`;
  const settings = readSettings(
    [`${'K'.repeat(9000)}=1`, ...Array.from({ length: 500 }, (_, index) => `UNKNOWN_${index}=1`), ...Array.from({ length: 500 }, () => hostile)].join('\n'),
    { QL3_SHADOW_ORIGINS: Array.from({ length: 900 }, () => hostile).join(','), QL3_PROFILE: hostile },
  );
  t.is(settings.warnings.length, 4);
  for (const warning of settings.warnings) {
    t.true(warning.length < 300, warning);
    t.true(/^[ -~]*$/.test(warning), warning);
  }
  t.is(settings.shadowOrigins.size, 0);
  t.is(settings.profile, null);
});

for (const [value, profile, warned] of [
  [undefined, null, false],
  ['', null, false],
  ['edge', 'edge', false],
  ['standalone', 'standalone', false],
  ['Edge', null, true],
  ['toString', null, true],
] as const) {
  test(`QL3_PROFILE=${value ?? '(unset)'}: ${profile ?? 'chosen by memory'}${warned ? ', and said so' : ''} (DESIGN 13)`, (t) => {
    const settings = readSettings(null, { QL3_PROFILE: value });
    t.is(settings.profile, profile);
    t.is(settings.warnings.length, warned ? 1 : 0);
  });
}

test('an unknown key is named once and ignored; a line that is no setting is counted (DESIGN 13)', (t) => {
  const { warnings } = readSettings('QL3_SHADOW_ORIGIN=manual\nnot a setting\n=x\n\n  # a comment\n', {});
  t.deepEqual(warnings, [
    'ql-sidecar.env: unknown keys ignored: QL3_SHADOW_ORIGIN',
    'ql-sidecar.env: 2 lines are not KEY=VALUE and are ignored',
  ]);
});

test('every key of the table is known (DESIGN 13)', (t) => {
  const keys = ['QL3_PROFILE', 'QL3_SHADOW_ORIGINS', 'QL3_REPAIR', 'QL3_ALERTS', 'QL3_TIMEZONE', 'QL_SIDECAR_URL', 'QL_SIDECAR_LISTEN', 'QL_SIDECAR_DIR'];
  t.deepEqual(readSettings(keys.map((key) => `${key}=`).join('\n'), {}).warnings, []);
  t.like(readSettings('QL_SIDECAR_LISTEN=127.0.0.1:9\nQL_SIDECAR_DIR=/x', {}), { listen: '127.0.0.1:9', sidecarDir: '/x' });
});
