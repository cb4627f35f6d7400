import { defineConfig } from "vitest/config";

/** `npm run soak`: minutes of churn, which is no part of `npm test`. */
export default defineConfig({
  test: {
    globalSetup: ["test/support/compile.ts"],
    setupFiles: ["test/support/end-with-run.ts"],
    server: { deps: { external: [/\/remuda-test-compiled-/] } },
    include: ["test/soak/*.soak.ts"],
    pool: "forks",
    hookTimeout: 120_000,
    allowOnly: false,
    expect: { poll: { timeout: 60_000, interval: 20 } },
  },
});
