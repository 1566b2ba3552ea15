// Reference pages from what is public: declarations as they stand, with what their comments say.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { Stop, root } from './process.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const fence = (language, lines) => ['```' + language, ...lines, '```', ''];

/** Lines without what marks them as a comment, as one text. */
const prose = (lines) =>
  lines
    .map((line) => line.replace(/^\s*(\/\*\*?|\*\/|\*|\/\/\/?)\s?/, '').replace(/\s*\*\/$/, ''))
    .join('\n')
    .trim();

/** A page's text with its examples, which are indented by two or more, fenced. */
function withExamples(text, language) {
  const out = [];
  let example = [];
  const flush = () => {
    if (example.length > 0) out.push(...fence(language, example));
    example = [];
  };
  for (const line of text.split('\n')) {
    if (/^ {2,}\S/.test(line)) {
      if (example.length === 0 && out.at(-1) !== '') out.push('');
      example.push(line.slice(2));
    } else {
      if (example.length > 0 && line !== '') flush();
      else if (example.length > 0) {
        flush();
        continue;
      }
      out.push(line);
    }
  }
  flush();
  return out.join('\n').trim();
}

/** The last name that a declaration's first line declares. */
function nameOf(declaration) {
  const line = declaration.join(' ');
  const type = /^(?:template <[^>]*>\s*)?(?:enum class|enum|struct|class)\s+(?:\[\[\w+\]\]\s*)?(\w+)/.exec(line);
  if (type) return type[1];
  const alias = /^(?:using|typedef)\b.*?(?:\(\*(\w+)\)|(\w+)\s*=|(\w+);)/.exec(line);
  if (alias) return alias[1] ?? alias[2] ?? alias[3];
  const call = /([\w:~]+)\s*\(/.exec(line);
  const value = /(\w+)\s*(?:\[[^\]]*\])?\s*(?:=|\{|;)/.exec(line);
  return (call && (!value || call.index <= value.index) ? call[1] : value?.[1]) ?? line;
}

/**
 * The declarations of a C or C++ header in order: `{doc, lines}`, `lines` as they stand, up to `private:`; and the
 * comments that stand alone, as `{section}`.
 */
function declarations(text) {
  const lines = text.split('\n');
  const found = [];
  let comment = [];
  let current = null;
  let depth = 0;
  let hidden = false;
  let inComment = false;
  for (const line of lines) {
    const bare = line.replace(/\/\/.*$/, '').replace(/"(?:[^"\\]|\\.)*"/g, '""');
    if (!current) {
      if (inComment || /^\/\*/.test(line)) {
        comment.push(line);
        inComment = !/\*\//.test(line);
        continue;
      }
      if (/^\/\//.test(line)) {
        comment.push(line);
        continue;
      }
      if (line.trim() === '') {
        if (comment.length > 0) found.push({ section: prose(comment) });
        comment = [];
        continue;
      }
      if (/^#|^namespace\b|^}  ?\/\/ namespace|^extern "C" \{|^}$|^friend\b|^(?:class|struct) \w+;$/.test(line)) {
        if (!/^#if/.test(line)) comment = [];
        continue;
      }
      current = { doc: prose(comment), lines: [] };
      comment = [];
      depth = 0;
      hidden = false;
    }
    if (depth === 1 && /^ (private|protected):/.test(line)) hidden = true;
    depth += (bare.match(/[{]/g)?.length ?? 0) - (bare.match(/[}]/g)?.length ?? 0);
    if (hidden && depth === 0) {
      while (current.lines.at(-1)?.trim() === '') current.lines.pop();
      hidden = false;
    }
    if (!hidden) current.lines.push(line);
    if (depth <= 0 && /[;}]\s*(\/\/.*)?$/.test(line)) {
      found.push(current);
      current = null;
    }
  }
  if (current) throw new Stop(`A header ends within a declaration: ${current.lines[0]}`);
  return found;
}

/** The comment at a header's beginning, and the rest. */
function intro(text) {
  const [first] = /^(?:\/\*[\s\S]*?\*\/|(?:\/\/.*\n)+)/.exec(text) ?? [''];
  return [prose(first.trimEnd().split('\n')), text.slice(first.length)];
}

/** A function's body is no part of what it promises. */
function withoutBody(lines) {
  const at = lines.findIndex((line) => /\)[^;{]*\{/.test(line));
  const type = /^(?:template <[^>]*>\s*)?(?:enum|struct|class|inline constexpr)\b/.test(lines.join(' '));
  if (at < 0 || type) return lines;
  return [...lines.slice(0, at), lines[at].replace(/\s*\{.*$/, ';')];
}

/** Neighbouring lines that nothing is said of share an entry. */
function together(items) {
  const out = [];
  for (const item of items) {
    const plain = item.doc === '' && item.lines.length === 1;
    const last = out.at(-1);
    if (plain && last?.plain) {
      last.lines.push(...withoutBody(item.lines));
      last.names.push(nameOf(item.lines));
    } else {
      const { section, doc, lines = [] } = item;
      out.push({ section, doc, plain, lines: withoutBody(lines), names: lines.length > 0 ? [nameOf(lines)] : [] });
    }
  }
  return out;
}

/** One header as Markdown. */
function header(path, language) {
  const [about, rest] = intro(read(path));
  const out = [withExamples(about, language), ''];
  for (const { section, doc, lines, names } of together(declarations(rest))) {
    if (section !== undefined) {
      const [title, ...more] = section.split(/(?<=[.])\s+/);
      out.push(`## ${title.replace(/\.$/, '')}`, '', ...(more.length > 0 ? [more.join(' '), ''] : []));
      continue;
    }
    out.push(`### ${names.map((name) => `\`${name}\``).join(', ')}`, '', ...fence(language, lines));
    if (doc !== '') out.push(doc, '');
  }
  return out;
}

const note = (source) => `<!-- Made by scripts/docs.mjs from ${source}. -->`;

function cPage() {
  const path = 'include/qsf.h';
  return [note(path), '', '# The C interface', '', ...header(path, 'c')];
}

/** The header that hosts include, then those of the project that it is made of. */
function cppPage() {
  const first = 'include/qsf/engine.h';
  const included = [...read(first).matchAll(/^#include "(qsf\/[^"]+\.h)"/gm)].map(([, name]) => `include/${name}`);
  const pages = [first, ...included.filter((path) => existsSync(join(root, path)))];
  const lists =
    'What stands in `boundary.def` is listed in [boundary.md](../boundary.md), `errors.def` in [errors.md](../errors.md).';
  const out = [note('include/qsf'), '', '# The C++ interface', '', lists, ''];
  for (const path of pages) {
    out.push(`## \`<${path.replace('include/', '')}>\``, '', ...header(path, 'cpp'));
  }
  return out;
}

/** Every name that the package exports, with its declaration; of a class what is public, without bodies. */
async function typeScriptPage() {
  const { default: ts } = await import('typescript');
  const entry = join(root, 'web', 'src', 'index.ts');
  const out = [note('web/src'), '', '# The TypeScript interface', ''];
  const parsed = new Map();
  const bases = new Map();
  const parse = (path) => {
    if (!parsed.has(path)) {
      parsed.set(path, ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true));
    }
    return parsed.get(path);
  };
  const has = (node, kind) => node.modifiers?.some((modifier) => modifier.kind === kind) ?? false;
  const docStart = (node) => node.jsDoc?.at(-1)?.pos ?? node.getStart();
  const docOf = (node) => prose((node.jsDoc?.at(-1)?.getText() ?? '').split('\n'));
  const indent = (text, file, node) => {
    const { character } = file.getLineAndCharacterOfPosition(node.getStart());
    return text.split('\n').map((line, i) => (i === 0 ? line : line.slice(Math.min(character, line.search(/\S|$/)))));
  };
  const members = (file, node) =>
    node.members.flatMap((member) => {
      const own = ts.isPrivateIdentifier(member.name ?? node) || has(member, ts.SyntaxKind.PrivateKeyword);
      if (own || ts.isConstructorDeclaration(member) || ts.isClassStaticBlockDeclaration(member)) return [];
      const text = file.text.slice(docStart(member), (member.body ?? member).getFullStart());
      const whole = member.body ? `${text.trimEnd()};` : file.text.slice(docStart(member), member.end).trimEnd();
      return [...indent(whole, file, member).map((line) => (line === '' ? '' : `  ${line}`))];
    });

  /** Where a name is declared that a file declares, imports or re-exports. */
  const find = (file, name) => {
    const node = file.statements.find(
      (candidate) =>
        candidate.name?.text === name ||
        candidate.declarationList?.declarations.some((declared) => declared.name.text === name),
    );
    if (node) return { file, node };
    const bindings = (statement) =>
      statement.importClause?.namedBindings?.elements ?? statement.exportClause?.elements ?? [];
    const via = file.statements.find(
      (statement) => statement.moduleSpecifier && bindings(statement).some((element) => element.name.text === name),
    );
    if (!via?.moduleSpecifier.text.startsWith('.')) return null;
    return find(parse(join(dirname(file.fileName), via.moduleSpecifier.text.replace(/\.js$/, '.ts'))), name);
  };

  const names = [];
  for (const statement of parse(entry).statements) {
    if (!ts.isExportDeclaration(statement) || !statement.exportClause) continue;
    for (const element of statement.exportClause.elements) names.push(element.name.text);
  }
  // Grows: what an interface is made of is described too.
  const described = new Set(names);
  for (const name of described) {
    const found = find(parse(entry), name) ?? bases.get(name);
    if (!found) throw new Stop(`web/src declares no ${name}.`);
    const { file, node } = found;
    for (const [word] of (node.heritageClauses ?? [])
      .map((clause) => clause.getText())
      .join(' ')
      .matchAll(/\w+/g)) {
      const base = described.has(word) ? null : find(file, word);
      if (!base) continue;
      bases.set(word, base);
      described.add(word);
    }
    const code = ts.isClassDeclaration(node)
      ? [file.text.slice(node.getStart(), node.members.pos).trimEnd(), ...members(file, node), '}']
      : file.text.slice(node.getStart(), node.end).split('\n');
    const part = names.includes(name) ? [] : ['A part of others; not exported by this name.', ''];
    out.push(`## \`${name}\``, '', ...(docOf(node) ? [docOf(node), ''] : []), ...part, ...fence('ts', code));
  }
  return out;
}

const page = (lines) =>
  `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`;

/** Each page's text by its path. */
export const pages = async () => ({
  'docs/api/c.md': page(cPage()),
  'docs/api/cpp.md': page(cppPage()),
  'docs/api/typescript.md': page(await typeScriptPage()),
});
