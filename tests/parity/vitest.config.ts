import { availableParallelism } from 'node:os';

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/parity/*.test.ts'],
    maxConcurrency: availableParallelism(),
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
