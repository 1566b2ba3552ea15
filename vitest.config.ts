import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

const source = (name: string) => fileURLToPath(new URL(`web/src/${name}.ts`, import.meta.url));

export default defineConfig({
  // The demo's modules name the package as its users do.
  resolve: { alias: { 'qsf/retrieval': source('retrieval'), qsf: source('index') } },
  test: {
    include: ['tests/structure/**/*.test.ts', 'tests/web/**/*.test.ts', 'web/**/*.test.ts'],
    testTimeout: 20_000,
  },
});
