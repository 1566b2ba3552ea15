// Reference pages of the public names: their declarations and the comments on them.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { Stop, root } from './process.mjs';
import { reference } from './reference.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const fence = (language, lines) => ['```' + language, ...lines, '```', ''];

/** Returns lines without their comment markers, as one text. */
const prose = (lines) =>
  lines
    .map((line) => line.replace(/^\s*(\/\*\*?|\*\/|\*|\/\/\/?)\s?/, '').replace(/\s*\*\/$/, ''))
    .join('\n')
    .trim();

/** Returns a page's text. Examples, which are indented by two or more, become fenced blocks. */
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
      continue;
    }
    const ends = example.length > 0;
    flush();
    if (!ends || line !== '') out.push(line); // a block is followed by an empty line already
  }
  flush();
  return out.join('\n').trim();
}

/** Returns the last name that a declaration's first line declares. */
function nameOf(declaration) {
  const line = declaration.join(' ');
  const type =
    /^(?:template <[^>]*>\s*|typedef (?=struct \w+ \{))?(?:enum class|enum|struct|class)\s+(?:\[\[\w+\]\]\s*)?(\w+)/.exec(
      line,
    );
  if (type) return type[1];
  const alias = /^(?:using|typedef)\b.*?(?:\(\*(\w+)\)|(\w+)\s*=|(\w+);)/.exec(line);
  if (alias) return alias[1] ?? alias[2] ?? alias[3];
  const call = /([\w:~]+)\s*\(/.exec(line);
  const value = /(\w+)\s*(?:\[[^\]]*\])?\s*(?:=|\{|;)/.exec(line);
  return (call && (!value || call.index <= value.index) ? call[1] : value?.[1]) ?? line;
}

/** Returns the kind of a line outside declarations. An `#if` leaves the comment before it to the declaration after it. */
function kindOf(line) {
  if (/^\/[*/]/.test(line)) return 'comment';
  if (line.trim() === '') return 'empty';
  if (/^#if/.test(line)) return 'condition';
  const frame = /^#|^namespace\b|^}  ?\/\/ namespace|^extern "C" \{|^}$|^friend\b|^(?:class|struct) \w+;$/;
  return frame.test(line) ? 'frame' : 'declaration';
}

/**
 * Returns the declarations of a C or C++ header in order, up to `private:`, as `{doc, lines}` with unchanged lines. A
 * comment without a declaration is `{section}`.
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
      const kind = inComment ? 'comment' : kindOf(line);
      if (kind === 'comment') {
        comment.push(line);
        inComment = (inComment || /^\/\*/.test(line)) && !/\*\//.test(line);
        continue;
      }
      if (kind === 'empty' && comment.length > 0) found.push({ section: prose(comment) });
      if (kind === 'condition') continue;
      const doc = prose(comment);
      comment = [];
      if (kind !== 'declaration') continue;
      current = { doc, lines: [] };
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

/** Returns the comment at a header's beginning, and the rest. */
function intro(text) {
  const [first] = /^(?:\/\*[\s\S]*?\*\/|(?:\/\/.*\n)+)/.exec(text) ?? [''];
  return [prose(first.trimEnd().split('\n')), text.slice(first.length)];
}

/** Returns a declaration without its body, which is no part of its contract. */
function withoutBody(lines) {
  const at = lines.findIndex((line) => /\)[^;{]*\{/.test(line));
  const type = /^(?:template <[^>]*>\s*)?(?:enum|struct|class|inline constexpr)\b/.test(lines.join(' '));
  if (at < 0 || type) return lines;
  return [...lines.slice(0, at), lines[at].replace(/\s*\{.*$/, ';')];
}

/** Joins neighbouring lines without comments to one entry. */
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

/** Returns one header as Markdown. */
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

/** Returns the page of the header that hosts include, followed by the project's headers that it includes. */
function cppPage() {
  const first = 'include/qsf/engine.h';
  const included = [...read(first).matchAll(/^#include "(qsf\/[^"]+\.h)"/gm)].map(([, name]) => `include/${name}`);
  const pages = [first, ...included.filter((path) => existsSync(join(root, path)))];
  const lists =
    '[boundary.md](../boundary.md) lists the rows of `boundary.def`, and [errors.md](../errors.md) those of `errors.def`.';
  const out = [note('include/qsf'), '', '# The C++ interface', '', lists, ''];
  for (const path of pages) {
    out.push(`## \`<${path.replace('include/', '')}>\``, '', ...header(path, 'cpp'));
  }
  return out;
}

/**
 * Returns the page of every name that the package exports, with its declaration. Classes, objects and functions have
 * their public members without bodies.
 */
async function typeScriptPage() {
  const { default: ts } = await import('typescript');
  const source = (name) => join(root, 'web', 'src', name);
  const [entry, offline] = [source('index.ts'), source('offline.ts')];
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
  const members = (file, all) =>
    all.flatMap((member) => {
      const own = (member.name && ts.isPrivateIdentifier(member.name)) || has(member, ts.SyntaxKind.PrivateKeyword);
      if (own || ts.isConstructorDeclaration(member) || ts.isClassStaticBlockDeclaration(member)) return [];
      // A value is an implementation, as a body is, unless it is all that says the type.
      const end = member.initializer && member.type ? member.type.end : member.body?.getFullStart();
      const text = file.text.slice(docStart(member), end ?? member.end).trimEnd();
      const whole = end === undefined ? text : `${text};`;
      return [...indent(whole, file, member).map((line) => (line === '' ? '' : `  ${line}`))];
    });

  /** Returns the file that declares a name which another file declares, imports or re-exports. */
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
  const ofOffline = parse(offline)
    .statements.filter((node) => node.name && has(node, ts.SyntaxKind.ExportKeyword))
    .map((node) => node.name.text);
  // The list grows, because the types in an interface and the objects of a class are described too.
  const described = new Set([...names, ...ofOffline]);
  const owners = new Map();
  for (const name of described) {
    const found = find(parse(ofOffline.includes(name) ? offline : entry), name) ?? bases.get(name);
    if (!found) throw new Stop(`web/src declares no ${name}.`);
    const { file, node } = found;
    for (const { name: member, initializer } of ts.isClassDeclaration(node) ? node.members : []) {
      if (!initializer || !ts.isIdentifier(initializer)) continue;
      const value = ts.isIdentifier(member) ? find(file, initializer.text) : null;
      if (!value) continue;
      bases.set(initializer.text, value);
      owners.set(initializer.text, `${name}.${member.text}`);
      described.add(initializer.text);
    }
    for (const [word] of (node.heritageClauses ?? [])
      .map((clause) => clause.getText())
      .join(' ')
      .matchAll(/\w+/g)) {
      const base = described.has(word) ? null : find(file, word);
      if (!base) continue;
      bases.set(word, base);
      described.add(word);
    }
    const object = node.declarationList?.declarations[0].initializer?.properties;
    const code = ts.isClassDeclaration(node)
      ? [file.text.slice(node.getStart(), node.members.pos).trimEnd(), ...members(file, node.members), '}']
      : object
        ? [file.text.slice(node.getStart(), object.pos).trimEnd(), ...members(file, object), '}']
        : ts.isFunctionDeclaration(node)
          ? `${file.text.slice(node.getStart(), node.body.getFullStart()).trimEnd()};`.split('\n')
          : file.text.slice(node.getStart(), node.end).split('\n');
    const part = ofOffline.includes(name)
      ? ['Exported by `qsf/offline`.', '']
      : names.includes(name) || owners.has(name)
        ? []
        : ['A part of other types; not exported under this name.', ''];
    out.push(
      `## \`${owners.get(name) ?? name}\``,
      '',
      ...(docOf(node) ? [docOf(node), ''] : []),
      ...part,
      ...fence('ts', code),
    );
  }
  return out;
}

const page = (lines) =>
  `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`;

/** Returns each page's text by its path. */
export const pages = async () => ({
  [`${reference}/api/c.md`]: page(cPage()),
  [`${reference}/api/cpp.md`]: page(cppPage()),
  [`${reference}/api/typescript.md`]: page(await typeScriptPage()),
});
