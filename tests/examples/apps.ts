// The examples, copied to where they are installed with the packed package, built and run.
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { cache } from '../../scripts/lib/emscripten.mjs';
import { dist } from '../../scripts/lib/package.mjs';
import { root } from '../../scripts/lib/process.mjs';

const run = promisify(execFile);

/** The folder of the apps: outside of the checkout, so that an app finds nothing of it. */
const place = join(tmpdir(), `qsf-examples-${createHash('sha256').update(root).digest('hex').slice(0, 8)}`);

/** Nothing is asked for by programs that would tell of their use. */
const env: NodeJS.ProcessEnv = {
  ...process.env,
  NODE_ENV: undefined,
  NEXT_TELEMETRY_DISABLED: '1',
  VITEST: undefined,
  NODE_OPTIONS: undefined,
};

/** The package as `npm pack` makes it, unpacked: what an installation of it has. */
let packed = '';

export async function pack(): Promise<string> {
  mkdirSync(place, { recursive: true });
  const { stdout } = await run('npm', ['pack', dist, '--json', '--pack-destination', place], { cwd: place });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  packed = join(place, 'package');
  rmSync(packed, { recursive: true, force: true });
  await run('tar', ['-xf', join(place, filename), '-C', place]);
  return join(place, filename);
}

export const packedFolder = (): string => packed;

/**
 * Returns the node_modules with the packages of a manifest, which are installed once for all checkouts: those of a lock
 * file, if there is one.
 */
async function installed(manifest: Manifest, lock = ''): Promise<string> {
  const wanted = JSON.stringify(manifest);
  const store = join(cache, 'examples', createHash('sha256').update(wanted).update(lock).digest('hex').slice(0, 16));
  if (!existsSync(store)) {
    const unfinished = `${store}.${String(process.pid)}`;
    mkdirSync(unfinished, { recursive: true });
    writeFileSync(join(unfinished, 'package.json'), JSON.stringify({ private: true, ...manifest }));
    if (lock !== '') writeFileSync(join(unfinished, 'package-lock.json'), lock);
    const how = lock === '' ? 'install' : 'ci';
    await run('npm', [how, '--no-audit', '--no-fund', '--loglevel=error'], { cwd: unfinished, env });
    renameSync(unfinished, store);
  }
  return join(store, 'node_modules');
}

/** Copies a folder by hard links, or file by file if it is on another file system. */
async function linkFolder(from: string, to: string): Promise<void> {
  await run('cp', ['-al', from, to]).catch(async () => {
    rmSync(to, { recursive: true, force: true });
    await run('cp', ['-a', from, to]);
  });
}

export class App {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** An example, installed; with `others`, in the place of its own versions. */
  static async install(example: string, others: Record<string, string> = {}): Promise<App> {
    const name = [example, ...Object.entries(others).flat()].join('-').replaceAll(/[^\w.-]/g, '');
    const folder = join(place, name);
    const source = join(root, 'examples', example);
    const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as Manifest;
    const { qsf, ...dependencies } = { ...manifest.dependencies, ...others };
    const devDependencies = Object.fromEntries(
      Object.entries(manifest.devDependencies ?? {}).filter(([name]) => !(name in others)),
    );
    const lock = join(source, 'package-lock.json');
    const isLocked = Object.keys(others).length === 0 && existsSync(lock);
    rmSync(folder, { recursive: true, force: true });
    cpSync(source, folder, { recursive: true, filter: (path) => !/node_modules|\.next|\/dist\b/.test(path) });
    // The package itself is put there below: it is not in any registry yet.
    const needed = { dependencies, devDependencies };
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, ...needed }));
    const modules = join(folder, 'node_modules');
    if (Object.keys({ ...dependencies, ...devDependencies }).length > 0)
      await linkFolder(await installed(needed, isLocked ? readFileSync(lock, 'utf8') : ''), modules);
    mkdirSync(modules, { recursive: true });
    if (qsf !== undefined) cpSync(packed, join(modules, 'qsf'), { recursive: true });
    return new App(folder);
  }

  /** A copy of it as a part of a workspace, where the package lies further up. */
  inWorkspace(): App {
    const top = join(place, 'workspace');
    const folder = join(top, 'app');
    rmSync(top, { recursive: true, force: true });
    cpSync(this.folder, folder, { recursive: true, verbatimSymlinks: true });
    rmSync(join(folder, 'node_modules', 'qsf'), { recursive: true });
    cpSync(packed, join(top, 'node_modules', 'qsf'), { recursive: true });
    writeFileSync(join(top, 'package.json'), JSON.stringify({ private: true, workspaces: ['app'] }));
    return new App(folder);
  }

  /** Runs a program that was installed with the example; gives what it wrote. */
  async run(program: string, ...args: string[]): Promise<string> {
    const path = join(this.folder, 'node_modules', '.bin', program);
    const { stdout } = await run(path, args, { cwd: this.folder, env });
    return stdout;
  }

  /** Runs a script of the example's; gives what it wrote. */
  async script(name: string, ...args: string[]): Promise<string> {
    const { stdout, stderr } = await run(
      'npm',
      ['run', '--silent', name, ...(args.length > 0 ? ['--', ...args] : [])],
      {
        cwd: this.folder,
        env,
      },
    );
    return stdout + stderr;
  }

  /** Runs a module in Node, next to the example's; gives what it wrote. */
  async node(code: string, ...args: string[]): Promise<string> {
    const path = join(this.folder, 'tried.mjs');
    writeFileSync(path, code);
    const { stdout } = await run(process.execPath, [path, ...args], { cwd: this.folder, env });
    return stdout;
  }

  /** Starts a script of the example's that serves at a port; gives the port. */
  async serve(name: string, option: string, ...args: string[]): Promise<number> {
    const port = await freePort();
    const all = ['run', '--silent', name, '--', option, String(port), ...args];
    const child = spawn('npm', all, { cwd: this.folder, env, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said += text.toString()));
    children.add(child);
    for (let tries = 0; tries < 300; tries++) {
      if (child.exitCode !== null) throw new Error(`${name} ended: ${said}`);
      if (await answers(port)) return port;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`${name} does not answer: ${said}`);
  }
}

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const children = new Set<ChildProcess>();

/** Ends what serve() started, with what that started. */
export function stopApps(): void {
  for (const { pid } of children) {
    try {
      process.kill(-pid!, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
  children.clear();
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, 'localhost');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
