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
  "access,archive,audit,daemon,egress,form,gateway,http,keys,lease,node,observe,oidc,operator,pool,registry",
  "schedule,scripts,spec,store,system,telemetry,vault",
  "browser/{cdp,extensions,fill,passkeys,policy,profile,reset}",
];
const shared = [`test/{${sharing.join(",")}}/**/*.test.ts`];
/** Faults stop what others would miss, and wait more than they compute. */
const alone = ["test/faults/**/*.test.ts"];
/** What takes all that the machine has, for a while without walls, would keep other browsers from their start. */
const crowding = ["test/proof/isolation/**/*.test.ts"];

/** What takes some twenty seconds or more. */
const longest = new RegExp(
  `/(${[
    "audit-export-kills|clocks-apart|corpus|cut-delete|descriptors|extensions|forced-extensions|frozen",
    "hostile-clients|internal-pages|killed-(?:browser|daemon|making)|memory|month|moved-clocks|node-name",
    "page-access|reset|roles|traffic",
  ].join("|")})\\.test\\.ts$`,
);
/** What starts daemons and browsers. */
const starting = /\/test\/(browser|form|gateway|node|proof|system)\//;

/** The longest come first among their project's, so that no worker ends with one alone. */
class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const turn = ({ moduleId }: TestSpecification): number =>
      longest.test(moduleId) ? 0 : starting.test(moduleId) ? 1 : 2;
    const rank = (spec: TestSpecification): number => 3 * projects.indexOf(spec.project) + turn(spec);
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
    expect: { poll: { timeout: 60_000, interval: 50 } },
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
          exclude: pure,
          pool: "forks",
          isolate: false,
          // Two left a processor idle for a quarter of the time, since many wait for what is to happen.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, pool: "forks", maxWorkers: 4, sequence: { groupOrder: 3 } },
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
