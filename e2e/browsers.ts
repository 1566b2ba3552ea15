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

/** Runs a function in a page. It sees nothing of its surroundings here; what it is given and its result become JSON. */
type Run = <A, R>(action: (given: A) => R | Promise<R>, given: A) => Promise<R>;

/** One open page. */
export class Tab {
  readonly run: Run;
  readonly close: () => Promise<void>;
  /** The page itself, where Playwright drives it. */
  readonly page: Page | undefined;

  constructor(run: Run, close: () => Promise<void>, page?: Page) {
    this.run = run;
    this.close = close;
    this.page = page;
  }

  /** Runs an action of the test page. */
  async call<A extends keyof Actions>(
    action: A,
    ...args: Parameters<Actions[A]>
  ): Promise<Awaited<ReturnType<Actions[A]>>> {
    const given: [keyof Actions, unknown[]] = [action, args];
    const answer: Answer = await this.run(([name, rest]) => window.call(name, rest), given);
    if ('failure' in answer) throw new PageFailure(answer.failure);
    return answer.value as Awaited<ReturnType<Actions[A]>>;
  }
}

export interface Browser {
  /** Whether the browser lets a driven page keep files. */
  readonly keepsFiles: boolean;
  /** Opens the test page. */
  open(url: string): Promise<Tab>;
  /** Opens any page. */
  visit(url: string): Promise<Tab>;
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

/** A page of Playwright's. */
export function tabOf(page: Page): Tab {
  const run = page.evaluate.bind(page) as Run;
  return new Tab(run, () => page.close(), page);
}

/** Opens the test page, and waits until it is there. */
const opening = (visit: Browser['visit']) => async (url: string) => {
  const tab = await visit(url);
  const look = (ms: number) =>
    new Promise<void>((resolve) => {
      const looking = setInterval(() => {
        if (!('call' in window)) return;
        clearInterval(looking);
        resolve();
      }, ms);
    });
  await tab.run(look, 20);
  return tab;
};

function playwrightBrowser(context: BrowserContext, profile: string): Browser {
  const visit = async (url: string) => {
    const page = await context.newPage();
    await page.goto(url);
    return tabOf(page);
  };
  return {
    keepsFiles: true,
    open: opening(visit),
    visit,
    close: async () => {
      await context.close();
      await removeProfile(profile);
    },
  };
}

export async function launchWebKit(): Promise<Browser> {
  const webkit = await WebKit.launch();
  const visit = async (url: string) => {
    await webkit.goto(url);
    return new Tab(webkit.run.bind(webkit) as Run, () => webkit.goto('about:blank'));
  };
  return {
    keepsFiles: false,
    open: opening(visit),
    visit,
    close: () => webkit.close(),
  };
}
