// Who may include whom. The engine's graph is the one that CMakeLists.txt builds with.
import { describe, expect, it } from 'vitest';

import { read, sources } from './files.js';

const cmake = read('CMakeLists.txt');
const declared = [...cmake.matchAll(/^qsf_room\((\w+)([^)]*)\)/gm)].map(([, name = '', rest = '']) => {
  const rooms = rest
    .replace(/ LIBS .*/, '')
    .trim()
    .split(/\s+/);
  return [name, new Set([name, ...rooms.filter((room) => room !== '')])] as const;
});
const graph = new Map<string, Set<string>>(declared);

/** Beyond the engine: hosts see its surface only, and what every room may see. */
const hosts = new Set(['engine.h', 'base']);
const outside = new Map([
  ['threads', new Set([...hosts, 'threads'])],
  ['native', new Set([...hosts, 'native', 'threads'])],
  ['wasm', new Set([...hosts, 'wasm', 'threads'])],
  ['converter', new Set(['engine.h', 'converter', 'text', 'file', 'formats', 'base'])],
]);

interface Include {
  path: string;
  from: string;
  to: string;
  line: string;
}

/** The room of a path: a folder of the engine, engine.h for what lies beside them, or a top folder. */
function roomOf(path: string): string {
  const [top = '', second = ''] = path.split('/');
  if (top !== 'engine') return top;
  return graph.has(second) ? second : 'engine.h';
}

/** Quoted includes, resolved as the compiler does: from engine/, the root, tests/, or the file's own folder. */
function includes(): Include[] {
  const found: Include[] = [];
  const known = new Set(sources('.h', '.inl', '.inc', '.def'));
  for (const path of sources('.cpp', '.h', '.inl')) {
    for (const [line, name = ''] of read(path).matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      const beside = `${path.slice(0, path.lastIndexOf('/'))}/${name}`;
      const target = [`engine/${name}`, name, `tests/${name}`, beside].find((candidate) => known.has(candidate));
      if (target === undefined) throw new Error(`${path} includes "${name}", which is not in the repository.`);
      found.push({ path, from: roomOf(path), to: roomOf(target), line: line.trim() });
    }
  }
  return found;
}

describe('rooms', () => {
  it('are declared, each with rooms that were declared before it', () => {
    expect(graph.size).toBeGreaterThan(5);
    const seen = new Set<string>();
    for (const [name, rooms] of declared) {
      seen.add(name);
      for (const room of rooms) expect(seen, `${name} includes ${room}`).toContain(room);
    }
  });

  it('keep what the design holds apart', () => {
    expect(graph.get('stream')).not.toContain('model');
    expect(graph.get('kernels')).not.toContain('file');
    expect(graph.get('text')).toEqual(new Set(['text', 'base']));
    expect(graph.get('base')).toEqual(new Set(['base']));
  });

  it('include only rooms that they may', () => {
    const all = includes();
    expect(all.length).toBeGreaterThan(50);
    const wrong = all.filter(({ from, to }) => {
      if (from === 'tests' || from === to) return false;
      if (from === 'engine.h') return outside.has(to) || to === 'tests';
      if (from === 'run' && to === 'engine.h') return false;
      return !(graph.get(from) ?? outside.get(from))?.has(to);
    });
    expect(wrong.map(({ path, line }) => `${path}: ${line}`)).toEqual([]);
  });
});
