// Results of test cases, from the reports of test runners.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Counts of test cases, and the time of each. */
export class Results {
  passed = 0;
  failed = 0;
  skipped = 0;
  /** @type {{ name: string, seconds: number }[]} */
  cases = [];

  add({ passed, failed, skipped, cases }) {
    this.passed += passed;
    this.failed += failed;
    this.skipped += skipped;
    this.cases.push(...cases);
  }

  toString() {
    const skipped = this.skipped > 0 ? `, ${this.skipped} skipped` : '';
    return `${this.passed} passed, ${this.failed} failed${skipped}`;
  }
}

const attribute = (tag, name) => tag.match(new RegExp(` ${name}="([^"]*)"`))?.[1];

/** Returns the results in GoogleTest's XML files of a folder. */
export function googleTestResults(folder) {
  const results = new Results();
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const text = readFileSync(join(folder, name), 'utf8');
    for (const [suite] of text.matchAll(/<testsuite [^>]*>/g)) {
      const number = (key) => Number(attribute(suite, key) ?? 0);
      const failed = number('failures') + number('errors');
      const skipped = number('skipped') + number('disabled');
      results.add({ passed: number('tests') - failed - skipped, failed, skipped, cases: [] });
    }
    for (const [tag] of text.matchAll(/<testcase [^>]*>/g)) {
      const title = `${attribute(tag, 'classname')}.${attribute(tag, 'name')}`;
      results.cases.push({ name: title, seconds: Number(attribute(tag, 'time') ?? 0) });
    }
  }
  return results;
}

/** Returns the results in a report of Vitest (--reporter=json). */
export function vitestResults(file) {
  const results = new Results();
  if (!existsSync(file)) return results;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const cases = report.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .map(({ fullName, duration }) => ({ name: fullName, seconds: (duration ?? 0) / 1000 }));
  const skipped = report.numPendingTests + report.numTodoTests;
  results.add({ passed: report.numPassedTests, failed: report.numFailedTests, skipped, cases });
  return results;
}

/** Returns the results in a report of Playwright (--reporter=json). A case that passed on a second try counts as passed. */
export function playwrightResults(file) {
  const results = new Results();
  if (!existsSync(file)) return results;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const specs = (suite) => [...(suite.specs ?? []), ...(suite.suites ?? []).flatMap(specs)];
  const cases = specs(report).flatMap(({ title, tests }) =>
    tests.flatMap(({ results: tries }) => tries.map(({ duration }) => ({ name: title, seconds: duration / 1000 }))),
  );
  const { expected, flaky, unexpected, skipped } = report.stats;
  results.add({ passed: expected + flaky, failed: unexpected, skipped, cases });
  return results;
}
