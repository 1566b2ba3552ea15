// Emscripten: the installation on PATH if it is new enough, else one in a separate Debian root, entered with
// bubblewrap. The project, the temporary folder and the cache have the same paths in the root and outside.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { compilerCache } from './compiler-cache.mjs';
import { asRoot, isDebian, systemEnvironment } from './packages.mjs';
import { Stop, capture, root, run, which } from './process.mjs';

const oldest = [3, 1, 60];
const suite = 'trixie';
const rootPackages = ['emscripten', 'cmake', 'ninja-build', 'ccache', 'dash', 'coreutils', 'sed', 'grep', 'findutils'];
const sources = ['lz4'];
/** Left out of the root, because they are half of the packages' bytes. */
const unneeded = [
  'usr/share/emscripten/cache/sysroot/lib/wasm32-emscripten/lto*',
  'usr/share/emscripten/cache/sysroot/lib/wasm32-emscripten/pic',
  'usr/share/emscripten/test',
  'usr/share/doc/*/*',
  'usr/share/man',
  'usr/share/locale',
];
/** Paths that the root shares with the system, if they exist. */
const shown = ['/etc/resolv.conf', '/etc/hosts', '/usr/src/googletest'];

const toEnterRoot = [{ what: 'bwrap', apt: 'bubblewrap', present: () => which('bwrap') !== null }];
const toMakeRoot = [
  ...toEnterRoot,
  { what: 'mmdebstrap', apt: 'mmdebstrap', present: () => which('mmdebstrap') !== null },
  {
    what: "Debian's archive keys",
    apt: 'debian-archive-keyring',
    present: () => existsSync('/usr/share/keyrings/debian-archive-keyring.gpg'),
  },
];

/** The folder of the data that set-up makes and checkouts share. */
export const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'qsf');
const debianRoot = join(cache, 'emscripten');
const sourcesFolder = join(debianRoot, 'usr', 'src');
const headersFolder = join(cache, 'include');

function emccOnPath() {
  const version = capture('emcc', ['--version'])?.match(/ (\d+)\.(\d+)\.(\d+)/);
  if (!version) return false;
  const found = version.slice(1).map(Number);
  const differs = found.findIndex((part, i) => part !== oldest[i]);
  return differs < 0 || found[differs] > oldest[differs];
}

/** A description of the root's contents, stored in the root. If the description changes, the root is made again. */
const stamp = [suite, ...rootPackages, ...sources, ...unneeded].join(' ');
function rootIsReady() {
  const path = join(debianRoot, 'etc', 'qsf-root');
  return existsSync(path) && readFileSync(path, 'utf8').trim() === stamp;
}

/** Returns the environment inside the root. Paths into the outer system do not exist there. */
function insideEnvironment(env) {
  const kept = [
    'TERM',
    'QSF_DEPS_DIR',
    'QSF_TEST_INCLUDE',
    'CMAKE_BUILD_PARALLEL_LEVEL',
    'http_proxy',
    'https_proxy',
    'no_proxy',
  ];
  const passed = Object.keys(env).filter((name) => /^CCACHE_|_LAUNCHER$/.test(name) || kept.includes(name));
  return {
    ...Object.fromEntries(passed.map((name) => [name, env[name]])),
    HOME: tmpdir(),
    PATH: '/usr/bin:/bin',
    LC_ALL: 'C.UTF-8',
  };
}

function bubblewrap(command, args, cwd) {
  const system = ['usr', 'etc', 'var'].flatMap((name) => ['--ro-bind', join(debianRoot, name), `/${name}`]);
  const links = ['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const readable = shown.filter(existsSync).flatMap((path) => ['--ro-bind', path, path]);
  const writable = [...new Set([tmpdir(), cache, root, cwd])].flatMap((path) => ['--bind', path, path]);
  const devices = ['--dev', '/dev', '--proc', '/proc', '--die-with-parent'];
  return ['bwrap', [...system, ...links, ...devices, ...readable, ...writable, '--chdir', cwd, command, ...args]];
}

/** Returns `{command, args, env}` for spawn, to run a command with Emscripten. */
export function withEmscripten(command, args, cwd = root) {
  const cached = { ...compilerCache(join(cache, 'wasm')), CCACHE_COMPILERTYPE: 'clang' };
  const env = { ...process.env, ...dependencies(), ...cached };
  if (emccOnPath()) return { command, args, env };
  if (!rootIsReady()) throw new Stop('Emscripten is not set up; run `npm run setup` first.');
  const [wrapper, wrapped] = bubblewrap(command, args, cwd);
  return { command: wrapper, args: wrapped, env: insideEnvironment(env) };
}

/** Runs a command with Emscripten and shows its output. */
export async function runWithEmscripten(command, args, cwd = root) {
  const found = withEmscripten(command, args, cwd);
  await run(found.command, found.args, { cwd, env: found.env, name: [command, ...args].join(' ') });
}

/** Returns environment variables that name sources and headers, for builds that cannot use the system's own. */
export function dependencies() {
  const folders = { QSF_DEPS_DIR: sourcesFolder, QSF_TEST_INCLUDE: headersFolder };
  return Object.fromEntries(Object.entries(folders).filter(([, path]) => existsSync(path)));
}

/** Copies headers that the converter, tests and hosts include, and that the root and the cross compilers do not have. */
export function copyHeaders() {
  for (const name of ['nlohmann', 'CLI']) {
    const from = ['/usr/include', '/usr/local/include'].map((path) => join(path, name)).find(existsSync);
    const to = join(headersFolder, name);
    if (from && !existsSync(to)) cpSync(from, to, { recursive: true, dereference: true });
  }
}

const emsdk =
  `install Emscripten ${oldest.join('.')} or newer with emsdk, put its emcc on PATH (\`source emsdk_env.sh\`) and ` +
  'start again.';

/** Removes unfinished folders of interrupted set-ups next to `name`. */
function removeUnfinished(name) {
  for (const entry of readdirSync(cache)) {
    const pid = entry.startsWith(`${name}.`) && Number(entry.slice(name.length + 1));
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(cache, entry), { recursive: true, force: true });
  }
}

/**
 * The commands that make the root after mmdebstrap has configured apt for it. Packages are unpacked, several at once,
 * and not installed.
 */
const fillRoot = `set -eu
  root=$1
  export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
  apt-get -qq -y install --download-only ${rootPackages.join(' ')}
  ls -S "$root"/var/cache/apt/archives/*.deb | xargs -P "$(nproc)" -n 1 sh -euc '
      dpkg-deb --fsys-tarfile "$1" | tar -x -C "$0" --keep-directory-symlink \
        ${unneeded.map((path) => `--exclude="./${path}"`).join(' ')}' "$root"
  mkdir -p "$root/usr/src"
  cd "$root/usr/src"
  apt-get -qq -o APT::Sandbox::User=root source --download-only ${sources.join(' ')}
  for name in ${sources.join(' ')}; do
    mkdir "$name"
    tar -xf "$(ls "$name"_*.orig.tar.* | grep -v '\\.asc$')" -C "$name" --strip-components=1
  done
  cd "$root"
  for path in ${shown.join(' ')}; do
    case $path in
      /etc/*) touch "$root$path" ;;
      *) mkdir -p "$root$path" ;;
    esac
  done
  echo '${stamp}' > etc/qsf-root`;

async function makeRoot() {
  const words = asRoot();
  if (words === null) throw new Stop(`Emscripten is missing; run \`npm run setup\` as root once, or ${emsdk}`);
  const name = basename(debianRoot);
  removeUnfinished(name);
  const unfinished = join(cache, `${name}.${process.pid}`);
  console.log(`set-up: making a Debian ${suite} root with Emscripten in ${debianRoot} (under a minute) ...`);
  const withSources = `--setup-hook=sed -i 's/^deb /deb-src /; h; p; s/^deb-src /deb /' "$1"/etc/apt/sources.list`;
  const options = ['--quiet', '--variant=custom', withSources, `--extract-hook=${fillRoot}`];
  const [command, ...args] = [...words, 'mmdebstrap', ...options, suite, unfinished];
  await run(command, args, { name: 'mmdebstrap', env: systemEnvironment() }).catch((error) => {
    throw new Stop(`${error.message} Without it, ${emsdk}`);
  });
  if (existsSync(debianRoot)) await run('rm', ['-rf', debianRoot]);
  renameSync(unfinished, debianRoot);
}

/** Returns the packages that setUpEmscripten() needs. */
export function neededByEmscripten() {
  if (emccOnPath() || !isDebian()) return [];
  return rootIsReady() ? toEnterRoot : toMakeRoot;
}

/**
 * Makes Emscripten and the sources available, or ends in a sentence with the remedy. Ends quickly if they exist. The
 * packages of neededByEmscripten() must be installed.
 */
export async function setUpEmscripten() {
  if (emccOnPath()) return;
  if (!isDebian()) throw new Stop(`Emscripten is missing; ${emsdk}`);
  mkdirSync(cache, { recursive: true });
  if (capture('bwrap', ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', 'true']) === null) {
    throw new Stop(`Emscripten is missing, and bubblewrap may not make the root that would hold it here; ${emsdk}`);
  }
  if (!rootIsReady()) await makeRoot();
}
