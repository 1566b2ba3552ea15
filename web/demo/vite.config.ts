// Builds and serves the demo page. The model is put under public/models/ by the project's set-up.
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vite';

/** Sent as a header, which also binds the worker, and written into the page for hosts that send none. */
const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const headers = {
  'Content-Security-Policy': policy,
  // Isolation, without which there are no threads.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

export default defineConfig({
  base: './',
  resolve: { alias: { qsf: fileURLToPath(new URL('../src/index.ts', import.meta.url)) } },
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  worker: { format: 'es' },
  server: { headers },
  preview: { headers },
  plugins: [
    {
      name: 'content-security-policy',
      transformIndexHtml: () => [
        { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: policy }, injectTo: 'head-prepend' },
      ],
    },
  ],
});
