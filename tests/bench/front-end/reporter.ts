/** A reporter that only prints failures, because measurements print their own rows. */

import type { Reporter, TestCase } from 'vitest/node';

export default class implements Reporter {
  onTestCaseResult(test: TestCase): void {
    for (const error of test.result().errors ?? []) {
      console.error(`${test.name}: ${error.message}\n${error.stack ?? ''}`);
    }
  }

  onTestRunEnd(_modules: unknown, unhandled: readonly { message: string }[]): void {
    for (const error of unhandled) {
      console.error(error.message);
    }
  }
}
