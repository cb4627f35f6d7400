import { defineConfig } from "vitest/config";
import { FaultReporter } from "./reporter.js";

/** `npm run prove:faults`: the faults that `npm test` tries too, and those that take longer. */
export default defineConfig({
  test: {
    globalSetup: ["test/support/compile.ts"],
    setupFiles: ["test/support/end-with-run.ts"],
    server: { deps: { external: [/\/remuda-test-compiled-/] } },
    include: ["test/faults/**/*.{test,fault}.ts"],
    pool: "forks",
    // Recovery times are measured: nothing else is to run meanwhile.
    fileParallelism: false,
    hookTimeout: 120_000,
    allowOnly: false,
    expect: { poll: { timeout: 10_000, interval: 20 } },
    reporters: ["default", new FaultReporter()],
  },
});
