import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores([
    'build*/',
    'dist/',
    'examples/*/{dist,qsf,.next}/',
    'web/src/qsf-*.js',
    'web/demo/dist/',
    'test-results/',
    'playwright-report/',
  ]),
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-definitions': ['error', 'interface'],
      // An index known to be in range, and a promise whose failure is told elsewhere, are both plain in their place.
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-empty-function': 'off',
    },
  },
  {
    files: ['web/src/**/*.ts', 'web/demo/src/**/*.ts'],
    ignores: ['**/*.test.ts'],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
    },
  },
  {
    files: ['examples/**/*.js'],
    languageOptions: {
      parserOptions: { ecmaFeatures: { jsx: true } },
      globals: Object.fromEntries(
        [
          ...['$state', 'AbortController', 'SharedWorker', 'URL', 'URLSearchParams', 'addEventListener', 'clients'],
          ...['document', 'fetch', 'location', 'navigator', 'process', 'skipWaiting'],
        ].map((name) => [name, 'readonly']),
      ),
    },
    // What only JSX names, this rule does not see.
    rules: { 'no-unused-vars': ['error', { varsIgnorePattern: '^[A-Z]' }] },
  },
  {
    files: ['**/*.mjs', '*.js'],
    languageOptions: {
      globals: {
        URL: 'readonly',
        console: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
);
