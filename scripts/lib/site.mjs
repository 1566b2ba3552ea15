// The hosted site, a folder of static files that works on any host and under any path. It contains the demo with its
// examples, and the documents as pages.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';

import MarkdownIt from 'markdown-it';

import { Stop, capture, root } from './process.mjs';

/** The site's folder. */
export const site = join(root, 'build', 'site');

const style = `:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }
body { max-width: 46rem; margin: 0 auto; padding: 1rem; }
pre, code { font: 0.875em/1.5 ui-monospace, monospace; }
pre, .table { overflow-x: auto; }
img { max-width: 100%; }
pre { padding: 0.75rem; background: color-mix(in srgb, currentcolor 7%, transparent); }
table { border-collapse: collapse; }
th, td { padding: 0.25rem 0.5rem; border: 1px solid color-mix(in srgb, currentcolor 25%, transparent); text-align: left; }
`;

const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** Returns the anchor of a heading, in the form of repositories' pages. */
const anchorOf = (text) =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** Returns the paths of the documents: those of the root and of docs/, from git. */
function documents() {
  const listed = capture('git', ['ls-files', '-z', '*.md', 'docs/*.svg', 'docs/*.png'], { cwd: root });
  if (listed === null) throw new Stop('The documents are listed with git, but this folder is not a git checkout.');
  return listed.split('\0').filter((path) => /^(?:[A-Z_]+\.md|docs\/.*)$/.test(path));
}

/** Returns a renderer; `here` is the path of the document, `known` are the paths of all. */
function rendererOf(here, known) {
  const markdown = new MarkdownIt({ html: true, linkify: false });
  markdown.renderer.rules.heading_open = (tokens, at) =>
    `<${tokens[at].tag} id="${escaped(anchorOf(tokens[at + 1].content))}">`;
  markdown.renderer.rules.table_open = () => '<div class="table"><table>';
  markdown.renderer.rules.table_close = () => '</table></div>';
  const plain = (tokens, at, options, _, self) => self.renderToken(tokens, at, options);
  markdown.renderer.rules.link_open = (tokens, at, ...rest) => {
    const [path, anchor] = (tokens[at].attrGet('href') ?? '').split('#');
    const target = posix.join(posix.dirname(here), path);
    if (known.has(target) && target.endsWith('.md'))
      tokens[at].attrSet('href', path.replace(/\.md$/, '.html') + (anchor ? `#${anchor}` : ''));
    // A file of the repository that is not a page has no address here.
    else if (path && !/^[a-z]+:/.test(path) && !known.has(target)) tokens[at].attrs = [];
    return plain(tokens, at, ...rest);
  };
  return markdown;
}

/** Returns a document as a page. */
function pageOf(path, known) {
  const text = readFileSync(join(root, path), 'utf8');
  const up = posix.relative(posix.dirname(path), '.') || '.';
  const title = /^# (.*)$/m.exec(text)?.[1] ?? basename(path, '.md');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="${up}/docs.css">
</head>
<body>
<nav><a href="${up}/index.html">Demo</a> · <a href="${up}/README.html">Documents</a></nav>
<main>
${rendererOf(path, known).render(text)}</main>
</body>
</html>
`;
}

/** Makes the site. The modules and the built-in model must exist. */
export async function buildSite() {
  const { build } = await import('vite');
  rmSync(site, { recursive: true, force: true });
  await build({ root: join(root, 'web', 'demo'), logLevel: 'warn', build: { outDir: site, emptyOutDir: true } });
  const paths = documents();
  const known = new Set(paths);
  for (const path of paths) {
    const to = join(site, path.replace(/\.md$/, '.html'));
    mkdirSync(dirname(to), { recursive: true });
    if (path.endsWith('.md')) writeFileSync(to, pageOf(path, known));
    else cpSync(join(root, path), to);
  }
  writeFileSync(join(site, 'docs.css'), style);
}
