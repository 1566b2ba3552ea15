// WebKitGTK through WebKitWebDriver's REST protocol (W3C WebDriver), on an X server of its own.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { removeProfile } from './profile.mjs';

interface Reply {
  value: unknown;
}

export class WebKit {
  readonly #children: ChildProcess[];
  readonly #address: string;
  readonly #home: string;
  #session = '';

  static async launch(): Promise<WebKit> {
    const { display, xvfb } = await startXvfb();
    const port = await freePort();
    const home = mkdtempSync(join(tmpdir(), 'qsf-webkit-'));
    const env = { ...process.env, DISPLAY: display, HOME: home, XDG_CACHE_HOME: home, XDG_DATA_HOME: home };
    const driver = spawn('WebKitWebDriver', [`--port=${String(port)}`], { env, stdio: 'ignore' });
    const webkit = new WebKit([driver, xvfb], `http://127.0.0.1:${String(port)}`, home);
    try {
      await webkit.#begin();
      return webkit;
    } catch (error) {
      await webkit.close();
      throw error;
    }
  }

  private constructor(children: ChildProcess[], address: string, home: string) {
    this.#children = children;
    this.#address = address;
    this.#home = home;
  }

  async goto(url: string): Promise<void> {
    await this.#post(`/session/${this.#session}/url`, { url });
  }

  /** Runs a function of one argument in the page, and gives its result. */
  async run(action: (given: never) => unknown, given: unknown): Promise<unknown> {
    const ended = 'then((value) => done({ value }), (error) => done({ error: String(error) }))';
    const script = `const [given, done] = arguments; Promise.resolve(given).then(${String(action)}).${ended};`;
    const answer = await this.#post(`/session/${this.#session}/execute/async`, { script, args: [given] });
    const { value, error } = answer as { value?: unknown; error?: string };
    if (error !== undefined) throw new Error(error);
    return value;
  }

  async close(): Promise<void> {
    if (this.#session !== '') {
      await fetch(`${this.#address}/session/${this.#session}`, { method: 'DELETE' }).catch(() => undefined);
    }
    for (const child of this.#children) {
      if (child.exitCode === null && child.kill()) await once(child, 'exit');
    }
    await removeProfile(this.#home);
  }

  async #begin(): Promise<void> {
    const alwaysMatch = {
      'webkitgtk:browserOptions': { binary: miniBrowser(), args: ['--automation'] },
    };
    const value = await this.#post('/session', { capabilities: { alwaysMatch } }, 50);
    this.#session = (value as { sessionId: string }).sessionId;
    await this.#post(`/session/${this.#session}/timeouts`, { script: 120_000, pageLoad: 60_000 });
  }

  /** `tries`: for the first request, while the driver starts. */
  async #post(path: string, body: unknown, tries = 1): Promise<unknown> {
    for (;;) {
      try {
        const response = await fetch(this.#address + path, { method: 'POST', body: JSON.stringify(body) });
        const { value } = (await response.json()) as Reply;
        if (!response.ok) throw new Error(`WebDriver: ${JSON.stringify(value)}`);
        return value;
      } catch (error) {
        if (!(error instanceof TypeError) || --tries <= 0) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }
}

function miniBrowser(): string {
  const folders = readdirSync('/usr/lib').filter((name) => name.includes('-linux-'));
  for (const folder of folders) {
    const inside = join('/usr/lib', folder);
    const found = readdirSync(inside).filter((name) => /^webkit(2)?gtk-/.test(name));
    for (const name of found) {
      if (readdirSync(join(inside, name)).includes('MiniBrowser')) return join(inside, name, 'MiniBrowser');
    }
  }
  throw new Error('MiniBrowser is not installed (libwebkit2gtk-4.1-0)');
}

/** Xvfb chooses a free display and tells its number. */
async function startXvfb(): Promise<{ display: string; xvfb: ChildProcess }> {
  const args = ['-displayfd', '3', '-screen', '0', '1024x768x24', '-nolisten', 'tcp'];
  const xvfb = spawn('Xvfb', args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const pipe = xvfb.stdio[3]!;
  const [number] = (await Promise.race([
    once(pipe, 'data'),
    once(xvfb, 'exit').then(() => Promise.reject(new Error('Xvfb did not start'))),
  ])) as [Buffer];
  return { display: `:${number.toString().trim()}`, xvfb };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
