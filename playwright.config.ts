import { defineConfig } from '@playwright/test';

import { chromiumArgs, chromiumPath } from './e2e/chromium.mjs';

/** Tests that measure time or memory, or count threads, while no other browser runs. */
const alone = /\/(ahead|lighthouse|long-chat|memory|threads)\.spec\.ts$/;

export default defineConfig({
  testDir: 'e2e',
  globalSetup: './e2e/setup.ts',
  outputDir: 'test-results',
  workers: 2,
  projects: [
    { name: 'together', testIgnore: alone },
    { name: 'alone', testMatch: alone, workers: 1 },
  ],
  timeout: 120_000,
  use: {
    browserName: 'chromium',
    launchOptions: { executablePath: chromiumPath, args: chromiumArgs },
  },
});
