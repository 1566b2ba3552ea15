import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/structure/**/*.test.ts', 'tests/web/**/*.test.ts', 'web/**/*.test.ts'],
    testTimeout: 20_000,
  },
});
