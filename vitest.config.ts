import { defineConfig } from "vitest/config";

/** Of what nothing but the code itself is needed. */
const pure = ["test/{architecture,base,config,deploy,telemetry/commands}/**/*.test.ts"];
/**
 * What these keep is in Redis and in objects of their own, so that the files of a worker may share the modules
 * that it has loaded: a process for each costs more than their tests do.
 */
const shared = ["test/{audit,lease,pool,registry,schedule,spec,store}/**/*.test.ts"];
/** Faults are timed, and what they stop is not to be missed by others. */
const alone = ["test/faults/**/*.test.ts"];

export default defineConfig({
  test: {
    globalSetup: ["test/support/compile.ts"],
    setupFiles: ["test/support/end-with-run.ts"],
    // What is compiled already is Node.js's to load (compile.ts).
    server: { deps: { external: [/\/remuda-test-compiled-/] } },
    // What is waited for comes when it comes: other work on the machine is no failure. These end what hangs.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    allowOnly: false,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: pure,
          pool: "forks",
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "processes",
          include: ["test/**/*.test.ts"],
          exclude: [...pure, ...shared, ...alone],
          // Parent-death signals follow the thread that forked, so tests that start processes need a process of their own.
          pool: "forks",
          // Tests wait for processes, sockets and timers more than they compute.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        // Beside the others, and after them: the shortest come last.
        test: {
          name: "shared",
          include: shared,
          pool: "forks",
          isolate: false,
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, pool: "forks", maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
