// What must be on the machine, how to see that it is, and the Debian package that brings it.
import { existsSync } from 'node:fs';

import { Stop, capture, run, which } from './process.mjs';

const compiler = process.env.CXX || 'c++';

/** A program on PATH. */
const program = (name, apt) => ({ what: name, apt, present: () => which(name) !== null });
/** A header that the compiler finds, and a condition of the preprocessor that holds after including it. */
const header = (name, apt, condition = '1') => ({ what: `<${name}>`, apt, header: name, condition });
/** A file or folder. */
const file = (name, apt) => ({ what: name, apt, present: () => existsSync(name) });

/** The newest clang of those that cmake/clang.cmake takes by their number, or null. */
function clangVersion() {
  for (let version = 60; version >= 19; --version) if (which(`clang++-${version}`)) return version;
  return null;
}

/** Needed to build and to run. */
export const toBuild = [
  program(compiler, 'g++'),
  program('cmake', 'cmake'),
  program('ninja', 'ninja-build'),
  header('lz4.h', 'liblz4-dev', 'LZ4_VERSION_NUMBER >= 10904'),
  header('zstd.h', 'libzstd-dev', 'ZSTD_VERSION_NUMBER >= 10500'),
  header('curl/curl.h', 'libcurl4-openssl-dev'),
  program('pkg-config', 'pkgconf'),
  header('liburing.h', 'liburing-dev'),
  header('nlohmann/json.hpp', 'nlohmann-json3-dev'),
  header('CLI/CLI.hpp', 'libcli11-dev'),
];

/** Needed by the tests beside that. */
export const toTest = [
  header('gtest/gtest.h', 'libgtest-dev'),
  file('/usr/src/googletest/googletest', 'googletest'),
  program('chromium', 'chromium'),
  program('firefox-esr', 'firefox-esr'),
  program('WebKitWebDriver', 'webkit2gtk-driver'),
  program('Xvfb', 'xvfb'),
  program('xauth', 'xauth'),
  program('aarch64-linux-gnu-g++', 'g++-aarch64-linux-gnu'),
  program('qemu-aarch64', 'qemu-user'),
  program('x86_64-w64-mingw32-g++-posix', 'g++-mingw-w64-x86-64-posix'),
  file('/usr/lib/wine/wine64', 'wine64'),
  { what: 'clang++-19', apt: 'clang-19', present: () => clangVersion() !== null },
  {
    what: "clang's sanitizers",
    apt: `libclang-rt-${clangVersion() ?? 19}-dev`,
    present: () => existsSync(`/usr/lib/llvm-${clangVersion()}/lib/clang/${clangVersion()}/lib/linux`),
  },
  program('clang-format-19', 'clang-format-19'),
  program('clang-tidy-19', 'clang-tidy-19'),
];

/** Needed by the benchmarks beside what building needs. */
export const toBench = [header('benchmark/benchmark.h', 'libbenchmark-dev'), program('chromium', 'chromium')];

/** Of the headers among `needs`, those that the compiler finds and whose condition holds; asked in one run. */
function headersPresent(needs) {
  const lines = needs
    .filter((need) => need.header)
    .flatMap(({ header: name, condition }) => [
      `#if __has_include(<${name}>)`,
      condition === '1' ? '' : `#include <${name}>`,
      `#if ${condition}`,
      `QSF_HAS "${name}"`,
      '#endif',
      '#endif',
    ]);
  const options = { input: `${lines.join('\n')}\n`, stdio: ['pipe', 'pipe', 'ignore'] };
  const text = capture(compiler, ['-E', '-P', '-x', 'c++', '-'], options) ?? '';
  return new Set([...text.matchAll(/^QSF_HAS "(.*)"$/gm)].map((match) => match[1]));
}

/** Those of `needs` that are not there. */
function missing(needs) {
  const headers = headersPresent(needs);
  return needs.filter((need) => !(need.header ? headers.has(need.header) : need.present()));
}

/** Whether this is Debian or something made from it. */
export const isDebian = () => existsSync('/etc/debian_version') && which('apt-get') !== null;

/** The words that run a command as root without asking anything: none, sudo's, or null when neither is possible. */
export function asRoot() {
  if (process.getuid() === 0) return [];
  return capture('sudo', ['-n', 'true']) === null ? null : ['sudo', '-n'];
}

/** The environment for Debian's own tools, which look for others in places that are not on every user's PATH. */
export const systemEnvironment = () => ({ ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` });

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function apt(words, args, tries = 1) {
  const lock = ['-o', 'DPkg::Lock::Timeout=600', '-q'];
  const [command, ...rest] = [...words, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...lock, ...args];
  for (let attempt = 1; ; ++attempt) {
    try {
      return await run(command, rest, { name: `apt-get ${args.join(' ')}`, env: systemEnvironment() });
    } catch (error) {
      if (attempt >= tries) throw error;
      await sleep(5 * attempt);
    }
  }
}

/** Installs what is missing of `needs`, or ends in a sentence that says how to. Does nothing when nothing is missing. */
export async function install(needs) {
  const absent = missing(needs);
  if (absent.length === 0) return;
  const things = absent.map((need) => need.what).join(', ');
  const packages = [...new Set(absent.map((need) => need.apt))];
  if (!isDebian()) {
    throw new Stop(`Set-up cannot install here what is missing; install ${things} and start again.`);
  }
  const words = asRoot();
  const command = `apt-get install -y ${packages.join(' ')}`;
  if (words === null) throw new Stop(`Some packages are missing; run \`sudo ${command}\` and start again.`);
  console.log(`set-up: installing ${packages.join(' ')} ...`);
  // Another apt may hold the lists' lock, which DPkg::Lock::Timeout does not wait for.
  await apt(words, ['update'], 5);
  await apt(words, ['install', '-y', '--no-install-recommends', ...packages]).catch(() => {
    throw new Stop(`apt-get could not install everything; see above, mend \`${command}\` and start again.`);
  });
  const still = missing(needs).map((need) => need.what);
  if (still.length > 0) {
    const first = `${still.join(', ')} ${still.length > 1 ? 'are' : 'is'} still missing or too old after installing`;
    throw new Stop(`${first} ${packages.join(' ')}; Debian 12 or Ubuntu 24.04 or newer is needed.`);
  }
}

/** Ends in a sentence when the compiler or CMake is too old. */
export function checkVersions() {
  const condition = '(defined(__clang__) && __clang_major__ >= 15) || (!defined(__clang__) && __GNUC__ >= 12)';
  const input = `#if ${condition}\nQSF_NEW_ENOUGH\n#endif\n`;
  const text = capture(compiler, ['-E', '-P', '-x', 'c++', '-'], { input, stdio: ['pipe', 'pipe', 'ignore'] });
  if (!text?.includes('QSF_NEW_ENOUGH')) {
    throw new Stop(`${compiler} is too old; set CXX to GCC 12, Clang 15 or newer and start again.`);
  }
  const [, major, minor] =
    capture('cmake', ['--version'])
      ?.match(/(\d+)\.(\d+)/)
      ?.map(Number) ?? [];
  if (!(major > 3 || (major === 3 && minor >= 25))) {
    throw new Stop(`CMake is ${major}.${minor}; install 3.25 or newer and start again.`);
  }
}
