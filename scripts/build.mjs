// Builds two things: build/ (one file to one file, for the tests) and dist/ql-sidecar/ (the artifact an operator gets).
import { build } from 'esbuild';
import { chmod, copyFile, cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(root);
// Whoever builds it, and from wherever: every user of the machine may run the artifact.
process.umask(0o022);

const { version } = JSON.parse(await readFile('package.json', 'utf8'));
const artifact = 'dist/ql-sidecar';

/** Every file below `dir` whose name ends in `.ts`. */
async function typescriptFiles(dir) {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name));
}

/** The migrations with their checksums: what readiness compares a ledger with (DESIGN 5). */
async function migrationManifest() {
  const names = (await readdir('migrations')).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (name) => ({
      name,
      sha256: createHash('sha256').update(await readFile(path.join('migrations', name))).digest('hex'),
    })),
  );
}

const define = {
  QL_SIDECAR_VERSION: JSON.stringify(version),
  QL_SIDECAR_MIGRATIONS: JSON.stringify(await migrationManifest()),
};

await rm('build', { recursive: true, force: true });
await build({
  entryPoints: [...(await typescriptFiles('sidecar')), ...(await typescriptFiles('test'))],
  outdir: 'build',
  outbase: '.',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'inline',
  define,
  logLevel: 'warning',
});

await rm(artifact, { recursive: true, force: true });
await mkdir(path.join(artifact, 'lib'), { recursive: true });

/** Leaves the other entry files out of a bundle: each is loaded at run time, only when it is needed. */
const siblingsStayOutside = {
  name: 'siblings-stay-outside',
  setup(builder) {
    builder.onResolve({ filter: /\/(commands|serve)\.js$/ }, ({ path: name }) => ({
      path: `./${path.basename(name, '.js')}.cjs`,
      external: true,
    }));
  },
};

await build({
  entryPoints: {
    'ql-sidecar': 'sidecar/cli/main.ts',
    commands: 'sidecar/cli/commands.ts',
    serve: 'sidecar/http/serve.ts',
  },
  outdir: path.join(artifact, 'lib'),
  outExtension: { '.js': '.cjs' },
  bundle: true,
  minify: true,
  keepNames: false,
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  define: { ...define, 'import.meta.url': 'bundleUrl' },
  banner: { js: "const bundleUrl = 'file://' + encodeURI(__filename);" },
  // A plain require: the loader of ES modules would cost every start of `serve` its memory.
  supported: { 'dynamic-import': false },
  external: ['bindings'],
  plugins: [siblingsStayOutside],
  legalComments: 'none',
  logLevel: 'warning',
});

const native = path.join(artifact, 'lib/better_sqlite3.node');
await copyFile('node_modules/better-sqlite3/build/Release/better_sqlite3.node', native);
await chmod(native, 0o644);
try {
  execFileSync('strip', ['--strip-unneeded', native], { stdio: 'ignore' });
} catch {
  // No strip on this machine: the module is larger, and works the same.
}

for (const folder of ['shell', 'migrations', 'crontab-templates']) {
  await cp(folder, path.join(artifact, folder), { recursive: true });
}
await mkdir(path.join(artifact, 'bin'), { recursive: true });
await copyFile('shell/ql-sidecar', path.join(artifact, 'bin/ql-sidecar'));
await chmod(path.join(artifact, 'bin/ql-sidecar'), 0o755);
await writeFile(path.join(artifact, 'VERSION'), `${version}\n`);
