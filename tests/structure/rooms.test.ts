// Who may include whom. The engine's graph is the one that CMakeLists.txt builds with.
import { describe, expect, it } from 'vitest';

import { paths, read, sources } from './files.js';

/** The rooms that a list of CMake declares, each with those that it may include. */
function declaredBy(path: string, command: string) {
  const lines = [...read(path).matchAll(new RegExp(`^${command}\\((\\w+)([^)]*)\\)`, 'gm'))];
  return lines.map(([, name = '', rest = '']) => {
    const rooms = rest
      .replace(/ LIBS .*/, '')
      .trim()
      .split(/\s+/);
    return [name, new Set([name, ...rooms.filter((room) => room !== '')])] as const;
  });
}
const declared = declaredBy('CMakeLists.txt', 'qsf_room');
const graph = new Map<string, Set<string>>(declared);
const ofConverter = declaredBy('converter/CMakeLists.txt', 'qsf_converter_room');
const ofNative = declaredBy('native/CMakeLists.txt', 'qsf_native_room');

/** Beyond the engine: hosts and the converter see the public headers only, the benchmarks every room. */
const hosts = new Map([
  ['threads', new Set(['threads'])],
  ['system', new Set(['system'])],
  // Made files are the converter's.
  ['native', new Set(['native', 'converter', 'threads', 'system'])],
  ['wasm', new Set(['wasm', 'converter', 'formats', 'threads'])],
  // Calibration runs the model as a host does.
  ['converter', new Set(['converter', 'native', 'threads', 'system'])],
  ['bench', new Set(['bench', 'native', 'threads', 'system', ...graph.keys()])],
]);

/** The surface that joins the rooms: the C and C++ interfaces. */
const surface = 'surface';
const isPublic = (path: string) => path.startsWith('include/');

interface Include {
  path: string;
  target: string;
  line: string;
}

/** The room of a path: a folder of engine/ or of include/qsf/, the surface for what lies beside them, or a top folder. */
function roomOf(path: string): string {
  const parts = path.split('/');
  const [top = '', second = '', third = ''] = parts;
  if (top === 'include') return graph.has(third) ? third : surface;
  return top === 'engine' ? second : top;
}

/** Quoted includes, resolved as the compiler does: from include/, engine/, the root, tests/, or the file's own folder. */
function includes(): Include[] {
  const found: Include[] = [];
  const known = new Set(sources('.h', '.inl', '.inc', '.def'));
  for (const path of sources('.cpp', '.h', '.inl')) {
    for (const [line, name = ''] of read(path).matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      const beside = `${path.slice(0, path.lastIndexOf('/'))}/${name}`;
      const target = [`include/${name}`, `engine/${name}`, name, `tests/${name}`, beside].find((candidate) =>
        known.has(candidate),
      );
      if (target === undefined) throw new Error(`${path} includes "${name}", which is not in the repository.`);
      found.push({ path, target, line: line.trim() });
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
    const wrong = all.filter(({ path, target }) => {
      const from = roomOf(path);
      const to = roomOf(target);
      if (from === 'tests' || from === to) return false;
      if (from === surface) return !isPublic(target);
      if (hosts.has(from)) return !isPublic(target) && !hosts.get(from)?.has(to);
      return !graph.get(from)?.has(to) && !(['run', 'chat'].includes(from) && to === surface);
    });
    expect(wrong.map(({ path, line }) => `${path}: ${line}`)).toEqual([]);
  });

  it('keep public headers apart: they include nothing else', () => {
    const wrong = includes().filter(({ path, target }) => isPublic(path) && !isPublic(target));
    expect(wrong.map(({ path, line }) => `${path}: ${line}`)).toEqual([]);
  });

  it('keep formats from WebAssembly, except those that the maker leaves out', () => {
    const ofFormats = includes().filter(
      ({ path, target }) => path.startsWith('wasm/') && target.startsWith('engine/formats/'),
    );
    expect(ofFormats.map(({ path }) => path)).toEqual(['wasm/maker/left_out.cpp']);
  });
});

describe.each([
  ['converter', ofConverter],
  ['native', ofNative],
] as const)('rooms of %s', (folder, rooms) => {
  const within = new Map<string, Set<string>>(rooms);
  const inside = includes().filter(
    ({ path, target }) => path.startsWith(`${folder}/`) && target.startsWith(`${folder}/`),
  );

  it('are declared, each with rooms that were declared before it, and are all there are', () => {
    const seen = new Set<string>();
    for (const [name, others] of rooms) {
      seen.add(name);
      for (const room of others) expect(seen, `${name} includes ${room}`).toContain(room);
    }
    const folders = new Set(
      sources('.cpp', '.h')
        .map((path) => path.split('/'))
        .filter(([top]) => top === folder)
        .map(([, room]) => room),
    );
    expect([...folders].filter((room = '') => !within.has(room))).toEqual([]);
  });

  it('include only rooms that they may', () => {
    expect(inside.length).toBeGreaterThan(20);
    const room = (path: string) => path.split('/')[1] ?? '';
    const wrong = inside.filter(({ path, target }) => !within.get(room(path))?.has(room(target)));
    expect(wrong.map(({ path, line }) => `${path}: ${line}`)).toEqual([]);
  });
});

describe('the converter', () => {
  it('has readers that know no writer, and writers that know no reader', () => {
    const rooms = new Map<string, Set<string>>(ofConverter);
    expect(rooms.get('readers')).not.toContain('write');
    expect(rooms.get('write')).not.toContain('readers');
  });

  it('is included by one place of each host, which knows none of its writers', () => {
    const names = ofConverter.map(([name]) => name);
    const making = names.slice(0, names.indexOf('made') + 1);
    const ofHosts = includes().filter(
      ({ path, target }) => /^(native|wasm)\//.test(path) && target.startsWith('converter/'),
    );
    expect(ofHosts.length).toBeGreaterThan(3);
    const wrong = ofHosts.filter(
      ({ path, target }) => !/^(native\/made|wasm\/maker)\//.test(path) || !making.includes(target.split('/')[1] ?? ''),
    );
    expect(wrong.map(({ path, line }) => `${path}: ${line}`)).toEqual([]);
  });
});

describe('operating systems', () => {
  /** What one system alone has: sources of bytes, a library that is loaded late, a processor's own features, threads. */
  const own = [
    'native/sources/mmap.cpp',
    'native/sources/mapped_file.h',
    'native/sources/mapped_file.cpp',
    'native/sources/uring.cpp',
    'native/sources/overlapped.cpp',
    'native/sources/curl.cpp',
    'native/cli/line_editor.cpp',
    'engine/kernels/dispatch.cpp',
    'threads/thread.cpp',
    'threads/thread_pool.cpp',
  ];
  const header =
    /^\s*#\s*include <(?:unistd|fcntl|poll|signal|pthread|sched|dlfcn|spawn|link|io|windows|sys\/\w+)\.h>/m;

  it('are asked in one room', () => {
    const asking = sources('.cpp', '.h', '.inl').filter((path) => header.test(read(path)));
    expect(asking.filter((path) => path.startsWith('system/')).length).toBeGreaterThan(5);
    const wrong = asking.filter((path) => !/^(system|tests|bench)\//.test(path) && !own.includes(path));
    expect(wrong).toEqual([]);
  });

  it('give threads in one place, which says where there is none', () => {
    const starts = /std::(?:jthread|async)\b|std::thread(?:\s+\w+\s*[({]|\s*[({])|<std::thread>|pthread_create/;
    const starting = sources('.cpp', '.h').filter((path) => !path.startsWith('tests/') && starts.test(read(path)));
    expect(starting).toEqual(['threads/thread.cpp']);
  });
});

describe('tests', () => {
  const built = new Set(
    [...read('tests/CMakeLists.txt').matchAll(/^ *qsf_tests\((\w+)/gm)].map(([, room = '']) => room),
  );
  const without = [...graph.keys(), 'threads', 'system', 'native', 'converter'].filter(
    (room) =>
      !built.has(room) || !paths.some((path) => path.startsWith(`tests/${room}/`) && path.endsWith('_test.cpp')),
  );

  it('are there for every room', () => {
    expect(without).toEqual([]);
  });
});
