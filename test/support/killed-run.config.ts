import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** A run that is there to be killed (killed-run.test.ts). */
export default defineConfig({
  root: join(import.meta.dirname, "../.."),
  test: {
    include: ["test/support/killed-run.fixture.ts"],
    globalSetup: ["test/support/compile.ts"],
    setupFiles: ["test/support/end-with-run.ts"],
    server: { deps: { external: [/\/remuda-test-compiled-/] } },
    pool: "forks",
  },
});
