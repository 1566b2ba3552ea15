// The kernels' own tests in browsers: committed hashes, and every format against the scalar kernels in every shape.
import { expect, test } from '@playwright/test';

import { buildPreset, wasmBuilds } from '../../scripts/lib/build.mjs';
import { launchChromium, launchFirefox } from './browsers.js';
import { TestServer } from './server.js';

const FILTER = 'GoldenTest.*:*EveryInstructionSetGivesTheScalarBits*:*WhatIsNotFiniteShows*';

test.beforeAll(async () => {
  test.setTimeout(900_000);
  for (const build of wasmBuilds) await buildPreset(`wasm-${build}`, { tests: true, targets: ['kernels-page'] });
});

for (const { name, launch } of [
  { name: 'Chromium', launch: launchChromium },
  { name: 'Firefox', launch: launchFirefox },
]) {
  for (const build of wasmBuilds) {
    test(`${name} computes the committed bits (${build})`, async () => {
      test.setTimeout(600_000);
      const server = await TestServer.start();
      const browser = await launch();
      try {
        const tab = await browser.open(server.origin);
        const { status, lines } = await tab.call('runProgram', `/programs/${build}/kernels-page.js`, [
          `--gtest_filter=${FILTER}`,
          '--gtest_color=no',
        ]);
        const text = lines.join('\n');
        expect(status, text).toBe(0);
        expect(text).toMatch(/\[ {2}PASSED {2}\] \d\d+ tests/);
        expect(text).toContain(build);
      } finally {
        await browser.close();
        await server.stop();
      }
    });
  }
}
