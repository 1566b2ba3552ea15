import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

export default defineConfig({
  // The demo's modules name the package as its users do.
  resolve: { alias: { qsf: fileURLToPath(new URL('web/src/index.ts', import.meta.url)) } },
  test: {
    include: ['tests/structure/**/*.test.ts', 'tests/web/**/*.test.ts', 'web/**/*.test.ts'],
    testTimeout: 20_000,
  },
});
