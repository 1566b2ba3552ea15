// The needs of set-up on the machine: each has a check, and the Debian package that provides it.
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';

import { Stop, capture, run, which } from './process.mjs';

const compiler = process.env.CXX || 'c++';

/** Returns the need of a program on PATH. */
const program = (name, apt) => ({ what: name, apt, present: () => which(name) !== null });
/**
 * Returns the need of a header that the compiler finds, with a condition of the preprocessor that must hold after
 * including it.
 */
const header = (name, apt, condition = '1') => ({ what: `<${name}>`, apt, header: name, condition });
/** Returns the need of a file or folder. */
const file = (name, apt) => ({ what: name, apt, present: () => existsSync(name) });

/** Returns the newest clang of those that cmake/clang.cmake accepts by number, or null. */
function clangVersion() {
  for (let version = 60; version >= 19; --version) if (which(`clang++-${version}`)) return version;
  return null;
}

/** Needed to build and to run. */
export const toBuild = [
  program(compiler, 'g++'),
  program('cmake', 'cmake'),
  program('ninja', 'ninja-build'),
  program('ccache', 'ccache'),
  header('lz4.h', 'liblz4-dev', 'LZ4_VERSION_NUMBER >= 10904'),
  header('zstd.h', 'libzstd-dev', 'ZSTD_VERSION_NUMBER >= 10500'),
  header('curl/curl.h', 'libcurl4-openssl-dev'),
  header('histedit.h', 'libedit-dev'),
  program('pkg-config', 'pkgconf'),
  header('liburing.h', 'liburing-dev'),
  header('nlohmann/json.hpp', 'nlohmann-json3-dev'),
  header('CLI/CLI.hpp', 'libcli11-dev'),
];

/** Needed by the tests in addition. */
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

/** Needed by the benchmarks in addition to toBuild. */
export const toBench = [header('benchmark/benchmark.h', 'libbenchmark-dev'), program('chromium', 'chromium')];

/**
 * Returns the headers among `needs` that the compiler finds and whose condition holds. One run of the compiler checks
 * all.
 */
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

/** Returns those of `needs` that are absent. */
function missing(needs) {
  const headers = headersPresent(needs);
  return needs.filter((need) => !(need.header ? headers.has(need.header) : need.present()));
}

/** Whether this is Debian or a derivative. */
export const isDebian = () => existsSync('/etc/debian_version') && which('apt-get') !== null;

/** Returns the words that run a command as root without a question: none, sudo's, or null if neither is possible. */
export function asRoot() {
  if (process.getuid() === 0) return [];
  return capture('sudo', ['-n', 'true']) === null ? null : ['sudo', '-n'];
}

/** Returns the environment for Debian's own tools, which need folders that are not on every user's PATH. */
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

/** Asks at the terminal. Returns false for every answer but yes, and if there is no terminal. */
async function agrees(question) {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}

/**
 * Installs the absent ones of `needs`, or ends in a sentence with the remedy. Does nothing if nothing is absent. With
 * `ask`, sudo is used only after a question.
 */
export async function install(needs, { ask = false } = {}) {
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
  if (ask && words.length > 0 && !(await agrees(`set-up: may it run \`sudo ${command}\`?`))) {
    throw new Stop(
      `Run \`npm run setup\`, which installs without a question, or \`sudo ${command}\`, and start again.`,
    );
  }
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

/** Ends in a sentence if the compiler or CMake is too old. */
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
