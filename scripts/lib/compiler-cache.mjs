// The compiler cache: ccache, one folder for all checkouts of a user. A second checkout reuses the objects of the
// first, because paths inside a checkout are hashed relative to it.
import { join } from 'node:path';

import { root, which } from './process.mjs';

/** The rules, for every compiler, by which a cached result may replace a compilation. */
const rules = {
  CCACHE_BASEDIR: root,
  CCACHE_NOHASHDIR: '1',
  // Precompiled headers are hashed by content, because times of files differ between checkouts.
  CCACHE_SLOPPINESS: 'pch_defines,time_macros,include_file_mtime,include_file_ctime',
  CCACHE_MAXSIZE: '4G',
};

/**
 * Returns the environment variables with which CMake configures and runs compilers through ccache, or none if ccache is
 * absent.
 * @param {string} folder the folder of everything that checkouts share
 */
export function compilerCache(folder) {
  if (which('ccache') === null) return {};
  const launcher = join(root, 'scripts', 'lib', 'cached-compiler.sh');
  const launchers = { CMAKE_C_COMPILER_LAUNCHER: launcher, CMAKE_CXX_COMPILER_LAUNCHER: launcher };
  return { ...rules, ...launchers, CCACHE_DIR: join(folder, 'ccache') };
}
