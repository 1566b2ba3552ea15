// Runs of the parts of a test run: up to two at once, each as soon as the parts that it needs have passed. The report
// has a line for each part, the log of the part that fails, and at the end the time of every part and the slowest test
// cases.
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { elapsed, endAll, root, withOutput } from './process.mjs';
import { Results } from './results.mjs';

export const logs = join(root, 'build', 'test-logs');
const shownLines = 400;
const shownCases = 30;
/** Two parts use two cores even while one of them links, installs or waits. */
const sideBySide = 2;

/** Prints the last lines of a log. */
function printEnd(log) {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  if (lines.length > shownLines) console.log(`(the last ${shownLines} of ${lines.length} lines)`);
  console.log(lines.slice(-shownLines).join('\n'));
}

/**
 * A part of a test run.
 * @typedef {object} Part
 * @property {string} title
 * @property {() => Promise<void>} body
 * @property {() => Results} [results] reads the report of the body's test runner, also after a failure
 * @property {string[]} [needs] titles of the parts that must have passed before
 * @property {boolean} [alone] nothing runs next to it, because it measures time or memory
 */

export class Report {
  #total = new Results();
  #start = performance.now();
  #times = [];
  #number = 0;
  /** The log of each running part, by its title. */
  #logs = new Map();

  constructor() {
    rmSync(logs, { recursive: true, force: true });
    mkdirSync(logs, { recursive: true });
  }

  /**
   * Runs the parts; a part that is needed but is not among them counts as passed. The first part that fails ends the
   * run, or, with `keepGoing`, only skips the parts that need it.
   * @param {Part[]} parts in the order in which they start if they may
   * @param {{ keepGoing?: boolean }} options
   * @returns {Promise<boolean>} whether all passed
   */
  async run(parts, { keepGoing = false } = {}) {
    const waiting = new Set(parts);
    const running = new Map();
    const titles = new Set(parts.map(({ title }) => title));
    const passed = new Set();
    const ready = ({ needs = [], alone }) =>
      needs.every((title) => passed.has(title) || !titles.has(title)) && (!alone || running.size === 0);
    let failed = false;
    while (waiting.size > 0 || running.size > 0) {
      const busy = running.size >= sideBySide || [...running.keys()].some(({ alone }) => alone);
      const next = (failed && !keepGoing) || busy ? undefined : [...waiting].find(ready);
      if (next) {
        waiting.delete(next);
        running.set(
          next,
          this.#part(next, () => failed && !keepGoing).then((ok) => [next, ok]),
        );
        continue;
      }
      if (running.size === 0) break;
      const [part, ok] = await Promise.race(running.values());
      running.delete(part);
      if (ok) {
        passed.add(part.title);
        continue;
      }
      if (!failed && !keepGoing) endAll();
      failed = true;
    }
    return !failed && waiting.size === 0;
  }

  /**
   * Runs one part. If another part has failed meanwhile (`ended`), a failure of this one is not shown, because it may
   * be a consequence.
   */
  async #part({ title, body, results = () => new Results() }, ended) {
    const start = performance.now();
    this.#number += 1;
    const log = join(logs, `${String(this.#number).padStart(2, '0')}-${title.replace(/\W+/g, '-').toLowerCase()}.log`);
    console.log(`== ${title}`);
    const descriptor = openSync(log, 'w');
    this.#logs.set(title, log);
    let failure = null;
    try {
      await withOutput(descriptor, body);
    } catch (error) {
      failure = error;
    }
    closeSync(descriptor);
    this.#logs.delete(title);
    if (failure && ended()) return false;
    const seen = results();
    if (failure && seen.failed === 0) seen.failed = 1;
    this.#total.add({ ...seen, cases: seen.cases.map((one) => ({ ...one, part: title })) });
    this.#times.push({ title, seconds: Math.round((performance.now() - start) / 100) / 10 });
    if (!failure && seen.failed > 0) failure = new Error(`${seen.failed} failed`);
    if (failure) {
      printEnd(log);
      console.log(`\n== ${title}: failed after ${elapsed(start)}: ${failure.message}\n   log: ${log}`);
      return false;
    }
    const cases = seen.passed + seen.skipped > 0 ? `: ${seen}` : '';
    console.log(`   ${title}: ok after ${elapsed(start)}${cases}`);
    return true;
  }

  /** Prints the ends of the logs of the running parts, so that an ended run shows where its time went. */
  printRunning() {
    for (const [title, log] of this.#logs) {
      console.log(`\n== ${title}: still running`);
      printEnd(log);
    }
  }

  /** Prints the last lines of the run and leaves its times in timings.json next to the logs. */
  end() {
    const slowest = this.#total.cases.toSorted((a, b) => b.seconds - a.seconds).slice(0, shownCases);
    const parts = this.#times.toSorted((a, b) => b.seconds - a.seconds);
    const whole = Math.round((performance.now() - this.#start) / 100) / 10;
    writeFileSync(join(logs, 'timings.json'), `${JSON.stringify({ seconds: whole, parts, slowest }, null, 2)}\n`);
    const row = (seconds, text) => `${seconds.toFixed(1).padStart(8)} s  ${text}`;
    console.log('\n== Time of each part (two may run side by side)');
    for (const { title, seconds } of parts) console.log(row(seconds, title));
    if (slowest.length > 0) console.log(`\n== The ${slowest.length} slowest test cases`);
    for (const { name, seconds, part } of slowest) console.log(row(seconds, `${name} (${part})`));
    const { passed, failed, skipped } = this.#total;
    console.log(`\n${skipped > 0 ? `${skipped} skipped; ` : ''}${whole.toFixed(1)} s in all`);
    console.log(`${passed} passed, ${failed} failed`);
  }
}
