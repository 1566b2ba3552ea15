import { defineConfig } from '@playwright/test';

import { chromiumArgs, chromiumPath } from './tests/e2e/chromium.mjs';

export default defineConfig({
  testDir: 'tests/e2e',
  globalSetup: './tests/e2e/setup.ts',
  outputDir: 'test-results',
  // Browsers are heavy and some tests measure time.
  workers: 1,
  timeout: 120_000,
  use: {
    browserName: 'chromium',
    launchOptions: { executablePath: chromiumPath, args: chromiumArgs },
  },
});
