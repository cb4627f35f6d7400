import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Parent-death signals follow the thread that forked, so tests that start processes need a process of their own.
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 60_000,
    allowOnly: false,
  },
});
