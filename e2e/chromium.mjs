// How Chromium is started, here and in playwright.config.ts.
export const chromiumPath = process.env['QSF_CHROMIUM'] ?? '/usr/bin/chromium';

export const chromiumArgs = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
