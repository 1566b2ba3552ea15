import { defineConfig } from '@playwright/test';

import { chromiumArgs, chromiumPath } from './e2e/chromium.mjs';

export default defineConfig({
  testDir: 'e2e',
  globalSetup: './e2e/setup.ts',
  outputDir: 'test-results',
  // Browsers are heavy and some tests measure time.
  workers: 1,
  timeout: 120_000,
  use: {
    browserName: 'chromium',
    launchOptions: { executablePath: chromiumPath, args: chromiumArgs },
  },
});
