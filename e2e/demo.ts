// The demo page, built and served for tests, and what a visitor does with it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';
import { build, preview } from 'vite';
import type { PreviewServer } from 'vite';

const root = fileURLToPath(new URL('../web/demo', import.meta.url));

/** For what waits on computing, in ms: a busy machine may take its time. */
export const patience = { timeout: 60_000 };

/** The seed of every story for which a test sets none. Its story is longer than the model's context. */
const seed = 3;

/** Makes the page draw one seed always: a few seeds have short stories, which end before the point that a test is about. */
function drawOneSeed(seed: number): void {
  const draw = crypto.getRandomValues.bind(crypto);
  crypto.getRandomValues = (array) =>
    array instanceof Uint32Array && array.length === 1 ? array.fill(seed) : draw(array);
}

/** The built page behind a server that can be stopped. */
export class Demo {
  readonly folder: string;
  readonly address: string;
  readonly #server: PreviewServer;

  /** `isolated`: pages are isolated from other origins, which threads require. */
  static async start(isolated = true): Promise<Demo> {
    const folder = mkdtempSync(join(tmpdir(), 'qsf-demo-'));
    const config = { root, logLevel: 'warn' as const, build: { outDir: folder, emptyOutDir: true } };
    await build(config);
    const headers: Record<string, string> = isolated ? {} : { 'Cross-Origin-Embedder-Policy': 'unsafe-none' };
    const server = await preview({ ...config, preview: { host: 'localhost', port: 4273, strictPort: false, headers } });
    return new Demo(folder, server);
  }

  private constructor(folder: string, server: PreviewServer) {
    this.folder = folder;
    this.#server = server;
    this.address = server.resolvedUrls?.local[0] ?? '';
  }

  async stop(): Promise<void> {
    await this.#server.close();
    rmSync(this.folder, { recursive: true });
  }

  /** Returns the list of what goes wrong on a page from now on, and of what it asks of other hosts. It must stay empty. */
  complaintsOf(page: Page): readonly string[] {
    const complaints: string[] = [];
    page.on('console', (message) => {
      // Windows of tests are private, and private files are slow there.
      const isOfRate = message.text().includes('The browser reads its private files at');
      if (['error', 'warning'].includes(message.type()) && !isOfRate) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => {
      if (!request.url().startsWith(this.address)) complaints.push(`asked for ${request.url()}`);
    });
    return complaints;
  }

  /** Opens the page with its model, and returns its complaints. */
  async visit(page: Page, hash = ''): Promise<readonly string[]> {
    const complaints = this.complaintsOf(page);
    await page.addInitScript(drawOneSeed, seed);
    await page.goto(`${this.address}${hash}`);
    await planned(page);
    return complaints;
  }
}

/** Waits until the model is open with the chosen budget. */
export async function planned(page: Page): Promise<void> {
  await expect(page.getByRole('status')).toContainText('Room for', patience);
}

/** Shows the slider and the figures, which a narrow window folds. */
export async function unfold(page: Page): Promise<void> {
  const fold = page.getByRole('button', { name: 'Memory and speed' });
  if ((await fold.isVisible()) && (await fold.getAttribute('aria-expanded')) === 'false') await fold.click();
}

/** Opens the model at an address, or of a name on the Hub, that is typed. */
export async function openAt(page: Page, address: string): Promise<void> {
  await page.locator('#model-button').click();
  const picker = page.getByRole('dialog', { name: 'Choose a model' });
  await picker.getByLabel('Name on the Hub, or address').fill(address);
  await picker.getByRole('button', { name: 'Open', exact: true }).click();
}

export const story = (page: Page) => page.getByRole('log', { name: 'The story' }).locator('p');
export const stop = (page: Page) => page.getByRole('button', { name: 'Stop', exact: true });
export const write = (page: Page) => page.getByRole('button', { name: 'Write' });
export const slider = (page: Page) => page.getByRole('slider', { name: 'Memory budget' });

/** Writes a story to its end and gives its text, the prompt included. */
export async function writeStory(page: Page): Promise<string> {
  // A short story may be over before the next look at the button.
  const written = page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        const button = document.getElementById('stop')!;
        let began = false;
        const observer = new MutationObserver(() => {
          const isOff = button.getAttribute('aria-disabled') === 'true';
          began ||= !isOff;
          if (!began || !isOff) return;
          observer.disconnect();
          resolve();
        });
        observer.observe(button, { attributes: true });
      }),
  );
  await write(page).click();
  await written;
  return (await story(page).textContent()) ?? '';
}

/**
 * Stops what is written next once the elements have more characters than so many, by the button of that id or by Escape. The
 * page itself does it, because a look from here may come after the end of a short text.
 */
export function stopPast(page: Page, elements: string, length: number, button?: string): Promise<void> {
  return page.evaluate(
    ({ elements, length, button }) =>
      new Promise<void>((resolve) => {
        const observer = new MutationObserver(() => {
          const texts = [...document.querySelectorAll(elements)].map((element) => element.textContent);
          if (texts.join('').length <= length) return;
          observer.disconnect();
          if (button) document.getElementById(button)!.click();
          else document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
          resolve();
        });
        observer.observe(document.body, { childList: true, subtree: true, characterData: true });
      }),
    { elements, length, button },
  );
}

export async function setOption(page: Page, name: string, value: string): Promise<void> {
  const options = page.locator('#options');
  if ((await options.getAttribute('open')) === null) await options.locator('summary').click();
  await page.getByLabel(name, { exact: true }).fill(value);
}
