// The browsers, each behind the same few calls.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium, firefox } from '@playwright/test';
import type { BrowserContext, Page } from '@playwright/test';

import { chromiumArgs, chromiumPath } from './chromium.mjs';
import type { Actions, Failure } from './page.js';
import { removeProfile } from './profile.mjs';
import { WebKit } from './webdriver.js';

/** What an action of the page failed with. */
export class PageFailure extends Error {
  override readonly name: string;
  readonly code: string | undefined;

  constructor({ name, code, message }: Failure) {
    super(message);
    this.name = name;
    this.code = code;
  }
}

type Answer = { value: unknown } | { failure: Failure };

/** One open page. */
export class Tab {
  readonly #call: (action: string, args: unknown[]) => Promise<Answer>;
  readonly close: () => Promise<void>;
  /** The page itself, where Playwright drives it. */
  readonly page: Page | undefined;

  constructor(call: (action: string, args: unknown[]) => Promise<Answer>, close: () => Promise<void>, page?: Page) {
    this.#call = call;
    this.close = close;
    this.page = page;
  }

  async call<A extends keyof Actions>(
    action: A,
    ...args: Parameters<Actions[A]>
  ): Promise<Awaited<ReturnType<Actions[A]>>> {
    const answer = await this.#call(action, args);
    if ('failure' in answer) throw new PageFailure(answer.failure);
    return answer.value as Awaited<ReturnType<Actions[A]>>;
  }
}

export interface Browser {
  /** Whether the browser lets a driven page keep files. */
  readonly keepsFiles: boolean;
  open(url: string): Promise<Tab>;
  close(): Promise<void>;
}

const firefoxPath = process.env['QSF_FIREFOX'] ?? '/usr/bin/firefox-esr';

export async function launchChromium(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'qsf-chromium-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath: chromiumPath, args: chromiumArgs });
  return playwrightBrowser(context, profile);
}

/** Launches Firefox with a profile of its own, whose folder it gives too. */
export async function firefoxContext(): Promise<{ context: BrowserContext; profile: string }> {
  const profile = mkdtempSync(join(tmpdir(), 'qsf-firefox-'));
  const context = await firefox.launchPersistentContext(profile, {
    channel: 'moz-firefox',
    executablePath: firefoxPath,
  });
  return { context, profile };
}

export async function launchFirefox(): Promise<Browser> {
  const { context, profile } = await firefoxContext();
  return playwrightBrowser(context, profile);
}

/** The test page in a page of Playwright's, once it is there. */
export function tabOf(page: Page): Tab {
  const call = (action: string, args: unknown[]) =>
    page.evaluate(([name, given]) => window.call(name as keyof Actions, given as unknown[]), [action, args] as const);
  return new Tab(call, () => page.close(), page);
}

function playwrightBrowser(context: BrowserContext, profile: string): Browser {
  return {
    keepsFiles: true,
    open: async (url) => {
      const page = await context.newPage();
      await page.goto(url);
      await page.waitForFunction(() => 'call' in window);
      return tabOf(page);
    },
    close: async () => {
      await context.close();
      await removeProfile(profile);
    },
  };
}

export async function launchWebKit(): Promise<Browser> {
  const webkit = await WebKit.launch();
  const ready = 'const done = arguments[0]; (function look() { window.call ? done(true) : setTimeout(look, 20); })();';
  const call = 'const done = arguments[2]; window.call(arguments[0], arguments[1]).then(done);';
  return {
    keepsFiles: false,
    open: async (url) => {
      await webkit.goto(url);
      await webkit.executeAsync(ready, []);
      return new Tab(
        async (action, args) => (await webkit.executeAsync(call, [action, args])) as Answer,
        () => webkit.goto('about:blank'),
      );
    },
    close: () => webkit.close(),
  };
}
