// Runs the parts of a test run one after another: a heading and a time each, output into a log that is shown when the part
// fails, and the numbers of test cases that passed and failed over all parts.
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { elapsed, output, root } from './process.mjs';

export const logs = join(root, 'build', 'test-logs');
const shownLines = 400;

/** Counts of test cases. */
export class Counts {
  passed = 0;
  failed = 0;
  skipped = 0;

  add({ passed, failed, skipped }) {
    this.passed += passed;
    this.failed += failed;
    this.skipped += skipped;
  }

  toString() {
    const skipped = this.skipped > 0 ? `, ${this.skipped} skipped` : '';
    return `${this.passed} passed, ${this.failed} failed${skipped}`;
  }
}

/** Counts the cases of GoogleTest's XML files in a folder. */
export function countGoogleTest(folder) {
  const counts = new Counts();
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const text = readFileSync(join(folder, name), 'utf8');
    for (const [suite] of text.matchAll(/<testsuite [^>]*>/g)) {
      const number = (key) => Number(suite.match(new RegExp(` ${key}="(\\d+)"`))?.[1] ?? 0);
      const failed = number('failures') + number('errors');
      const skipped = number('skipped') + number('disabled');
      counts.add({ passed: number('tests') - failed - skipped, failed, skipped });
    }
  }
  return counts;
}

/** Counts the cases of a Vitest report (--reporter=json). */
export function countVitest(file) {
  const counts = new Counts();
  if (!existsSync(file)) return counts;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const skipped = report.numPendingTests + report.numTodoTests;
  counts.add({ passed: report.numPassedTests, failed: report.numFailedTests, skipped });
  return counts;
}

/** Counts the cases of a Playwright report (--reporter=json). A case that passed on a second try is counted as passed. */
export function countPlaywright(file) {
  const counts = new Counts();
  if (!existsSync(file)) return counts;
  const { stats } = JSON.parse(readFileSync(file, 'utf8'));
  counts.add({ passed: stats.expected + stats.flaky, failed: stats.unexpected, skipped: stats.skipped });
  return counts;
}

export class Report {
  total = new Counts();
  #start = performance.now();
  #number = 0;

  constructor() {
    rmSync(logs, { recursive: true, force: true });
    mkdirSync(logs, { recursive: true });
  }

  /** Runs one part. `count` gives its Counts once `body` has ended, also when it failed. Returns whether it passed. */
  async part(title, body, count = () => new Counts()) {
    const start = performance.now();
    this.#number += 1;
    const log = join(logs, `${String(this.#number).padStart(2, '0')}-${title.replace(/\W+/g, '-').toLowerCase()}.log`);
    console.log(`\n== ${title}`);
    const descriptor = openSync(log, 'w');
    output.to = descriptor;
    let failure = null;
    try {
      await body();
    } catch (error) {
      failure = error;
    }
    output.to = 'inherit';
    closeSync(descriptor);
    const counts = count();
    if (failure && counts.failed === 0) counts.failed = 1;
    this.total.add(counts);
    if (!failure && counts.failed > 0) failure = new Error(`${counts.failed} failed`);
    if (failure) {
      const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
      if (lines.length > shownLines) console.log(`(the last ${shownLines} of ${lines.length} lines)`);
      console.log(lines.slice(-shownLines).join('\n'));
      console.log(`\n== ${title}: failed after ${elapsed(start)}: ${failure.message}\n   log: ${log}`);
      return false;
    }
    const cases = counts.passed + counts.skipped > 0 ? `: ${counts}` : '';
    console.log(`   ok after ${elapsed(start)}${cases}`);
    return true;
  }

  /** The last lines of the run. */
  end() {
    console.log(`\n${this.total.skipped > 0 ? `${this.total.skipped} skipped; ` : ''}${elapsed(this.#start)} in all`);
    console.log(`${this.total.passed} passed, ${this.total.failed} failed`);
  }
}
