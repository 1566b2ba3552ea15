// The kernels' own tests in browsers: the committed hash of every kernel on every instruction set.
import { expect, test } from '@playwright/test';

import { buildPreset, variants } from '../scripts/lib/build.mjs';
import { launchChromium, launchFirefox } from './browsers.js';
import { TestServer } from './server.js';

const FILTER = 'GoldenTest.*:DispatchTest.*:*WhatIsNotFiniteShows*';

test.beforeAll(async () => {
  test.setTimeout(900_000);
  await buildPreset('wasm', { tests: true, targets: ['kernels-page'] });
});

for (const { name, launch } of [
  { name: 'Chromium', launch: launchChromium },
  { name: 'Firefox', launch: launchFirefox },
]) {
  test(`${name} computes the committed bits`, async () => {
    test.setTimeout(600_000);
    const server = await TestServer.start();
    const browser = await launch();
    try {
      const tab = await browser.open(server.origin);
      const { status, lines } = await tab.call('runProgram', '/programs/kernels-page.js', [
        `--gtest_filter=${FILTER}`,
        '--gtest_color=no',
      ]);
      const text = lines.join('\n');
      expect(status, text).toBe(0);
      expect(text).toMatch(/\[ {2}PASSED {2}\] \d\d+ tests/);
      for (const variant of variants) expect(text).toContain(`WhatIsNotFiniteShows/${variant} (`);
    } finally {
      await browser.close();
      await server.stop();
    }
  });
}
