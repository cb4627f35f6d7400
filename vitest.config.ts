import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that need nothing but the code itself. */
const pure = ["test/{architecture,base,config,deploy,telemetry/commands}/**/*.test.ts"];
/**
 * What these keep is in Redis, in objects of their own and in processes that they start, so that the files of a
 * worker may share the modules that it has loaded: a process for each would take 0.6 s to load them
 * (DECISIONS.md#175).
 */
const sharing = [
  "access,archive,audit,daemon,egress,gateway,http,lease,node,observe,oidc,operator,pool,registry,schedule,spec",
  "store,system,telemetry",
];
const shared = [`test/{${sharing.join(",")}}/**/*.test.ts`];
/** Faults stop what others would miss, and wait more than they compute. */
const alone = ["test/faults/**/*.test.ts"];
/** What takes all that the machine has, for a while without walls, would keep other browsers from their start. */
const crowding = ["test/proof/isolation/**/*.test.ts"];

/** Those that start daemons and browsers come first among their project's, so that no worker ends with one alone. */
class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/test\/(gateway|node|proof|system)\//.test(moduleId);
    const rank = (spec: TestSpecification): number =>
      2 * projects.indexOf(spec.project) + (isLong(spec) ? 0 : 1);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
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
          exclude: [...pure, ...shared, ...alone, ...crowding],
          // What a browser is given of its daemon's process is looked at, so each file has one that no other has changed.
          pool: "forks",
          // As many as there are processors where CI runs: with more, browsers took over 30 s to start on a slow machine.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "shared",
          include: shared,
          pool: "forks",
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, pool: "forks", maxWorkers: 3, sequence: { groupOrder: 3 } },
      },
      {
        extends: true,
        test: {
          name: "crowding",
          include: crowding,
          pool: "forks",
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
