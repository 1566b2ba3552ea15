// Builds and serves the demo. The project's set-up puts the model under public/models/. Any server can serve the built
// page. If it does not send the headers for isolation, the service worker adds them from the second visit on.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { rolldown } from 'rolldown';
import { defineConfig } from 'vite';
import type { Plugin } from 'vite';

import { installation } from '../../scripts/lib/manifest.mjs';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Returns a script as one text, for where no module can be: `defined` are its constants. */
async function bundled(script: string, defined: Record<string, string> = {}): Promise<string> {
  const bundle = await rolldown({
    input: here(script),
    platform: 'browser',
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    transform: { define: defined },
  });
  const { output } = await bundle.generate({ format: 'iife', codeSplitting: false, minify: true });
  await bundle.close();
  return output[0].code.trim();
}

/** Runs while the page is read. A file of its own would delay what follows it in the page. */
const early = await bundled('src/early.ts');

/**
 * Sent as a header, which also applies to the worker, and written into the page for hosts that do not send headers. The
 * page may read models from the visitor's addresses, and sends nothing to them.
 */
const policy = [
  "default-src 'none'",
  `script-src 'self' 'wasm-unsafe-eval' 'sha256-${createHash('sha256').update(early).digest('base64')}'`,
  "worker-src 'self'",
  "connect-src 'self' https: http://localhost:*",
  "style-src 'self'",
  "img-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const headers = {
  // A policy that is written into a page cannot say who may frame it.
  'Content-Security-Policy': `${policy}; frame-ancestors 'self'`,
  // Isolation, which threads require.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** Returns a link to the sources at the package's repository, or an empty text. */
function sourceLink(): string {
  const { repository } = JSON.parse(readFileSync(here('../../package.json'), 'utf8')) as {
    repository?: string | { url: string };
  };
  const address = (typeof repository === 'string' ? repository : repository?.url)?.replace(/^git\+|\.git$/g, '');
  return address?.startsWith('https://') ? `<a href="${encodeURI(address)}">Source</a>` : '';
}

/** Returns the markup of a part that several pages have. */
const part = (name: string) => readFileSync(here(`parts/${name}.html`), 'utf8');

const page: Plugin = {
  name: 'page',
  transformIndexHtml: (html) => ({
    html: html
      .replace(/<!-- (mark|picker|notice) -->/g, (_, name: string) => part(name))
      .replace('<!-- early -->', () => `<script>${early}</script>`)
      .replaceAll('<!-- source -->', sourceLink())
      .replaceAll('<!-- installation -->', installation.join('\n').replaceAll('&', '&amp;')),
    tags: [
      { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: policy }, injectTo: 'head-prepend' },
    ],
  }),
};

/** Adds the licence and the notices of everything that the built page has, as one text. */
const licences: Plugin = {
  name: 'licences',
  generateBundle() {
    const texts = ['../../LICENSE', '../../THIRD_PARTY_NOTICES.md'].map((path) => readFileSync(here(path), 'utf8'));
    this.emitFile({ type: 'asset', fileName: 'licences.txt', source: texts.join('\n') });
  },
};

/**
 * Makes the service worker, with the list of all files except the model. It is bundled alone, because a script that is no
 * module cannot import a chunk that the pages share.
 */
const offline: Plugin = {
  name: 'offline',
  enforce: 'post',
  generateBundle: {
    order: 'post',
    async handler(_, bundle) {
      const digest = createHash('sha256');
      const files: string[] = [];
      for (const [name, made] of Object.entries(bundle).sort(([a], [b]) => (a < b ? -1 : 1))) {
        if (name.endsWith('.map')) continue;
        files.push(name);
        digest.update(name).update(made.type === 'chunk' ? made.code : made.source);
      }
      for (const entry of readdirSync(here('public'), { withFileTypes: true })) {
        if (!entry.isFile()) continue;
        files.push(entry.name);
        digest.update(readFileSync(here(`public/${entry.name}`)));
      }
      const source = await bundled('src/sw.ts', {
        QSF_VERSION: JSON.stringify(digest.digest('hex').slice(0, 16)),
        QSF_FILES: JSON.stringify(['./', ...files]),
      });
      this.emitFile({ type: 'asset', fileName: 'sw.js', source });
    },
  },
};

const common =
  /web[\\/](src[\\/](?!retrieval)|demo[\\/]src[\\/](address|buttons|cancelled|dom|format|kept|offline|progress|rate|slices|slot)\.ts)/;

export default defineConfig({
  base: './',
  appType: 'mpa', // an absent file, such as robots.txt, is not found
  resolve: { alias: { 'qsf/retrieval': here('../src/retrieval.ts'), qsf: here('../src/index.ts') } },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: { index: here('index.html'), retrieval: here('retrieval.html'), examples: here('examples.html') },
      // The package and what needs no element of a page are one file: each further one delays a slow phone's first text.
      output: { codeSplitting: { groups: [{ name: 'common', test: common }] } },
    },
  },
  worker: { format: 'es' },
  server: { headers },
  preview: { headers },
  plugins: [page, licences, offline],
});
