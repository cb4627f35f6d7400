import type { Reporter, TestCase, TestModule } from "vitest/node";
import { type Proved, tableOf } from "./table.js";

const outcomes = { passed: "held", failed: "FAILED", skipped: "not tried", pending: "not tried" } as const;

const provedBy = (test: TestCase): Proved => {
  const { row } = test.meta();
  return { name: test.fullName, outcome: outcomes[test.result().state], ...(row && { row }) };
};

/** Prints the table once all faults were tried. */
export class FaultReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const proved = modules.flatMap((module) => [...module.children.allTests()]).map(provedBy);
    console.log(`\n${tableOf(proved)}\n`);
  }
}
