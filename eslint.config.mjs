import tseslint from 'typescript-eslint';

/** The one-way rule (DESIGN 3): each layer imports only what stands to its left. */
const LAYERS = ['domain', 'ledger', 'operations', 'http', 'cli'];

/** What a layer may import of ours, besides itself. `host` and `legacy` adapters are passed in; only their types cross. */
const ALLOWED = {
  domain: [],
  ledger: ['domain'],
  host: ['domain', 'ledger'],
  operations: ['domain', 'ledger', 'host'],
  http: ['domain', 'ledger', 'host', 'operations', 'cli'],
  cli: ['domain', 'ledger', 'host', 'operations', 'http'],
};

const NODE_OUTSIDE_DOMAIN = ['node:*', 'better-sqlite3', 'yargs', 'yargs/*'];

function oneWay(layer) {
  const forbidden = [...LAYERS, 'host', 'legacy'].filter((other) => other !== layer && !ALLOWED[layer].includes(other));
  const patterns = forbidden.map((other) => ({
    group: [`**/${other}/*`],
    message: `${layer} must not import ${other} (DESIGN 3, one-way rule).`,
  }));
  if (layer === 'domain') patterns.push({ group: NODE_OUTSIDE_DOMAIN, message: 'domain is pure: no I/O (DESIGN 3).' });
  if (!['ledger', 'cli'].includes(layer)) patterns.push({ group: ['better-sqlite3'], message: 'ledger holds every SQL statement (DESIGN 3).' });
  return {
    files: [`sidecar/${layer}/**/*.ts`],
    rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] },
  };
}

export default tseslint.config(
  { ignores: ['build/', 'dist/', 'node_modules/', '.demo/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-control-regex': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['sidecar/domain/**/*.ts'],
    rules: {
      'no-restricted-globals': ['error', { name: 'process', message: 'domain is pure.' }],
      'no-restricted-properties': ['error', { object: 'Date', property: 'now', message: 'domain has no clock.' }, { object: 'Math', property: 'random', message: 'domain has no randomness.' }],
    },
  },
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/no-confusing-void-expression': 'off' } },
  ...Object.keys(ALLOWED).map(oneWay),
);
